"""What a piece of work costs, counted: the same on every machine, busy or not, traced or not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """Calls of functions, Python's and C's, while `work` runs in this thread. Not those of a collection of garbage,
    which comes when it is due and calls whoever wants to know of it. A loop inside one C function is one call: for work
    that must not grow with what is there, compare times at two sizes instead."""
    count = 0

    def noted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, was_enabled = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(noted)
    try:
        work()
    finally:
        sys.setprofile(before)
        if was_enabled:
            gc.enable()
    return count
