"""The carrier of a request that a kind of backends ends itself: the request as it is taken, the answer as it is given,
each with its bounds. No network."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.terminating.pump import LINES, SLICE, EventPump
from dataplane.backends.terminating.terminator import Terminator
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.messages import ResponseHead
from dataplane.link.pools import BodyMemory
from dataplane.net import turns
from dataplane.net.turns import SHARE, Turns
from dataplane.upstream.calls import Call
from dataplane.upstream.calls.call import BUFFER
from tests.fakes.calls import Parts


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
        self.body_memory = BodyMemory(room)
        loop = asyncio.get_running_loop()
        self.turns = Turns(loop.call_soon)
        context = SimpleNamespace(body_memory=self.body_memory, make_future=loop.create_future, turns=self.turns)
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


async def test_a_message_is_bounded_by_what_may_be_held(desk: Desk) -> None:
    desk.begin(b"a" * 6).out.content(b"b" * 4, False)
    assert not desk.replies and desk.body_memory.used == 10
    desk.out.content(b"c", True)
    assert [each.reason for each in desk.replies] == ["BodyTooLarge"] and not desk.tasks
    desk.out.reset()
    assert desk.body_memory.used == 0 and not desk.out._parts


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
    assert not desk.served and desk.body_memory.used == 0


async def test_who_serves_takes_room_until_the_request_is_served(desk: Desk) -> None:
    desk.begin(b"ab", end=True)
    await desk.turn()
    assert desk.out.hold(40) and desk.body_memory.used == 42
    assert not desk.out.hold(40), "the client has its share"
    desk.go_on()
    await desk.turn()
    assert desk.body_memory.used == 0
    assert not desk.out.hold(1) and desk.body_memory.used == 0, "nobody would give it back"


async def test_a_message_takes_room_beside_those_of_others() -> None:
    desk = Desk(most=100, room=11)
    desk.body_memory.take(7, "192.0.2.2")
    desk.begin(b"abc").out.content(b"d", True)
    assert [each.reason for each in desk.replies] == ["TooManyBodies"] and not desk.tasks
    desk.out.discard()
    assert desk.body_memory.used == 7


# --- the answer


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
