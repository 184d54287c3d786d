"""What goes between a client and one MCP server: the request as it is taken whole, its answer as it is given or read,
each with its bounds. No network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import answers, calls, outlet, relay, serving
from dataplane.backends.mcp.answers import AnswerRefused, Answers, Deadline, Opened, TargetFailed
from dataplane.backends.mcp.outlet import Outlet
from dataplane.backends.mcp.relay import Rewrite
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed, CallRequest
from dataplane.http.body import Room
from dataplane.http.heads import Head
from dataplane.http.messages import ResponseHead
from dataplane.http.sse import Event, EventReader
from dataplane.mcp import names
from dataplane.mcp.messages import Malformed
from dataplane.mcp.plans import TargetPlan
from dataplane.table.plans import at_socket
from dataplane.upstream.calls import Call, HttpCalls
from dataplane.upstream.calls.call import BUFFER
from dataplane.upstream.guards import Rules
from dataplane.upstream.settings import NO_SETTINGS, Settings


class Client:
    """`carriers.Consumer`: what the client gets."""

    def __init__(self) -> None:
        self.heads: list[ResponseHead] = []
        self.got: list[tuple[bytes, bool]] = []
        self.lost: list[tuple[str, bool]] = []

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self.heads.append(head)
        self.got.append((first, end))

    def upstream_content(self, data: bytes, end: bool) -> None:
        self.got.append((data, end))

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self.lost.append((cause, stale))


class Desk:
    """An outlet with its exchange; `served` are the bodies of whole requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int = 10, room: int = 100) -> None:
        self.client = Client()
        self.replies: list[Any] = []
        self.served: list[bytes] = []
        self.cancelled = 0
        self.holds = asyncio.Event()
        self.room = Room(room)
        context = SimpleNamespace(room=self.room, make_future=asyncio.get_running_loop().create_future)
        x: Any = SimpleNamespace(context=context, reply=self.replies.append, work=self._work, may_hold=lambda _: most)
        self.tasks: list[Any] = []
        plan: Any = None
        self.out = Outlet(x, plan)
        monkeypatch.setattr(serving, "serve", self._serve)

    def begin(self, first: bytes = b"", end: bool = False) -> Desk:
        client: Any = self.client
        self.out.begin(client, b"\r\nx: 1\r\n", first, end)
        return self

    def _work(self, coroutine: Any) -> Any:
        self.tasks.append(asyncio.ensure_future(coroutine))
        return self.tasks[-1]

    async def _serve(self, out: Outlet, body: bytes) -> None:
        assert out is self.out
        self.served.append(body)
        try:
            await self.holds.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def turn(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def ends(self) -> None:
        self.holds.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def desk(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Desk(monkeypatch)
    yield made
    await made.ends()


# --- the request


async def test_a_request_is_served_once_when_it_is_whole(desk: Desk) -> None:
    desk.begin(b"ab").out.content(b"", False)
    desk.out.content(b"cd", False)
    await desk.turn()
    assert (desk.out.block, desk.served, desk.room.used) == (b"\r\nx: 1\r\n", [], 4)
    desk.out.trailers(b"x: y\r\n")
    desk.out.content(b"ef", True)
    await desk.turn()
    assert (desk.served, desk.room.used, len(desk.tasks)) == ([b"abcd"], 4, 1)
    assert not desk.out._parts
    desk.holds.set()
    await desk.turn()
    assert desk.room.used == 0 and not desk.replies


async def test_a_request_without_content_is_whole_at_once(desk: Desk) -> None:
    desk.begin(b"", True)
    await desk.turn()
    assert desk.served == [b""]


async def test_a_message_is_bounded_by_what_may_be_held(desk: Desk) -> None:
    desk.begin(b"a" * 6).out.content(b"b" * 4, False)
    assert not desk.replies and desk.room.used == 10
    desk.out.content(b"c", True)
    assert [each.reason for each in desk.replies] == ["BodyTooLarge"] and not desk.tasks
    desk.out.reset()
    assert desk.room.used == 0 and not desk.out._parts


async def test_a_message_takes_room_beside_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, most=100, room=10)
    desk.room.take(7)
    desk.begin(b"abc").out.content(b"d", True)
    assert [each.reason for each in desk.replies] == ["TooManyBodies"] and not desk.tasks
    desk.out.discard()
    assert desk.room.used == 7


async def test_a_request_that_is_given_up_is_served_no_longer(desk: Desk) -> None:
    desk.begin(b"ab", True)
    await desk.turn()
    desk.out.reset()
    await desk.turn()
    assert (desk.cancelled, desk.room.used) == (1, 0)
    desk.out.head(200, b"")
    desk.out.give(b"x")
    desk.out.end()
    desk.out.lost()
    assert not (desk.client.heads or desk.client.got or desk.client.lost)


async def test_what_is_given_up_before_its_first_turn_frees_its_room(desk: Desk) -> None:
    desk.begin(b"ab", True).out.reset()
    desk.out.content(b"cd", True)
    await desk.turn()
    assert (desk.served, desk.room.used, len(desk.tasks)) == ([], 0, 1)


async def test_nobody_wants_the_answer_any_more(desk: Desk) -> None:
    desk.out.give_up()
    desk.begin(b"ab", True)
    await desk.turn()
    desk.out.give_up()
    await desk.turn()
    assert desk.cancelled == 1
    desk.out.head(200, b"", 0, b"", True)
    assert len(desk.client.heads) == 1, "the exchange is as it was"


# --- the answer


@pytest.mark.parametrize(
    ("status", "length", "line", "block"),
    [
        (200, -1, b"HTTP/1.1 200 OK", b"\r\nx: y\r\n"),
        (200, 0, b"HTTP/1.1 200 OK", b"\r\ncontent-length: 0\r\nx: y\r\n"),
        (202, 3, b"HTTP/1.1 202 Accepted", b"\r\ncontent-length: 3\r\nx: y\r\n"),
        (204, 0, b"HTTP/1.1 204 No Content", b"\r\nx: y\r\n"),
        (404, 0, b"HTTP/1.1 404 ", b"\r\ncontent-length: 0\r\nx: y\r\n"),
    ],
)
async def test_the_head_of_an_answer(desk: Desk, status: int, length: int, line: bytes, block: bytes) -> None:
    desk.begin()
    assert not desk.out.has_begun
    desk.out.head(status, b"x: y\r\n", length, b"abc")
    (head,) = desk.client.heads
    assert (head.status, head.line, head.block, head.length) == (status, line, block, length)
    assert desk.out.has_begun and desk.client.got == [(b"abc", False)]


async def test_an_answer_is_given_in_parts_and_ends_once(desk: Desk) -> None:
    desk.begin().out.head(200, b"")
    for each in (b"a", b"", b"b"):
        desk.out.give(each)
    desk.out.end()
    desk.out.end()
    desk.out.lost()
    desk.out.give(b"c")
    assert desk.client.got == [(b"", False), (b"a", False), (b"b", False), (b"", True)] and not desk.client.lost


async def test_an_answer_that_is_lost_is_broken_off_once(desk: Desk) -> None:
    desk.begin().out.head(200, b"")
    desk.out.lost()
    desk.out.lost()
    desk.out.end()
    assert (desk.client.got, desk.client.lost) == ([(b"", False)], [("reset", False)])


async def test_a_whole_answer_says_its_length(desk: Desk) -> None:
    desk.begin().out.whole(200, b"", b"abc")
    assert (desk.client.heads[0].length, desk.client.got) == (3, [(b"abc", True)])


async def test_whoever_gives_waits_while_the_client_takes_no_more(desk: Desk) -> None:
    desk.begin()
    await desk.out.ready()
    desk.out.pause()
    waiting = [asyncio.ensure_future(desk.out.ready()) for _ in range(3)]
    await desk.turn()
    waiting[1].cancel()
    await desk.turn()
    assert [each.done() for each in waiting] == [False, True, False] and len(desk.out._blocked) == 2
    desk.out.resume()
    desk.out.pause()
    await desk.turn()
    assert not waiting[0].done(), "it was stopped again meanwhile"
    desk.out.resume()
    await desk.turn()
    assert waiting[0].done() and waiting[2].done() and not desk.out._blocked
    desk.out.pause()
    desk.out.reset()
    await desk.out.ready()


class Up:
    """`carriers.Upstream` of a call."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def pause(self) -> None:
        self.did.append("pause")

    def resume(self) -> None:
        self.did.append("resume")

    def reset(self) -> None:
        self.did.append("reset")


def call() -> tuple[Call, Up]:
    """One whose answer has begun."""
    services: Any = SimpleNamespace(clock=lambda: 0.0, make_future=asyncio.get_running_loop().create_future)
    plan: Any = SimpleNamespace(key="b", authority=b"server")
    made = Call(services, plan, CallRequest(b"GET", b"/"))
    up: Any = Up()
    made.up = up
    return made, up


async def test_an_answer_is_poured_as_it_comes(desk: Desk) -> None:
    made, up = call()
    desk.begin().out.head(200, b"")
    made.upstream_content(b"before", False)
    pouring = asyncio.ensure_future(desk.out.pour(made))
    await desk.turn()
    made.upstream_content(b"now", False)
    made.upstream_content(b"", False)
    assert [data for data, _ in desk.client.got] == [b"", b"before", b"now"], "in the callback that brought it"
    desk.out.pause()
    desk.out.resume()
    assert up.did == ["pause", "resume"]
    last = b"x" * (BUFFER - 1)
    made.upstream_content(last, True)
    await pouring
    assert [data for data, _ in desk.client.got[3:]] == [last]
    desk.out.pause()
    assert up.did == ["pause", "resume"], "it is over"


async def test_what_was_stopped_for_its_size_goes_on_when_it_is_poured(desk: Desk) -> None:
    made, up = call()
    made.upstream_content(b"x" * (BUFFER - 1), False)
    assert up.did == []
    made.upstream_content(b"x", False)
    assert up.did == ["pause"]
    pouring = asyncio.ensure_future(desk.begin().out.pour(made))
    await desk.turn()
    assert up.did == ["pause", "resume"] and sum(len(data) for data, _ in desk.client.got) == BUFFER
    made.upstream_content(b"y", False)
    made.upstream_content(b"y" * BUFFER, False)
    assert up.did == ["pause", "resume"], "nothing of it is held"
    made.fail(CallFailed("lost", "it broke"))
    with pytest.raises(CallFailed, match="it broke"):
        await pouring
    made.hold(True)


async def test_an_answer_is_poured_only_to_a_client_that_takes_it(desk: Desk) -> None:
    made, _ = call()
    made.upstream_content(b"a", True)
    desk.begin().out.pause()
    pouring = asyncio.ensure_future(desk.out.pour(made))
    await desk.turn()
    assert not desk.client.got
    desk.out.resume()
    await pouring
    assert desk.client.got == [(b"a", False)]


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


async def test_what_is_made_here_is_given_in_turns(desk: Desk) -> None:
    desk.begin().out.head(200, b"")
    desk.out.pause()
    pouring = asyncio.ensure_future(outlet.give_all(desk.out, Parts(b"a", b"b")))
    await desk.turn()
    assert desk.client.got[1:] == [(b"a", False)]
    desk.out.resume()
    await pouring
    assert desk.client.got[1:] == [(b"a", False), (b"b", False)]


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

    def resolve(name: bytes, port: int, _ready: Any) -> Any:
        asked.append((name, port))
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
    leases = SimpleNamespace(resolve=lambda name, port, ready: ready())
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
    assert calls.passing(head) == b"a: 1\r\n" + (b"" if name in OWN_LINES else line)


@pytest.mark.parametrize("seconds", [2.5, FOR_EVER])
async def test_a_call_begins_with_its_whole_content(seconds: float) -> None:
    begun: list[Any] = []
    leases = SimpleNamespace(begin=lambda holder, plan: begun.append((holder, plan)))
    given: Any = (None, leases, lambda at, whom: begun.append((at, whom)), None, lambda: 100.0)
    services = HttpCalls(*given)
    x: Any = SimpleNamespace(context=SimpleNamespace(calls=services))
    plan: Any = SimpleNamespace(key="b", authority=b"server", request_timeout=None, finishers=None)
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
    return Answers(services, most), sleepers


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


async def test_many_events_are_looked_at_in_slices() -> None:
    """Others have their turn between them."""

    async def turns(data: bytes) -> tuple[int, int]:
        count, found = 0, 0

        async def beside() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(0)
                count += 1

        other = asyncio.ensure_future(beside())
        await asyncio.sleep(0)
        before = count
        async for _ in answers.events(EventReader(), data):
            found += 1
        other.cancel()
        return found, count - before

    small = event(b"x")
    assert await turns(small * 63) == (63, 0)
    assert await turns(small * 64) == (64, 1)
    assert await turns(small * 129) == (129, 2)
    assert await turns(event(b"x" * (answers.SLICE - 8))) == (1, 0)
    assert await turns(event(b"x" * (answers.SLICE - 7))) == (1, 2)
    assert await turns(b"") == (0, 0)


# --- an answer that passes


class Out:
    """What of an outlet a relay needs."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.has_begun = False

    def head(self, status: int, lines: bytes, length: int = -1, first: bytes = b"", end: bool = False) -> None:
        self.has_begun = True
        self.did.append((status, lines, length, first, end))

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
        await relay.whole(opened(*parts, lines=PASSED), 1000)


async def test_a_whole_answer_is_bounded() -> None:
    assert await relay.whole(opened(b"ab", b"cd"), 4) == b"abcd"
    with pytest.raises(AnswerRefused, match=r"^one: its answer has more than 4 bytes \(mcp.maxAnswerSize\)$"):
        await relay.whole(opened(b"ab", b"cd", b"e"), 4)


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
