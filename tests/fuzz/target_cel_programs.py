"""Target `cel_programs`: expressions made by a grammar from the bytes, and evaluated.

Promises: nothing but CelError comes out of an evaluation, in bounded time, with a place in the text; the quick plan,
the careful plan and the plan that knows no types agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from time import thread_time
from typing import Any, TypeVar

from gatewright.cel import budget
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.types import DYN
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require
from tests.oracles import typed
from tests.oracles.plans import alike, all_outcomes
from tests.unit.cel import generate

T = TypeVar("T")
DECLARED = Environment(typed.DECLARED)
UNDECLARED = Environment([Field(name, DYN) for name in typed.DECLARED])
SECONDS = 5.0
"""Of CPU for all three evaluations, instrumented. The budget's own limit is lifted: plans would end anywhere."""

SEEDS = (
    b"\x00",
    bytes(range(64)),
    bytes(range(255, 0, -3)),
    b"\x01\x05\x17\x2a\x03" * 12,
    b"\x02\x99\x31\x77\x04\x12" * 10,
    b"\x03\xff\x00\x80" * 16,
)
LONGEST = 160


class Drawn(Random):
    """The choices of a generator, read from the bytes."""

    def __new__(cls, dice: Dice) -> Drawn:
        return super().__new__(cls)

    def __init__(self, dice: Dice) -> None:
        super().__init__(0)
        self.dice = dice

    def random(self) -> float:
        return self.dice.byte() / 256

    def choice(self, values: Sequence[T]) -> T:  # type: ignore[override]  # a sequence is all that is asked for
        return self.dice.one_of(values)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        low, high = (0, start) if stop is None else (start, stop)
        return low + int.from_bytes(bytes((self.dice.byte(), self.dice.byte())), "big") % (high - low)


def program(data: bytes) -> tuple[str, Environment, Environment, Values]:
    """The expression of the bytes: sensible or not, with its environments and its values."""
    dice = Dice(data)
    kind, depth = divmod(dice.byte(), 4)
    drawn = Drawn(dice)
    if kind % 2:
        wanted = dice.one_of(list(typed.FULL))
        text = typed.expression(drawn, wanted, depth + 1, typed.FULL, set())
        return text, DECLARED, UNDECLARED, Values(typed.context(drawn))
    return generate.expression(drawn, depth + 1), generate.TYPED, generate.UNTYPED, generate.CONTEXT


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    text, known, unknown, context = program(data)
    start = thread_time()
    with no_clock():
        quick, *others = all_outcomes(text, known, unknown, context)
    seconds = thread_time() - start
    require(seconds < SECONDS, f"{text} took {seconds:.1f} s")
    for other in others:
        require(alike(quick, other), f"{text}: {quick!r}, another plan gives {other!r}")


@contextmanager
def no_clock() -> Iterator[None]:
    limit: Any = budget.MAX_SECONDS
    budget.MAX_SECONDS = 600.0
    try:
        yield
    finally:
        budget.MAX_SECONDS = limit
