"""`extProc` against a server of grpcio's, over sockets: what it is shown in each mode, and what its answers do."""

from __future__ import annotations

import asyncio
import itertools
import re
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from gatewright.wire.external import ext_proc_pb2 as pb
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.fakes.web_apps import answering, served
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

FILE = """
frontendPolicies:
  accessLog: {{add: {{said: extproc.said}}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        extProc:
          host: 127.0.0.1:{processor}
{settings}
      backends:
      - host: 127.0.0.1:{origin}
"""
SETTINGS = "processingOptions: {%s}"
Answer = pb.ProcessingResponse
Play = Callable[["Processor", pb.ProcessingRequest], Awaitable[list[Answer] | None]]


@dataclass
class Processor:
    """What the server was sent, and what it says to each message (`plays`)."""

    plays: Play
    got: list[pb.ProcessingRequest] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    held: bytes = b""
    leaves: bool = False
    """It ends the call in good order behind what it says now."""

    @property
    def kinds(self) -> list[str]:
        return [each.WhichOneof("request") or "" for each in self.got]

    def headers(self, kind: str = "request_headers") -> dict[str, str]:
        (found,) = (getattr(each, kind) for each in self.got if each.WhichOneof("request") == kind)
        return {each.key: each.raw_value.decode() for each in found.headers.headers}

    async def process(self, requests: AsyncIterator[pb.ProcessingRequest], context: Any) -> AsyncIterator[Answer]:
        try:
            async for each in requests:
                self.got.append(each)
                answers = await self.plays(self, each)
                if answers is None:
                    return
                for answer in answers:
                    yield answer
                if self.leaves:
                    break
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("ended")


def common(**fields: Any) -> pb.CommonResponse:
    return pb.CommonResponse(**fields)


def sets(*pairs: tuple[str, str], removes: tuple[str, ...] = ()) -> pb.HeaderMutation:
    options = [{"header": {"key": name, "raw_value": value.encode()}} for name, value in pairs]
    return pb.HeaderMutation(set_headers=options, remove_headers=removes)


def agrees(message: pb.ProcessingRequest) -> Answer:
    """The answer that changes nothing."""
    kind = message.WhichOneof("request") or ""
    answer = Answer()
    part = getattr(answer, kind)
    part.SetInParent()
    return answer


async def nods(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    return [agrees(message)]


async def streams(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    """Full duplex: bodies in capitals, as they come."""
    kind = message.WhichOneof("request") or ""
    if not kind.endswith("body"):
        return [agrees(message)]
    body = getattr(message, kind)
    return [streamed(kind, body.body.upper(), body.end_of_stream)]


def streamed(kind: str, data: bytes, end: bool) -> Answer:
    mutation = pb.BodyMutation(streamed_response=pb.StreamedBodyResponse(body=data, end_of_stream=end))
    return Answer(**{kind: pb.BodyResponse(response=common(body_mutation=mutation))})


@dataclass
class World:
    proxy: SocketProxy
    processor: Processor
    arrived: list[tuple[str, dict[str, str], bytes]]
    client: aiohttp.ClientSession

    async def ask(self, method: str = "GET", path: str = "/a?b=1", **kwargs: Any) -> tuple[int, Any, bytes]:
        async with self.client.request(method, f"http://127.0.0.1:{self.proxy.port}{path}", **kwargs) as answer:
            return answer.status, answer.headers, await answer.read()


@asynccontextmanager
async def world(plays: Play, settings: str = "", origin_port: int = 0) -> AsyncIterator[World]:
    """`origin_port`: of an origin of the test's own."""
    processor, server, arrived = Processor(plays), grpc.aio.server(), []
    handler = grpc.stream_stream_rpc_method_handler(
        processor.process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    async def origin(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        arrived.append((request.raw_path, {name.lower(): value for name, value in request.headers.items()}, body))
        if request.path == "/empty":
            return web.Response(status=204)
        if request.path == "/stream":
            answer = web.StreamResponse(headers={"x-up": "up"})
            await answer.prepare(request)
            for number in range(3):
                await answer.write(b"part %d " % number)
            await answer.write_eof()
            return answer
        return web.Response(body=body or b"hello", headers={"x-up": "up", "etag": '"e"'})

    async with served(answering(origin, 1 << 30)) as own_port:
        text = FILE.format(processor=port, origin=origin_port or own_port, settings=textwrap.indent(settings, " " * 10))
        try:
            async with serving(text) as proxy, aiohttp.ClientSession() as client, asyncio.timeout(PATIENCE):
                yield World(proxy, processor, arrived, client)
        finally:
            await server.stop(None)


async def test_by_default_all_of_both_directions_passes_through_the_server() -> None:
    async with world(streams) as it:
        status, headers, body = await it.ask("POST", data=b"abc" * 100, headers={"x-a": "1"})
        assert (status, body, headers["x-up"]) == (200, b"ABC" * 100, "up") and "etag" not in headers
        assert sum(len(each.response_body.body) for each in it.processor.got) == 300, "once"
        (path, seen, came) = it.arrived[0]
        assert (path, came, seen["x-a"]) == ("/a?b=1", b"ABC" * 100, "1")
        kinds = it.processor.kinds
        assert kinds[0] == "request_headers" and kinds.index("response_headers") > kinds.index("request_body")
        shown = it.processor.headers()
        assert (shown[":method"], shown[":path"], shown["x-a"]) == ("POST", "/a?b=1", "1")
        assert it.processor.headers("response_headers")[":status"] == "200"
        config = it.processor.got[0].protocol_config
        assert config.request_body_mode == config.response_body_mode == pb.ProcessingMode.FULL_DUPLEX_STREAMED


async def test_a_request_without_content_ends_with_its_head() -> None:
    async with world(streams) as it:
        assert (await it.ask())[2] == b"HELLO"
        assert it.processor.got[0].request_headers.end_of_stream
        assert "request_body" not in it.processor.kinds


async def test_a_server_may_want_all_of_a_body_before_it_answers_about_the_head() -> None:
    """As endpoint pickers do."""

    async def picks(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        kind = message.WhichOneof("request") or ""
        if kind == "request_headers":
            return []
        if kind != "request_body":
            return await streams(processor, message)
        processor.held += message.request_body.body
        if not message.request_body.end_of_stream:
            return []
        head = Answer(request_headers={"response": common(header_mutation=sets(("x-picked", "one")))})
        return [head, streamed(kind, processor.held[::-1], True)]

    async with world(picks) as it:
        status, _, _ = await it.ask("POST", data=b"abc" * 50_000)
        assert status == 200 and it.arrived[0][2] == (b"abc" * 50_000)[::-1] and it.arrived[0][1]["x-picked"] == "one"


@pytest.mark.parametrize("mode", ["Buffered", "BufferedPartial"])
async def test_a_body_that_is_shown_whole(mode: str) -> None:
    async def changes(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        kind = message.WhichOneof("request") or ""
        if not kind.endswith("body"):
            return [agrees(message)]
        data = getattr(message, kind)
        said = common(
            header_mutation=sets(("x-seen", kind), removes=("x-a",)),
            body_mutation=pb.BodyMutation(body=b"[" + data.body + b"]"),
        )
        return [Answer(**{kind: pb.BodyResponse(response=said)})]

    options = SETTINGS % f"requestBodyMode: {mode}, responseBodyMode: {mode}"
    async with world(changes, options) as it:

        async def in_pieces() -> AsyncIterator[bytes]:
            """Most of them when the head has been answered."""
            yield b"abc"
            while not it.processor.kinds:
                await asyncio.sleep(0)
            for _ in range(999):
                yield b"abc"
                await asyncio.sleep(0)

        status, headers, body = await it.ask("POST", data=in_pieces(), headers={"x-a": "1"})
        assert (status, body, headers["x-seen"]) == (200, b"[[%b]]" % (b"abc" * 1000), "response_body")
        assert it.arrived[0][2] == b"[%b]" % (b"abc" * 1000) and it.arrived[0][1]["x-seen"] == "request_body"
        assert "x-a" not in it.arrived[0][1]
        assert it.processor.kinds == ["request_headers", "request_body", "response_headers", "response_body"]
        assert it.processor.got[1].request_body.end_of_stream


@pytest.mark.parametrize(
    ("mode", "status", "reason"), [("Buffered", 413, "BodyTooLarge"), ("BufferedPartial", 200, "")]
)
async def test_a_larger_body_is_refused_or_shown_in_part(mode: str, status: int, reason: str) -> None:
    async def changes(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        if message.WhichOneof("request") != "request_body":
            return [agrees(message)]
        processor.held = message.request_body.body
        mutation = pb.BodyMutation(body=b"<first>")
        return [Answer(request_body=pb.BodyResponse(response=common(body_mutation=mutation)))]

    options = SETTINGS % f"requestBodyMode: {mode}, responseBodyMode: None"
    async with world(changes, options) as it:
        answer = await it.ask("POST", data=b"x" * 20_000)
        assert answer[0] == status
        if status == 200:
            assert len(it.processor.held) == 8192 and not it.processor.got[1].request_body.end_of_stream
            assert it.arrived[0][2] == b"<first>" + b"x" * (20_000 - 8192)
        else:
            assert not it.arrived
            assert reason in it.proxy.log_line()


async def test_a_larger_response_that_is_shown_whole_is_a_502() -> None:
    async with world(nods, SETTINGS % "requestBodyMode: None, responseBodyMode: Buffered") as it:
        assert (await it.ask("POST", data=b"x" * 8_192))[0] == 200
        assert (await it.ask("POST", data=b"x" * 8_193))[0] == 502


async def test_heads_are_changed_before_they_leave() -> None:
    async def changes(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        kind = message.WhichOneof("request") or ""
        if kind == "request_headers":
            mutation = sets((":path", "/other?c=2"), ("x-new", "a\xff"), removes=("x-a", "host"))
        elif kind == "response_headers":
            mutation = sets((":status", "418"), ("x-new", "b"), removes=("x-up",))
        else:
            return await streams(processor, message)
        return [Answer(**{kind: pb.HeadersResponse(response=common(header_mutation=mutation))})]

    async with world(changes) as it:
        status, headers, body = await it.ask("POST", data=b"abc", headers={"x-a": "1"})
        assert (status, headers["x-new"], body, "x-up" in headers) == (418, "b", b"ABC", False)
        assert it.arrived[0][0] == "/other?c=2" and "x-a" not in it.arrived[0][1] and "host" in it.arrived[0][1]


async def test_modes_that_show_nothing_ask_nothing() -> None:
    parts = "HeaderMode: Skip, %sBodyMode: None, %sTrailerMode: Skip"
    options = ", ".join(each + parts % (each, each) for each in ("request", "response"))
    async with world(nods, SETTINGS % options) as it:
        assert (await it.ask("POST", data=b"abc"))[2] == b"abc"
        assert it.processor.got == []


@pytest.mark.parametrize("kind", ["request_headers", "request_body", "response_headers", "response_body"])
async def test_an_answer_in_place_of_the_backends(kind: str) -> None:
    async def answers(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        if message.WhichOneof("request") != kind:
            return [agrees(message)]
        immediate = pb.ImmediateResponse(
            status={"code": 451}, headers=sets(("x-why", "law"), ("content-type", "text/html")), body=b"no"
        )
        return [Answer(immediate_response=immediate, dynamic_metadata={"said": "no"})]

    async with world(answers, SETTINGS % "requestBodyMode: Buffered, responseBodyMode: Buffered") as it:
        status, headers, body = await it.ask("POST", data=b"abc")
        assert (status, body, headers["x-why"], headers["content-type"]) == (451, b"no", "law", "text/html")
        assert len(it.arrived) == kind.startswith("response")
        line = it.proxy.log_line()
        assert "reason=ExtProcAnswered" in line and "said=no" in line


@pytest.mark.parametrize("duplex", [False, True])
async def test_a_whole_message_with_the_head_takes_the_place_of_the_content(duplex: bool) -> None:
    async def replaces(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        kind = message.WhichOneof("request") or ""
        if not kind.endswith("headers"):
            return [] if duplex else [agrees(message)]
        said = common(status="CONTINUE_AND_REPLACE", body_mutation=pb.BodyMutation(body=kind.encode()))
        return [Answer(**{kind: pb.HeadersResponse(response=said)})]

    options = "" if duplex else SETTINGS % "requestBodyMode: Buffered, responseBodyMode: None"
    async with world(replaces, options) as it:
        assert (await it.ask("POST", data=b"abc"))[2] == b"response_headers"
        assert it.arrived[0][2] == b"request_headers"
        assert (await it.ask("GET"))[2] == b"response_headers"


async def test_modes_change_where_that_is_allowed() -> None:
    async def wants(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        answer = agrees(message)
        if message.HasField("request_headers"):
            answer.mode_override.request_body_mode = pb.ProcessingMode.BUFFERED
            answer.mode_override.response_header_mode = pb.ProcessingMode.SKIP
        return [answer]

    nothing = "requestBodyMode: None, responseBodyMode: None"
    for allowed in ("true", "false"):
        async with world(wants, SETTINGS % f"{nothing}, allowModeOverride: {allowed}") as it:
            assert (await it.ask("POST", data=b"abc"))[0] == 200
            changed = ["request_headers", "request_body"]
            assert it.processor.kinds == (changed if allowed == "true" else ["request_headers", "response_headers"])


async def test_a_server_that_ends_in_good_order_has_nothing_more_to_say() -> None:
    async def leaves(processor: Processor, message: pb.ProcessingRequest) -> list[Answer] | None:
        processor.leaves = True
        return [Answer(request_headers={"response": common(header_mutation=sets(("x-new", "1")))})]

    async def once(processor: Processor, message: pb.ProcessingRequest) -> list[Answer] | None:
        return None

    async with world(once) as it:
        assert (await it.ask())[0] == 500, "it owed an answer"
    async with world(
        leaves, SETTINGS % "requestBodyMode: None, responseHeaderMode: Skip, responseBodyMode: None"
    ) as it:
        assert (await it.ask("POST", data=b"abc"))[0] == 200 and it.arrived[0][2] == b"abc"
        assert it.processor.ended == ["ended"]


FAULTS: dict[str, Play] = {}


def fault(play: Play) -> Play:
    FAULTS[play.__name__] = play
    return play


@fault
async def refuses(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    raise RuntimeError("refused")


@fault
async def answers_about_what_was_not_asked(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    return [Answer(response_trailers={})]


@fault
async def answers_about_nothing(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    return [Answer()]


@fault
async def says_what_no_header_can_be(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    return [Answer(request_headers={"response": common(header_mutation=sets(("x-a", "1\r\nx-b: 2")))})]


@fault
async def answers_with_no_status(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    return [Answer(immediate_response={"status": {"code": 99}})]


@fault
async def hangs(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
    processor.ended.append("hangs")
    await asyncio.get_running_loop().create_future()
    return []


@pytest.mark.parametrize("name", FAULTS)
async def test_a_server_that_breaks_its_protocol_ends_the_request(name: str) -> None:
    async with world(FAULTS[name], SETTINGS % "requestBodyMode: Buffered") as it:
        asking = asyncio.ensure_future(it.ask("POST", data=b"abc"))
        if name == "hangs":
            await until(lambda: "hangs" in it.processor.ended, "the server has the message")
            it.proxy.advance(10.1)
        status, _, body = await asking
        assert (status, body, it.arrived) == (500, b"ext_proc failed", [])
        assert "reason=ExtProcFailed" in it.proxy.log_line()


async def test_a_client_that_leaves_ends_the_call() -> None:
    async with world(hangs) as it:
        asking = asyncio.ensure_future(it.ask("POST", data=b"abc"))
        await until(lambda: "hangs" in it.processor.ended, "the server has the message")
        asking.cancel()
        await until(lambda: "cancelled" in it.processor.ended, "the server's end of the call")


@pytest.mark.parametrize("path", ["/upload", "/stream"])
async def test_a_client_that_leaves_midway_ends_the_call_at_once(path: str) -> None:
    """In the middle of its request, or of the response; no deadline is waited for."""

    async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/stream" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(origin, "127.0.0.1", 0)
    async with server, world(streams, "", server.sockets[0].getsockname()[1]) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.proxy.port)
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
        writer.write(head.encode() + (b"0\r\n\r\n" if path == "/stream" else b""))
        if path == "/stream":
            await reader.readuntil(b"ABC")
        else:
            await until(lambda: "request_body" in it.processor.kinds, "the server has a part of the body")
        writer.close()
        assert await until(lambda: it.processor.ended, "the server's end of the call")


async def test_attributes_go_with_the_first_message() -> None:
    expressions = "requestAttributes: {path: request.path, none: 'request.headers[\"x-none\"]', size: '1.5'}"
    async with world(streams, expressions) as it:
        assert (await it.ask("POST", data=b"abc"))[0] == 200
        first, *others = it.processor.got
        fields = first.attributes["envoy.filters.http.ext_proc"].fields
        assert (fields["path"].string_value, fields["size"].number_value, "none" in fields) == ("/a", 1.5, False)
        assert not any(each.attributes or each.HasField("protocol_config") for each in others)


async def test_a_response_without_content_ends_with_its_head() -> None:
    async with world(streams) as it:
        status, _, body = await it.ask("GET", "/empty")
        assert (status, body) == (204, b"")
        assert it.processor.got[-1].response_headers.end_of_stream


async def test_much_passes_while_somebody_is_slow() -> None:
    size = 8 * 1024 * 1024

    async with world(streams) as it:

        async def slowly() -> AsyncIterator[bytes]:
            for _ in range(size // 65_536):
                yield b"a" * 65_536
                await asyncio.sleep(0)

        status, _, body = await it.ask("POST", data=slowly())
        assert (status, len(body), body[:1], len(it.arrived[0][2])) == (200, size, b"A", size)


# Trailers, which the library of the other tests neither sends nor takes.

ENDS = re.compile(rb"\r\n0\r\n([^\r]+\r\n)*\r\n$").search


MODES = ("None", "Buffered", "BufferedPartial", "FullDuplexStreamed")


@pytest.mark.parametrize(
    ("mode", "sends"),
    [*itertools.product(MODES, ("Send", "Skip")), ("FullDuplexStreamed", "")],  # "": by default
)
async def test_trailers_are_shown_where_that_is_wanted_and_pass_where_not(mode: str, sends: str) -> None:
    async def changes(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        kind = message.WhichOneof("request") or ""
        if kind.endswith("trailers"):
            mutation = sets(("x-late", kind), removes=("x-bad",))
            return [Answer(**{kind: pb.TrailersResponse(header_mutation=mutation)})]
        return await (streams if mode == "FullDuplexStreamed" else nods)(processor, message)

    came: list[bytes] = []

    async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        while not ENDS(data):
            data += await reader.read(65_536)
        came.append(data)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        writer.write(head + b"2\r\nab\r\n0\r\nx-bad: 1\r\nx-good: 2\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(origin, "127.0.0.1", 0)
    modes = [f"{each}BodyMode: {mode}, {each}TrailerMode: {sends}" for each in ("request", "response")]
    settings = SETTINGS % ", ".join(modes) if sends else ""
    async with server, world(changes, settings, server.sockets[0].getsockname()[1]) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.proxy.port)
        head = b"POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: close, te\r\n"
        head += b"transfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"2\r\nab\r\n0\r\nx-bad: 1\r\nx-good: 2\r\n\r\n")
        answer = await reader.read()
        writer.close()
        is_shown = sends != "Skip"
        lines = answer.rpartition(b"0\r\n")[2]
        assert b"x-good: 2" in lines and (b"x-bad: 1" in lines) is not is_shown
        assert (b"x-late: response_trailers" in lines) is is_shown
        assert (b"x-good: 2" in came[0], b"x-late: request_trailers" in came[0]) == (is_shown, is_shown)
        assert b"x-bad" not in came[0], "what the server is not shown does not pass"
        assert all((each in it.processor.kinds) is is_shown for each in ("request_trailers", "response_trailers"))


async def test_metadata_of_a_call_is_bounded_in_all_its_answers_together() -> None:
    async def notes(processor: Processor, message: pb.ProcessingRequest) -> list[Answer]:
        answers = await streams(processor, message)
        for answer in answers:
            answer.dynamic_metadata.update({f"m{len(processor.got)}": "x" * 30_000})
        return answers

    async with world(notes) as it:
        assert (await it.ask(path="/empty"))[0] == 204  # of two heads
    async with world(notes) as it:
        status, _, _ = await it.ask("POST", data=b"abc")
        assert status == 500 and "bytes of dynamic_metadata" in it.proxy.log_line()


async def test_the_answer_to_head_ends_with_its_head_for_the_server() -> None:
    async with world(streams) as it:
        status, headers, body = await it.ask("HEAD")
        assert (status, body, headers["x-up"]) == (200, b"", "up")
        (shown,) = [
            each.response_headers for each in it.processor.got if each.WhichOneof("request") == "response_headers"
        ]
        assert shown.end_of_stream and "response_body" not in it.processor.kinds
