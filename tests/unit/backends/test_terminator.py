"""The carrier of a request that a kind of backends ends itself: the request as it is taken, the answer as it is given,
each with its bounds. No network."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.terminating.pump import LINES, SLICE, EventPump
from dataplane.backends.terminating.terminator import Terminator, give_all
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.messages import ResponseHead
from dataplane.link.pools import Room
from dataplane.net import turns
from dataplane.net.turns import SHARE, Turns
from dataplane.upstream.calls import Call
from dataplane.upstream.calls.call import BUFFER


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
    """A terminator with its exchange; `served` are the bodies of whole requests."""

    def __init__(self, most: int = 10, room: int = 100) -> None:
        self.client = Client()
        self.replies: list[Any] = []
        self.served: list[bytes] = []
        self.waits: list[asyncio.Future[None]] = []
        """What serves."""
        self.room = Room(room)
        loop = asyncio.get_running_loop()
        self.turns = Turns(loop.call_soon)
        context = SimpleNamespace(room=self.room, make_future=loop.create_future, turns=self.turns)
        x: Any = SimpleNamespace(context=context, reply=self.replies.append, work=self._work, may_hold=lambda _: most)
        x.peer = "192.0.2.1"
        x.makers = lambda: ("192.0.2.1",)
        self.tasks: list[Any] = []
        self.out = Terminator(x, self._serve)

    def begin(self, first: bytes = b"", end: bool = False) -> Desk:
        client: Any = self.client
        self.out.begin(client, b"\r\nx: 1\r\n", first, end)
        return self

    def _work(self, coroutine: Any) -> Any:
        self.tasks.append(asyncio.ensure_future(coroutine))
        return self.tasks[-1]

    def _serve(self, out: Terminator) -> asyncio.Future[None]:
        assert out is self.out
        self.served.append(out.whole_body or b"")
        self.waits.append(asyncio.get_running_loop().create_future())
        return self.waits[-1]

    def go_on(self) -> None:
        for each in self.waits:
            if not each.done():
                each.set_result(None)

    async def turn(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def ends(self) -> None:
        self.go_on()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def desk() -> Any:
    made = Desk()
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
    desk.go_on()
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


async def test_a_request_that_comes_in_a_full_turn_is_served_in_the_next(
    desk: Desk,
) -> None:
    desk.turns._clock = iter((0.0, SHARE)).__next__
    desk.turns.begin()
    desk.begin(b"ab", end=True)
    assert not desk.served and desk.room.used == 2, "who waits takes room"
    desk.turns._clock = lambda: 0.0
    while len(desk.turns):
        await asyncio.sleep(0)
    assert desk.served == [b"ab"]


async def test_a_request_whose_turn_has_come_is_served_however_little_time_that_has(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SHARE", 0.0)
    desk.turns.begin()
    desk.begin(b"ab", end=True)
    assert not desk.served
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert desk.served == [b"ab"] and not desk.turns


async def test_a_request_that_is_given_up_while_it_waits_for_its_turn_is_not_served(desk: Desk) -> None:
    desk.turns._clock = iter((0.0, SHARE)).__next__
    desk.turns.begin()
    desk.begin(b"ab", end=True)
    desk.out.reset()
    desk.turns._clock = lambda: 0.0
    while len(desk.turns):
        await asyncio.sleep(0)
    assert not desk.served and desk.room.used == 0


async def test_a_message_that_is_handed_on_keeps_its_room(desk: Desk) -> None:
    serve = desk._serve

    def hands_on(out: Terminator) -> asyncio.Future[None]:
        assert out.carry(SimpleNamespace()) == (b"abcd", True)  # nothing of it is asked
        return serve(out)

    desk.out._serve = hands_on  # as a kind that passes a message as it is
    desk.begin(b"ab").out.content(b"cd", True)
    await desk.turn()
    assert desk.room.used == 4, "its call holds it to send it again"
    desk.go_on()
    desk.out.finish()
    assert desk.room.used == 0


async def test_who_serves_takes_room_until_the_request_is_served(desk: Desk) -> None:
    desk.begin(b"ab", end=True)
    await desk.turn()
    assert desk.out.hold(40) and desk.room.used == 42
    assert not desk.out.hold(40), "the client has its share"
    desk.go_on()
    await desk.turn()
    assert desk.room.used == 0
    assert not desk.out.hold(1) and desk.room.used == 0, "nobody would give it back"


async def test_a_message_takes_room_beside_those_of_others() -> None:
    desk = Desk(most=100, room=11)
    desk.room.take(7, "192.0.2.2")
    desk.begin(b"abc").out.content(b"d", True)
    assert [each.reason for each in desk.replies] == ["TooManyBodies"] and not desk.tasks
    desk.out.discard()
    assert desk.room.used == 7


async def test_a_request_that_is_given_up_is_served_no_longer(desk: Desk) -> None:
    desk.begin(b"ab", True)
    await desk.turn()
    desk.out.reset()
    await desk.turn()
    assert (sum(each.cancelled() for each in desk.waits), desk.room.used) == (1, 0)
    desk.out.head(200, b"")
    desk.out.give(b"x")
    desk.out.end()
    desk.out.lost()
    assert not (desk.client.heads or desk.client.got or desk.client.lost)


async def test_what_is_given_up_before_its_first_turn_frees_its_room(desk: Desk) -> None:
    desk.begin(b"ab", True).out.reset()
    desk.out.content(b"cd", True)
    await desk.turn()
    assert (desk.served, desk.room.used, len(desk.tasks)) == ([b"ab"], 0, 1)


async def test_nobody_wants_the_answer_any_more(desk: Desk) -> None:
    desk.out.give_up()
    desk.begin(b"ab", True)
    await desk.turn()
    desk.out.give_up()
    await desk.turn()
    assert sum(each.cancelled() for each in desk.waits) == 1
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
    assert [each.done() for each in waiting] == [False, True, False] and len(desk.out._wait_for_client or ()) == 2
    desk.out.resume()
    desk.out.pause()
    await desk.turn()
    assert not waiting[0].done(), "it was stopped again meanwhile"
    desk.out.resume()
    await desk.turn()
    assert waiting[0].done() and waiting[2].done() and not desk.out._wait_for_client
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
    services: Any = SimpleNamespace(
        clock=lambda: 0.0, called=lambda *_: None, make_future=asyncio.get_running_loop().create_future
    )
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
    """`contract.Pours`: what a call answers, part by part; an exception is raised."""

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
    pouring = asyncio.ensure_future(give_all(desk.out, Parts(b"a", b"b")))
    await desk.turn()
    assert desk.client.got[1:] == [(b"a", False)]
    desk.out.resume()
    await pouring
    assert desk.client.got[1:] == [(b"a", False), (b"b", False)]


# --- events


def event(data: bytes) -> bytes:
    return b"data: %b\n\n" % data


async def test_many_events_are_looked_at_in_slices() -> None:
    """Others have their turn between them."""

    async def in_turns(data: bytes) -> tuple[int, int]:
        count, found = 0, 0

        async def beside() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(0)
                count += 1

        other = asyncio.ensure_future(beside())
        await asyncio.sleep(0)
        before = count
        pump = EventPump(Parts(data), 1 << 20)
        while await pump.next() is not None:
            found += 1
        other.cancel()
        return found, count - before

    small = event(b"x")
    assert await in_turns(small * 63) == (63, 0)
    assert await in_turns(small * 64) == (64, 1)
    assert await in_turns(small * 129) == (129, 2)
    assert await in_turns(event(b"x" * (SLICE - 8))) == (1, 0)
    assert await in_turns(event(b"x" * (SLICE - 7))) == (1, 1)
    assert await in_turns(b"x\n" * LINES) == (0, 0)
    for line in (b"x\n", b"x\r"):  # more than so many lines are no one slice, however short they are
        assert await in_turns(line * (2 * LINES)) == (0, 1)
        assert await in_turns(line * (4 * LINES)) == (0, 3)
    assert await in_turns(b"") == (0, 0)
