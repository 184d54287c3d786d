"""InferencePools from objects to sockets: a picker of grpcio's, two members and a stranger."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from gatewright.wire.external import ext_proc_pb2 as pb
from tests.fakes.certificates import Authority
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.fakes.web_apps import answering, served
from tests.fakes.web_objects import CLASS
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: v1
kind: Service
metadata: {name: picker, namespace: default}
spec: {ports: [{name: grpc, port: 9002, appProtocol: APP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: picker-1, namespace: default, labels: {kubernetes.io/service-name: picker}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{name: grpc, port: PICKER}]
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama, namespace: default}
spec:
  selector: {matchLabels: {app: llama}}
  targetPorts: [{number: FIRST}, {number: SECOND}]
  endpointPickerRef: {name: picker, port: {number: 9002}, failureMode: MODE}
---
apiVersion: v1
kind: Pod
metadata: {name: llama-1, namespace: default, labels: {app: llama}}
status: {podIP: 127.0.0.1, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: chat, namespace: default}
spec:
  ai:
    provider:
      custom:
        backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}
        model: tiny
        formats: [{type: Completions}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: models, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules:
  - name: chat
    matches: [{path: {value: /v1/chat/completions}}]
    backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: chat}]
  - name: pool
    backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: llama}]
RULE
"""
)
RETRY = "    retry: {codes: [500], attempts: 2, backoff: 1ms}"
HEALTH = """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: health, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: models}]
  backend: {health: {unhealthyCondition: "response.code >= 500", eviction: {duration: 60s}}}
"""
DESTINATION, SERVED = "x-gateway-destination-endpoint", "x-gateway-destination-endpoint-served"
Answer = pb.ProcessingResponse
Play = Callable[["Picker", pb.ProcessingRequest], Awaitable[list[Answer]]]


@dataclass
class Picker:
    """What it was shown, and whom it picks: texts for the header and for the metadata, "": none."""

    plays: Play
    header: str = ""
    metadata: str = ""
    got: list[pb.ProcessingRequest] = field(default_factory=list)
    calls: int = 0
    ended: int = 0

    async def process(self, requests: AsyncIterator[pb.ProcessingRequest], context: Any) -> AsyncIterator[Answer]:
        self.calls += 1
        try:
            async for each in requests:
                self.got.append(each)
                for answer in await self.plays(self, each):
                    yield answer
        finally:
            self.ended += 1

    def shown(self, kind: str) -> list[Any]:
        return [getattr(each, kind) for each in self.got if each.WhichOneof("request") == kind]

    def picks(self, *names: str) -> None:
        self.header = self.metadata = ",".join(names)

    def choice(self) -> Answer:
        """The answer about the head that says who serves."""
        answer = Answer()
        common = answer.request_headers.response
        if self.header:
            common.header_mutation.set_headers.add(header={"key": DESTINATION, "raw_value": self.header.encode()})
        if self.metadata:
            answer.dynamic_metadata.update({"envoy.lb": {DESTINATION: self.metadata}})
        common.SetInParent()
        return answer


async def picks(picker: Picker, message: pb.ProcessingRequest) -> list[Answer]:
    """As the reference picker does: the head is answered when the whole body is here, and the body is its own."""
    kind = message.WhichOneof("request") or ""
    if kind == "request_headers":
        return [picker.choice()] if message.request_headers.end_of_stream else []
    if kind == "request_body":
        if not message.request_body.end_of_stream:
            return []
        whole = b"".join(each.body for each in picker.shown("request_body"))
        picker.got.clear()
        return [picker.choice(), streamed("request_body", whole + b" ", True)]
    if kind == "response_body":
        return [streamed(kind, message.response_body.body, message.response_body.end_of_stream)]
    answer = Answer()
    getattr(answer, kind).SetInParent()
    return [answer]


def streamed(kind: str, data: bytes, end: bool) -> Answer:
    mutation = pb.BodyMutation(streamed_response=pb.StreamedBodyResponse(body=data, end_of_stream=end))
    return Answer(**{kind: pb.BodyResponse(response=pb.CommonResponse(body_mutation=mutation))})


async def sheds(picker: Picker, message: pb.ProcessingRequest) -> list[Answer]:
    return [Answer(immediate_response=pb.ImmediateResponse(status={"code": 429}, body=b"too much"))]


async def hangs(picker: Picker, message: pb.ProcessingRequest) -> list[Answer]:
    return []


async def breaks(picker: Picker, message: pb.ProcessingRequest) -> list[Answer]:
    raise RuntimeError("a bug of the picker")


@dataclass
class World:
    proxy: SocketProxy
    picker: Picker
    members: list[str]
    stranger: str
    arrived: list[tuple[str, dict[str, str], bytes]]
    client: aiohttp.ClientSession

    async def ask(self, path: str = "/v1/models", **kwargs: Any) -> tuple[int, bytes]:
        method = kwargs.pop("method", "POST" if "data" in kwargs or "json" in kwargs else "GET")
        async with self.client.request(method, f"http://127.0.0.1:{self.proxy.port}{path}", **kwargs) as answer:
            return answer.status, await answer.read()

    @property
    def served_by(self) -> list[str]:
        return [where for where, _, _ in self.arrived]

    def reasons(self) -> list[str]:
        return [word for line in self.proxy.log_lines() for word in line.split() if word.startswith("reason=")]


@asynccontextmanager
async def world(
    plays: Play = picks, mode: str = "FailClose", rule: str = "", more: str = "", app: str = "kubernetes.io/h2c"
) -> AsyncIterator[World]:
    """`rule`: of the rule that leads to the pool; `more`: objects; `app`: what the picker's port says."""
    async with AsyncExitStack() as stack:
        picker, server = Picker(plays), grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(
            picker.process,
            request_deserializer=pb.ProcessingRequest.FromString,
            response_serializer=pb.ProcessingResponse.SerializeToString,
        )
        service = "envoy.service.ext_proc.v3.ExternalProcessor"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
        if app == "kubernetes.io/h2c":
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            issued = Authority().issue("epp")
            credentials = grpc.ssl_server_credentials([(issued.key, issued.chain)])
            port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        stack.push_async_callback(server.stop, None)
        arrived: list[tuple[str, dict[str, str], bytes]] = []
        ports = [await _origin(stack, arrived) for _ in range(3)]
        text = OBJECTS.replace("APP", app).replace("PICKER", str(port)).replace("MODE", mode)
        text = text.replace("FIRST", str(ports[0])).replace("SECOND", str(ports[1])).replace("RULE", rule) + more
        proxy = await stack.enter_async_context(serving(text, of_objects=True))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        await stack.enter_async_context(asyncio.timeout(PATIENCE))
        names = [f"127.0.0.1:{each}" for each in ports]
        it = World(proxy, picker, names[:2], names[2], arrived, client)
        it.picker.picks(names[1])
        yield it


async def _origin(stack: AsyncExitStack, arrived: list[tuple[str, dict[str, str], bytes]]) -> int:
    where = ""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        arrived.append((where, {name.lower(): value for name, value in request.headers.items()}, body))
        if request.path == "/fails":
            return web.Response(status=500)
        if request.path.startswith("/v1/chat"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
            return web.json_response({"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice]})
        return web.Response(body=b"from a model")

    port = await stack.enter_async_context(served(answering(answer, 1 << 30)))
    where = f"127.0.0.1:{port}"
    return port


@pytest.mark.parametrize("of", ["both", "header", "metadata"])
async def test_a_request_goes_to_the_endpoint_that_the_picker_chose_with_the_body_that_it_made(of: str) -> None:
    async with world() as it:
        for member in (it.members[1], it.members[0], it.members[1]):
            it.picker.header = "" if of == "metadata" else member
            it.picker.metadata = "" if of == "header" else member
            assert await it.ask(data=b"abc" * 50_000) == (200, b"from a model")
            where, _, body = it.arrived[-1]
            assert (where, body) == (member, b"abc" * 50_000 + b" ")


async def test_the_picker_sees_headers_of_objectives_and_whom_the_response_is_of() -> None:
    async with world() as it:
        sent = {"x-gateway-inference-objective": "critical", DESTINATION: it.stranger}
        assert (await it.ask(headers=sent))[0] == 200
        (head,) = it.picker.shown("request_headers")
        shown = {each.key: each.raw_value.decode() for each in head.headers.headers}
        assert shown["x-gateway-inference-objective"] == "critical" and DESTINATION not in shown
        where, lines, _ = it.arrived[0]
        assert where == it.members[1] and lines["x-gateway-inference-objective"] == "critical"
        (response,) = [each for each in it.picker.got if each.WhichOneof("request") == "response_headers"]
        assert response.metadata_context.filter_metadata["envoy.lb"][SERVED] == it.members[1]
        await until(lambda: it.picker.ended == 1)


@pytest.mark.parametrize("mode", ["FailClose", "FailOpen"])
async def test_a_choice_that_is_no_member_is_refused(mode: str) -> None:
    async with world(mode=mode) as it:
        for header, metadata in (
            (it.stranger, it.stranger),
            ("127.0.0.1", "127.0.0.1"),
            ("nonsense", ""),
            (it.members[0], it.members[1]),  # two different ones
            ("", ""),
        ):
            it.picker.header, it.picker.metadata = header, metadata
            assert (await it.ask(data=b"x"))[0] == 503
        assert it.arrived == []
        member, failed = "reason=EndpointNotInPool", "reason=EndpointPickerFailed"
        assert it.reasons() == [member, member, member, failed, failed]


async def test_of_several_the_first_member_serves() -> None:
    async with world() as it:
        it.picker.picks(it.stranger, f" {it.members[0]} ", it.members[1])
        assert (await it.ask())[0] == 200
        assert it.served_by == [it.members[0]]


async def test_an_answer_of_the_picker_is_the_clients() -> None:
    async with world(sheds, "FailOpen") as it:
        assert await it.ask(data=b"x") == (429, b"too much")
        assert it.arrived == []


@pytest.mark.parametrize("plays", [hangs, breaks])
@pytest.mark.parametrize("size", [0, 10, 300_000])
async def test_without_an_answer_a_closed_pool_refuses_and_an_open_one_serves(plays: Play, size: int) -> None:
    body = b"b" * size
    for mode, status in (("FailClose", 503), ("FailOpen", 200)):
        async with world(plays, mode) as it:
            asked = asyncio.ensure_future(it.ask(data=body) if size else it.ask())
            if plays is hangs:
                await until(lambda it=it: bool(it.picker.got) and (not size or _ends(it.picker)))
                it.proxy.advance(11)
            assert (await asked)[0] == status
            if mode == "FailOpen":
                ((where, _, came),) = it.arrived
                assert where in it.members and came == body
            else:
                assert it.arrived == [] and it.reasons() == ["reason=EndpointPickerFailed"]


def _ends(picker: Picker) -> bool:
    return any(each.request_body.end_of_stream for each in picker.got)


async def test_more_of_a_body_than_is_kept_fails_an_open_pool_too() -> None:
    async with world(hangs, "FailOpen") as it:
        asked = asyncio.ensure_future(it.ask(data=io.BytesIO(b"b" * (2 << 20))))
        await until(lambda: _ends(it.picker))
        it.proxy.advance(11)
        assert (await asked)[0] == 503 and it.arrived == []


async def test_each_try_is_asked_about() -> None:
    async with world(rule=RETRY) as it:
        assert (await it.ask("/fails", data=b"again"))[0] == 500
        assert it.picker.calls == len(it.arrived) == 3
        assert {body for _, _, body in it.arrived} == {b"again "}
        await until(lambda: it.picker.ended == 3)


async def test_health_of_endpoints_does_not_overrule_the_picker() -> None:
    async with world(more=HEALTH) as it:
        assert (await it.ask("/fails"))[0] == 500
        assert [(await it.ask())[0] for _ in range(3)] == [200] * 3
        assert set(it.served_by) == {it.members[1]}


async def test_a_picker_with_a_certificate_of_its_own_is_asked_over_tls() -> None:
    async with world(app="http2") as it:
        assert (await it.ask(data=b"x"))[0] == 200
        assert it.served_by == [it.members[1]]


async def test_a_custom_provider_may_be_a_pool() -> None:
    async with world() as it:
        for member in it.members:
            it.picker.picks(member)
            asked = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}
            status, body = await it.ask("/v1/chat/completions", json=asked)
            assert status == 200 and json.loads(body)["choices"][0]["message"]["content"] == "hi"
            where, _, came = it.arrived[-1]
            assert where == member and json.loads(came)["model"] == "tiny" and came.endswith(b" ")
        await until(lambda: it.picker.ended == 2)


async def test_a_custom_provider_that_is_a_pool_refuses_as_the_picker_says() -> None:
    asked = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}
    async with world(sheds) as it:
        status, _ = await it.ask("/v1/chat/completions", json=asked)
        assert (status, it.arrived) == (429, [])
    async with world() as it:
        it.picker.picks(it.stranger)
        status, _ = await it.ask("/v1/chat/completions", json=asked)
        assert (status, it.arrived) == (503, [])


async def test_a_client_that_leaves_ends_the_call_to_the_picker() -> None:
    async with world(hangs) as it:
        asked = asyncio.ensure_future(it.ask(data=b"x"))
        await until(lambda: _ends(it.picker))
        asked.cancel()
        await until(lambda: it.picker.ended == 1)
        assert it.arrived == []


async def test_a_picker_may_give_back_all_headers_that_it_was_shown() -> None:
    """As the reference picker does, without a word on whether they replace or join."""

    async def gives_back(picker: Picker, message: pb.ProcessingRequest) -> list[Answer]:
        answers = await picks(picker, message)
        if message.WhichOneof("request") == "request_headers":
            mutation = answers[0].request_headers.response.header_mutation
            for each in message.request_headers.headers.headers:
                if not each.key.startswith(":"):
                    mutation.set_headers.add(header={"key": each.key, "raw_value": each.raw_value})
        return answers

    async with world(gives_back) as it:
        assert (await it.ask(headers={"x-a": "1"}))[0] == 200  # the server refuses two of some, as User-Agent
        assert it.arrived[0][1]["x-a"] == "1" and it.served_by == [it.members[1]]
