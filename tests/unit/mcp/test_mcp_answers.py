"""What comes of a call to one MCP server: its answer as it is given or read, each with its bounds. No network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls, relay
from dataplane.backends.mcp.answers import AnswerRefused, Answers, Deadline, Opened, TargetFailed
from dataplane.backends.mcp.relay import Rewrite
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.http.sse import Event, EventReader
from dataplane.mcp import asked, names
from dataplane.mcp.messages import Malformed
from dataplane.mcp.plans import TargetPlan
from dataplane.table.plans import at_socket
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.guards import Rules
from dataplane.upstream.settings import NO_SETTINGS, Settings


class Parts:
    """`answers.Answering`: what a call answers, part by part; an exception is raised."""

    endpoint = None

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)
        self.is_given_up = False

    async def receive(self) -> bytes:
        part = self.parts.pop(0) if self.parts else b""
        if isinstance(part, Exception):
            raise part
        return part

    def cancel(self) -> None:
        self.is_given_up = True


# --- who is called


class Plan:
    """`BackendPlan`: what was made of it."""

    endpoints = ()
    host = b""

    def __init__(self, *became: Any) -> None:
        self.became = became

    def topped(self, settings: Any, rules: Any) -> Plan:
        return Plan(*self.became, ("topped", settings, rules))

    def under(self, settings: Any, version: int) -> Plan:
        return Plan(*self.became, ("under", settings, version))

    def guarded(self, rules: Any) -> Plan:
        return Plan(*self.became, ("guarded", rules))


def exchange(plan: Any, backend: Settings = NO_SETTINGS, rules: Any = None, leases: Any = None) -> Any:
    return SimpleNamespace(
        table=SimpleNamespace(backends={"b": plan}),
        policies=SimpleNamespace(backend=backend, rules=rules, host_rewrite=None),
        context=SimpleNamespace(calls=SimpleNamespace(leases=leases)),
        authority=b"asked",
        host_set=False,
    )


ROUTE, OWN, ABOVE = (Settings(tcp=name) for name in ("route", "own", "above"))  # type: ignore[arg-type]


OWN_HEALTH, OTHER_HEALTH, SOME_LIMITS = (object() for _ in range(3))
HEALTH = Rules(health=OWN_HEALTH)  # type: ignore[arg-type]
LIMITS = Rules(OTHER_HEALTH, SOME_LIMITS)  # type: ignore[arg-type]
BOTH_RULES = Rules(OWN_HEALTH, SOME_LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "backend", "rules", "became"),
    [
        ({}, NO_SETTINGS, None, []),
        ({"above": ABOVE}, NO_SETTINGS, None, [("topped", ABOVE, None)]),
        ({"rules_above": "r"}, NO_SETTINGS, None, [("topped", NO_SETTINGS, "r")]),
        ({"own": OWN}, NO_SETTINGS, None, [("under", OWN, 0)]),
        ({}, ROUTE, None, [("under", ROUTE, 0)]),
        ({"own": OWN}, ROUTE, None, [("under", OWN, 0)]),
        ({}, NO_SETTINGS, "of the route", [("guarded", "of the route")]),
        ({"rules": HEALTH}, NO_SETTINGS, None, [("guarded", HEALTH)]),
        (
            {"rules": HEALTH},
            NO_SETTINGS,
            LIMITS,
            [("guarded", BOTH_RULES)],
        ),
        ({"own": OWN, "above": ABOVE, "is_local": True}, ROUTE, "r", []),
        (
            {"own": OWN, "above": ABOVE},
            NO_SETTINGS,
            "r",
            [("topped", ABOVE, None), ("under", OWN, 0), ("guarded", "r")],
        ),
    ],
)
def test_what_policies_say_of_a_server_counts(target: Any, backend: Any, rules: Any, became: list[Any]) -> None:
    made: Any = calls.plan_of(exchange(Plan(), backend, rules), TargetPlan("one", "b", path=b"/", **target))
    assert list(made.became) == became


def test_a_server_that_is_not_known_cannot_be_called() -> None:
    with pytest.raises(CallFailed, match="other is not known") as failed:
        calls.plan_of(exchange(Plan()), TargetPlan("one", "other", path=b"/"))
    assert failed.value.cause == "unresolved"


@pytest.mark.parametrize("host", [b"", b"tools.test"])
@pytest.mark.parametrize(
    ("labels", "pinned", "found"),
    [
        ("ab", "b", ["b"]),
        ("ab", "c", ["a", "b"]),
        ("a", "a", ["a"]),
        ("a", "b", ["a"]),
        ("ab", "", ["a", "b"]),
    ],
)
def test_a_session_stays_at_its_endpoint_while_that_is_there(
    host: bytes, labels: str, pinned: str, found: list[str]
) -> None:
    endpoints: Any = tuple(SimpleNamespace(label=each) for each in labels)
    asked: list[Any] = []

    def resolve(plan: Any, _ready: Any) -> Any:
        asked.append((plan.host, plan.port))
        return endpoints

    leases = SimpleNamespace(resolve=resolve, guard=lambda plan, rules: asked.append((plan, rules)))
    whole = replace(at_socket("b", "/x"), endpoints=() if host else endpoints, host=host, port=80)
    made: Any = calls.plan_of(exchange(whole, leases=leases), TargetPlan("one", "b", path=b"/"), pinned)
    assert asked == ([(b"tools.test", 80)] if host and pinned else [])
    if found == list(labels):
        assert made is whole
    else:
        assert [each.label for each in made.endpoints] == found and made.host == b""
    rules: Any = "limits"
    guarded = replace(whole, rules=rules)
    asked.clear()
    calls.plan_of(exchange(guarded, leases=leases), TargetPlan("one", "b", path=b"/"), pinned)
    assert ((guarded, rules) in asked) is (found != list(labels)), "counts are the whole plan's"


def test_a_name_that_is_not_resolved_yet_is_nobodys() -> None:
    leases = SimpleNamespace(resolve=lambda plan, ready: ready())
    whole = replace(at_socket("b", "/x"), endpoints=(), host=b"tools.test")
    assert calls.plan_of(exchange(whole, leases=leases), TargetPlan("one", "b", path=b"/"), "a") is whole


@pytest.mark.parametrize(
    ("rewrite", "host_set", "authority"),
    [(None, False, b""), (True, False, b""), (False, False, b"asked"), (True, True, b"asked")],
)
def test_a_server_is_called_by_its_own_name_unless_another_is_wanted(
    rewrite: bool | None, host_set: bool, authority: bytes
) -> None:
    x = exchange(Plan())
    x.policies.host_rewrite, x.host_set = rewrite, host_set
    plan: Any = Plan()
    assert calls.authority(x, plan) == authority


OWN_LINES = (
    *("host", "accept", "accept-encoding", "mcp-session-id", "last-event-id", "expect", "range", "content-length"),
    *("content-type", "content-encoding", "transfer-encoding", "trailer", "te", "connection", "keep-alive", "upgrade"),
    *("proxy-connection", "if-none-match", "if-modified-since", "mcp-name"),
)


@pytest.mark.parametrize("name", [*OWN_LINES, "x-other", "mcp-method", "authorization"])
def test_lines_of_a_client_that_go_on(name: str) -> None:
    line = f"{name.title()}: 1\r\n".encode()
    head = Head(b"\r\na: 1\r\n" + line)
    assert asked.passing(head) == b"a: 1\r\n" + (b"" if name in OWN_LINES else line)


@pytest.mark.parametrize("seconds", [2.5, FOR_EVER])
async def test_a_call_begins_with_its_whole_content(seconds: float) -> None:
    begun: list[Any] = []
    leases = SimpleNamespace(begin=lambda holder, plan: begun.append((holder, plan)))
    given: Any = (None, leases, lambda at, whom: begun.append((at, whom)), None, lambda: 100.0)
    services = HttpCalls(*given)
    x: Any = SimpleNamespace(trace=None, context=SimpleNamespace(calls=services))
    plan: Any = SimpleNamespace(key="b", authority=b"server", request_timeout=None, steps=None, finishers=None)
    request = CallRequest(b"POST", b"/mcp", b"server", b"x: 1\r\n", b"body")
    made = calls.call(x, plan, request, seconds, True)
    assert (made.is_idempotent, made.length, made.head_by) == (True, 4, 100.0 + seconds)
    assert begun == [(made, plan), *([(102.5, made)] if seconds == 2.5 else [])]
    assert calls.call(x, plan, request).is_idempotent is False
    taken: list[Any] = []
    up: Any = SimpleNamespace(begin=lambda *each: taken.append(each))
    made.lease_ready(up)
    ((consumer, block, body, end),) = taken
    assert made.plan is plan
    assert (consumer, body, end) == (made, b"body", True)
    assert b"content-length: 4\r\n" in block and b"x: 1\r\n" in block


# --- an answer that is read


JSON, STREAM = b"content-type: application/json\r\n", b"content-type: Text/Event-Stream; charset=utf-8\r\n"
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def opened(*parts: bytes | Exception, lines: bytes = JSON, status: int = 200, until: float = FOR_EVER) -> Opened:
    return Opened(Parts(*parts), CallAnswer(status, Head(b"\r\n" + lines), b""), "one", until)


def event(data: bytes) -> bytes:
    return b"data: %b\n\n" % data


def reading(most: int = 1000) -> tuple[Answers, list[tuple[float, Any]]]:
    sleepers: list[tuple[float, Any]] = []
    services: Any = SimpleNamespace(wake_at=lambda at, whom: sleepers.append((at, whom)))
    return Answers(services, lambda size: True, most), sleepers


@pytest.mark.parametrize(
    "given",
    [
        opened(ANSWER[:9], ANSWER[9:]),
        opened(ANSWER, lines=b""),
        opened(b"id: 1\ndata:\n\n" + event(ANSWER.replace(b"1,", b"2,")) + event(ANSWER) + b"data: {", lines=STREAM),
        opened(event(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), event(ANSWER), lines=STREAM),
    ],
)
async def test_the_answer_to_a_request_is_found(given: Opened) -> None:
    read, sleepers = reading()
    found = await read.read(given, 1, "one")
    assert (found.is_response, found.request_id) == (True, 1) and not sleepers


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (opened(ANSWER.replace(b"1,", b"2,")), "it answered what was not asked"),
        (opened(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), "it answered what was not asked"),
        (opened(b"{"), "its answer is not readable: the message is not JSON"),
        (opened(b"data: x\n\n", lines=STREAM), "its answer is not readable: the message is not JSON"),
        (opened(event(ANSWER.replace(b"1,", b"2,")), lines=STREAM), "its stream ended without an answer"),
        (opened(CallFailed("lost", "it broke")), "it broke"),
    ],
)
async def test_what_is_no_answer_is_a_failure(given: Opened, why: str) -> None:
    with pytest.raises(TargetFailed, match=rf"^one: {why}$"):
        await reading()[0].read(given, 1, "one")


async def test_an_error_without_an_id_is_the_answer() -> None:
    found = await reading()[0].read(opened(b'{"jsonrpc":"2.0","id":null,"error":{}}'), 1, "one")
    assert found.request_id == 1


async def test_one_answer_is_bounded_and_so_are_all() -> None:
    most = len(ANSWER) + 2
    read, _ = reading(most)
    for _ in range(4):
        await read.read(opened(ANSWER + b"  "), 1, "one")
    with pytest.raises(AnswerRefused, match=rf"^one: all answers have more than {4 * most} bytes$"):
        await read.read(opened(b" "), 1, "one")
    read, _ = reading(most)
    with pytest.raises(AnswerRefused, match=rf"^one: its answer has more than {most} bytes \(mcp.maxAnswerSize\)$"):
        await read.read(opened(ANSWER, b"  ", b" "), 1, "one")


async def test_an_answer_that_is_not_there_in_time_is_a_failure() -> None:
    read, sleepers = reading()
    given = opened(CallFailed("lost", "given up"), until=17.0)
    waiting = asyncio.ensure_future(read.read(given, 1, "one"))
    await asyncio.sleep(0)
    with pytest.raises(TargetFailed, match=r"^one: given up$"):
        await waiting
    ((at, late),) = sleepers
    assert at == 17 and isinstance(late, Deadline)
    late.wake(18)
    parts: Any = given.call
    assert not parts.is_given_up, "it was over"

    class Slow(Parts):
        async def receive(self) -> bytes:
            sleepers[-1][1].wake(18)
            assert self.is_given_up
            raise CallFailed("lost", "given up")

    slow = given._replace(call=Slow())
    with pytest.raises(TargetFailed, match=r"^one: its answer was not whole in time$"):
        await read.read(slow, 1, "one")


# --- an answer that passes


class Out:
    """`contract.Answer`, as far as a relay needs it."""

    is_paused = True

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.has_begun = False

    def head(self, status: int, lines: bytes, length: int = -1, first: bytes = b"", end: bool = False) -> None:
        self.has_begun = True
        self.did.append((status, lines, length, first, end))

    def hold(self, size: int) -> bool:
        return True

    async def pour(self, given: Parts) -> None:
        while data := await given.receive():
            self.did.append(data)

    def end(self) -> None:
        self.did.append("end")


PLAN: Any = SimpleNamespace(max_answer=1000)


def visit(takes_json: bool = True) -> Any:
    made: Any = SimpleNamespace(out=Out(), takes_json=takes_json, given=[], plan=PLAN)
    made.give = lambda body, lines=b"": made.given.append((body, lines))
    return made


PASSED = b"content-type: text/plain\r\n"


@pytest.mark.parametrize(
    ("given", "did"),
    [
        (opened(lines=PASSED + b"content-length: 0\r\n"), [(200, PASSED, 0, b"", True)]),
        (opened(lines=PASSED), [(200, PASSED, 0, b"", True)]),
        (opened(b"abc", lines=PASSED + b"content-length: 3\r\n"), [(200, PASSED, 3, b"abc", True)]),
        (
            opened(b"ab", b"c", lines=PASSED + b"content-length: 3\r\n"),
            [(200, PASSED, 3, b"ab", False), b"c", "end"],
        ),
        (opened(b"ab", b"c", lines=PASSED), [(200, PASSED, -1, b"ab", False), b"c", "end"]),
        (opened(b"ab", lines=PASSED + b"content-length: x\r\n"), [(200, PASSED, -1, b"ab", False), "end"]),
        (
            opened(b"ab", lines=PASSED + b"content-length: 0000000000000002\r\n"),
            [(200, PASSED, -1, b"ab", False), "end"],
        ),
        (
            opened(b"ab", lines=PASSED + b"content-length: 000000000000002\r\n"),
            [(200, PASSED, 2, b"ab", True)],
        ),
        (
            opened(b"ab", lines=b"content-type: text/event-stream\r\nmcp-session-id: s\r\n"),
            [(200, b"content-type: text/event-stream\r\n", -1, b"", False), b"ab", "end"],
        ),
        (
            opened(lines=b"content-type: text/event-stream\r\ncontent-length: 0\r\n"),
            [(200, b"content-type: text/event-stream\r\n", -1, b"", True)],
        ),
        (opened(b"no", lines=JSON + b"connection: x\r\n", status=500), [(500, JSON, -1, b"no", False), "end"]),
    ],
)
async def test_an_answer_passes_as_it_is(given: Opened, did: list[Any]) -> None:
    passing = visit()
    await relay.relay(passing, given)
    assert passing.out.did == did


async def test_a_client_that_takes_no_json_gets_an_event_of_a_success() -> None:
    passing = visit(takes_json=False)
    await relay.relay(passing, opened(ANSWER, lines=b"content-type: Application/JSON ; x\r\n"), b"x: y\r\n")
    assert passing.given == [(ANSWER, b"x: y\r\n")] and not passing.out.did
    passing = visit(takes_json=False)
    await relay.relay(passing, opened(b"no", lines=JSON, status=400), b"x: y\r\n")
    assert passing.out.did == [(400, JSON + b"x: y\r\n", -1, b"no", False), "end"]


@pytest.mark.parametrize("parts", [(CallFailed("lost", "it broke"),), (b"a", CallFailed("lost", "it broke"))])
async def test_an_answer_that_breaks_off_is_a_failure(parts: tuple[Any, ...]) -> None:
    passing = visit()
    with pytest.raises(TargetFailed, match=r"^one: it broke$"):
        await relay.relay(passing, opened(*parts, lines=PASSED))
    assert "end" not in passing.out.did
    with pytest.raises(TargetFailed, match=r"^one: it broke$"):
        await relay.whole(passing, opened(*parts, lines=PASSED))


async def test_a_whole_answer_is_bounded() -> None:
    reads = visit()
    reads.plan = SimpleNamespace(max_answer=4)
    assert await relay.whole(reads, opened(b"ab", b"cd")) == b"abcd"
    with pytest.raises(AnswerRefused, match=r"^one: its answer has more than 4 bytes \(mcp.maxAnswerSize\)$"):
        await relay.whole(reads, opened(b"ab", b"cd", b"e"))


# --- an answer whose names become ours


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def rewrite(renames: bool = True, tags: bool = True, hides: Any = None, is_resumed: bool = False) -> Rewrite:
    return Rewrite("t", 1, renames, names.tagged if tags else None, hides, is_resumed)


def said(made: Rewrite, text: bytes) -> Any:
    found = made.message(text)
    return None if found is None else json.loads(found)


RELATED = "io.modelcontextprotocol/related-task"


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"id": 5, "method": "roots/list"}, {"id": "gw:t:n:5", "method": "roots/list"}),
        (
            {"id": 5, "method": "x", "params": {"_meta": {"progressToken": "p"}}},
            {"id": "gw:t:n:5", "method": "x", "params": {"_meta": {"progressToken": "gw:t:s:p"}}},
        ),
        ({"id": 1, "result": {"content": []}}, {"id": 1, "result": {"content": []}}),
        (
            {"id": 1, "result": {"task": {"taskId": "a"}}},
            {"id": 1, "result": {"task": {"taskId": "t+a"}}},
        ),
        (
            {"id": 1, "result": {"contents": [{"uri": "u"}]}},
            {"id": 1, "result": {"contents": [{"uri": "t+u"}]}},
        ),
        ({"id": 1, "result": {"taskId": "a"}}, {"id": 1, "result": {"taskId": "t+a"}}),
        (
            {"id": 1, "error": {"code": 1, "message": "taskId"}},
            {"id": 1, "error": {"code": 1, "message": "taskId"}},
        ),
        ({"id": None, "error": {"code": 1}}, {"id": None, "error": {"code": 1}}),
        ({"id": 2, "result": {"taskId": "a"}}, None),
        (
            {"id": 1, "result": {"_meta": {RELATED: {"taskId": "a"}}}},
            {"id": 1, "result": {"_meta": {RELATED: {"taskId": "t+a"}}}},
        ),
        (
            {"method": "notifications/message", "params": {"_meta": {RELATED: {"taskId": "a"}}}},
            {"method": "notifications/message", "params": {"_meta": {RELATED: {"taskId": "t+a"}}}},
        ),
        (
            {"method": "notifications/cancelled", "params": {"requestId": 5}},
            {"method": "notifications/cancelled", "params": {"requestId": "gw:t:n:5"}},
        ),
        (
            {"method": "notifications/resources/updated", "params": {"uri": "u"}},
            {"method": "notifications/resources/updated", "params": {"uri": "t+u"}},
        ),
        (
            {"method": "notifications/other", "params": {"uri": "u"}},
            {"method": "notifications/other", "params": {"uri": "u"}},
        ),
    ],
)
def test_names_and_ids_of_one_of_several_servers_become_ours(given: Any, seen: Any) -> None:
    found = said(rewrite(), line(**given))
    assert found == (None if seen is None else {"jsonrpc": "2.0", **seen})
    only = rewrite(renames=False, tags=False)
    assert said(only, line(**given)) == {"jsonrpc": "2.0", **given}, "those of the only one stay"


def test_on_a_stream_that_goes_on_answers_may_be_of_any_request() -> None:
    answer = line(id=2, result={})
    assert rewrite().message(answer) is None
    for made in (rewrite(is_resumed=True), rewrite(renames=False)):
        assert said(made, answer) == json.loads(answer)


def test_notices_of_what_rules_refuse_are_left_out() -> None:
    asked: list[tuple[str, str, str]] = []

    def hides(kind: str, target: str, name: str) -> bool:
        asked.append((kind, target, name))
        return name == "secret"

    for renames in (False, True):
        judging = rewrite(renames=renames, hides=hides)
        notice = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"secret","uri":"u"}}'
        seen = "t+u" if renames else "u"
        found = judging.message(notice) or b""
        assert json.loads(found)["params"] == {"uri": seen}
        assert b"secret" not in found, "one of each key, as it was judged"
        for uri in ("secret", 7, None):
            text = line(method="notifications/resources/updated", params={} if uri is None else {"uri": uri})
            assert judging.message(text) is None
        text = line(method="notifications/message", params={"uri": "secret"})
        assert judging.message(text) == text
    assert asked == [("resource", "t", "u"), ("resource", "t", "secret")] * 2
    with pytest.raises(Malformed):
        rewrite(hides=hides).message(line(method="notifications/resources/updated", params=[1]))


@pytest.mark.parametrize(
    ("renames", "given", "seen"),
    [
        (True, Event(line(id=1, result={}), b"message", b"7"), (line(id=1, result={}), b"t:7")),
        (False, Event(line(id=1, result={}), b"message", b"7"), (line(id=1, result={}), b"7")),
        (True, Event(b"", b"", b"7"), (b"", b"t:7")),
        (True, Event(line(method="x"), b"message"), (line(method="x"), b"")),
    ],
)
def test_ids_of_events_name_their_server(renames: bool, given: Event, seen: tuple[bytes, bytes]) -> None:
    (found,) = EventReader().feed(rewrite(renames).event(given)) or [Event(b"", b"", b"t:7")]
    assert found.data == seen[0] and (found.id or b"") == seen[1]


RENAMED = b'{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"t+u"}]}}'
READ = b'{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"u"}]}}'
EVENTS = b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n"


def reading_resource(renames: bool = True, hides: Any = None) -> Rewrite:
    return rewrite(renames, renames, hides)


def shows(kind: str, target: str, name: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("made", "given", "gives"),
    [
        (reading_resource(), opened(READ), [(RENAMED, b"x: 1\r\n")]),
        (reading_resource(False, shows), opened(READ), None),
        (reading_resource(False), opened(READ), None),
        (reading_resource(), opened(READ, status=201), None),
        (reading_resource(False, shows), opened(READ, status=201), None),
        (reading_resource(), opened(event(READ), lines=STREAM, status=201), None),
        (reading_resource(False, shows), opened(event(READ), lines=STREAM, status=300), None),
        (reading_resource(False), opened(READ, lines=PASSED), None),
    ],
)
async def test_a_whole_answer_becomes_ours_only_where_it_must(made: Rewrite, given: Opened, gives: Any) -> None:
    asked = visit()
    await relay.relay_rewritten(asked, given, made, b"x: 1\r\n")
    assert asked.given == (gives or [])
    if gives is None:
        ((status, lines, *_), *rest) = asked.out.did
        assert (status, lines[-6:]) == (given.answer.status, b"x: 1\r\n"), "as it is"
        assert rest[-1] == "end"


@pytest.mark.parametrize(
    ("made", "status"),
    [(reading_resource(), 200), (reading_resource(False, shows), 200), (reading_resource(False, shows), 299)],
)
async def test_a_stream_becomes_ours_event_by_event(made: Rewrite, status: int) -> None:
    asked = visit()
    readies: list[int] = []

    async def ready() -> None:
        readies.append(len(asked.out.did))

    asked.out.ready = ready
    asked.out.give = asked.out.did.append
    parts = (b": x\n\n" + event(READ)[:9], event(READ)[9:], event(READ))
    await relay.relay_rewritten(asked, opened(*parts, lines=STREAM, status=status), made, b"x: 1\r\n")
    head, *events, end = asked.out.did
    assert (head, end) == ((200, EVENTS + b"x: 1\r\n", -1, b"", False), "end")
    seen = RENAMED if made.renames else READ
    assert [each.data for each in EventReader().feed(b"".join(events))] == [seen] * 2 and len(readies) == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (opened(READ.replace(b"1,", b"2,")), "it answered what was not asked"),
        (opened(b"{"), "its answer is not readable: the message is not JSON"),
        (opened(READ, lines=PASSED), "its answer is neither JSON nor a stream of events"),
        (opened(b"data: x\n\n", lines=STREAM), "its answer is not readable: the message is not JSON"),
        (opened(CallFailed("lost", "it broke"), lines=STREAM), "it broke"),
        (opened(b"data: " + b"x" * 101, lines=STREAM), r"its answer has more than 100 bytes \(mcp.maxAnswerSize\)"),
    ],
)
async def test_what_cannot_become_ours_is_a_failure(given: Opened, why: str) -> None:
    asked = visit()
    asked.plan = SimpleNamespace(max_answer=100)
    asked.out.give = asked.out.did.append
    with pytest.raises(TargetFailed, match=rf"^t: {why}$"):
        await relay.relay_rewritten(asked, given, reading_resource())


def test_an_event_that_is_not_for_the_client_is_none() -> None:
    assert rewrite().event(Event(line(id=2, result={}), b"message", b"7")) == b""
