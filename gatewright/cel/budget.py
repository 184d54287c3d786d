"""What one evaluation may cost: steps, bytes built, time. Generated code and builders charge; the rest is free.

A budget is a list, made by the evaluation that needs one: steps so far, bytes built so far, the numbers of each at
which to look closer next, the times at which it must be over (`START`), and the context, with which evaluations may
share their time (`Shares`). Looking closer reads the clock, so it happens now and then only. The time that counts is
that of the thread: a machine that lets a process wait makes no expression fail. The thread's clock is slow to read, so
it is asked only where the other one says that time is up. A step is one pass through a small loop body, or some 64
bytes of text looked at by a builder or an unknown pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic, thread_time
from typing import Any, Protocol, TypeVar

from gatewright.cel.errors import OverBudget

MAX_STEPS = 100_000
"""Steps of one evaluation: passes through small loop bodies, or some 64 bytes of text that are looked at."""
MAX_BUILT = 10_000_000
"""Bytes that one evaluation may build."""
MAX_SECONDS = 0.020
"""Seconds of processor time that one evaluation may take, and all that share their time with it."""

T = TypeVar("T")
Budget = list[Any]  # numbers, and the context


class Shares(Protocol):
    """A context whose evaluations have their time together. One that has not these methods gives each its own."""

    def evaluations_end(self, now: float, seconds: float) -> float:
        """The thread's time at which evaluations must be over; now it is `now`, and one alone may take `seconds`."""

    def cut_off(self, error: OverBudget) -> Exception:
        """What to raise when that time has come."""


LARGE = 4096
"""Bytes: below this a single result is not worth counting, outside loops."""
PIECE = 4096
"""Items of a list that are looked at between two looks at the clock."""
STEP = 200
"""Nanoseconds of a step, where `MAX_STEPS` are `MAX_SECONDS`."""
FREE_PASSES = 64
"""So many passes of an outermost loop are not counted."""

STEPS, BUILT, LOOK_STEPS, LOOK_BUILT, END, END_OF_THREAD, CONTEXT = range(7)
EVERY_STEPS = 500
EVERY_BUILT = 50_000
"""Steps, or bytes built, between two looks at the clock."""
START = (0, 0, EVERY_STEPS, EVERY_BUILT, 0, 0, None)  # the times are 0 before the first look


def steps(budget: Budget, count: float) -> None:
    """Add steps. Raises OverBudget beyond MAX_STEPS, or when MAX_SECONDS have passed since the first look."""
    total = budget[STEPS] = budget[STEPS] + count
    if total > budget[LOOK_STEPS]:
        look(budget)


def built(budget: Budget, size: float) -> None:
    """Add bytes that are about to be built. Raises OverBudget beyond MAX_BUILT, or when time is up."""
    total = budget[BUILT] = budget[BUILT] + size
    if total > budget[LOOK_BUILT]:
        look(budget)


def pieces(budget: Budget, items: Sequence[T], each: float) -> Iterator[Sequence[T]]:
    """A list in pieces, so that the clock is looked at between them; `each` item costs so many steps."""
    for start in range(0, len(items), PIECE):
        piece = items[start : start + PIECE] if len(items) > PIECE else items
        steps(budget, len(piece) * each)
        yield piece


def uncut(budget: Budget, count: int, nanoseconds: float) -> None:
    """Charge for work that one call does, of so many parts, when there are many: it cannot be cut."""
    if count > LARGE:
        steps(budget, count * nanoseconds / STEP)


def look(budget: Budget) -> None:
    """Raise OverBudget if any limit is passed; else say when to look again."""
    now = monotonic()
    if not budget[END]:
        spent = thread_time()
        end = budget[END_OF_THREAD] = _end(budget[CONTEXT], spent)
        _keep_time(budget, now, end - spent)
    elif now > budget[END]:
        _keep_time(budget, now, budget[END_OF_THREAD] - thread_time())
    # Behind the time, so that an evaluation that is too large at its first look begins it for those after it.
    if budget[STEPS] > MAX_STEPS:
        raise OverBudget(f"more than {MAX_STEPS:,} steps")
    if budget[BUILT] > MAX_BUILT:
        raise OverBudget(f"more than {MAX_BUILT:,} bytes built")
    budget[LOOK_STEPS] = budget[STEPS] + EVERY_STEPS
    budget[LOOK_BUILT] = budget[BUILT] + EVERY_BUILT


def _end(context: Any, now: float) -> float:
    shared = getattr(context, "evaluations_end", None)
    return now + MAX_SECONDS if shared is None else shared(now, MAX_SECONDS)


def _keep_time(budget: Budget, now: float, left: float) -> None:
    """So many seconds of the thread are left."""
    if left <= 0:
        raise _cut_off(budget[CONTEXT])
    budget[END] = now + left


def _cut_off(context: Any) -> Exception:
    error = OverBudget(f"more than {MAX_SECONDS * 1000:.0f} ms")
    cut_off = getattr(context, "cut_off", None)
    made: Exception = error if cut_off is None else cut_off(error)
    return made
