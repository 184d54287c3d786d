"""Python's garbage collector in a process that holds a big table: young objects are looked at, the table never is.

Used by the worker for the process, by the applier for each state. Nothing here frees anything: tables hold no cycles,
so counting references is enough for them; the collector is for the cycles that connections and tasks leave behind.
"""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 2_500, 2, 1_000_000_000
"""At most 10,000 young objects are looked at at once, the old ones never: a full collection over 100,000 routes would
stop traffic for half a second."""

PATIENCE = 8
"""Slices from which a state is applied without collection: looking at what it makes (0.5 us for each object) would hold
the loop for 3 to 20 ms, to find nothing. Short states go without this, so that what is young meanwhile stays young."""


def configure() -> None:
    """Set up this process. What it has loaded is never looked at: in a process that was forked, that would copy it."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    gc.enable()


class Pause:
    """No collection from the PATIENCE-th slice of a state to its end, and none of what was made until then: it counts
    as old without having been looked at."""

    __slots__ = ("_is_on", "_slices")

    def __init__(self) -> None:
        self._slices = 0
        self._is_on = False

    def slice_ended(self) -> None:
        self._slices += 1
        if self._slices == PATIENCE and gc.isenabled():
            self._is_on = True
            gc.disable()

    def end(self) -> None:
        """As before the state. It may go on after this, and is new then."""
        if self._is_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
        self._is_on, self._slices = False, 0

    def __repr__(self) -> str:
        return f"Pause({self._slices} slices, {'on' if self._is_on else 'off'})"
