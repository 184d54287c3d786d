"""A request of a client to servers behind one endpoint: who is asked, what they get, what comes of their answers. The
servers are functions; no network, no proxy around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls, farewell, posts, sending, streams, upstreams
from dataplane.backends.mcp.answers import Congested, TargetFailed
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.backends.mcp.visit import Visit
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.chain.reply import Reply
from dataplane.credentials.sealing import Sealer
from dataplane.http.heads import Head
from dataplane.http.sse import EventReader
from dataplane.mcp import messages, sessions
from dataplane.mcp.guardrails import Processor, sorted_methods
from dataplane.mcp.plans import McpPlan, TargetPlan
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import Session, UpstreamSession
from dataplane.mcp.worker import Memory, Shared
from gatewright.wire.external import ext_mcp_pb2 as pb
from tests.fakes.mcp_memory import boundless

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
        self.kept: Any = SimpleNamespace(sealer=self.sealer, memory=self.memory, answers=boundless())
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


# --- one server


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


async def test_what_no_rule_could_judge_needs_an_id(made: Made) -> None:
    endpoint = made(taking)
    endpoint.begin_session()
    assert (await endpoint.posts({"method": "tools/call"})).status == 202
    endpoint.policies.rules = (1,)
    assert (await endpoint.posts({"method": "tools/call"})).code == -32600
    assert (await endpoint.posts({"method": "notifications/x"})).status == 202
    assert (await endpoint.asks("TOOLS/call", {"name": "a"})).code == -32601
    assert (await endpoint.asks("mine")).status == 200


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


# --- what is for all


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


# --- without sessions


async def test_ids_of_requests_of_servers_are_remembered_within_a_bound(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MAX_ASKED", 2)
    endpoint = made(taking, stateless=True)
    visit = endpoint.visit()
    tags = sending.Tags(visit, Upstreams(visit))
    known = [tags("one", number) for number in range(2)]
    assert [tags("one", number) for number in range(2)] == known
    tags("one", 2)
    assert tags("one", 1) == known[1] and tags("one", 0) != known[0]
    with pytest.raises(TargetFailed, match="its request has too long an id"):
        tags("one", "x" * 1025)


# --- GET and DELETE


async def gets(endpoint: Endpoint, lines: bytes = b"accept: text/event-stream\r\n") -> Answered:
    visit = endpoint.visit(lines)
    reply = await streams.get(visit, b"", NOBODY)
    return Answered(visit, reply)


NOTE = {"method": "notifications/message", "params": {}}


# --- who the client is


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
    works = [late(1), fails(Congested("one", "x")), late(2)]
    first, failed, second = await upstreams.together(visit, works)
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


@pytest.mark.parametrize(
    "params",
    [{}, {"notifications": 7}, {"Notifications": {}, "notifications": {}}, {"notifications": {"TOOLSLISTCHANGED": 1}}],
)
async def test_what_several_are_asked_for_is_spelled_as_the_protocol_does(made: Made, params: Json) -> None:
    endpoint = made(taking, taking)
    found = await endpoint.asks(*modern("subscriptions/listen", **params))
    assert found.code == -32602 and not endpoint.asked
