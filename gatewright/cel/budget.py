"""What one evaluation may cost: steps, bytes built, time. Generated code and builders charge; the rest is free.

A budget is a list of three numbers, made by the evaluation that needs one: steps so far, bytes so far, and the time at
which it must be over (0 until the first charge). A step is one pass through a small loop body, or some 64 bytes of text
looked at by a builder or a pattern that was not known before.
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


def steps(budget: Budget, count: float) -> None:
    """Add steps. Raises OverBudget beyond MAX_STEPS, or when MAX_SECONDS have passed since the first charge."""
    budget[0] += count
    if budget[0] > MAX_STEPS:
        raise OverBudget(f"more than {MAX_STEPS:,} steps")
    _look_at_clock(budget)


def built(budget: Budget, size: int) -> None:
    """Add bytes built (and the steps to build them). Raises OverBudget beyond MAX_BUILT."""
    budget[1] += size
    if budget[1] > MAX_BUILT:
        raise OverBudget(f"more than {MAX_BUILT:,} bytes built")
    steps(budget, size / 1024)


def _look_at_clock(budget: Budget) -> None:
    now = monotonic()
    if not budget[2]:
        budget[2] = now + MAX_SECONDS
    elif now > budget[2]:
        raise OverBudget(f"more than {MAX_SECONDS * 1000:.0f} ms")
