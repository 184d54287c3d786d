"""`backend.mcp.guardrails` with a gRPC server as processor, an MCP server behind the proxy, and what a client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import grpc
import pytest

from gatewright.wire.external import ext_mcp_pb2 as pb
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE

MODERN = "2026-07-28"
OURS, THEIRS = "gatewright.mcp.v1.ExtMcp", "agentgateway.dev.ext_mcp.ExtMcp"
Verdict = Callable[[Any], Any]


def passes(_: Any) -> Any:
    kind: Any = pb.McpRequestResult
    return kind(**{"pass": pb.Pass()})


def mutates(content: Any, **more: Any) -> Verdict:
    return lambda _: pb.McpRequestResult(mutated=json.dumps(content).encode(), **more)


def rejects(_: Any) -> Any:
    error = pb.AuthorizationError(code="PERMISSION_DENIED", reason="not today", mcp_error=b'{"rule": 7}')
    verdict = pb.McpRequestResult(error=error)
    verdict.metadata.update({"user": "eve"})
    return verdict


class Processor:
    """A processor: a verdict for requests, one for results, and what it was asked. `most`: bytes that it reads."""

    def __init__(
        self, request: Verdict = passes, response: Verdict = passes, service: str = OURS, most: int = 1 << 22
    ) -> None:
        self.most = most
        self.verdicts = {"CheckRequest": request, "CheckResponse": response}
        self.service = service
        self.asked: list[tuple[str, Any]] = []

    async def _answer(self, name: str, message: Any, _: Any) -> Any:
        self.asked.append((name, message))
        return self.verdicts[name](message)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", self.most)])
        kinds: dict[str, Any] = {"CheckRequest": pb.McpRequest, "CheckResponse": pb.McpResponse}
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                partial(self._answer, name),
                request_deserializer=kind.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, kind in kinds.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self.service, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield port
        finally:
            await server.stop(0)


class Server:
    """An MCP server of one tool; `events`: it answers with a stream."""

    def __init__(self, events: bool = False) -> None:
        self.events = events
        self.port = 0
        self.got: list[Any] = []
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
                message = json.loads(await reader.readexactly(length) or b"null")
                self.heads.append(head)
                self.got.append(message)
                writer.write(self.answer(head, message))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def answer(self, head: str, message: Any) -> bytes:
        if head.startswith("get "):  # its own words, and an answer that belongs to another stream
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode()
            stolen = b'{"jsonrpc": "2.0", "id": 1, "result": {"secret": 1}}'
            body = b"id: 3\ndata: %b\n\nid: 4\ndata: %b\n\n" % (note, stolen)
            return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (
                len(body),
                body,
            )
        if message is None or "id" not in message:
            return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": self.result(message)}).encode()
        kind = b"application/json"
        if self.events and message["method"] != "initialize":
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode()
            kind, body = b"text/event-stream", b"id: 1\ndata: %b\n\nid: 2\ndata: %b\n\n" % (note, body)
        session = b"mcp-session-id: s\r\n" if message["method"] == "initialize" else b""
        return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%bcontent-length: %d\r\n\r\n%b" % (
            kind,
            session,
            len(body),
            body,
        )

    def result(self, message: Any) -> Any:
        if message["method"] == "initialize":
            info = {"name": "s", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        if message["method"] == "tools/list":
            return {"tools": [{"name": "add", "inputSchema": {}}, {"name": "drop", "inputSchema": {}}]}
        if message["method"] == "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": "secret"}
        return {"content": [{"type": "text", "text": json.dumps(message["params"])}]}


FILE = """
frontendPolicies: {accessLog: {add: {user: mcpGuardrails.user}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      hostnames: [a]
      policies:
        mcp:
          authorization:
            action: Deny
            policy: {matchExpressions: ['mcp.tool.name == "drop" || mcp.prompt.name == "hidden"']}
          guardrails: {processors: %s}
      backends: [{mcp: {targets: %s}}]
"""


class World:
    def __init__(self, proxy: SocketProxy, servers: list[Server]) -> None:
        self.proxy, self.servers = proxy, servers
        self.session = ""

    async def post(self, method: str, params: Any = None, accept: str = "application/json, text/event-stream") -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        lines = f"Content-Type: application/json\r\nAccept: {accept}\r\nX-Secret: s\r\nX-A: 1\r\n{self.session}"
        answer = (await self.proxy.ask("POST", "/mcp", json.dumps(body).encode(), lines)).decode()
        head, _, content = answer.partition("\r\n\r\n")
        for line in head.split("\r\n"):
            if line.lower().startswith("mcp-session-id"):
                self.session = f"{line}\r\n"
        assert head.startswith("HTTP/1.1 200"), answer
        if "data: " in content:
            self.events = [json.loads(line[6:]) for line in content.splitlines() if line.startswith("data: ")]
            assert "id: " not in content.replace('"id": ', "")  # no part of it can be asked for again
            return self.events[-1]
        return json.loads(content)

    async def raw(self, body: dict[str, Any], lines: str = "") -> tuple[int, Any]:
        """Status and content of an answer that is JSON."""
        lines = f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{lines}"
        answer = await self.proxy.ask("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **body}).encode(), lines)
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(content) if content else None

    async def modern(self, method: str, params: Any = None, name: str = "") -> tuple[int, Any]:
        """A request of the revision without sessions."""
        meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
        lines = f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n" + (f"Mcp-Name: {name}\r\n" * bool(name))
        return await self.raw({"id": 1, "method": method, "params": {**(params or {}), **meta}}, lines)


@asynccontextmanager
async def world(
    *processors: tuple[Processor, str],
    several: bool = False,
    events: bool = False,
    kind: Callable[[bool], Server] = Server,
) -> AsyncIterator[World]:
    """`processors`: each with its fields beside `remote.host`."""
    servers = [kind(events) for _ in range(2 if several else 1)]
    async with serving_all(servers, [each for each, _ in processors]) as (ports, places):
        rows = [fields % place for (_, fields), place in zip(processors, places, strict=True)]
        targets = [f"{{name: t{index}, static: {{host: 127.0.0.1, port: {port}}}}}" for index, port in enumerate(ports)]
        async with serving(FILE % (f"[{', '.join(rows)}]", f"[{', '.join(targets)}]")) as proxy:
            yield World(proxy, servers)


@asynccontextmanager
async def serving_all(servers: list[Server], processors: list[Processor]) -> AsyncIterator[tuple[list[int], list[str]]]:
    async with AsyncExitStack() as stack:
        ports = []
        for each in servers:
            server = await stack.enter_async_context(await asyncio.start_server(each.serve, "127.0.0.1", 0))
            ports.append(server.sockets[0].getsockname()[1])
        places = [f"127.0.0.1:{await stack.enter_async_context(each.served())}" for each in processors]
        yield ports, places


ALL = (
    '{remote: {host: "%s", metadata: {method: mcp.methodName}, disallowedRequestHeaders: [X-Secret]},'
    ' methods: {"*": Full}}'
)
CALLS = '{remote: {host: "%s"}, methods: {tools/call: Request}}'


@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("service", [OURS, THEIRS])
async def test_requests_and_results_are_shown(service: str, events: bool) -> None:
    processor = Processor(service=service)
    async with world((processor, ALL), events=events) as made:
        await made.post("initialize", {"protocolVersion": "2025-06-18"})
        answer = await made.post("tools/call", {"name": "add", "arguments": {"a": 1}})
        assert json.loads(answer["result"]["content"][0]["text"]) == {"name": "add", "arguments": {"a": 1}}
        names = [(name, message.method) for name, message in processor.asked]
        assert names == [
            (phase, each) for each in ("initialize", "tools/call") for phase in ("CheckRequest", "CheckResponse")
        ]
        request, response = processor.asked[2][1], processor.asked[3][1]
        assert json.loads(request.mcp_request) == {"name": "add", "arguments": {"a": 1}}
        assert json.loads(response.mcp_response) == answer["result"]
        assert list(request.service_names) == ["t0"]
        assert dict(request.metadata_context) == {"method": "tools/call"}
        headers = {header.key: header.value for header in request.headers}
        assert headers[":path"] == b"/mcp" and headers["x-a"] == b"1" and "x-secret" not in headers
        assert (headers[":method"], headers[":scheme"], headers[":authority"]) == (b"POST", b"http", b"a")
        assert events is False or [each.get("method") for each in made.events] == ["notifications/message", None]


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ('allowedRequestHeaders: [X-A, ":PATH"]', {"x-a": b"1", ":path": b"/mcp"}),
        ("allowedRequestHeaders: [X-A, X-SECRET], disallowedRequestHeaders: [x-Secret]", {"x-a": b"1"}),
        ("allowedRequestHeaders: [X-B]", {}),
    ],
)
async def test_case_of_header_names_means_nothing(fields: str, seen: dict[str, bytes]) -> None:
    processor = Processor()
    row = f'{{remote: {{host: "%s", {fields}}}, methods: {{tools/call: Request, "*": "Off"}}}}'
    async with world((processor, row)) as made:
        await made.post("initialize")
        await made.post("tools/call", {"name": "add"})
        ((_, request),) = processor.asked
        assert {header.key: header.value for header in request.headers} == seen


@pytest.mark.parametrize("events", [False, True])
async def test_what_processors_make_of_messages(events: bool) -> None:
    mutation = pb.HeaderMutation(set=[pb.Header(key="x-user", value=b"ann")], remove=["x-a"])
    first = mutates({"name": "add", "arguments": {"a": 2}}, header_mutation=mutation)
    verdict = first(None)
    verdict.metadata.update({"user": "ann"})
    result = mutates({"content": []})(None)
    result.metadata.update({"more": "of the result"})
    processor = Processor(lambda _: verdict, lambda _: result)
    fields = '{remote: {host: "%s"}, methods: {tools/call: Full}}'
    async with world((processor, fields), events=events) as made:
        await made.post("initialize")
        assert processor.asked == []  # no key: no call
        assert (await made.post("tools/call", {"name": "x"}))["result"] == {"content": []}
        assert made.servers[0].got[-1]["params"] == {"name": "add", "arguments": {"a": 2}}
        assert "x-user: ann" in made.servers[0].heads[-1] and "x-a:" not in made.servers[0].heads[-1]
        assert made.proxy.log_lines()[-1].endswith("user=ann")


async def test_rules_judge_what_processors_made_of_a_call() -> None:
    processor = Processor(mutates({"name": "drop"}))
    async with world((processor, CALLS)) as made:
        await made.post("initialize")
        answer = await made.post("tools/call", {"name": "add"})
        assert answer["error"] == {"code": -32602, "message": "Unknown tool: drop"}


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"])
async def test_the_first_that_rejects_ends_it(accept: str) -> None:
    first, second = Processor(rejects), Processor()
    async with world((first, CALLS), (second, CALLS)) as made:
        await made.post("initialize")
        answer = await made.post("tools/call", {"name": "add"}, accept)
        assert answer["error"] == {"code": -32001, "message": "not today", "data": {"rule": 7}}
        assert answer["id"] == 1
        assert second.asked == [] and made.servers[0].got[-1]["method"] != "tools/call"
        line = made.proxy.log_lines()[-1]
        assert " http.status=200 " in line and " reason=McpRejected " in line and "not today" in line
        assert line.endswith("user=eve"), "what it says of the client is known all the same"


@pytest.mark.parametrize("events", [False, True])
async def test_a_result_that_is_rejected(events: bool) -> None:
    async with world((Processor(response=rejects), ALL.replace("Full", "Response")), events=events) as made:
        assert (await made.post("initialize"))["error"]["code"] == -32001
    fields = '{remote: {host: "%s"}, methods: {"tools/*": Response, initialize: "Off"}}'
    async with world((Processor(response=rejects), fields), events=events) as made:
        await made.post("initialize")
        answer = await made.post("tools/call", {"name": "add"})
        assert answer["error"]["message"] == "not today" and "result" not in answer


@pytest.mark.parametrize(("mode", "rejected"), [("FailClosed", True), ("FailOpen", False)])
async def test_a_processor_that_fails(mode: str, rejected: bool) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError

    fields = '{remote: {host: "%%s", failureMode: %s}, methods: {tools/call: Full}}' % mode  # noqa: UP031
    gone = fields.replace("%s", "127.0.0.1:1")
    for processors in ([(Processor(broken), fields)], [(Processor(), gone.replace("127.0.0.1:1", "127.0.0.1:1%.0s"))]):
        async with world(*processors) as made:
            await made.post("initialize")
            answer = await made.post("tools/call", {"name": "add"})
            assert ("error" in answer) is rejected
            if rejected:
                assert answer["error"] == {"code": -32603, "message": "guardrail failed"}
            else:
                assert json.loads(answer["result"]["content"][0]["text"]) == {"name": "add"}


@pytest.mark.parametrize("mode", ["FailClosed", "FailOpen"])
async def test_a_message_that_the_processor_does_not_read_is_rejected_in_both_modes(mode: str) -> None:
    """Its size: a client could otherwise have any call pass by an argument that is large enough."""
    fields = '{remote: {host: "%%s", failureMode: %s}, methods: {tools/call: Request}}' % mode  # noqa: UP031
    async with world((Processor(most=4096), fields)) as made:
        await made.post("initialize")
        assert "result" in await made.post("tools/call", {"name": "add", "arguments": {"text": "a"}})
        answer = await made.post("tools/call", {"name": "add", "arguments": {"text": "a" * 4096}})
        assert answer["error"] == {"code": -32603, "message": "guardrail failed"}


async def test_several_targets() -> None:
    processor = Processor(response=passes)
    async with world((processor, ALL), several=True) as made:
        await made.post("initialize")
        answer = await made.post("tools/list")
        assert [each["name"] for each in answer["result"]["tools"]] == ["t0_add", "t1_add"]  # rules hide `drop`
        request, response = processor.asked[2][1], processor.asked[3][1]
        assert list(request.service_names) == ["t0", "t1"] and not request.HasField("mcp_request")
        assert json.loads(response.mcp_response) == answer["result"]  # once, merged
        await made.post("tools/call", {"name": "t1_add"})
        call = processor.asked[4][1]
        assert (list(call.service_names), json.loads(call.mcp_request)) == (["t1"], {"name": "add"})
        assert len(processor.asked) == 6


@pytest.mark.parametrize("several", [False, True])
async def test_no_result_gets_past_by_another_stream(several: bool) -> None:
    """Whoever asks for the rest of a stream gets none of the answers that processors have not seen."""
    async with world((Processor(), ALL), several=several) as made:
        await made.post("initialize")
        lines = f"Accept: text/event-stream\r\nLast-Event-ID: 1\r\n{made.session}"
        answer = (await made.proxy.ask("GET", "/mcp", headers=lines)).decode()
        assert "notifications/message" in answer and "secret" not in answer
        assert all("last-event-id" not in head for server in made.servers for head in server.heads)


async def test_a_list_that_is_changed() -> None:
    processor = Processor(response=mutates({"tools": []}))
    for several in (False, True):
        async with world((processor, '{remote: {host: "%s"}, methods: {"*/list": Response}}'), several=several) as made:
            await made.post("initialize")
            assert (await made.post("tools/list"))["result"] == {"tools": []}


# --- what might get past


@pytest.mark.parametrize("several", [False, True])
async def test_what_servers_say_of_themselves_is_shown(several: bool) -> None:
    """Of the revision without sessions, of one server and of several merged."""
    processor = Processor(response=mutates({"supportedVersions": [MODERN]}))
    fields = '{remote: {host: "%s"}, methods: {server/discover: Full}}'
    async with world((processor, fields), several=several) as made:
        status, answer = await made.modern("server/discover")
        assert (status, answer["result"]) == (200, {"supportedVersions": [MODERN]})
        (_, request), (_, response) = processor.asked
        assert list(request.service_names) == list(response.service_names) == ["t0", "t1"][: 1 + several]
        assert b"secret" in response.mcp_response
    async with world((Processor(rejects), fields), several=several) as made:
        status, answer = await made.modern("server/discover")
        assert (status, answer["error"]["code"]) == (200, -32001)
        assert not any(server.got for server in made.servers)


@pytest.mark.parametrize("several", [False, True])
async def test_the_header_names_what_a_processor_made_of_a_call(several: bool) -> None:
    """And no header that repeats the message is a processor's to change."""
    mutation = pb.HeaderMutation(
        set=[pb.Header(key=key, value=b"drop") for key in ("mcp-name", "Mcp-Method", "content-type", "x-a")],
        remove=["mcp-protocol-version"],
    )
    processor = Processor(mutates({"name": "sub"}, header_mutation=mutation))
    name = "t1_add" if several else "add"
    async with world((processor, CALLS), several=several) as made:
        status, answer = await made.modern("tools/call", {"name": name}, name)
        assert status == 200 and "result" in answer
        server = made.servers[-1]
        assert server.got[-1]["params"] == {"name": "sub"}
        lines = sorted(line for line in server.heads[-1].split("\r\n") if line.startswith(("mcp-", "x-a", "content-t")))
        assert lines == [
            "content-type: application/json",
            "mcp-method: tools/call",
            "mcp-name: sub",
            f"mcp-protocol-version: {MODERN}",
            "x-a: drop",
        ]


async def test_rules_judge_what_processors_made_of_a_reference() -> None:
    rule = '{remote: {host: "%s"}, methods: {completion/complete: Request}}'
    for several in (False, True):
        processor = Processor(mutates({"ref": {"type": "ref/prompt", "name": "hidden"}}))
        async with world((processor, rule), several=several) as made:
            await made.post("initialize")
            name = "t0_add" if several else "add"
            answer = await made.post("completion/complete", {"ref": {"type": "ref/prompt", "name": name}})
            assert answer["error"]["code"] == -32602
            assert made.servers[0].got[-1]["method"] != "completion/complete"


class Sly(Server):
    """Answers a ping with the result of a call."""

    def answer(self, head: str, message: Any) -> bytes:
        found = super().answer(head, message)
        return found.replace(b'"id": 1', b'"id": 7') if message and message["method"] == "ping" else found


@pytest.mark.parametrize("events", [False, True])
async def test_no_result_gets_past_as_that_of_another_request(events: bool) -> None:
    fields = '{remote: {host: "%s"}, methods: {tools/call: Response}}'
    async with world((Processor(), fields), events=events, kind=Sly) as made:
        await made.post("initialize")
        lines = f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{made.session}"
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}'
        answer = await made.proxy.ask("POST", "/mcp", body, lines)
        assert made.servers[0].got[-1]["method"] == "ping" and b'content": [' not in answer
        assert answer.startswith(b"HTTP/1.1 200" if events else b"HTTP/1.1 502")
        assert (b"notifications/message" in answer) is events


class Failing(Server):
    """Answers calls with a result, and a status that is not 200."""

    status = b"201 Created"

    def answer(self, head: str, message: Any) -> bytes:
        found = super().answer(head, message)
        return found.replace(b"200 OK", self.status) if message and message["method"] == "tools/call" else found


class Refusing(Failing):
    status = b"403 Forbidden"


class Erring(Refusing):
    def answer(self, head: str, message: Any) -> bytes:
        return super().answer(head, message).replace(b'"result": {"content"', b'"error":  {"content"')


class Texting(Failing):
    def answer(self, head: str, message: Any) -> bytes:
        found = super().answer(head, message)
        is_call = message and message["method"] == "tools/call"
        return found.replace(b"application/json", b"text/plain") if is_call else found


@pytest.mark.parametrize(("kind", "status"), [(Failing, 502), (Texting, 502), (Refusing, 502), (Erring, 403)])
async def test_no_result_gets_past_by_another_status(kind: type[Server], status: int) -> None:
    fields = '{remote: {host: "%s"}, methods: {tools/call: Response}}'
    async with world((Processor(), fields), kind=kind) as made:
        await made.post("initialize")
        found = await made.raw({"id": 1, "method": "tools/call", "params": {"name": "add"}}, made.session)
        assert found[0] == status and "result" not in found[1]


async def test_a_call_without_an_id_is_none() -> None:
    async with world((Processor(), CALLS)) as made:
        await made.post("initialize")
        status, answer = await made.raw({"method": "tools/call", "params": {"name": "add"}}, made.session)
        assert (status, answer["error"]["code"]) == (400, -32600)
        assert made.servers[0].got[-1]["method"] != "tools/call"
        assert (await made.raw({"method": "notifications/initialized"}, made.session))[0] == 202


async def test_rejections_are_counted_as_refused() -> None:
    async with world((Processor(rejects), CALLS)) as made:
        await made.post("initialize")
        await made.post("tools/call", {"name": "add"})
        assert made.proxy.count("mcp_requests_total", "tools/call", "", "", "denied") == 1
        assert made.proxy.count("mcp_requests_total", "initialize", "", "", "answered") == 1


# --- clients of the older transport


class Stream:
    """What comes on the stream of such a client."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def data(self) -> str:
        """Of the next event."""
        async with asyncio.timeout(PATIENCE):
            while not (line := await self._reader.readline()).startswith(b"data:"):
                assert line, "the stream ended"
        return line[5:].strip().decode()


@pytest.mark.parametrize("several", [False, True])
async def test_clients_of_the_older_transport_are_judged_too(several: bool) -> None:
    judge = Processor(lambda message: passes(message) if b"good" in message.mcp_request else rejects(message))
    shown = Processor(response=mutates({"content": [], "by": "us"}))
    results = '{remote: {host: "%s"}, methods: {tools/call: Response}}'
    async with world((judge, CALLS), (shown, results), several=several) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.proxy.port)
        writer.write(b"GET /sse HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
        stream = Stream(reader)
        where = await stream.data()

        async def post(body: dict[str, Any]) -> str:
            text = json.dumps({"jsonrpc": "2.0", **body}).encode()
            answer = await made.proxy.ask("POST", where, text, "Content-Type: application/json\r\n")
            return answer.split(b" ", 2)[1].decode()

        hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        assert await post({"id": 0, "method": "initialize", "params": hello}) == "202"
        assert json.loads(await stream.data())["id"] == 0
        assert judge.asked == [] and shown.asked == []  # no key: no call
        tool = "t1_add" if several else "add"

        async def called(number: int, note: str) -> Any:
            params = {"name": tool, "arguments": {"note": note}}
            await post({"id": number, "method": "tools/call", "params": params})
            return json.loads(await stream.data())

        passed = await called(1, "good")
        assert passed["result"] == {"content": [], "by": "us"} and passed["id"] == 1
        refused = await called(2, "bad")
        assert (refused["id"], refused["error"]["code"], refused["error"]["message"]) == (2, -32001, "not today")
        server = made.servers[-1]
        calls = [each for each in server.got if each and each.get("method") == "tools/call"]
        assert [each["params"]["arguments"] for each in calls] == [{"note": "good"}], "the other one reached nobody"
        assert [name for name, _ in judge.asked] == ["CheckRequest"] * 2
        assert [name for name, _ in shown.asked] == ["CheckResponse"]
        writer.close()
