"""What the SDK's own server executes is what policies know of a request, or the request is refused: random requests,
spelled in every way, read by both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as old_pb2
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.types import a2a_pb2 as new_pb2
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette

from dataplane.a2a import Call, Facts, Unreadable, methods
from dataplane.a2a.calls import read
from dataplane.http.uri import canonical_path
from tests.fakes.event_streams import end_watchers
from tests.harness.patience import PATIENCE

Executed = list[tuple[str, str]]
"""Method of what a server was asked to do, and the task; the context, where tasks are listed."""


class Recorder(RequestHandler):
    """It executes nothing, and says what it would have."""

    def __init__(self) -> None:
        self.executed: Executed = []

    def noted(self, method: str, params: Any) -> Exception:
        holder = getattr(params, "message", params)
        self.executed.append((method, getattr(holder, "task_id", "") or getattr(params, "id", "")))
        return UnsupportedOperationError()

    async def on_get_task(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/get", params)

    async def on_list_tasks(self, params: Any, context: Any) -> Any:
        self.executed.append(("tasks/list", params.context_id))
        raise UnsupportedOperationError()

    async def on_cancel_task(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/cancel", params)

    async def on_message_send(self, params: Any, context: Any) -> Any:
        raise self.noted("message/send", params)

    async def on_message_send_stream(self, params: Any, context: Any) -> AsyncGenerator[Any, None]:
        raise self.noted("message/stream", params)
        yield

    async def on_subscribe_to_task(self, params: Any, context: Any) -> AsyncGenerator[Any, None]:
        raise self.noted("tasks/resubscribe", params)
        yield

    async def on_create_task_push_notification_config(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/pushNotificationConfig/set", params)

    async def on_get_task_push_notification_config(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/pushNotificationConfig/get", params)

    async def on_list_task_push_notification_configs(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/pushNotificationConfig/list", params)

    async def on_delete_task_push_notification_config(self, params: Any, context: Any) -> Any:
        raise self.noted("tasks/pushNotificationConfig/delete", params)

    async def on_get_extended_agent_card(self, params: Any, context: Any) -> Any:
        raise self.noted("agent/getAuthenticatedExtendedCard", None)


RECORDER = Recorder()
SERVER = Starlette(
    routes=[
        *create_jsonrpc_routes(RECORDER, "/rpc", enable_v0_3_compat=True),
        *create_rest_routes(RECORDER, enable_v0_3_compat=True),
    ]
)


def executed(verb: str, path: str, content_type: str, version: str, body: bytes, query: str = "") -> Executed:
    """What the SDK makes of a request."""
    RECORDER.executed.clear()
    headers = [(b"host", b"a"), (b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
    if version:
        headers.append((b"a2a-version", version.encode()))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": verb,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("a", 80),
        "extensions": {},
    }

    content = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return content.pop() if content else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Nobody reads it."""

    serve: Callable[..., Awaitable[None]] = SERVER
    with contextlib.suppress(Exception):  # what it answers, and how it fails, is its own matter
        asyncio.run(served(serve(scope, receive, send)))
    return list(RECORDER.executed)


async def served(work: Awaitable[None]) -> None:
    try:
        await asyncio.wait_for(work, PATIENCE)
    finally:
        end_watchers()


CORES = (
    *("/rpc", "/message:send", "/message:stream", "/tasks", "/tasks/t1", "/tasks/t1:cancel", "/tasks/t1:subscribe"),
    *("/tasks/t1/pushNotificationConfigs", "/tasks/t1/pushNotificationConfigs/c", "/extendedAgentCard", "/card"),
)
METHODS = (*methods.NAMES, *sorted(methods.KNOWN))


@st.composite
def paths(draw: st.DrawFn) -> str:
    """A path of A2A with letters escaped or in another case, below some prefix."""
    text = draw(st.sampled_from(("", "/v1", "/tenant", "//", "/a/.."))) + draw(st.sampled_from(CORES))
    how = draw(st.sampled_from(("as it is", "as it is", "escaped", "case", "end")))
    at = draw(st.integers(0, len(text) - 1))
    if how == "escaped":
        text = f"{text[:at]}%{ord(text[at]):02X}{text[at + 1 :]}"
    elif how == "case":
        text = f"{text[:at]}{text[at].swapcase()}{text[at + 1 :]}"
    elif how == "end":
        text += draw(st.sampled_from(("/", ";a=1", "%20", ".", "//", ":cancel", "/tasks")))
    return text


MEMBERS = st.sampled_from(
    [
        *(
            f'"{name}": "{value}"'
            for name in ("id", "taskId", "task_id", "Id", "name")
            for value in ("t1", "t2", "tasks/t2")
        ),
        '"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "taskId": "t1"}',
        '"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [], "taskId": "t2"}',
        '"message": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "x"}], "task_id": "t3"}',
        '"request": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "x"}], "task_id": "t4"}',
        '"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}], "taskId": "t5"}',
        '"pushNotificationConfigId": "c"',
        '"pushNotificationConfig": {"url": "http://a.test/", "id": "c"}',
        '"url": "http://a.test/"',
        '"configuration": {}',
    ]
)
PARAMS = st.lists(MEMBERS, max_size=3).map(lambda members: "{" + ", ".join(members) + "}")


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return draw(st.one_of(st.just(""), PARAMS)).encode()
    name = draw(st.sampled_from(METHODS))
    if draw(st.integers(0, 4)) == 0:
        name = draw(st.sampled_from((name.upper(), f" {name}", name.replace("/", "\\/"), f"{name}\\u0020")))
    members = ['"jsonrpc": "2.0"', '"id": 1', f'"method": "{name}"', f'"params": {draw(PARAMS)}']
    more = draw(st.sampled_from(("", "", "", '"method": "tasks/get"', '"Method": "tasks/get"', '"params": {}')))
    text = "{" + ", ".join(draw(st.permutations([*members, more] if more else members))) + "}"
    return (f"[{text}]" if draw(st.integers(0, 9)) == 0 else text).encode()


def told(facts: Facts) -> Call | None:
    """What policies know of a request; None: it is refused where they ask."""
    try:
        return read(facts)
    except Unreadable:
        return None


REQUEST = b'{"request": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "x"}], "task_id": "t4"}}'


@given(
    verb=st.sampled_from(("POST", "POST", "POST", "GET", "DELETE", "PUT", "HEAD")),
    path=paths(),
    content_type=st.sampled_from(
        ("application/json", "application/grpc", "text/plain", "application/json; charset=utf-16")
    ),
    version=st.sampled_from(("1.0", "", "0.3")),
    body=st.one_of(st.just(b""), bodies()),
    query=st.sampled_from(
        ("", "", "contextId=c1", "context_id=c1", "contextId=c1&contextId=c2", "ContextId=c1", "id=t2")
    ),
)
@example(
    "POST",
    "/rpc",
    "application/grpc",
    "1.0",
    b'{"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "t1"}}',
    "",
)
@example("POST", "/tasks/t1:cancel", "application/json", "1.0", b"{}", "")
@example("POST", "/v1/tasks/t1:cancel", "application/json", "", b"", "")
@example(
    "POST", "/v1/tasks/t1:subscribe", "", "0.3", b'{"jsonrpc": "2.0", "method": "TaskSubscription", "params": {}}', ""
)
@example("POST", "/message:send", "application/json", "1.0", b'{"id": "t1"}', "")
@example("POST", "/message:send", "application/json", "1.0", REQUEST, "")
@example("POST", "/v1/message:send", "application/json", "0.3", REQUEST, "")
@example("GET", "/v1/card", "text/plain", "", b'{"taskId": "t2"}', "")
@example("GET", "/tasks", "", "1.0", b'{"contextId": "c2"}', "")
@example("GET", "/tasks", "", "1.0", b"", "contextId=c1")
@example("GET", "/tasks", "application/json", "1.0", b"", "context_id=c1")
@example("GET", "/tenant/tasks/t1", "application/json", "1.0", b"", "")
@example("GET", "/tasks/tasks", "application/json", "1.0", b"", "")
def test_what_a_server_executes_is_what_policies_know(
    verb: str, path: str, content_type: str, version: str, body: bytes, query: str
) -> None:
    sent = canonical_path(path.encode())
    if sent is None:
        return  # refused before any policy
    call = told(Facts(verb, sent.decode(), body, (content_type.encode(),), query=query))
    for method, about in executed(verb, sent.decode(), content_type, version, body, query):
        if call is not None:
            known = call.context if method == "tasks/list" else call.task
            assert (call.method, known or "") == (method, about)


def test_servers_execute_some_of_them() -> None:
    """Else nothing would be compared."""
    cancel = b'{"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "t1"}}'
    assert executed("POST", "/rpc", "application/grpc", "1.0", cancel) == [("tasks/cancel", "t1")]
    old = b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"id": "t1"}}'
    assert executed("POST", "/rpc", "text/plain", "", old) == [("tasks/cancel", "t1")]
    assert executed("POST", "/tenant/tasks/t1:cancel", "", "1.0", b"{}") == [("tasks/cancel", "t1")]
    assert executed("GET", "/v1/tasks/t1", "", "", b"") == [("tasks/get", "t1")]


SERVICES = [
    (service, each.name, getattr(module, each.input_type.name))
    for service, module in (("lf.a2a.v1.A2AService", new_pb2), ("a2a.v1.A2AService", old_pb2))
    for each in module.DESCRIPTOR.services_by_name["A2AService"].methods
    if each.input_type.full_name.startswith(service.rpartition(".")[0])
]


def named(value: Any) -> tuple[str, str]:
    """The task and the context that a request names, as the SDK's classes have them."""
    message = getattr(value, "message", None) or getattr(value, "request", None)
    if message is not None:
        return message.task_id, message.context_id
    if hasattr(value, "task_id"):
        return value.task_id, ""
    name = getattr(value, "name", "") or getattr(value, "parent", "")
    if name:
        parts = name.split("/")
        return (parts[1] if len(parts) > 1 and parts[0] == "tasks" else ""), ""
    return (value.id if hasattr(value, "id") else ""), getattr(value, "context_id", "")


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(bytes([number << 3 | 2, 2]) + text for number in range(1, 8) for text in (b"t1", b"t2", b"\x1a\x00")),
                *(bytes([number << 3 | 2, 8]) + b"tasks/t1" for number in (1, 2)),
                *(bytes([number << 3 | 2, 4, 0x1A, 2]) + b"t3" for number in (1, 2)),
                *(bytes([number << 3 | 2, 4, 0x12, 2]) + b"c3" for number in (1, 2)),
                *(bytes([number << 3, 5]) for number in range(1, 8)),
                *(bytes([number << 3 | 1]) + b"12345678" for number in (1, 2, 3)),
                *(bytes([number << 3 | 5]) + b"1234" for number in (1, 2, 3)),
                b"\x92\x80\x00\x02t4",
                b"\x92\x80\x80\x80\x10\x02t5",
                b"\x13\x12\x02t6\x14",  # a group
            ]
        ),
        st.binary(max_size=6),
    ),
    max_size=5,
).map(b"".join)


@given(chosen=st.sampled_from(SERVICES), message=PIECES)
def test_what_parsers_of_protobuf_read_is_what_policies_know(chosen: tuple[str, str, Any], message: bytes) -> None:
    service, name, kind = chosen
    body = b"\0" + len(message).to_bytes(4, "big") + message
    call = told(Facts("POST", f"/{service}/{name}", body, (b"application/grpc",)))
    if call is None:
        return
    try:
        value = kind.FromString(message)
    except DecodeError:
        return  # the agent refuses it
    if kind.DESCRIPTOR.fields:
        assert (call.task or "", call.context or "") == named(value), (name, value)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK logs what it refuses."""
    caplog.set_level("CRITICAL")
