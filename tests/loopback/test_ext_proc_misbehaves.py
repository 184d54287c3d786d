"""Servers of external processing, with grpcio's code, that misbehave: in each phase and mode of `extProc`, and as the
picker of a pool in both failure modes. Whatever they do, nothing that they had to see passes as if all were well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from gatewright.wire.external import ext_proc_pb2 as pb
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.policies.test_endpoint_picker import OBJECTS

Answer = pb.ProcessingResponse
MODES = ("None", "Buffered", "BufferedPartial", "FullDuplexStreamed")
PHASES = ("headers", "body", "trailers")
DIRECTIONS = ("request", "response")
CELLS = [
    (mode, f"{direction}_{phase}")
    for mode in MODES
    for direction in DIRECTIONS
    for phase in PHASES
    if (mode, phase) != ("None", "body")
]
ROUTES = "".join(
    f"""
    - name: {mode.lower()}
      matches: [{{path: {{value: /{mode}}}}}]
      policies:
        extProc:
          host: 127.0.0.1:PROCESSOR
          processingOptions: {{requestBodyMode: {mode}, responseBodyMode: {mode}}}
      backends: [{{host: '127.0.0.1:ORIGIN'}}]"""
    for mode in MODES
)
FILE = f"binds:\n- port: 8080\n  listeners:\n  - name: http\n    routes:{ROUTES}\n"
ENDS = re.compile(rb"\r\n0\r\n([^\r]+\r\n)*\r\n$").search
LAST = b"0\r\nx-last: 1\r\n\r\n"
MESSAGE = b"3\r\nabc\r\n" + LAST


# --- what a server does with a message instead of answering it

Fault = Callable[["Server", str, Any], list[Answer | bytes] | None]
"""Of the server, the phase and the call; None: the call ends in good order. An exception ends it with a status."""
FAULTS: dict[str, Fault] = {}


def fault(play: Fault) -> Fault:
    FAULTS[getattr(play, "__name__", "")] = play
    return play


def about(phase: str) -> Answer:
    """That nothing is to be changed."""
    answer = Answer()
    getattr(answer, phase).SetInParent()
    return answer


def changed(phase: str, name: str, value: str) -> Answer:
    """A header is set, or a trailer."""
    answer, edits = Answer(), pb.HeaderMutation(set_headers=[{"header": {"key": name, "raw_value": value.encode()}}])
    part = getattr(answer, phase)
    (part if phase.endswith("trailers") else part.response).header_mutation.CopyFrom(edits)
    return answer


@fault
def closes(server: Server, phase: str, call: Any) -> None:
    return None


@fault
def fails(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    raise RuntimeError("a bug of the server")


@fault
def answers_about_the_other_direction(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    direction, _, part = phase.partition("_")
    return [about(f"{'response' if direction == 'request' else 'request'}_{part}")]


@fault
def answers_about_another_part(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    direction, _, part = phase.partition("_")
    return [about(f"{direction}_{'trailers' if part == 'headers' else 'headers'}")]


@fault
def answers_about_nothing(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [Answer()]


@fault
def answers_twice(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [*server.agrees(phase), about(phase)]


@fault
def answers_too_much(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [changed(phase, "x-large", "x" * (4 * 1024 * 1024))]


@fault
def answers_what_cannot_be_read(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [b"\xff\xff\xff garbage"]


@fault
def says_what_no_header_can_be(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [changed(phase, "x-a", "1\r\nx-b: 2")]


@fault
def names_what_no_header_can_be(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [changed(phase, "x a\r\n", "1")]


@fault
def sets_a_pseudo_header_that_is_none(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [changed(phase, ":nothing", "1")]


@fault
def says_too_much_beside(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    answer = about(phase)
    answer.dynamic_metadata.update({"large": "x" * 70_000})
    return [answer]


@fault
def answers_with_a_status_that_is_none(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [Answer(immediate_response={"status": {"code": 101}})]


@fault
def gives_a_body_of_another_mode(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    """Of what is no body: as part of an answer that says that the whole message is replaced."""
    is_duplex = server.mode == "FullDuplexStreamed" and phase.endswith("body")
    mutation = pb.BodyMutation(body=b"x") if is_duplex else pb.BodyMutation(streamed_response={"body": b"x"})
    if phase.endswith("trailers"):
        return [Answer()]
    answer = about(phase)
    common = getattr(answer, phase).response
    common.body_mutation.CopyFrom(mutation)
    if phase.endswith("headers"):
        common.status = pb.CommonResponse.CONTINUE_AND_REPLACE
    return [answer]


@dataclass
class Server:
    """At messages about `phase` it does what `play` says. `mode`: of the bodies of the route that is asked."""

    mode: str = ""
    phase: str = ""
    choice: str = ""
    """Of a picker: the endpoint."""
    play: Fault | None = None
    """None: it hangs."""
    is_hanging: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0
    data: bytes = b""

    def agrees(self, phase: str) -> list[Answer | bytes]:
        if phase == "request_headers" and self.choice:
            return [changed(phase, "x-gateway-destination-endpoint", self.choice)]
        if self.mode != "FullDuplexStreamed" or not phase.endswith("body"):
            return [about(phase)]
        mutation = pb.BodyMutation(streamed_response={"body": self.data})
        return [Answer(**{phase: pb.BodyResponse(response={"body_mutation": mutation})})]

    async def process(self, requests: AsyncIterator[pb.ProcessingRequest], call: Any) -> AsyncIterator[Answer | bytes]:
        self.open += 1
        try:
            async for each in requests:
                phase = each.WhichOneof("request") or ""
                self.data = getattr(each, phase).body if phase.endswith("body") else b""
                if phase == self.phase and self.play is None:
                    self.is_hanging.set()
                    await asyncio.get_running_loop().create_future()
                answers = self.play(self, phase, call) if phase == self.phase and self.play else self.agrees(phase)
                if answers is None:
                    return
                for answer in answers:
                    yield answer
        finally:
            self.open -= 1


def _written(answer: Answer | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


@dataclass
class World:
    proxy: SocketProxy
    server: Server
    origin: str
    arrived: list[bytes]

    async def ask(self, path: str) -> bytes:
        """All that a client gets for a message with content and trailers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: close, te\r\n"
        writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n" + MESSAGE)
        answer = await reader.read()
        writer.close()
        return answer

    async def misbehaving(self, phase: str, play: Fault | None, path: str) -> bytes:
        self.arrived.clear()
        server = self.server
        server.phase, server.play = phase, play
        server.is_hanging.clear()
        asking = asyncio.ensure_future(self.ask(path))
        if play is None:
            await server.is_hanging.wait()
            await until(lambda: self.proxy.advance(10.1) or asking.done(), "the end of its time")
        answer = await asking
        await until(lambda: not server.open, "the end of the call")
        return answer


@asynccontextmanager
async def world(text: str, *, of_objects: bool = False) -> AsyncIterator[World]:
    """`text` with the ports of a processor, and of an origin that answers with content and trailers."""
    server, arrived = Server(), list[bytes]()
    calls = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(
        server.process, request_deserializer=pb.ProcessingRequest.FromString, response_serializer=_written
    )
    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    calls.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
    processor = calls.add_insecure_port("127.0.0.1:0")

    async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        while not ENDS(data):
            more = await reader.read(65_536)
            if not more:
                break
            data += more
        arrived.append(data)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        writer.write(head + MESSAGE)
        await writer.drain()
        writer.close()

    async with AsyncExitStack() as stack:
        await calls.start()
        stack.push_async_callback(calls.stop, None)
        origins = await stack.enter_async_context(await asyncio.start_server(origin, "127.0.0.1", 0))
        port = origins.sockets[0].getsockname()[1]
        text = text.replace("PROCESSOR", str(processor)).replace("ORIGIN", str(port))
        proxy = await stack.enter_async_context(serving(text, of_objects=of_objects))
        await stack.enter_async_context(asyncio.timeout(PATIENCE))
        yield World(proxy, server, f"127.0.0.1:{port}", arrived)


def is_whole(message: bytes) -> bool:
    return ENDS(message) is not None


TOO_LATE = {("answers_twice", "request_trailers"), ("answers_twice", "response_trailers")}
"""All was said, and is on its way when the second answer comes."""


@pytest.mark.parametrize("mode", MODES)
async def test_nothing_passes_by_a_server_that_misbehaves(mode: str) -> None:
    """500 where nothing is out; else the message is broken off. No origin gets the whole of a request, and no client
    the whole of a response, that the server had to see."""
    wrong: list[str] = []
    async with world(FILE) as it:
        it.server.mode = mode
        assert is_whole(await it.ask(f"/{mode}")), "a server that behaves"
        it.proxy.log_lines()
        for _, phase in [each for each in CELLS if each[0] == mode]:
            for name, play in {"hangs": None, **FAULTS}.items():
                logged = len(it.proxy.log_lines())
                answer = await it.misbehaving(phase, play, f"/{mode}")
                lines = it.proxy.log_lines()[logged:]
                status, of_request = answer[9:12], phase.startswith("request")
                got = f"{mode} {phase} {name}: {answer[:40]!r} {lines}"
                if (name, phase) in TOO_LATE:
                    continue
                if of_request and any(is_whole(each) for each in it.arrived):
                    wrong.append(f"the origin got all of it: {got}")
                if status == b"200" and is_whole(answer):
                    wrong.append(f"the client got all of it: {got}")
                if status not in (b"200", b"500") or (status == b"200" and of_request):
                    wrong.append(f"not the answer of this failure: {got}")
                if status == b"500" and not answer.endswith(b"ext_proc failed"):
                    wrong.append(f"not the text of this failure: {got}")
                if not any("reason=ExtProcFailed" in line for line in lines):
                    wrong.append(f"not the reason of this failure: {got}")
    assert not wrong, "\n".join(wrong)


def answers_in_place_of_the_backend(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
    return [Answer(immediate_response={"status": {"code": 451}, "body": b"no"})]


LATE = ("response_body", "response_trailers")
STREAMS = ("None", "FullDuplexStreamed")
"""Modes in which a part of a response is out when the server has the next one."""


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_in_place_of_the_backends_comes_in_time_or_breaks_it_off(mode: str) -> None:
    async with world(FILE) as it:
        it.server.mode = mode
        for _, phase in [each for each in CELLS if each[0] == mode]:
            logged = len(it.proxy.log_lines())
            answer = await it.misbehaving(phase, answers_in_place_of_the_backend, f"/{mode}")
            is_late = phase in LATE and b" 200 " in answer[:13]
            assert is_late or (b" 451 " in answer[:13] and answer.endswith(b"no")), (phase, answer)
            assert not is_whole(answer), (phase, answer)
            assert is_late is False or phase == "response_trailers" or mode in STREAMS, "what is whole can be replaced"
            assert phase.startswith("response") or not any(map(is_whole, it.arrived)), phase
            assert any("reason=ExtProcAnswered" in line for line in it.proxy.log_lines()[logged:]), phase


OURS = ("content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer")


@pytest.mark.parametrize("phase", ["request_headers", "response_headers"])
async def test_headers_of_the_connection_stay_ours_whatever_a_server_sets_and_removes(phase: str) -> None:
    def frames_anew(server: Server, phase: str, call: Any) -> list[Answer | bytes]:
        answer = about(phase)
        edits = getattr(answer, phase).response.header_mutation
        for name in OURS:
            edits.set_headers.add(header={"key": name, "raw_value": b"x-forged"})
        edits.remove_headers.extend((*OURS, "host", ":path", "no name"))
        return [answer]

    async with world(FILE) as it:
        answer = await it.misbehaving(phase, frames_anew, "/None")
        assert is_whole(answer) and b" 200 " in answer[:13] and b"x-forged" not in answer, answer
        (came,) = it.arrived
        assert is_whole(came) and b"x-forged" not in came and came.startswith(b"POST /None HTTP/1.1\r\nhost: a\r\n")


POOL = OBJECTS.replace("APP", "kubernetes.io/h2c").replace("{number: FIRST}, {number: SECOND}", "{number: ORIGIN}")
POOL = POOL.replace("PICKER", "PROCESSOR").replace("RULE", "")
SERVES = ("request_headers", "request_body", "response_headers", "response_body")
"""Phases in which an open pool serves without an answer. Of a message with trailers the picker has said the rest."""
SILENT = ("hangs", "closes", "fails", "answers_about_nothing", "answers_too_much", "answers_what_cannot_be_read")
"""Faults that are no answer. What others begin to say is carried out or refused in both modes."""


@pytest.mark.parametrize("mode", ["FailClose", "FailOpen"])
async def test_a_pool_whose_picker_misbehaves_refuses_or_serves_as_its_failure_mode_says(mode: str) -> None:
    wrong: list[str] = []
    async with world(POOL.replace("MODE", mode), of_objects=True) as it:
        it.server.mode, it.server.choice = "FullDuplexStreamed", it.origin
        assert is_whole(await it.ask("/pool")), "a picker that behaves"
        for phase in (f"{direction}_{part}" for direction in DIRECTIONS for part in PHASES):
            for name, play in {"hangs": None, **FAULTS}.items():
                if (name, phase) in TOO_LATE:
                    continue
                logged = len(it.proxy.log_lines())
                answer = await it.misbehaving(phase, play, "/pool")
                got = f"{phase} {name}: {answer[:80]!r} {it.proxy.log_lines()[logged:]}"
                passes, is_open = is_whole(answer) and b" 200 " in answer[:13], mode == "FailOpen"
                if passes and (not is_open or phase not in SERVES):
                    wrong.append(f"it passed: {got}")
                if not passes and is_open and phase in SERVES and name in SILENT:
                    wrong.append(f"it did not pass: {got}")
                if passes and not any(is_whole(each) and b"3\r\nabc\r\n" in each for each in it.arrived):
                    wrong.append(f"not what the client sent: {got}")
                if not passes and phase.startswith("request") and any(map(is_whole, it.arrived)):
                    wrong.append(f"the member got all of it: {got}")
                if not passes and b"reason=EndpointPickerFailed" not in got.encode():
                    wrong.append(f"not the reason of this failure: {got}")
    assert not wrong, "\n".join(wrong)
