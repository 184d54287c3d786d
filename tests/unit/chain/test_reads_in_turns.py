"""Content that is read in turns: what every reader may rely on, whatever carries it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.slices import ReadsInTurns, Unread
from dataplane.net.turns import SHARE, Turns
from tests.harness.seeds import times

LOST = ("reset", False)


class Reader(ReadsInTurns):
    """With a carrier that brings `content` whenever it may, also while it is resumed, and a client that holds it at
    times."""

    __slots__ = ("_unread", "_x", "calls", "content", "failures", "given", "is_paused", "loss", "now", "pace", "turns")
    slice_size = 8

    def __init__(self, content: list[tuple[bytes, bool]], pace: Callable[[], float] = lambda: SHARE) -> None:
        self.calls: deque[Callable[[], None]] = deque()
        self.now = 0.0
        self.pace = pace
        """Seconds that a slice takes."""
        self.turns = Turns(self.calls.append, lambda: self.now)
        self.failures: list[Exception] = []
        self._x: Any = SimpleNamespace(
            context=SimpleNamespace(turns=self.turns), makers=lambda: ("192.0.2.1",), failed=self.failures.append
        )
        self._unread = Unread()
        self.content = deque(content)
        self.given: list[tuple[bytes, bool]] = []
        self.loss: tuple[str, bool] | None = None
        self.is_paused = False

    def read_slice(self, data: bytes, end: bool) -> None:
        assert self.loss is None and not (self.given and self.given[-1][1]), "nothing follows the last part"
        self.now += self.pace()
        self.given.append((data, end))

    def hold_carrier(self, held: bool) -> None:
        self.is_paused = held
        if not held:
            self.bring()

    def broke_off(self, cause: str, stale: bool) -> None:
        assert self.loss is None, "that is said once"
        self.loss = cause, stale

    def bring(self) -> None:
        """One more part, where there is one and the carrier is not paused."""
        if self.content and not self.is_paused:
            self.take(*self.content.popleft())

    def turn(self) -> None:
        for _ in range(len(self.calls)):
            self.calls.popleft()()
        assert len(self.turns) == self._unread.waits, "who waits is in the queue, once"
        assert self.is_paused or not self._unread.waits

    def until_read(self) -> None:
        while self.calls:
            self.turn()

    @property
    def read(self) -> bytes:
        return b"".join(data for data, _ in self.given)


class HeldAtTimes(Reader):
    """Its client takes no more, or more again, while it is given something."""

    __slots__ = ("dice",)

    def __init__(self, dice: random.Random, content: list[tuple[bytes, bool]]) -> None:
        super().__init__(content, lambda: dice.choice((0.0, SHARE / 3, SHARE)))
        self.dice = dice

    def read_slice(self, data: bytes, end: bool) -> None:
        super().read_slice(data, end)
        if not end and self.dice.random() < 0.3:
            self.hold_source(self.dice.random() < 0.5)


def parts(dice: random.Random, has_end: bool) -> list[tuple[bytes, bool]]:
    found = [(dice.randbytes(dice.randrange(1, 40)), False) for _ in range(dice.randrange(1, 8))]
    return [*found, (dice.randbytes(dice.randrange(12)), True)] if has_end else found


@pytest.mark.parametrize("has_end", [True, False])
def test_content_arrives_in_order_and_whole_whatever_it_waits_for(has_end: bool, dice: random.Random) -> None:
    for _ in range(times(100)):
        content = parts(dice, has_end)
        reader = HeldAtTimes(dice, content)
        while reader.content:
            reader.bring()
            reader.turn()
            reader.hold_source(dice.random() < 0.3)
        if not has_end:
            reader.break_off(*LOST)
        reader.until_read()
        assert reader.read == b"".join(data for data, _ in content)
        assert all(len(data) <= Reader.slice_size for data, _ in reader.given)
        assert [end for _, end in reader.given].count(True) == has_end
        assert reader.loss == (None if has_end else LOST) and not reader.failures


def test_what_came_is_read_before_it_is_said_that_it_broke_off() -> None:
    reader = Reader([(b"x" * 30, False)])
    reader.bring()
    reader.break_off(*LOST)
    assert len(reader.read) < 30 and reader.loss is None
    reader.until_read()
    assert len(reader.read) == 30 and reader.loss == LOST


def test_content_that_waits_for_nothing_breaks_off_at_once() -> None:
    reader = Reader([(b"x", False)])
    reader.bring()
    reader.break_off(*LOST)
    assert reader.loss == LOST


@pytest.mark.parametrize("breaks_off", [False, True])
def test_what_was_dropped_is_not_read(breaks_off: bool) -> None:
    reader = Reader([(b"x" * 30, not breaks_off)])
    reader.bring()
    if breaks_off:
        reader.break_off(*LOST)
    before = reader.read
    reader._unread.drop()
    reader.until_read()
    assert reader.read == before and reader.loss is None and not reader._unread


def test_a_carrier_is_paused_while_content_waits_and_while_its_client_takes_no_more() -> None:
    reader = Reader([(b"x" * 30, False), (b"y", True)])
    reader.bring()
    assert reader.is_paused
    reader.hold_source(True)
    reader.until_read()
    assert reader.is_paused and reader.read == b"x" * 30
    reader.hold_source(False)
    reader.until_read()
    assert not reader.is_paused and reader.read == b"x" * 30 + b"y"


def test_steps_of_what_is_here_whole_are_taken_turn_by_turn() -> None:
    reader, done = Reader([]), list[int]()

    def steps() -> Iterator[None]:
        for number in range(3):
            reader.now += SHARE
            done.append(number)
            yield

    reader.do(steps(), reader.turns.has_time())
    assert done == [0] and reader._unread.waits
    reader.turn()
    assert done == [0, 1]
    reader.until_read()
    assert done == [0, 1, 2] and not reader._unread.waits


def test_a_bug_of_a_reader_in_a_later_turn_ends_in_an_answer() -> None:
    reader = Reader([(b"x" * 30, True)])
    reader.bring()

    def broken() -> float:
        raise RuntimeError("planted")

    reader.pace = broken
    reader.until_read()
    assert [str(each) for each in reader.failures] == ["planted"] and not len(reader.turns)
