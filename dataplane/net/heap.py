"""Memory that a process does not use any more goes back to the system.

The C library keeps what was freed for what may come: after a flood of large bodies that is as much as the flood took,
for as long as the process lives.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

SOON: Final = 5.0
"""Seconds after the bytes were let go: who held them has ended by then; it takes 20 ms for 200 MB."""

_trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""malloc_trim(3) of glibc; other libraries have none, and give back by themselves or not at all."""


class GivesBack:
    """`asked` is called when much was let go; what is free goes back soon, once for all that is let go meanwhile.
    `later` is the loop's `call_later`."""

    def __init__(self, later: Callable[[float, Callable[[], None]], Any]) -> None:  # Any: a timer, never cancelled
        self._later = later
        self._is_asked = False

    def asked(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._later(SOON, self._give_back)

    def _give_back(self) -> None:
        self._is_asked = False
        if _trim is not None:
            _trim(0)
