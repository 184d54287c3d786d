"""The A2A SDK's client and server, direct and with the proxy between them: the same verdicts, whatever the binding."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_artifact, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as types
from a2a.types import a2a_pb2_grpc
from starlette.applications import Starlette

from tests.fakes.event_streams import end_watchers
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE

FILE = """
backends:
- name: web
  a2a: {{host: 127.0.0.1, port: {web}}}
- name: far
  a2a: {{host: 127.0.0.1, port: {far}}}
  policies: {{http: {{version: HTTP2}}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: calls
      matches:
      - {{path: {{type: PathPrefix, value: /lf.a2a.v1.A2AService/}}}}
      - {{path: {{type: PathPrefix, value: /a2a.v1.A2AService/}}}}
      policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ['a2a.method == "tasks/list"']}}}}}}
      backends: [{{backend: far}}]
    - name: web
      policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ['a2a.method == "tasks/list"']}}}}}}
      backends: [{{backend: web}}]
"""


class Agent(AgentExecutor):
    """It answers `hello` with an artifact and an end, `wait` with a task that can be cancelled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if context.get_user_input() == "wait":
            await updater.requires_input()
            return
        artifact = new_text_artifact("answer", "hello " + "é" * 10_000)
        await updater.add_artifact(list(artifact.parts), name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def card(web: int, far: int) -> types.AgentCard:
    interfaces = [
        types.AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        for version in ("1.0", "0.3")
        for binding, url in (
            ("JSONRPC", f"http://127.0.0.1:{web}/rpc"),
            ("HTTP+JSON", f"http://127.0.0.1:{web}"),
            ("GRPC", f"127.0.0.1:{far}"),
        )
    ]
    return types.AgentCard(
        name="agent",
        description="of the tests",
        version="1",
        supported_interfaces=interfaces,
        capabilities=types.AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[types.AgentSkill(id="s", name="s", description="s", tags=["s"])],
    )


@asynccontextmanager
async def agent() -> AsyncIterator[tuple[int, int]]:
    """Ports of an agent: HTTP and gRPC."""
    far = grpc.aio.server()
    far_port = far.add_insecure_port("127.0.0.1:0")
    listener = socket.create_server(("127.0.0.1", 0))
    web_port = listener.getsockname()[1]
    described = card(web_port, far_port)
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        agent_card=described,
        push_config_store=InMemoryPushNotificationConfigStore(),
        extended_agent_card=described,
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), far)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), far)
    routes = [
        *create_agent_card_routes(described),
        *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, enable_v0_3_compat=True),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    await far.start()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield web_port, far_port
    finally:
        server.should_exit = True
        await serving
        await far.stop(0)
        end_watchers()


def summary(event: types.StreamResponse) -> tuple[str, ...]:
    kind = event.WhichOneof("payload") or ""
    value = getattr(event, kind)
    state = types.TaskState.Name(value.status.state) if kind in ("task", "status_update") else ""
    text = value.artifact.parts[0].text if kind == "artifact_update" else ""
    return kind, state, text


async def attempt(what: Any) -> str:
    """What came of a call: its answer, or the kind of its error."""
    try:
        found = await what
    except Exception as error:
        return type(error).__name__
    return "done" if found is None else type(found).__name__


async def verdicts(url: str, binding: str, version: str) -> list[Any]:
    """What a client sees of the agent whose card is at `url`."""
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as web:
        described = await A2ACardResolver(web, url).get_agent_card()
        chosen = [
            each
            for each in described.supported_interfaces
            if each.protocol_binding == binding and each.protocol_version == version
        ]
        del described.supported_interfaces[:]
        described.supported_interfaces.extend(chosen)
        config = ClientConfig(
            httpx_client=web,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[binding],
        )
        client = ClientFactory(config).create(described)
        seen: list[Any] = []
        events = await asyncio.wait_for(_sent(client, "hello"), PATIENCE)
        seen.append([summary(event) for event in events])
        waiting = await asyncio.wait_for(_sent(client, "wait"), PATIENCE)
        seen.append([summary(event) for event in waiting])
        task = next(event.task.id for event in waiting if event.WhichOneof("payload") == "task")
        push = types.TaskPushNotificationConfig(id="c", task_id=task, url="https://client.test/hook", token="t")
        seen.append(await attempt(client.create_task_push_notification_config(push)))
        found = types.GetTaskPushNotificationConfigRequest(task_id=task, id="c")
        seen.append(await attempt(client.get_task_push_notification_config(found)))
        every = types.ListTaskPushNotificationConfigsRequest(task_id=task)
        seen.append(await attempt(client.list_task_push_notification_configs(every)))
        gone = types.DeleteTaskPushNotificationConfigRequest(task_id=task, id="c")
        seen.append(await attempt(client.delete_task_push_notification_config(gone)))
        seen.append(types.TaskState.Name((await client.get_task(types.GetTaskRequest(id=task))).status.state))
        seen.append(await attempt(client.get_extended_agent_card(types.GetExtendedAgentCardRequest())))
        seen.append(await asyncio.wait_for(attempt(_first(client, task)), PATIENCE))
        seen.append(types.TaskState.Name((await client.cancel_task(types.CancelTaskRequest(id=task))).status.state))
        seen.append(await attempt(client.cancel_task(types.CancelTaskRequest(id=task))))
        seen.append(await attempt(client.get_task(types.GetTaskRequest(id="no-such-task"))))
        whole = ClientFactory(replace(config, streaming=False)).create(described)
        seen.append([summary(event) for event in await asyncio.wait_for(_sent(whole, "hello"), PATIENCE)])
        await client.close()
        await whole.close()
        return seen


async def _first(client: Any, task: str) -> types.StreamResponse:
    """The first event of a task that was begun before."""
    events = client.subscribe(types.SubscribeToTaskRequest(id=task))
    try:
        found: types.StreamResponse = await anext(events)
        return found
    finally:
        await events.aclose()


async def _sent(client: Any, text: str) -> list[types.StreamResponse]:
    request = types.SendMessageRequest(message=new_text_message(text, role=types.Role.ROLE_USER))
    return [event async for event in client.send_message(request)]


BINDINGS = [
    ("JSONRPC", "1.0"),
    ("HTTP+JSON", "1.0"),
    ("GRPC", "1.0"),
    ("JSONRPC", "0.3"),
    ("HTTP+JSON", "0.3"),
    ("GRPC", "0.3"),
]


async def test_a_client_sees_the_same_through_the_proxy(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with agent() as (web, far):
        file.write_text(FILE.format(web=web, far=far))
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            await _compare(proxy, web)


async def _compare(proxy: Proxy, web: int) -> None:
    through = f"http://127.0.0.1:{proxy.at(8080)}"
    for binding, version in BINDINGS:
        direct = await verdicts(f"http://127.0.0.1:{web}", binding, version)
        assert direct[0][-1][:2] == ("status_update", "TASK_STATE_COMPLETED"), (binding, version, direct)
        assert await verdicts(through, binding, version) == direct, (binding, version)
    await _looks(proxy)
    await _denies(through)


async def _looks(proxy: Proxy) -> None:
    """The log says which calls these were, and how their tasks ended, of streams too."""
    for method, state in (
        ("message/stream", "completed"),
        ("message/stream", "input-required"),
        ("tasks/cancel", "canceled"),
    ):
        for path in ("/rpc", "/lf.a2a.v1.A2AService/", "/a2a.v1.A2AService/", "/(v1/)?(message|tasks)"):
            await proxy.logged(rf"http\.path={path}.* a2a\.method={method} .*a2a\.task\.state={state}")
    for method in (
        *("agent/getAuthenticatedExtendedCard", "message/send", "tasks/get", "tasks/resubscribe"),
        *(f"tasks/pushNotificationConfig/{verb}" for verb in ("set", "get", "list", "delete")),
    ):
        for path in ("/rpc", "/lf.a2a.v1.A2AService/", "/a2a.v1.A2AService/", "/(v1/)?(message|tasks|card|extended)"):
            await proxy.logged(rf"http\.path={path}.* a2a\.method={method} ")


async def _denies(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/tasks")).status_code == 403
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        assert (await client.post(f"{url}/rpc", json=body)).status_code == 403


def test_the_names_of_this_page_are_those_of_the_sdk() -> None:
    """Each method of the SDK has a row in our table; a new one has to be looked at."""
    from a2a.compat.v0_3 import a2a_v0_3_pb2
    from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
    from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher

    from dataplane.a2a import methods, results

    for module in (types, a2a_v0_3_pb2):
        (service,) = module.DESCRIPTOR.services_by_name.values()
        assert service.full_name in methods.SERVICES
        assert {each.name for each in service.methods} <= set(methods.NAMES)
    assert set(JsonRpcDispatcher.METHOD_TO_MODEL) <= set(methods.NAMES)
    assert set(JSONRPC03Adapter.METHOD_TO_MODEL) <= methods.KNOWN
    states = [value.name for value in types.TaskState.DESCRIPTOR.values if value.number]
    assert [f"TASK_STATE_{each.upper().replace('-', '_')}" for each in results.STATES] == states


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK logs errors that are expected here."""
    caplog.set_level("CRITICAL")
