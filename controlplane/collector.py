"""Python's cycle collector, kept from looking at the same objects again and again.

Used by `app` and `turns`. What a controller holds of 10,000 routes is more than a million objects, which live until
their route is edited and are freed without the collector, because none of them is part of a cycle. A full collection
would look at all of them and hold the event loop for as much as a second. So what has survived a full collection is set
aside: the next one looks only at what came since, some milliseconds' worth; long jobs call `after_slice`. The price:
a cycle that was alive then and falls apart later (a stream of a proxy leaves some eighty small objects) is not found.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

FULL_AFTER = 3
"""Collections of the middle generation before a full one: few, so that a full one finds little to look at."""


@contextlib.contextmanager
def paced() -> Iterator[None]:
    """Sets aside what full collections leave, until the block ends."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, FULL_AFTER)
    gc.callbacks.append(_set_aside)
    try:
        yield
    finally:
        gc.callbacks.remove(_set_aside)
        gc.set_threshold(young, middle, old)
        gc.unfreeze()


def after_slice() -> None:
    """Looks at what a slice of a long job has made.

    Python counts what was made less what was freed: what a job makes that replaces ten thousand values by others would
    be looked at all at once.
    """
    if gc.isenabled():
        gc.collect(1)


def _set_aside(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
