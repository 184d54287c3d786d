"""The leader hears other controllers, waits for those that should be there, and gives them up: by a moved clock."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NoReturn

import grpc
import pytest

from controlplane.answers.fleet import Fleet
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change
from controlplane.xds import answer_messages
from controlplane.xds.answer_messages import ORIGIN
from controlplane.xds.hub import Hub
from tests.fakes.moved_loop import moved

WEB = "shop/web"
Code = grpc.StatusCode


class Aborted(Exception):
    """As grpc ends a call."""


class Call:
    """Another controller's, by the names that it gives itself."""

    def __init__(self, hub: Hub, *names: str) -> None:
        self.ended: Code | None = None
        self._names = names
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.create_task(hub._receive(None, self))

    def invocation_metadata(self) -> list[tuple[str, str | bytes]]:
        return [("other", "x"), *((ORIGIN, name) for name in self._names)]

    async def read(self) -> Any:
        return await self._messages.get()

    async def abort(self, code: Code, details: str) -> NoReturn:
        assert details
        self.ended = code
        raise Aborted

    async def says(self, *messages: Any) -> None:
        for message in messages:
            self._messages.put_nowait(message)
        await settled()

    async def answers(self, *proxies: str, more: bool = False) -> None:
        """They have state 3."""
        changes = [Change(AnswerKey(self._names[0], WEB, name), None, Answer("v3")) for name in proxies]
        (message,) = answer_messages.written(changes)
        await self.says(message.replace(b'"more":false', b'"more":true') if more else message)

    async def leaves(self) -> None:
        await self.says(grpc.aio.EOF)
        assert await self.task == b""


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class World:
    def __init__(self) -> None:
        self.fleet = Fleet(lambda: 0.0, sequence_of=lambda _gateway, version: int(version[1:]), origin="one")
        self.hub = Hub(self.fleet, "one")
        self.calls: list[Call] = []

    async def called(self, *names: str) -> Call:
        call = Call(self.hub, *names)
        self.calls.append(call)
        await settled()
        return call

    def known(self) -> tuple[int, bool]:
        """Proxies that have state 3, and whether that is all."""
        view = self.fleet.view(WEB)
        return view.answered_by(3), view.complete

    def waits(self) -> tuple[set[str], int, int]:
        return self.hub.origins, self.hub.reporting, self.hub.awaited

    async def ends(self) -> None:
        await self.hub.stop()
        for call in self.calls:
            call.task.cancel()
            with contextlib.suppress(Aborted, asyncio.CancelledError):
                await call.task


def leading(*expected: str) -> World:
    world = World()
    world.hub.lead(expected)
    return world


@moved
async def test_who_reported_in_time_is_never_given_up() -> None:
    world = leading("two")
    assert (world.known(), world.waits()) == ((0, False), ({"two"}, 0, 1))
    await asyncio.sleep(9)
    call = await world.called("two")
    await call.answers("a")
    assert (world.known(), world.waits()) == ((1, True), ({"two"}, 1, 0))
    await asyncio.sleep(60)
    await call.answers("b")
    assert (world.known(), world.waits(), world.hub.messages) == ((2, True), ({"two"}, 1, 0), 2)
    await world.ends()


@moved
async def test_who_does_not_report_is_given_up_after_ten_seconds_and_not_waited_for_again() -> None:
    world = leading("two")
    await asyncio.sleep(9.9)
    assert (world.known(), world.waits()) == ((0, False), ({"two"}, 0, 1))
    world.hub.expect("two")  # the Lease names it again: the time goes on
    await asyncio.sleep(0.2)
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    world.hub.expect("two")
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    call = await world.called("two")  # it was only slow
    assert world.known() == (0, False)
    await call.answers("a")
    assert world.known() == (1, True)
    await call.leaves()
    assert (world.known(), world.waits()) == ((1, False), ({"two"}, 0, 1))
    await world.ends()


@moved
async def test_one_that_is_lost_has_ten_seconds_to_come_back() -> None:
    world = leading()
    call = await world.called("two")
    await call.answers("a", "b")
    await call.leaves()
    assert (world.known(), world.waits()) == ((2, False), ({"two"}, 0, 1))
    await asyncio.sleep(9.9)
    assert world.known() == (2, False)
    again = await world.called("two")
    await again.answers("a")
    assert (world.known(), world.waits()) == ((1, True), ({"two"}, 1, 0))
    await again.leaves()
    await asyncio.sleep(10.1)
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    await world.ends()


@moved
async def test_a_report_in_pieces_counts_when_it_is_whole() -> None:
    world = leading()
    call = await world.called("two")
    await call.answers("a", more=True)
    await call.answers("b", more=True)
    assert (world.known(), world.hub.messages) == ((0, False), 2)
    await call.answers("c")
    assert (world.known(), world.hub.messages) == ((3, True), 3)
    await world.ends()


@moved
async def test_who_leads_no_more_knows_its_own_proxies_alone_and_waits_for_nobody() -> None:
    world = leading("three")
    call = await world.called("two")
    await call.answers("a")
    world.hub.follow()
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    await settled()
    assert call.ended is Code.UNAVAILABLE
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    world.hub.expect("two")
    assert world.waits() == (set(), 0, 0)
    assert (await world.called("two")).ended is Code.FAILED_PRECONDITION
    world.hub.lead(["two"])
    again = await world.called("two")
    await again.answers("a")
    assert (world.known(), again.ended) == ((1, True), None)
    await world.ends()


@moved
async def test_who_was_given_up_is_waited_for_by_the_next_time_of_leading() -> None:
    world = leading("two")
    await asyncio.sleep(11)
    world.hub.follow()
    world.hub.lead(["two"])
    assert (world.known(), world.waits()) == ((0, False), ({"two"}, 0, 1))
    await world.ends()


@moved
async def test_a_controller_that_calls_again_is_heard_by_its_newest_call() -> None:
    world = leading()
    first = await world.called("two")
    await first.answers("a")
    second = await world.called("two")
    await second.answers("b", "c")
    await first.answers("d")
    assert first.ended is Code.UNAVAILABLE
    assert (world.known(), world.waits()) == ((2, True), ({"two"}, 1, 0))
    await world.ends()


@moved
async def test_it_waits_for_others_alone() -> None:
    world = leading("one")
    assert world.waits() == (set(), 0, 0)
    call = await world.called("two")
    await call.answers()
    world.hub.expect("two")
    assert (world.known(), world.waits()) == ((0, True), ({"two"}, 1, 0))
    await world.ends()


@moved
async def test_what_is_no_report_ends_the_call() -> None:
    world = leading()
    call = await world.called("two")
    await call.says(b"[")
    assert (call.ended, world.known(), world.waits()) == (Code.INVALID_ARGUMENT, (0, False), ({"two"}, 0, 1))
    assert world.hub.messages == 0
    await world.ends()


@moved
async def test_who_names_no_other_controller_is_refused() -> None:
    world = leading()
    for names in ([], ["one"], ["two", "two"], ["a b"], [""], ["x" * 129], ["ä"], ["a,b"]):
        call = await world.called(*names)
        assert (names, call.ended) == (names, Code.INVALID_ARGUMENT)
    assert (await world.called("x" * 128)).ended is None
    await world.ends()


@moved
async def test_sixty_four_controllers_are_heard_and_no_more() -> None:
    world = leading(*(f"e{number}" for number in range(70)))
    assert len(world.hub.origins) == 64
    assert (await world.called("e64")).ended is Code.RESOURCE_EXHAUSTED
    call = await world.called("e63")
    assert call.ended is None  # there is room for who is waited for
    await call.answers()
    await asyncio.sleep(11)
    assert world.hub.origins == {"e63"}
    assert (await world.called("e64")).ended is None
    await world.ends()


@moved
async def test_of_those_that_were_given_up_the_last_sixty_four_are_remembered() -> None:
    world = leading()
    for number in range(65):
        world.hub.expect(f"e{number}")
        await asyncio.sleep(11)
    world.hub.expect("e64")
    world.hub.expect("e1")
    assert world.waits() == (set(), 0, 0)
    world.hub.expect("e0")
    assert world.waits() == ({"e0"}, 0, 1)
    await world.ends()


@moved
async def test_who_is_given_up_once_more_is_the_last_of_those() -> None:
    world = leading()
    for number in range(64):
        world.hub.expect(f"e{number}")
        await asyncio.sleep(0.01)
    await asyncio.sleep(11)
    call = await world.called("e0")
    await call.answers()
    await call.leaves()
    await asyncio.sleep(11)
    world.hub.expect("e64")
    await asyncio.sleep(11)
    world.hub.expect("e0")
    assert world.waits() == (set(), 0, 0)
    world.hub.expect("e1")
    assert world.waits() == ({"e1"}, 0, 1)
    await world.ends()


@moved
async def test_one_that_is_lost_before_it_reports_has_ten_seconds_from_then_on() -> None:
    world = leading("two")
    call = await world.called("two")
    await asyncio.sleep(9)
    await call.leaves()
    await asyncio.sleep(9)
    assert (world.known(), world.waits()) == ((0, False), ({"two"}, 0, 1))
    await asyncio.sleep(2)
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    await world.ends()


@moved
async def test_nobody_is_heard_before_it_leads() -> None:
    world = World()
    world.hub.expect("two")
    assert world.waits() == (set(), 0, 0)
    assert (await world.called("two")).ended is Code.FAILED_PRECONDITION
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
    await world.ends()


@pytest.mark.parametrize("is_leading", [False, True])
async def test_it_can_be_ended_before_it_listens(is_leading: bool) -> None:
    world = leading("two") if is_leading else World()
    await world.ends()
    assert (world.known(), world.waits()) == ((0, True), (set(), 0, 0))
