"""A request of a client to servers behind one endpoint: who is asked, what they get, what comes of their answers. The
servers are functions; no network, no proxy around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls, farewell, listening, lists, posts, sending, serving, streams, upstreams
from dataplane.backends.mcp.answers import Opened, TargetFailed
from dataplane.backends.mcp.legacy import requests
from dataplane.backends.mcp.legacy.client_streams import PURPOSE
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.backends.mcp.visit import Visit
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.chain.reply import Reply
from dataplane.credentials.sealing import Sealer
from dataplane.http.heads import Head
from dataplane.http.sse import EventReader
from dataplane.mcp import messages, sessions
from dataplane.mcp.guardrails import Processor, sorted_methods
from dataplane.mcp.hearing import Signal
from dataplane.mcp.plans import McpPlan, TargetPlan
from dataplane.mcp.policies import MCP, McpPolicies
from dataplane.mcp.sessions import Session, UpstreamSession
from dataplane.mcp.subscriptions import Filter
from dataplane.mcp.worker import Memory, Shared
from gatewright.wire.external import ext_mcp_pb2 as pb

Json = Any
REVISION = "2026-07-28"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
BOTH = b"accept: application/json, text/event-stream\r\n"
JSON = b"content-type: application/json\r\n"
STREAM = b"content-type: text/event-stream\r\n"


class Answer:
    """What a server answers: its parts come one by one; an exception is raised; None: nothing comes any more."""

    def __init__(self, status: int, lines: bytes = JSON, *parts: bytes | Exception | None) -> None:
        self.status, self.lines, self.parts = status, lines, list(parts)


def answer(message: Json, lines: bytes = b"", status: int = 200) -> Answer:
    return Answer(status, JSON + lines, json.dumps(message).encode())


def result(sent: Json, **fields: Any) -> Answer:
    return answer({"jsonrpc": "2.0", "id": sent.get("id"), "result": fields})


def error(sent: Json, code: int, text: str = "no", status: int = 200) -> Answer:
    return answer({"jsonrpc": "2.0", "id": sent.get("id"), "error": {"code": code, "message": text}}, status=status)


def event(message: Json) -> bytes:
    return b"data: %b\n\n" % json.dumps({"jsonrpc": "2.0", **message}).encode()


def result_with(sent: Json, status: int) -> Answer:
    """A result, with a status that says otherwise."""
    return answer({"jsonrpc": "2.0", "id": sent["id"], "result": {}}, status=status)


Server = Callable[[Json, CallRequest], "Answer | CallFailed"]


class Call:
    """`chain.calls.Call` to one of the servers."""

    def __init__(self, target: str, request: CallRequest, seconds: float, found: Answer | CallFailed) -> None:
        self.target, self.request, self.seconds, self._found = target, request, seconds, found
        self.is_given_up = False
        self.is_idempotent = False
        self.endpoint: Any = SimpleNamespace(label=f"of {target}")
        self._waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def head(self) -> CallAnswer:
        if isinstance(self._found, CallFailed):
            raise self._found
        return CallAnswer(self._found.status, Head(b"\r\n" + self._found.lines), b"")

    async def receive(self) -> bytes:
        assert isinstance(self._found, Answer)
        part = self._found.parts.pop(0) if self._found.parts else b""
        if part is None:
            await self._waits
        if isinstance(part, Exception):
            raise part
        return part or b""

    def cancel(self) -> None:
        self.is_given_up = True
        if not self._waits.done():
            self._waits.set_exception(CallFailed("lost", "given up"))
            self._waits.exception()

    @property
    def message(self) -> Json:
        return json.loads(self.request.body) if self.request.body else None


class Out:
    """`Terminator`: what the client is answered."""

    is_paused = True

    def __init__(self, x: Any, block: bytes) -> None:
        self.x, self.block, self.whole_body = x, block, b""
        self.has_begun = False
        self.status = 0
        self.lines = self.body = b""
        self.how = ""
        self.is_given_up = False

    def head(self, status: int, lines: bytes, length: int = -1, first: bytes = b"", end: bool = False) -> None:
        assert not self.has_begun
        self.has_begun = True
        self.status, self.lines, self.body = status, lines, first
        if end:
            self.how = "ended"

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        self.head(status, lines, len(body), body, True)

    def give(self, data: bytes) -> None:
        assert not self.how
        self.body += data

    def hold(self, size: int) -> bool:
        return True

    async def pour(self, given: Call) -> None:
        while data := await given.receive():
            self.give(data)

    async def ready(self) -> None:
        await asyncio.sleep(0)

    def end(self) -> None:
        self.how = "ended"

    def lost(self) -> None:
        self.how = "lost"

    def give_up(self) -> None:
        self.is_given_up = True


NOBODY: Any = None


async def posted(visit: Visit, body: bytes) -> Reply | None:
    found = posts.post(visit, body, None)
    return found if found is None or isinstance(found, Reply) else await found


class Endpoint:
    """One endpoint of several servers, with what a worker knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, servers: dict[str, Server], **plan: Any) -> None:
        self.servers = servers
        self.plan = McpPlan(tuple(TargetPlan(name, name, path=b"/mcp") for name in servers), **plan)
        self.now = 1000.0
        self.sleepers: list[tuple[float, Any]] = []
        self.asked: list[Call] = []
        self.tasks: list[asyncio.Future[Any]] = []
        self.counted: list[tuple[str, ...]] = []
        upstream = SimpleNamespace(clock=lambda: self.now, wake_at=lambda at, whom: self.sleepers.append((at, whom)))
        self.memory = Memory(Shared.local(), lambda at, whom: None)
        self.sealer = Sealer(bytes(32))
        self.kept: Any = SimpleNamespace(sealer=self.sealer, memory=self.memory)
        self.context: Any = SimpleNamespace(
            clock=lambda: self.now,
            wall_clock=lambda: 5000.0,
            calls=upstream,
            of_kind={MCP: self.kept}.__getitem__,
            make_future=asyncio.get_running_loop().create_future,
            spawn=self.work,
            recorder=SimpleNamespace(count_for=lambda _x, _metric, *each: self.counted.append(each)),
        )
        self.policies: Any = SimpleNamespace(
            rules=(),
            guardrails=None,
            refused="",
            reads_arguments=False,
            for_calls=lambda x: self.denied(x),
            for_lenient=lambda x: None,
            for_lists=lambda x: self.denied(x),
        )
        self.session: bytes = b""
        self.denies: Callable[[dict[str, Any]], bool] = lambda mcp: False
        self.seen: list[dict[str, Any]] = []
        """What rules were asked about."""
        monkeypatch.setattr(calls, "call", self._call)
        monkeypatch.setattr(
            calls,
            "plan_of",
            lambda x, target, pinned="": SimpleNamespace(of=target, pin=pinned, request_timeout=None),
        )
        monkeypatch.setattr(calls, "authority", lambda x, plan: b"")

    def denied(self, x: Any) -> str | None:
        self.seen.append({key: dict(value) for key, value in x.attributes.items()})
        return "a rule" if self.denies(x.attributes) else None

    def _call(
        self, x: Any, plan: Any, request: CallRequest, seconds: float = calls.FOR_EVER, is_idempotent: bool = False
    ) -> Call:
        sent = json.loads(request.body) if request.body else {}
        made = Call(plan.of.name, request, seconds, self.servers[plan.of.name](sent, request))
        made.is_idempotent = is_idempotent
        self.asked.append(made)
        return made

    def work(self, coroutine: Any) -> asyncio.Future[Any]:
        self.tasks.append(asyncio.ensure_future(coroutine))
        return self.tasks[-1]

    def visit(self, lines: bytes = b"", attributes: Any = None) -> Visit:
        x: Any = SimpleNamespace(
            peer="192.0.2.1",
            trace=None,
            context=self.context,
            attributes=attributes,
            backend_plan=SimpleNamespace(key="default/tools"),
            asked_target=b"/mcp",
            target=b"/mcp",
            method=b"POST",
            authority=b"gw",
            scheme=b"http",
            client=SimpleNamespace(tls=None, local=b"", workload=None),
            policies=None,
            host_set=False,
            reason="",
            detail="",
            work=self.work,
        )

        def leave(name: str, value: Any) -> None:
            x.attributes = {**(x.attributes or {}), name: value}

        x.leave = leave
        session = b"mcp-session-id: %b\r\n" % self.session if self.session else b""
        block = b"\r\n" + (b"" if b"accept:" in lines else BOTH) + JSON + session + lines
        x.backend_plan.of_kind = self.plan
        out: Any = Out(x, block)
        visit = Visit(x, out, block, self.plan, self.policies)
        visit.farewell = farewell.of
        return visit

    def begin_session(self, *theirs: UpstreamSession) -> None:
        """One that the client has."""
        made = Session(b"8 bytes.", 4000, json.dumps(HELLO).encode(), list(theirs) or self.theirs())
        self.session = sessions.sealed(made, self.sealer, self.visit().owner).encode()

    def theirs(self) -> list[UpstreamSession]:
        return [UpstreamSession(name, f"s-{name}", "1.2.3.4:5") for name in self.servers]

    async def posts(self, message: Json, lines: bytes = b"") -> Answered:
        visit = self.visit(lines)
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        reply = await posted(visit, body)
        visit.over()
        await self.settles()
        return Answered(visit, reply)

    async def asks(self, method: str, params: Json = None, lines: bytes = b"") -> Answered:
        message = {"id": 7, "method": method}
        return await self.posts(message if params is None else {**message, "params": params}, lines)

    async def settles(self) -> None:
        for _ in range(12):
            await asyncio.sleep(0)

    async def ends(self) -> None:
        for each in self.tasks:
            each.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def got(self, target: str) -> list[Json]:
        """Messages that a server got."""
        return [each.message for each in self.asked if each.target == target]

    def requests(self) -> list[tuple[str, bytes]]:
        return [(each.target, each.request.method) for each in self.asked]


class Answered:
    """What a client got."""

    def __init__(self, visit: Visit, reply: Reply | None) -> None:
        self.visit, self.reply = visit, reply
        out: Any = visit.out
        self.out: Out = getattr(out, "_real", out)

    @property
    def status(self) -> int:
        assert (self.reply is None) is self.out.has_begun
        return self.out.status if self.reply is None else self.reply.status

    @property
    def reason(self) -> str:
        return self.visit.x.reason if self.reply is None else self.reply.reason

    @property
    def attributes(self) -> dict[str, Any]:
        known: Any = self.visit.x.attributes
        return known or {}

    @property
    def messages(self) -> list[Json]:
        body = self.out.body if self.reply is None else self.reply.body
        if b"event-stream" in self.out.lines:
            return [json.loads(each.data) for each in EventReader().feed(body) if each.data]
        return [json.loads(body)] if body else []

    @property
    def last(self) -> Json:
        return self.messages[-1]

    @property
    def code(self) -> Json:
        return self.last["error"]["code"]


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    known: list[Endpoint] = []

    def make(*servers: Server, **plan: Any) -> Endpoint:
        known.append(Endpoint(monkeypatch, dict(zip(("one", "two", "three"), servers, strict=False)), **plan))
        return known[-1]

    yield make
    for endpoint in known:
        await endpoint.ends()


Made = Callable[..., Endpoint]


def fixed(found: Any) -> Server:
    """A server that answers everything with this."""
    return lambda sent, request: found if not callable(found) else found(sent) if "id" in sent else Answer(202)


def listing(field: str = "tools", *names: str, **more: Any) -> Server:
    return lambda sent, request: result(sent, **{field: [{"name": name} for name in names]}, **more)


def taking(sent: Json, request: CallRequest) -> Answer:
    """A server that has no trouble."""
    if request.method == b"DELETE":
        return Answer(200)
    if "id" not in sent:
        return Answer(202)
    if sent.get("method") == "initialize":
        said = {"jsonrpc": "2.0", "id": sent["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}
        return answer(said, b"mcp-session-id: new\r\n")
    return result(sent)


def beginning(sent: Json, session: bytes) -> Answer:
    return answer({"jsonrpc": "2.0", "id": sent["id"], "result": {}}, b"mcp-session-id: %b\r\n" % session)


def failing(sent: Json, request: CallRequest) -> CallFailed:
    return CallFailed("connect", "refused")


# --- what is checked first


async def test_a_mistake_names_the_request_that_it_is_in(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    found = await endpoint.asks("tools/call", {"name": 1})
    assert (found.status, found.reason, found.last["id"], found.code) == (400, "McpBadMessage", 7, -32602)
    assert "params.name must be a string" in found.last["error"]["message"]
    found = await endpoint.asks("tools/call", [1])
    assert (found.last["id"], found.code) == (7, -32602)
    assert endpoint.counted == [("tools/call", "", "", "failed")] * 2


async def test_what_is_no_message_has_no_id(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    found = await endpoint.posts(b"{")
    assert (found.status, found.code, found.last["id"]) == (400, -32700, None) and not endpoint.counted


# --- counting


@pytest.mark.parametrize(
    ("message", "counted"),
    [
        ({"id": 7, "method": "ping"}, ("ping", "", "", "answered")),
        ({"id": 7, "method": "tools/call", "params": {"name": "a"}}, ("tools/call", "one", "a", "answered")),
        ({"id": 7, "method": "prompts/get", "params": {"name": "a"}}, ("prompts/get", "one", "", "answered")),
        ({"id": 7, "method": "mine"}, ("other", "", "", "answered")),
        ({"id": 7, "result": {}}, ("response", "", "", "answered")),
        ({"method": "notifications/mine"}, ("notification", "", "", "answered")),
        ({"id": 7, "method": "initialize", "params": HELLO}, ("initialize", "", "", "answered")),
    ],
)
async def test_messages_are_counted_by_what_they_are(made: Made, message: Json, counted: tuple[str, ...]) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    await endpoint.posts(message)
    assert endpoint.counted == [counted]


async def test_a_tool_that_is_refused_is_counted_without_its_name(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    endpoint.denies = lambda mcp: True
    found = await endpoint.asks("tools/call", {"name": "a"})
    assert (found.status, found.code, found.reason) == (200, -32602, "McpDenied")
    assert found.visit.x.detail == "a rule" and found.last["error"]["message"] == "Unknown tool: a"
    assert endpoint.counted == [("tools/call", "one", "", "denied")] and not endpoint.asked


# --- one server


async def test_the_answer_of_the_only_server_is_as_it_gave_it(made: Made) -> None:
    """But where ids or names have to be ours, or rules read it."""
    said = b": a comment\n\nunknown: field\n" + event({"id": 7, "result": {}})
    for stateless, rules, lines, is_as_given in (
        (False, (), b"", True),
        (True, (), modern("tools/call")[2] + b"mcp-name: a\r\n", True),
        (True, (), b"", False),
        (False, (1,), b"", False),
    ):
        endpoint = made(
            lambda sent, _: Answer(200, STREAM, said) if sent.get("method") == "tools/call" else taking(sent, _)
        )
        endpoint.plan = replace(endpoint.plan, stateless=stateless)
        endpoint.policies.rules = rules
        if not stateless:
            endpoint.begin_session()
        found = await endpoint.asks("tools/call", {**modern("")[1], "name": "a"}, lines)
        assert (found.out.body == said) is is_as_given and found.last["result"] == {}
        assert found.out.body.startswith(b": a comment\n\n")


async def test_a_message_to_the_only_server_is_as_the_client_sent_it(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    body = b'{ "id": 7, "jsonrpc":"2.0", "method":"tools/call", "params": {"name":"a","name":"b"} }'
    found = await endpoint.posts(body, b"x-client: 1\r\n")
    (call,) = endpoint.asked
    assert (found.status, call.request.body, call.seconds) == (200, body, calls.FOR_EVER)
    assert call.request.headers == b"x-client: 1\r\n" + BOTH + JSON + b"mcp-session-id: s-one\r\n"
    assert (call.request.method, call.request.target, call.is_idempotent) == (b"POST", b"/mcp", False)
    assert call.is_given_up


async def test_what_rules_were_asked_about_is_written_anew(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    await endpoint.posts(b'{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","name":"b"},"x":1}')
    assert endpoint.got("one") == [{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "b"}}]
    assert endpoint.asked[0].request.body.count(b"name") == 1
    assert [each["mcp.tool"] for each in endpoint.seen] == [{"target": "one", "name": "b"}]
    assert (await endpoint.asks("tools/call", {"Name": "b", "name": "c"})).code == -32602


@pytest.mark.parametrize(
    ("arguments", "seen", "code"),
    [
        ({"a": [1]}, {"a": [1]}, None),
        (None, None, None),
        ([1], None, -32602),
        ("x", None, -32602),
        ({"a": 1, "A": 2}, None, -32602),
        ({"a": "x" * 65_528}, {"a": "x" * 65_528}, None),
        ({"a": "x" * 65_529}, None, -32602),
    ],
)
async def test_arguments_are_read_where_rules_want_them(made: Made, arguments: Json, seen: Json, code: Any) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    endpoint.policies.reads_arguments = True
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": 0}})
    text = json.dumps(arguments, separators=(",", ":"))
    found = await endpoint.posts(body.replace('"arguments": 0', f'"arguments":{text}').encode())
    if code is None:
        assert found.status == 200 and endpoint.seen[0]["mcp.tool"].get("arguments") == seen
        assert endpoint.got("one")[0]["params"]["arguments"] == arguments
        twice = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"a":1,"a":2}}}'
        await endpoint.posts(twice)
        assert endpoint.asked[-1].request.body.endswith(b'"arguments":{"a":2}}}')
    else:
        assert found.code == code and "params.arguments" in found.last["error"]["message"] and not endpoint.asked


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_what_wants_no_answer_is_taken(made: Made, status: int) -> None:
    endpoint = made(fixed(Answer(status, b"", b"x")))
    endpoint.begin_session()
    for message in ({"method": "notifications/x"}, {"id": 7, "result": {}}):
        found = await endpoint.posts(message)
        assert (found.status, found.out.body, found.out.lines) == (202, b"", b"")
    assert all(each.is_given_up for each in endpoint.asked)


async def test_what_the_only_server_says_of_a_notice_is_passed(made: Made) -> None:
    endpoint = made(fixed(Answer(400, JSON, b"no")))
    endpoint.begin_session()
    found = await endpoint.posts({"method": "notifications/x"})
    assert (found.status, found.out.body) == (400, b"no") and endpoint.asked[0].is_given_up


async def test_what_no_rule_could_judge_needs_an_id(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    assert (await endpoint.posts({"method": "tools/call"})).status == 202
    endpoint.policies.rules = (1,)
    assert (await endpoint.posts({"method": "tools/call"})).code == -32600
    assert (await endpoint.posts({"method": "notifications/x"})).status == 202
    assert (await endpoint.asks("TOOLS/call", {"name": "a"})).code == -32601
    assert (await endpoint.asks("mine")).status == 200


async def test_a_server_that_forgot_the_session_has_a_new_one_unnoticed(made: Made) -> None:
    def forgetful(sent: Json, request: CallRequest) -> Answer:
        if b"s-one" in request.headers:
            return Answer(404, b"")
        return taking(sent, request)

    endpoint = made(forgetful)
    endpoint.begin_session()
    assert (await endpoint.asks("ping")).status == 200
    assert [each.get("method") for each in endpoint.got("one")] == [
        *("ping", "ping", "initialize", "notifications/initialized", "ping")
    ]
    question, hello = endpoint.asked[1:3]
    assert (question.message["id"], question.seconds, question.is_given_up) == ("gw-ping", 15.0, True)
    assert (hello.message["params"], hello.message["id"], hello.seconds) == (HELLO, "gw-initialize", 15.0)
    assert b"mcp-session-id" not in hello.request.headers and hello.is_idempotent
    assert [b"mcp-session-id: new\r\n" in each.request.headers for each in endpoint.asked[3:]] == [True, True]
    assert endpoint.asked[0].is_given_up and endpoint.asked[3].seconds == 15.0 and endpoint.asked[3].is_idempotent
    assert (await endpoint.asks("ping")).status == 200
    assert len(endpoint.asked) == 6, "the next request knows it"
    assert endpoint.memory.renewed(b"8 bytes.", "one") == UpstreamSession("one", "new", "of one")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (fixed(Answer(500)), "one: it answered initialize with 500"),
        (fixed(lambda sent: error(sent, -1)), "one: it answered initialize with an error"),
        (fixed(CallFailed("connect", "refused")), "one: refused"),
        (
            fixed(
                lambda sent: answer({"jsonrpc": "2.0", "id": sent["id"], "result": {}}, b"mcp-session-id: \xe9\x7f\r\n")
            ),
            "one: its session id is too long, or not printable",
        ),
        (
            fixed(lambda sent: beginning(sent, b"a" * 1025)),
            "one: its session id is too long, or not printable",
        ),
    ],
)
async def test_a_session_that_cannot_be_renewed_fails_the_request(made: Made, found: Server, why: str) -> None:
    endpoint = made(found)
    endpoint.begin_session(UpstreamSession("one", lost=True))
    answered = await endpoint.asks("ping")
    assert (answered.status, answered.reason, answered.code) == (502, "McpTargetFailed", -32603)
    assert answered.reply is not None and answered.reply.detail == why
    assert answered.last["error"]["message"] == "MCP server one is not available" and answered.last["id"] == 7
    assert all(each.is_given_up for each in endpoint.asked)


# --- initialize


async def test_a_session_begins_with_what_its_server_gives(made: Made) -> None:
    endpoint = made(taking)
    found = await endpoint.asks("initialize", HELLO)
    (call,) = endpoint.asked
    assert (call.seconds, call.is_idempotent, call.message["params"]) == (15.0, True, HELLO)
    text = found.out.lines.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()
    session = sessions.opened(text, endpoint.sealer, found.visit.owner, 5000)
    assert session is not None and session.upstreams == [UpstreamSession("one", "new", "of one")]
    assert json.loads(session.hello) == HELLO and session.created == 5000 and len(session.number) == 8
    assert found.attributes["mcp"] == {"methodName": "initialize", "sessionId": session.number.hex()}


async def test_a_client_that_says_too_much_of_itself_is_not_repeated(made: Made) -> None:
    for size, kept in ((sessions.MAX_HELLO, True), (sessions.MAX_HELLO + 1, False)):
        endpoint = made(taking)
        visit = endpoint.visit()
        assert (visit.new_session(b"x" * size).hello == b"x" * size) is kept
    assert visit.new_session(b"x" * (size + 1)).hello == b"{}"


async def test_a_server_that_refuses_initialize_begins_no_session(made: Made) -> None:
    endpoint = made(fixed(Answer(401, b"", b"who?")))
    found = await endpoint.asks("initialize", HELLO)
    assert (found.status, found.out.body, found.out.lines) == (401, b"who?", b"")
    assert endpoint.asked[0].is_given_up and len(endpoint.asked) == 1


@pytest.mark.parametrize("fail_open", [False, True])
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (failing, "refused"),
        (fixed(lambda sent: result_with(sent, 500)), "it answered initialize with 500"),
        (fixed(lambda sent: error(sent, -1)), "it answered initialize with an error"),
    ],
)
async def test_a_session_begins_without_a_server_only_where_it_may(
    made: Made, fail_open: bool, bad: Server, why: str
) -> None:
    endpoint = made(taking, bad, fail_open=fail_open)
    found = await endpoint.asks("initialize", HELLO)
    if fail_open:
        assert found.status == 200 and found.visit.session is not None
        assert found.visit.session.upstreams[1] == UpstreamSession("two", lost=True)
    else:
        assert found.reply is not None and found.reply.detail == f"two: {why}"
        assert (found.status, found.reason) == (502, "McpTargetFailed")
        assert endpoint.requests()[-1] == ("one", b"DELETE"), "what was opened is ended"
    endpoint = made(failing, bad, fail_open=fail_open)
    assert (await endpoint.asks("initialize", HELLO)).status == 502


async def test_of_a_client_that_names_no_revision_the_usual_one_is_taken(made: Made) -> None:
    endpoint = made(taking, taking)
    found = await endpoint.asks("initialize", {})
    assert found.last["result"]["protocolVersion"] == "2025-03-26"


# --- lists


def names_of(found: Answered, field: str = "tools") -> list[str]:
    return [each["name"] for each in found.last["result"][field]]


async def test_a_list_of_several_is_asked_for_page_by_page(made: Made) -> None:
    def paged(sent: Json, request: CallRequest) -> Answer:
        cursor = sent.get("params", {}).get("cursor")
        more = {} if cursor else {"nextCursor": "c2"}
        return result(sent, tools=[{"name": "a" if cursor is None else cursor}], **more)

    endpoint = made(paged, listing("tools", "b"))
    endpoint.begin_session()
    first = await endpoint.asks("tools/list")
    assert names_of(first) == ["one_a", "two_b"] and {each.seconds for each in endpoint.asked} == {30.0}
    assert [at for at, _ in endpoint.sleepers] == [1030.0] * 2, "answers have to be whole by then"
    cursor = first.last["result"]["nextCursor"]
    second = await endpoint.asks("tools/list", {"cursor": cursor, "x": 1})
    assert names_of(second) == ["one_c2"] and "nextCursor" not in second.last["result"]
    assert endpoint.got("one")[1]["params"] == {"cursor": "c2", "x": 1} and len(endpoint.got("two")) == 1
    for wrong in ("c2", cursor + "x", 7):
        found = await endpoint.asks("tools/list", {"cursor": wrong})
        assert (found.code, found.last["error"]["message"]) == (-32602, "params.cursor is none of this list")
    assert (await endpoint.asks("prompts/list", {"cursor": cursor})).code == -32602, "of another list"
    endpoint.plan = McpPlan((*endpoint.plan.targets[1:], TargetPlan("three", "three", path=b"/")))
    left = await endpoint.asks("tools/list", {"cursor": cursor})
    assert names_of(left) == [], "its server is there no more"
    assert "params" not in endpoint.got("two")[0]


@pytest.mark.parametrize("fail_open", [False, True])
async def test_a_list_without_one_of_its_servers(made: Made, fail_open: bool) -> None:
    for bad, why in (
        (failing, "two: refused"),
        (fixed(Answer(500)), "two: it answered tools/list with 500"),
        (fixed(lambda sent: error(sent, -1, "later")), "two: it answered a list with later"),
        (fixed(lambda sent: error(sent, -1, "x" * 300)), "two: it answered a list with " + "x" * 200),
        (fixed(lambda sent: result(sent, tools=7)), "two: its answer is not readable: the list is not readable"),
    ):
        endpoint = made(listing("tools", "a"), bad, fail_open=fail_open)
        endpoint.begin_session()
        found = await endpoint.asks("tools/list")
        if fail_open:
            assert names_of(found) == ["one_a"]
        else:
            assert found.status == 502 and found.reply is not None and found.reply.detail == why
        assert all(each.is_given_up for each in endpoint.asked)


async def test_an_error_is_given_where_nobody_has_a_list(made: Made) -> None:
    endpoint = made(fixed(lambda sent: error(sent, -5)), failing, fail_open=True)
    endpoint.begin_session()
    assert (await endpoint.asks("tools/list")).code == -5
    endpoint = made(failing, failing, fail_open=True)
    endpoint.begin_session()
    assert (await endpoint.asks("tools/list")).status == 502
    endpoint = made(fixed(lambda sent: error(sent, -5)))
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    assert (await endpoint.asks("tools/list")).code == -5


async def test_rules_hide_items_of_lists(made: Made) -> None:
    server = lambda sent, request: result(  # noqa: E731
        sent, tools=[{"name": name} for name in ("a", "b", "c")], nextCursor="n", x=1
    )
    endpoint = made(server)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    endpoint.denies = lambda mcp: bool(mcp["mcp.tool"]["name"] == "b")
    found = await endpoint.asks("tools/list")
    assert found.last["result"] == {"tools": [{"name": "a"}, {"name": "c"}], "nextCursor": "n", "x": 1}
    assert "mcp.tool" not in found.attributes and "tool" not in found.attributes["mcp"]
    assert endpoint.counted == [("tools/list", "", "", "answered")]


@pytest.mark.parametrize(("count", "turns"), [(127, 0), (128, 1), (256, 2)])
async def test_long_lists_are_looked_at_in_slices(
    made: Made, count: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    assert lists.SLICE == 128
    endpoint = made(listing("tools", *map(str, range(count))), taking)
    endpoint.begin_session()
    visit = endpoint.visit()
    monkeypatch.setattr(lists, "asyncio", SimpleNamespace(sleep=sleep))
    body = messages.request("tools/list", 7)
    await posted(visit, body)
    assert slept == [0] * turns


# --- what is for all


async def test_all_servers_are_asked_and_their_answers_are_one(made: Made) -> None:
    endpoint = made(taking, fixed(lambda sent: error(sent, -32601)))
    endpoint.begin_session()
    found = await endpoint.asks("ping")
    assert found.last == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert {each.seconds for each in endpoint.asked} == {30.0} and all(each.is_given_up for each in endpoint.asked)
    endpoint = made(fixed(lambda sent: error(sent, -1)), fixed(lambda sent: error(sent, -2)))
    endpoint.begin_session()
    assert (await endpoint.asks("ping")).code == -1


async def test_a_session_that_somebody_else_has_renewed_meanwhile_is_used(made: Made) -> None:
    def forgetful(sent: Json, request: CallRequest) -> Answer:
        if b"s-one" not in request.headers:
            return taking(sent, request)
        endpoint.memory.renew(b"8 bytes.", UpstreamSession("one", "other"), 1000.0)
        return Answer(404, b"")

    endpoint = made(forgetful)
    endpoint.begin_session()
    assert (await endpoint.asks("ping")).status == 200
    assert [each["method"] for each in endpoint.got("one")] == ["ping", "ping"]
    assert b"mcp-session-id: other\r\n" in endpoint.asked[1].request.headers


class Older:
    """A server of the older transport (`legacy/requests`)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.asked: list[tuple[bytes, str, str, float]] = []
        self.found: UpstreamSession | None = None
        self.ended = self.looked = 0
        endpoint.plan = McpPlan((TargetPlan("one", "one", path=b"/sse", is_sse=True),), endpoint.plan.stateless)
        monkeypatch.setattr(requests, "asked", self._asked)
        monkeypatch.setattr(requests, "found", self._find)
        monkeypatch.setattr(requests, "end_session", self._end)

    async def _asked(
        self, visit: Any, target: Any, known: UpstreamSession, method: bytes, body: bytes, seconds: float
    ) -> Opened:
        sent = json.loads(body) if body else {}
        self.asked.append((method, sent.get("method", ""), known.session_id, seconds))
        call: Any = Call("one", CallRequest(method, b"/"), seconds, taking(sent, CallRequest(method, b"/")))
        call.endpoint = None
        self.endpoint.now += 7
        return Opened(call, await call.head(), "one")

    async def _find(self, visit: Any, target: Any) -> UpstreamSession | None:
        self.looked += 1
        return self.found

    async def _end(self, visit: Any) -> None:
        self.ended += 1


async def test_a_stream_that_another_request_has_opened_is_used(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = made(taking)
    older = Older(monkeypatch, endpoint)
    endpoint.begin_session(UpstreamSession("one", lost=True))
    older.found = UpstreamSession("one", "w/other", "1.2.3.4:5")
    await endpoint.asks("ping")
    assert older.asked == [(b"POST", "ping", "w/other", calls.FOR_EVER)]
    assert endpoint.memory.renewed(b"8 bytes.", "one") == older.found
    older.found = None
    endpoint.begin_session(UpstreamSession("two"))
    older.asked.clear()
    endpoint.memory._known.clear()
    endpoint.memory._renewed = Shared.local().renewed
    await endpoint.asks("ping")
    assert [each[1:3] for each in older.asked] == [
        ("initialize", ""),
        ("notifications/initialized", "new"),
        ("ping", "new"),
    ]
    assert endpoint.memory.renewed(b"8 bytes.", "one") == UpstreamSession("one", "new", "")
    assert endpoint.sleepers[0][0] == 1000.0 + 7 + 7 + 15.0, "from when it has begun to answer"
    count = older.looked
    assert await streams.delete(endpoint.visit(), b"", NOBODY) is None
    assert older.ended == 1 and older.asked[-1] == (b"DELETE", "", "new", 5.0) and older.looked == count


async def test_without_sessions_a_stream_is_nobody_elses(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = made(taking, stateless=True)
    older = Older(monkeypatch, endpoint)
    older.found = UpstreamSession("one", "w/other")
    assert (await endpoint.asks("ping")).status == 200
    assert older.looked == 0 and [each[1] for each in older.asked][:1] == ["initialize"]


async def test_only_streams_of_older_servers_are_ended_at_other_workers(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_sse, ended in (((False, False), 0), ((False, True), 1)):
        endpoint = made(taking, taking)
        older = Older(monkeypatch, endpoint)
        both = (("one", is_sse[0]), ("two", is_sse[1]))
        endpoint.plan = McpPlan(tuple(TargetPlan(name, name, path=b"/", is_sse=each) for name, each in both))
        endpoint.begin_session()
        await streams.delete(endpoint.visit(), b"", NOBODY)
        assert older.ended == ended


@pytest.mark.parametrize("fail_open", [False, True])
async def test_what_is_for_all_without_one_of_them(made: Made, fail_open: bool) -> None:
    for message, status in (({"id": 7, "method": "ping"}, 200), ({"method": "notifications/x"}, 202)):
        endpoint = made(taking, failing, fail_open=fail_open)
        endpoint.begin_session()
        found = await endpoint.posts(message)
        assert found.status == (status if fail_open else 502)
        if fail_open:
            assert found.out.how == "ended" and (status == 200 or (found.out.lines, found.out.body) == (b"", b""))
            continue
        assert endpoint.memory.has_ended(b"8 bytes."), "the session ends with its server, at all of them"
        assert endpoint.requests()[-2:] == [("one", b"DELETE"), ("two", b"DELETE")]
        assert {each.seconds for each in endpoint.asked[-2:]} == {5.0}
    endpoint = made(failing, failing, fail_open=True)
    endpoint.begin_session()
    assert (await endpoint.asks("ping")).status == 502


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        ({"type": "ref/prompt", "name": "two_a"}, None),
        ({"type": "ref/resource", "uri": "two+a"}, None),
        ({"type": "ref/resource", "name": "two_a"}, -32602),
        ({"type": "ref/other", "name": "two_a"}, -32602),
        ({"type": "ref/other", "": "two_a"}, -32602),
        ({"name": "two_a"}, -32602),
        (7, -32602),
        (None, -32602),
    ],
)
async def test_completions_are_about_a_prompt_or_a_resource(made: Made, ref: Json, code: Any) -> None:
    endpoint = made(taking, taking)
    endpoint.begin_session()
    params = {} if ref is None else {"ref": ref, "argument": 1}
    found = await endpoint.asks("completion/complete", params)
    if code is None:
        key = "name" if "name" in ref else "uri"
        assert endpoint.got("two")[0]["params"] == {"ref": {**ref, key: "a"}, "argument": 1}
        assert endpoint.counted == [("completion/complete", "two", "", "answered")]
    else:
        assert found.code == code and not endpoint.asked


async def test_rules_are_asked_about_what_is_completed(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    ref = {"type": "ref/prompt", "name": "a"}
    assert (await endpoint.asks("completion/complete", {"ref": ref})).status == 200
    assert endpoint.seen[0]["mcp.prompt"] == {"target": "one", "name": "a"}
    assert (await endpoint.asks("completion/complete", {"ref": {**ref, "Name": "b"}})).code == -32602
    assert (await endpoint.asks("completion/complete", {"ref": ref, "REF": ref})).code == -32602
    endpoint.denies = lambda mcp: True
    assert (await endpoint.asks("completion/complete", {"ref": ref})).last["error"]["message"] == "Unknown reference: a"
    assert len(endpoint.asked) == 1


# --- without sessions


async def test_without_sessions_one_is_opened_for_each_request_and_ended(made: Made) -> None:
    endpoint = made(taking, stateless=True)
    assert (await endpoint.asks("ping")).status == 200
    methods = [(each.request.method, (each.message or {}).get("method")) for each in endpoint.asked]
    assert methods == [
        *((b"POST", "initialize"), (b"POST", "notifications/initialized"), (b"POST", "ping")),
        (b"DELETE", None),
    ]
    said = endpoint.asked[0].message["params"]
    assert said == {
        "protocolVersion": "2025-03-26",
        "capabilities": {"sampling": {}, "elicitation": {"form": {}, "url": {}}},
        "clientInfo": {"name": "gatewright", "version": "1"},
    }
    assert endpoint.asked[-1].seconds == 5.0 and all(each.is_given_up for each in endpoint.asked)
    endpoint.asked.clear()
    await endpoint.asks("ping", lines=b"mcp-protocol-version: 2025-06-18\r\n")
    assert endpoint.asked[0].message["params"]["protocolVersion"] == "2025-06-18"
    count = len(endpoint.asked)
    found = await endpoint.posts({"method": "notifications/x"})
    assert (found.status, found.out.body, found.out.lines, len(endpoint.asked)) == (202, b"", b"", count)


async def test_without_sessions_answers_find_the_session_that_waits(made: Made) -> None:
    def asking(sent: Json, request: CallRequest) -> Answer:
        if sent.get("method") != "tools/call":
            return taking(sent, request)
        asked = [event({"id": 5, "method": "roots/list"}), event({"id": 5, "method": "roots/list"})]
        return Answer(200, STREAM, *asked, event({"id": sent["id"], "result": {}}))

    endpoint = made(asking, taking, stateless=True)
    found = await endpoint.asks("tools/call", {"name": "one_a"})
    first, second, last = found.messages
    assert first["id"] == second["id"] != 5 and last["id"] == 7
    endpoint.asked.clear()
    assert (await endpoint.posts({"id": first["id"], "result": {"roots": []}})).status == 202
    (call,) = endpoint.asked
    assert (call.target, call.message) == ("one", {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}})
    assert b"mcp-session-id: new\r\n" in call.request.headers and (call.seconds, call.is_idempotent) == (30.0, True)
    endpoint.plan = McpPlan(endpoint.plan.targets[1:], stateless=True)
    for wrong in (5, "5", first["id"] + "x", first["id"]):
        found = await endpoint.posts({"id": wrong, "result": {}})
        assert (found.code, found.last["error"]["message"]) == (-32602, "the id is that of no request")


async def test_ids_of_requests_of_servers_are_remembered_within_a_bound(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MAX_ASKED", 2)
    endpoint = made(taking, stateless=True)
    visit = endpoint.visit()
    tags = sending._Tags(visit, Upstreams(visit))
    known = [tags("one", number) for number in range(2)]
    assert [tags("one", number) for number in range(2)] == known
    tags("one", 2)
    assert tags("one", 1) == known[1] and tags("one", 0) != known[0]
    with pytest.raises(TargetFailed, match="its request has too long an id"):
        tags("one", "x" * 1025)


async def test_without_sessions_there_is_no_stream_of_its_own_and_no_end(made: Made) -> None:
    endpoint = made(taking, stateless=True)
    for handler in (streams.get, streams.delete):
        reply = await handler(endpoint.visit(), b"", NOBODY)
        assert reply is not None and (reply.reason, reply.status) == ("McpNoStream", 405)
        assert b"allow: POST\r\n" in reply.headers


# --- GET and DELETE


async def gets(endpoint: Endpoint, lines: bytes = b"accept: text/event-stream\r\n") -> Answered:
    visit = endpoint.visit(lines)
    reply = await streams.get(visit, b"", NOBODY)
    return Answered(visit, reply)


NOTE = {"method": "notifications/message", "params": {}}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (b"accept: application/json\r\n", "McpNotAcceptable"),
        (b"accept: text/event-stream\r\nmcp-protocol-version: 1999-01-01\r\n", "McpBadVersion"),
    ],
)
async def test_what_a_get_has_to_say(made: Made, lines: bytes, reason: str) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    assert (await gets(endpoint, lines)).reason == reason
    endpoint.session = b""
    assert (await gets(endpoint)).reason == "McpSessionMissing"


async def test_a_path_that_ends_in_sse_is_a_stream_of_the_older_transport(made: Made) -> None:
    endpoint = made(taking)
    endpoint.context.of_kind(MCP).holder = SimpleNamespace(has_place_for_client=lambda keys: False)
    for path, session, reason in (
        (b"/a/sse?b=/c", b"", "McpBusy"),
        (b"/a?b=/sse", b"", "McpSessionMissing"),
        (b"/sse", b"x", "McpSessionUnknown"),
    ):
        endpoint.session = session
        visit = endpoint.visit(b"accept: text/event-stream\r\n")
        visit.x.asked_target = path
        assert Answered(visit, await streams.get(visit, b"", NOBODY)).reason == reason


@pytest.mark.parametrize(("status", "is_read"), [(200, True), (299, True), (300, False), (405, False)])
async def test_where_rules_count_a_success_is_read_event_by_event(made: Made, status: int, is_read: bool) -> None:
    endpoint = made(fixed(Answer(status, JSON, b"{}")))
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    found = await gets(endpoint)
    if status == 200:
        endpoint = made(fixed(Answer(status, STREAM, b": x\n\n" + event(NOTE))))
        endpoint.begin_session()
        endpoint.policies.rules = (1,)
        assert (await gets(endpoint)).messages == [{"jsonrpc": "2.0", **NOTE}]
    assert found.status == (502 if is_read else status) and (is_read or found.out.body == b"{}")


async def test_the_stream_of_the_only_server_is_passed(made: Made) -> None:
    endpoint = made(fixed(Answer(200, STREAM + b"x: 1\r\n", event(NOTE))))
    endpoint.begin_session()
    found = await gets(endpoint, b"accept: text/event-stream\r\nlast-event-id: e7\r\n")
    (call,) = endpoint.asked
    assert (call.request.method, call.seconds) == (b"GET", calls.FOR_EVER)
    assert call.request.headers == (b"accept: text/event-stream\r\nlast-event-id: e7\r\nmcp-session-id: s-one\r\n")
    assert (found.out.body, found.out.how, call.is_given_up) == (event(NOTE), "ended", True)
    assert found.out.lines == STREAM + b"x: 1\r\n"
    assert found.attributes["mcp"]["methodName"] == "stream"
    endpoint = made(fixed(Answer(405, b"", b"no")))
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    assert (await gets(endpoint)).status == 405


async def test_streams_of_several_are_one(made: Made) -> None:
    endpoint = made(fixed(Answer(200, STREAM, event(NOTE))), fixed(Answer(405)))
    endpoint.begin_session()
    found = await gets(endpoint)
    assert found.messages == [{"jsonrpc": "2.0", **NOTE}] and found.out.how == "ended"
    assert all(each.is_given_up for each in endpoint.asked)
    endpoint = made(fixed(Answer(405)), fixed(Answer(200, JSON, b"{}")))
    endpoint.begin_session()
    found = await gets(endpoint)
    assert found.reply is not None and (found.reason, found.status) == ("McpNoStream", 405)
    assert b"allow: POST, DELETE\r\n" in found.reply.headers


@pytest.mark.parametrize(
    ("fail_open", "first", "second", "how"),
    [
        (False, Answer(200, STREAM, event(NOTE), None), CallFailed("lost", "x"), "lost"),
        (True, Answer(200, STREAM, event(NOTE)), CallFailed("lost", "x"), "ended"),
        (True, Answer(200, STREAM, event(NOTE), CallFailed("lost", "x")), Answer(405), "lost"),
        (False, CallFailed("lost", "x"), Answer(200, STREAM, None), "lost"),
    ],
)
async def test_a_stream_of_several_without_one_of_them(
    made: Made, fail_open: bool, first: Any, second: Any, how: str
) -> None:
    endpoint = made(fixed(first), fixed(second), fail_open=fail_open)
    endpoint.begin_session()
    found = await gets(endpoint)
    if found.reply is None:
        assert found.out.how == how
    else:
        assert (found.status, found.reason) == (502, "McpTargetFailed")


async def test_several_streams_that_all_fail_are_an_error(made: Made) -> None:
    endpoint = made(failing, failing, fail_open=True)
    endpoint.begin_session()
    found = await gets(endpoint)
    assert (found.status, found.code, found.last["error"]["message"]) == (502, -32603, "MCP server is not available")


async def test_delete_ends_the_session_everywhere(made: Made) -> None:
    endpoint = made(taking, failing, taking)
    one, two, _ = endpoint.theirs()
    endpoint.begin_session(one, two, UpstreamSession("three"))
    visit = endpoint.visit()
    assert await streams.delete(visit, b"", NOBODY) is None
    out: Any = visit.out
    assert (out.status, out.body, endpoint.requests()) == (200, b"", [("one", b"DELETE"), ("two", b"DELETE")])
    assert {each.seconds for each in endpoint.asked} == {5.0} and endpoint.asked[0].is_given_up
    assert out.lines == b"" and out.how == "ended"
    assert [(each.request.headers, each.request.body) for each in endpoint.asked] == [
        (b"mcp-session-id: s-one\r\n", b""),
        (b"mcp-session-id: s-two\r\n", b""),
    ]
    assert Answered(visit, None).attributes["mcp"]["methodName"] == "delete"
    for again in (endpoint.visit(), endpoint.visit(b"mcp-protocol-version: x\r\n")):
        reply = await streams.delete(again, b"", NOBODY)
        assert reply is not None and reply.reason in ("McpSessionUnknown", "McpBadVersion")
    assert len(endpoint.asked) == 2


# --- what every request is asked


class Front:
    """A request as it comes, before it is a visit."""

    def __init__(self, endpoint: Endpoint, method: bytes = b"POST", lines: bytes = b"") -> None:
        out: Any = endpoint.visit(lines).out
        self.out: Out = out
        self.x = out.x
        self.x.method, self.x.asked_host = method, b"evil.test"
        self.x.policies = SimpleNamespace(of_kind={}, backend=None, rules=None)
        self.x.plan = SimpleNamespace(is_named=False)
        self.x.listener = SimpleNamespace(hostname="")
        self.x.request = SimpleNamespace(block=b"")
        self.x.client.local = b"10.0.0.1:80"

    async def serves(self, body: bytes = b"") -> Reply | None:
        out: Any = self.out
        out.whole_body = body
        found = serving.serve(out)
        return found if found is None or isinstance(found, Reply) else await found


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        *((b"POST", "McpContentType"), (b"GET", "McpSessionMissing"), (b"DELETE", "McpSessionMissing")),
        *((b"PUT", "McpMethodNotAllowed"), (b"HEAD", "McpMethodNotAllowed")),
    ],
)
async def test_each_method_of_http_has_its_meaning(made: Made, method: bytes, reason: str) -> None:
    front = Front(made(taking), method)
    front.out.block = front.out.block.replace(JSON, b"")
    reply = await front.serves()
    assert reply is not None and reply.reason == reason
    assert (b"allow: GET, POST, DELETE\r\n" in reply.headers) is (reason == "McpMethodNotAllowed")


async def test_policies_of_backend_and_route_are_one(made: Made) -> None:
    endpoint = made(taking)
    front = Front(endpoint)
    front.x.policies.of_kind = {"backend_mcp": McpPolicies(refused="of the route")}
    reply = await front.serves(b"")
    assert reply is not None and (reply.reason, reply.detail) == ("PolicyUnusable", "of the route")
    endpoint.plan = replace(endpoint.plan, policies=McpPolicies(refused="of the backend"))
    of_route, front = front.x.policies, Front(endpoint)
    front.x.policies = of_route
    reply = await front.serves(b"")
    assert reply is not None and reply.detail == "of the backend"


# --- who the client is


async def test_what_was_judged_in_other_spellings_is_logged_as_it_was_asked_for(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    found = await endpoint.asks("resources/read", {"uri": "file:/a"})
    assert [each["mcp.resource"]["name"] for each in endpoint.seen] == ["file:/a", "file:///a"]
    assert found.attributes["mcp.resource"] == {"target": "one", "name": "file:/a"}
    arguments = {"a": 1, "A": 2}
    await endpoint.asks("tools/call", {"name": "a", "arguments": arguments})
    assert endpoint.got("one")[-1]["params"]["arguments"] == arguments, "no rule reads them"
    assert "arguments" not in endpoint.seen[-1]["mcp.tool"]


async def test_what_nothing_may_be_served_for(made: Made) -> None:
    endpoint = made(taking)
    assert endpoint.visit().unusable() is None
    endpoint.policies.refused = "a rule is wrong"
    reply = endpoint.visit().unusable()
    assert reply is not None and (reply.reason, reply.detail) == ("PolicyUnusable", "a rule is wrong")
    endpoint.policies.refused, endpoint.plan = "", McpPlan(())
    reply = endpoint.visit().unusable()
    assert reply is not None and reply.reason == "McpNoTargets"


async def test_what_a_message_names_beside_its_item_is_judged_alone(made: Made) -> None:
    endpoint = made(taking)
    visit = endpoint.visit(attributes={"jwt": {"sub": "s"}, "mcp.tool": {"name": "t"}})
    visit.describe("tools/call")
    visit.item("tool", "one", "t")
    before = visit.x.attributes
    assert not visit.hides("resource", "one", "secret") and not endpoint.seen, "there are no rules"
    endpoint.policies.rules = (1,)
    endpoint.denies = lambda mcp: bool(mcp.get("mcp.resource", {}).get("name") == "secret")
    assert visit.hides("resource", "one", "secret") and not visit.hides("resource", "one", "x")
    assert endpoint.seen[0] == {
        "jwt": {"sub": "s"},
        "mcp": {"methodName": "tools/call", "resource": {"target": "one", "name": "secret"}},
        "mcp.resource": {"target": "one", "name": "secret"},
    }
    assert visit.x.attributes is before and visit._described["tool"] == {"target": "one", "name": "t"}
    assert visit.hides("resource", "one", "x" * 9000), "too long to be judged"
    bare = endpoint.visit()
    assert not bare.hides("task", "one", "x") and bare.x.attributes is None
    assert endpoint.seen[-1]["mcp.task"] == {"target": "one", "id": "x"}


# --- beside each other


async def test_work_beside_each_other_has_its_results_in_order(made: Made) -> None:
    endpoint = made(taking)
    visit = endpoint.visit()
    gate = asyncio.Event()

    async def late(found: Any) -> Any:
        await gate.wait()
        return found

    async def fails(error: Exception) -> None:
        raise error

    assert await upstreams.together(visit, []) == []
    waiting = asyncio.ensure_future(upstreams.together(visit, [late(1), fails(TargetFailed("one", "x")), late(2)]))
    await endpoint.settles()
    assert not waiting.done()
    gate.set()
    first, failed, second = await waiting
    assert (first, second, str(failed)) == (1, 2, "one: x")
    (found,) = await upstreams.together(visit, [fails(messages.Malformed(-1, "no JSON"))])
    assert str(found) == "one of them: its answer is not readable: no JSON"
    gate.clear()
    works = [late(1), fails(TargetFailed("one", "x")), late(2)]
    first, failed, second = await upstreams.together(visit, works, until_failure=True)
    assert (first, second, str(failed)) == (None, None, "one: x")
    gate.set()
    await endpoint.settles()


# --- guardrails


class Guards:
    """Processors of one policy; `says` of a phase and a message."""

    def __init__(self, methods: dict[str, int], says: Callable[[int, Any], Any]) -> None:
        self.processors = (Processor("guard", sorted_methods(methods)),)
        self._says = says
        self.shown: list[tuple[int, str, list[str], Json]] = []

    async def __call__(self, processor: Processor, phase: int, message: bytes, x: Any) -> bytes:
        kind: Any = pb.McpRequest if phase == 1 else pb.McpResponse
        read = kind.FromString(message)
        content = read.mcp_request if phase == 1 else read.mcp_response
        self.shown.append((phase, read.method, list(read.service_names), json.loads(content) if content else None))
        found: bytes = self._says(phase, read).SerializeToString()
        return found


def passes(phase: int, message: Any) -> Any:
    kind: Any = pb.McpRequestResult if phase == 1 else pb.McpResponseResult
    return kind(**{"pass": pb.Pass()})


def rejects(phase: int, message: Any) -> Any:
    kind: Any = pb.McpRequestResult if phase == 1 else pb.McpResponseResult
    return kind(error=pb.AuthorizationError(code=pb.AuthorizationError.PERMISSION_DENIED, reason="no"))


async def test_requests_are_shown_as_their_servers_get_them(made: Made) -> None:
    endpoint = made(taking, taking)
    endpoint.begin_session()
    guards = endpoint.policies.guardrails = Guards({"*": 1}, passes)
    await endpoint.asks("tools/call", {"name": "two_a"})
    await endpoint.asks("tools/list")
    assert guards.shown == [(1, "tools/call", ["two"], {"name": "a"}), (1, "tools/list", ["one", "two"], None)]
    alone = made(taking)
    alone.begin_session()
    guards = alone.policies.guardrails = Guards({"*": 1}, passes)
    ref = {"ref": {"type": "ref/prompt", "name": "one_a"}}
    await alone.asks("completion/complete", ref)
    assert guards.shown.pop() == (1, "completion/complete", ["one"], ref) and not guards.shown, "once"
    endpoint.policies.guardrails = guards
    await endpoint.asks("completion/complete", ref)
    own = {"ref": {"type": "ref/prompt", "name": "a"}}
    assert guards.shown.pop() == (1, "completion/complete", ["one"], own) and not guards.shown
    await alone.asks("ping")
    await alone.posts({"method": "notifications/x"})
    assert guards.shown == [(1, "ping", ["one"], {})], "of what wants no answer nobody is asked"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Answer(200, b"content-type: text/plain\r\n", b"x"), "its answer is neither JSON nor a stream of events"),
        (Answer(202, JSON), "it answered with status 202 and application/json"),
        (Answer(299, JSON), "it answered with status 299 and application/json"),
        (Answer(400, STREAM), "it answered with status 400 and text/event-stream"),
        (Answer(400, JSON, b'{"result":1}'), "it answered with status 400 and a result"),
        (Answer(400, JSON, b"["), "its answer with status 400 is not readable: params must be an object"),
        (Answer(200, JSON, b'{"jsonrpc":"2.0","id":8,"result":{}}'), "it answered what was not asked"),
        (Answer(200, JSON, b"{"), "its answer is not readable: the message is not JSON"),
    ],
)
async def test_what_nobody_could_be_shown_is_not_passed(made: Made, found: Answer, why: str) -> None:
    endpoint = made(fixed(found))
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    answered = await endpoint.asks("tools/call", {"name": "a"})
    assert answered.reply is not None and answered.reply.detail == f"one: {why}"


@pytest.mark.parametrize(
    ("found", "body"),
    [
        (Answer(300, JSON, b'{"error":1}'), b'{"error":1}'),
        (Answer(400, JSON), b""),
        (Answer(400, b"content-type: text/plain\r\n", b"result"), b"result"),
    ],
)
async def test_failures_without_a_result_pass_where_results_are_shown(made: Made, found: Answer, body: bytes) -> None:
    endpoint = made(fixed(found))
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    answered = await endpoint.asks("tools/call", {"name": "a"})
    assert (answered.status, answered.out.body) == (found.status, body)


async def test_a_stream_that_is_shown_has_no_answers_and_is_not_resumed(made: Made) -> None:
    said = b"id: 1\ndata:\n\n" + event(NOTE) + event({"id": 3, "result": {}}) + event(NOTE)
    server = fixed(Answer(200, STREAM, said))
    endpoint = made(server)
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    found = await gets(endpoint, b"accept: text/event-stream\r\nlast-event-id: e7\r\n")
    assert found.messages == [{"jsonrpc": "2.0", **NOTE}] * 2 and found.out.how == "ended"
    assert b"last-event-id" not in endpoint.asked[0].request.headers
    for bad in (Answer(200, JSON), Answer(202, STREAM)):
        endpoint = made(fixed(bad))
        endpoint.begin_session()
        endpoint.policies.guardrails = Guards({"*": 2}, passes)
        found = await gets(endpoint)
        assert found.reply is not None
        assert found.reply.detail == f"one: it answered GET with status {bad.status} and no stream of events"


async def test_who_is_shown_no_results_changes_nothing_of_them(made: Made) -> None:
    for methods in ({"*": 1}, {"tools/call": 1, "ping": 0}, {}):
        endpoint = made(fixed(Answer(200, b"content-type: text/plain\r\n", b"as it is")))
        endpoint.begin_session()
        guards = endpoint.policies.guardrails = Guards(methods, passes)
        found = await endpoint.asks("tools/call", {"name": "a"})
        assert (found.status, found.out.body) == (200, b"as it is") and len(guards.shown) == bool(methods)


async def test_what_is_no_result_passes_where_results_are_shown(made: Made) -> None:
    wrong = {"id": 9, "error": {"code": 1, "message": "x"}}
    endpoint = made(fixed(Answer(200, STREAM, b"id: 1\nretry: 5\ndata:\n\n", event(NOTE), event(wrong))))
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    found = await endpoint.asks("tools/call", {"name": "a"})
    assert b"data: {" in found.out.body and b"id:" not in found.out.body and found.out.body.startswith(b"retry: 5\n")
    assert found.messages == [{"jsonrpc": "2.0", **NOTE}, {"jsonrpc": "2.0", **wrong}]


async def test_comments_pass_where_results_are_shown_and_their_text_does_not(made: Made) -> None:
    """Nobody was shown it. A stream that cannot be resumed has no ids."""
    said = b": a secret\n\nid: 5\n\nretry: 9\n\n"
    for asks in (True, False):
        endpoint = made(fixed(Answer(200, STREAM, said, event(NOTE))))
        endpoint.begin_session()
        endpoint.policies.guardrails = Guards({"*": 2}, passes)
        found = await (endpoint.asks("tools/call", {"name": "a"}) if asks else gets(endpoint))
        assert found.out.body.startswith(b": \n\nretry: 9\n\n")
        assert b"secret" not in found.out.body and b"id: " not in found.out.body


async def test_a_stream_that_is_shown_and_breaks_off_is_lost(made: Made) -> None:
    for asks in (True, False):
        endpoint = made(fixed(Answer(200, STREAM, event(NOTE), CallFailed("lost", "it broke"))))
        endpoint.begin_session()
        endpoint.policies.guardrails = Guards({"*": 2}, passes)
        found = await (endpoint.asks("tools/call", {"name": "a"}) if asks else gets(endpoint))
        assert (found.out.how, len(found.messages)) == ("lost", 1)
    endpoint = made(fixed(Answer(200, STREAM, event(NOTE), b"data: x\n\n")))
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    assert (await gets(endpoint)).out.how == "lost"


async def test_notices_that_rules_hide_are_left_out_of_what_is_shown(made: Made) -> None:
    hidden = event({"method": "notifications/resources/updated", "params": {"uri": "secret"}})
    endpoint = made(fixed(Answer(200, STREAM, hidden, event(NOTE))), fixed(Answer(405)))
    endpoint.begin_session()
    endpoint.policies.rules = (1,)
    endpoint.denies = lambda mcp: bool(mcp.get("mcp.resource", {}).get("name") == "secret")
    endpoint.policies.guardrails = Guards({"*": 2}, passes)
    assert (await gets(endpoint)).messages == [{"jsonrpc": "2.0", **NOTE}]
    endpoint.servers["one"] = fixed(Answer(200, STREAM, hidden, event(NOTE), event({"id": 7, "result": {}})))
    found = await endpoint.asks("tools/call", {"name": "one_a"})
    assert [each.get("method") for each in found.messages] == ["notifications/message", None]


async def test_params_of_others_are_as_they_were(made: Made) -> None:
    endpoint = made(taking, taking)
    endpoint.begin_session()
    guards = endpoint.policies.guardrails = Guards({"ping": 3}, passes)
    await endpoint.asks("tools/call", {"name": "two_a", "x": 1})
    assert endpoint.got("two")[0]["params"] == {"name": "a", "x": 1} and not guards.shown
    ref = {"type": "ref/prompt", "name": "two_a"}
    await endpoint.asks("completion/complete", {"ref": ref})
    assert endpoint.got("two")[1]["params"] == {"ref": {**ref, "name": "a"}}


async def test_a_verdict_may_name_another_item_of_the_same_server(made: Made) -> None:
    def renames(phase: int, message: Any) -> Any:
        params = json.loads(message.mcp_request)
        if "ref" in params:
            params["ref"]["name"] = "b"
        else:
            params["name"] = "b" if params["name"] == "a" else 7
        return pb.McpRequestResult(mutated=json.dumps(params).encode())

    endpoint = made(taking, taking)
    endpoint.begin_session()
    endpoint.policies.guardrails = Guards({"*": 1}, renames)
    endpoint.policies.rules = (1,)
    await endpoint.asks("tools/call", {"name": "two_a"})
    await endpoint.asks("completion/complete", {"ref": {"type": "ref/prompt", "name": "two_a"}})
    assert [each["params"] for each in endpoint.got("two")] == [
        {"name": "b"},
        {"ref": {"type": "ref/prompt", "name": "b"}},
    ]
    assert endpoint.seen[0]["mcp.tool"] == endpoint.seen[1]["mcp.prompt"] == {"target": "two", "name": "b"}
    found = await endpoint.asks("tools/call", {"name": "two_x"})
    assert (found.code, found.last["id"]) == (-32602, 7) and len(endpoint.asked) == 2


async def test_what_begins_a_session_is_shown_too(made: Made) -> None:
    for servers in ((taking,), (taking, taking)):
        endpoint = made(*servers)
        guards = endpoint.policies.guardrails = Guards({"*": 2}, rejects)
        found = await endpoint.asks("initialize", HELLO)
        assert (found.status, found.code) == (200, -32001) and [each[1] for each in guards.shown] == ["initialize"]
        ended = [("one", b"DELETE"), ("two", b"DELETE")][: len(servers)]
        assert endpoint.requests()[-len(servers) :] == ended, "nobody will ever ask for what was opened"


# --- what ends a session that has only begun


async def test_a_client_that_leaves_before_all_servers_answered_leaves_no_session(made: Made) -> None:
    def slow(sent: Json, request: CallRequest) -> Answer:
        return Answer(200, JSON, None)

    endpoint = made(taking, slow)
    visit = endpoint.visit()
    asking = asyncio.ensure_future(posted(visit, messages.request("initialize", 7, messages.raw(HELLO))))
    await endpoint.settles()
    assert not asking.done()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await endpoint.settles()
    assert ("one", b"DELETE") in endpoint.requests()


async def test_a_session_that_fits_in_no_id_is_none(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_CONTENT", 10)
    endpoint = made(taking)
    found = await endpoint.asks("initialize", HELLO)
    assert found.reply is not None and (found.status, found.reason) == (502, "McpTargetFailed")
    assert found.reply.detail.startswith("all: a session of ") and endpoint.requests()[-1] == ("one", b"DELETE")
    assert len(endpoint.memory) == 0


async def test_what_a_server_says_of_itself_has_to_be_readable(made: Made) -> None:
    for said in ({"capabilities": 7}, {"capabilities": {"tools": 7}}):
        endpoint = made(taking, fixed(lambda sent, said=said: result(sent, **said)))
        for asked in (("initialize", HELLO, b""), modern("server/discover")):
            found = await endpoint.asks(*asked)
            assert found.status == 502 and found.reply is not None
            assert found.reply.detail == "one of them: its answer is not readable: params must be an object"


async def test_a_session_is_used_from_its_beginning(made: Made) -> None:
    for servers in ((taking,), (taking, taking)):
        endpoint = made(*servers)
        visit = endpoint.visit()
        await posted(visit, messages.request("initialize", 7, messages.raw(HELLO)))
        assert visit.session is not None and endpoint.memory.of(visit.session.number, 1000).at_work == 1
        visit.leave()


async def test_a_list_has_the_error_of_the_only_server_whoever_looks_at_it(made: Made) -> None:
    endpoint = made(fixed(lambda sent: result(sent, tools=[{"name": "a"}])))
    endpoint.begin_session()
    guards = endpoint.policies.guardrails = Guards({"tools/list": 2}, passes)
    assert names_of(await endpoint.asks("tools/list")) == ["a"]
    assert guards.shown == [(2, "tools/list", ["one"], {"tools": [{"name": "a"}]})]
    endpoint.policies.guardrails = Guards({"ping": 2}, passes)
    assert names_of(await endpoint.asks("tools/list")) == ["a"]
    assert all(each.is_given_up for each in endpoint.asked)
    assert [each.seconds for each in endpoint.asked] == [30.0, calls.FOR_EVER]


# --- subscriptions


def modern(method: str, **params: Any) -> tuple[str, Json, bytes]:
    meta = {"io.modelcontextprotocol/protocolVersion": REVISION}
    return (
        method,
        {"_meta": meta, **params},
        b"mcp-protocol-version: %b\r\nmcp-method: %b\r\n"
        % (
            REVISION.encode(),
            method.encode(),
        ),
    )


def acknowledged(notifications: Json) -> bytes:
    return event({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": notifications}})


def granting(sent: Json, *more: bytes | Exception | None, **notifications: Any) -> Answer:
    return Answer(200, STREAM, acknowledged(notifications or sent["params"]["notifications"]), *more)


CHANGED = event({"method": "notifications/tools/list_changed"})
UPDATED = event({"method": "notifications/resources/updated", "params": {"uri": "u"}})
END = event({"id": 7, "result": {}})
WANTED = {"toolsListChanged": True, "resourceSubscriptions": ["one+u", "two+u", "x"]}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Answer(200, STREAM), "its stream ended without an acknowledgement"),
        (Answer(200, STREAM, CHANGED), "its stream does not begin with an acknowledgement"),
        (Answer(200, STREAM, b"data: x\n\n"), "its answer is not readable: the message is not JSON"),
        (Answer(200, STREAM, CallFailed("lost", "it broke")), "it broke"),
        (Answer(200, JSON, b'{"jsonrpc":"2.0","id":7,"result":{}}'), "it answered without a stream"),
        (CallFailed("connect", "refused"), "refused"),
    ],
)
async def test_a_server_that_does_not_acknowledge_fails(made: Made, found: Any, why: str) -> None:
    endpoint = made(lambda sent, _: granting(sent, None), fixed(found))
    answered = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert answered.reply is not None and answered.reply.detail == f"two: {why}"
    assert all(each.is_given_up for each in endpoint.asked if not isinstance(each._found, CallFailed))


async def test_a_stream_of_several_goes_on_without_one_only_where_it_may(made: Made) -> None:
    for fail_open in (False, True):
        endpoint = made(
            lambda sent, _: granting(sent, CallFailed("lost", "it broke")),
            lambda sent, _: granting(sent, CHANGED, END),
            fail_open=fail_open,
        )
        found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
        assert found.out.how == ("ended" if fail_open else "lost")
        assert (found.last.get("result") == {}) is fail_open


async def test_a_stream_whose_servers_all_break_off_is_lost(made: Made) -> None:
    endpoint = made(
        lambda sent, _: granting(sent, CHANGED),
        lambda sent, _: granting(sent, event({"id": 7, "error": {"code": 1, "message": "x"}})),
        fail_open=True,
    )
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert found.out.how == "lost" and len(found.messages) == 2


async def test_servers_without_the_method_have_nothing_to_say(made: Made) -> None:
    lacking = fixed(lambda sent: error(sent, -32601, status=404))
    endpoint = made(lacking, lambda sent, _: granting(sent, CHANGED, END))
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert [each.get("method") for each in found.messages][1:] == ["notifications/tools/list_changed", None]
    endpoint = made(lacking, lacking)
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert (found.code, found.last["id"]) == (-32601, 7)
    endpoint = made(lambda sent, _: granting(sent, END), fixed(lambda sent: error(sent, -5, "x" * 300)))
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert found.reply is not None
    assert found.reply.detail == "one of them: it answered subscriptions/listen with " + "x" * 200


async def test_of_the_only_server_rules_hide_resources(made: Made) -> None:
    endpoint = made(lambda sent, _: granting(sent, UPDATED, END))
    endpoint.policies.rules = (1,)
    endpoint.denies = lambda mcp: bool(mcp.get("mcp.resource", {}).get("name") == "secret")
    wanted = {"resourceSubscriptions": ["secret", "u"]}
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=wanted))
    assert endpoint.got("one")[0]["params"]["notifications"] == {"resourceSubscriptions": ["u"]}
    assert [each.get("method") for each in found.messages][1:] == ["notifications/resources/updated", None]
    await endpoint.asks(*modern("subscriptions/listen", notifications={"resourceSubscriptions": ["secret"]}))
    assert endpoint.got("one")[1]["params"]["notifications"] == {}, "it gets a stream all the same"
    endpoint = made(fixed(lambda sent: error(sent, -5)))
    endpoint.policies.rules = (1,)
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=wanted))
    assert (found.status, found.code) == (200, -5)


@pytest.mark.parametrize(
    "params",
    [{}, {"notifications": 7}, {"Notifications": {}, "notifications": {}}, {"notifications": {"TOOLSLISTCHANGED": 1}}],
)
async def test_what_several_are_asked_for_is_spelled_as_the_protocol_does(made: Made, params: Json) -> None:
    endpoint = made(taking, taking)
    found = await endpoint.asks(*modern("subscriptions/listen", **params))
    assert found.code == -32602 and not endpoint.asked


async def test_what_comes_together_with_the_acknowledgement_is_heard(made: Made) -> None:
    def at_once(sent: Json, request: CallRequest) -> Answer:
        begun = b"id: 1\ndata:\n\n" + acknowledged(sent["params"]["notifications"])
        return Answer(200, STREAM, begun + CHANGED + UPDATED, CHANGED + END + CHANGED)

    endpoint = made(at_once, lambda sent, _: granting(sent, None))
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    methods = [each.get("method") for each in found.messages]
    changed = "notifications/tools/list_changed"
    assert methods[1:] == [changed, "notifications/resources/updated", changed, None]
    together = Answer(200, STREAM, acknowledged(WANTED) + END + CHANGED)
    endpoint.servers["one"] = fixed(together)
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert len(found.messages) == 2 and found.out.how == "ended"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({"id": 7, "error": {"code": -5, "message": "no"}}, -5),
        ({"id": 8, "error": {"code": -5, "message": "no"}}, None),
        ({"id": 7, "result": {}}, None),
    ],
)
async def test_a_stream_may_begin_with_the_error_of_this_request(made: Made, first: Json, code: Any) -> None:
    endpoint = made(fixed(Answer(200, STREAM, event(first))))
    endpoint.policies.rules = (1,)
    found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    if code is not None:
        assert (found.status, found.code) == (200, code)
    else:
        assert found.reply is not None
        assert found.reply.detail == "one: its stream does not begin with an acknowledgement"
    assert endpoint.asked[0].is_given_up


async def test_a_stream_begins_without_a_server_only_where_it_may(made: Made) -> None:
    for fail_open in (False, True):
        endpoint = made(lambda sent, _: granting(sent, CHANGED, END), failing, fail_open=fail_open)
        found = await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
        assert (found.status, len(found.messages)) == ((200, 3) if fail_open else (502, 1))
    endpoint = made(failing, failing, fail_open=True)
    assert (await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))).status == 502


async def test_a_stream_that_is_not_readable_is_lost(made: Made) -> None:
    for rest in (b"data: x\n\n", event({"method": "notifications/resources/updated", "params": [1]})):
        endpoint = made(lambda sent, _, rest=rest: granting(sent, CHANGED, rest))
        endpoint.policies.rules = (1,)
        found = await endpoint.asks(*modern("subscriptions/listen", notifications={**WANTED}))
        assert found.out.how == "lost" and len(found.messages) == 2


async def test_the_end_of_a_stream_is_shown_to_guardrails(made: Made) -> None:
    endpoint = made(lambda sent, _: granting(sent, END), lambda sent, _: granting(sent, None))
    guards = endpoint.policies.guardrails = Guards({"*": 2}, passes)
    await endpoint.asks(*modern("subscriptions/listen", notifications=WANTED))
    assert guards.shown == [(2, "subscriptions/listen", ["one", "two"], {})]


async def test_many_resources_are_judged_in_slices(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    endpoint = made(taking, taking)
    monkeypatch.setattr(listening, "asyncio", SimpleNamespace(sleep=sleep))
    for count, turns in ((7, 0), (8, 1), (16, 2)):
        slept.clear()
        await listening._shares(endpoint.visit(), Filter((), tuple(map(str, range(count)))))
        assert slept == [0] * turns


# --- the revision without sessions


async def test_what_several_are_is_discovered(made: Made) -> None:
    def server(*versions: str) -> Server:
        return fixed(lambda sent: result(sent, supportedVersions=[*versions], capabilities={"tools": {}}))

    endpoint = made(server(REVISION, "x"), server(REVISION))
    found = await endpoint.asks(*modern("server/discover"))
    assert found.last["result"]["supportedVersions"] == [REVISION]
    assert found.last["result"]["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "gatewright", "version": "1"}
    for code, reason in ((-32602, "McpBadMessage"), (-32601, "McpBadVersion")):
        endpoint = made(server(REVISION), fixed(lambda sent, code=code: error(sent, code)))
        found = await endpoint.asks(*modern("server/discover"))
        assert (found.reason, found.last["id"]) == (reason, 7)
    for fail_open in (False, True):
        endpoint = made(server(REVISION), failing, fail_open=fail_open)
        assert (await endpoint.asks(*modern("server/discover"))).status == (200 if fail_open else 502)
    endpoint = made(failing, failing, fail_open=True)
    assert (await endpoint.asks(*modern("server/discover"))).status == 502


async def test_requests_of_the_newest_revision_have_their_answers(made: Made) -> None:
    endpoint = made(taking, taking)
    found = await endpoint.asks("tools/call", modern("")[1], modern("tools/list")[2])
    assert (found.status, found.code) == (400, -32020) and not endpoint.asked
    method, params, lines = modern("tools/call", name="two_a")
    found = await endpoint.asks(method, params, lines + b"mcp-name: two_a\r\n")
    (call,) = endpoint.asked
    assert found.status == 200 and b"mcp-name: a\r\n" in call.request.headers
    assert b"mcp-method: tools/call\r\n" in call.request.headers and b"mcp-session-id" not in call.request.headers
    found = await endpoint.asks(method, {**params, "name": "a"}, lines + b"mcp-name: a\r\n")
    assert (found.status, found.reason, found.code) == (400, "McpItemUnknown", -32602)
    assert "data" not in found.last["error"]
    method, params, lines = modern("resources/read", uri="x")
    found = await endpoint.asks(method, params, lines + b"mcp-name: x\r\n")
    assert found.last["error"]["data"] == {"uri": "x"}
    found = await endpoint.asks(*modern("mine"))
    assert found.code == -32601 and found.reply is not None
    assert (await endpoint.posts({"method": "notifications/cancelled"}, modern("")[2])).status == 202
    assert len(endpoint.asked) == 1


async def test_lists_of_the_newest_revision_may_have_errors_with_their_status(made: Made) -> None:
    endpoint = made(fixed(lambda sent: error(sent, -32601, status=404)), listing("tools", "b"))
    found = await endpoint.asks(*modern("tools/list"))
    assert names_of(found) == ["two_b"] and found.last["result"]["resultType"] == "complete"
    endpoint = made(fixed(Answer(404, b"", b"{}")), listing("tools", "b"))
    assert (await endpoint.asks(*modern("tools/list"))).status == 502


# --- a client of the older transport posts


class Stream:
    """What `NearMail` needs of a client's stream."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.given: list[Json] = []
        self.session, self.at_work, self.is_busy, self.is_over, self.is_ready = "", 0, False, False, False
        self.changed = Signal(endpoint.context.make_future)

    async def give(self, text: bytes) -> None:
        self.given.append(json.loads(text))

    def begin_session(self, text: str) -> None:
        self.session = text

    def client_is_ready(self) -> None:
        self.is_ready = True


class Poster:
    """A client with its stream, and what it posts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.stream = endpoint, Stream(endpoint)
        clients = {"id": self.stream}
        endpoint.context.of_kind(MCP).holder = SimpleNamespace(name="w", client=clients.get, peer=lambda name: None)
        self.names = "w/id"
        self.path = b"/sse"

    async def posts(self, message: Json, lines: bytes = b"", content: bytes | None = None) -> Answered:
        visit = self.endpoint.visit(lines)
        sealed = self.endpoint.sealer.seal(self.names.encode(), PURPOSE + visit.owner)
        visit.x.asked_target = b"%b?a=1&sessionId=%b" % (self.path, sealed.encode())
        body = json.dumps({"jsonrpc": "2.0", **message}).encode() if content is None else content
        reply = await posted(visit, body)
        await self.endpoint.settles()
        return Answered(visit, reply)


async def test_what_is_refused_is_said_where_the_client_waits(made: Made) -> None:
    endpoint = made(taking)
    client = Poster(endpoint)
    found = await client.posts({"id": 8, "method": "ping"})
    assert (found.status, found.reason) == (202, "McpSessionMissing")
    assert client.stream.given[-1]["id"] == 8 and client.stream.given[-1]["error"]["code"] == -32600
    found = await client.posts({"method": "notifications/initialized"})
    assert (found.status, found.reason) == (400, "McpSessionMissing") and not client.stream.is_ready
    assert len(client.stream.given) == 1 and client.stream.at_work == 0


async def test_a_client_that_leaves_meanwhile_is_owed_no_answer(made: Made) -> None:
    client = Poster(made(taking))
    await client.posts({"id": 7, "method": "initialize", "params": HELLO})
    waiting = asyncio.ensure_future(client.posts({"id": 8, "method": "tools/call", "params": {"name": "a"}}))
    client.endpoint.servers["one"] = fixed(lambda sent: Answer(200, STREAM, event(NOTE), None))
    await client.endpoint.settles()
    assert len(client.stream.given) == 2 and client.stream.at_work == 1
    client.stream.is_over = True
    client.stream.changed.set()
    await client.endpoint.settles()
    assert client.endpoint.asked[-1].is_given_up is waiting.done() is False, "who works for it is to give up"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert client.stream.at_work == 0 and client.endpoint.asked[-1].is_given_up
    client.stream.is_over = False

    def leaving(sent: Json, request: CallRequest) -> Answer:
        client.stream.is_over = True
        return result(sent)

    client.endpoint.servers["one"] = leaving
    found = await client.posts({"id": 9, "method": "ping"})
    assert (found.status, found.out.body, len(client.stream.given)) == (202, b"", 2)


@pytest.mark.parametrize("path", [b"/mcp", b"/sse/"])
async def test_elsewhere_a_query_names_no_stream(made: Made, path: bytes) -> None:
    client = Poster(made(taking))
    client.path = path
    assert (await client.posts({"id": 7, "method": "ping"})).reason == "McpSessionMissing"
    assert not client.stream.given
    client.path = b"/sse"
    found = await client.posts({"id": 7, "method": "ping"}, b"mcp-session-id: x\r\n")
    assert found.reason == "McpSessionUnknown" and not client.stream.given, "it has a session of its own"
