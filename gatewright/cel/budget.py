"""What one evaluation may cost: steps, bytes built, time. Generated code and builders charge; the rest is free.

A budget is a list of four numbers, made by the evaluation that needs one: steps so far, bytes built so far, and the
numbers of each at which to look closer next (`START`). Looking closer reads the clock, so it happens now and then only.
A step is one pass through a small loop body, or some 64 bytes of text looked at by a builder or an unknown pattern.
"""

from __future__ import annotations

from time import monotonic

from gatewright.cel.errors import OverBudget

MAX_STEPS = 100_000
MAX_BUILT = 10_000_000
MAX_SECONDS = 0.020

Budget = list[float]
LARGE = 4096  # below this a single result is not worth counting, outside loops
FREE_PASSES = 64  # so many passes of an outermost loop are not counted

STEPS, BUILT, LOOK_STEPS, LOOK_BUILT, END = range(5)
EVERY_STEPS = 500
EVERY_BUILT = 50_000
START = (
    0,
    0,
    EVERY_STEPS,
    EVERY_BUILT,
    0,
)  # the last one is the time at which it must be over, 0 before the first look


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


def look(budget: Budget) -> None:
    """Raise OverBudget if any limit is passed; else say when to look again."""
    if budget[STEPS] > MAX_STEPS:
        raise OverBudget(f"more than {MAX_STEPS:,} steps")
    if budget[BUILT] > MAX_BUILT:
        raise OverBudget(f"more than {MAX_BUILT:,} bytes built")
    now = monotonic()
    if not budget[END]:
        budget[END] = now + MAX_SECONDS
    elif now > budget[END]:
        raise OverBudget(f"more than {MAX_SECONDS * 1000:.0f} ms")
    budget[LOOK_STEPS] = budget[STEPS] + EVERY_STEPS
    budget[LOOK_BUILT] = budget[BUILT] + EVERY_BUILT
