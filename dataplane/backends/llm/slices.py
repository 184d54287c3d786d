"""An answer that is read costs many times what its bytes cost, so it is read in turns (`chain/slices`): a whole one
when a turn has time for it, and piece by piece where it is large, a stream slice by slice. What waits is held, and a
provider that sends a stream is not read meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.asking import Asking
from dataplane.chain.slices import ReadsInTurns, Unread
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.llm.pieces import Steps

SLICE: Final = 8_192
"""Bytes of a stream between two looks at the time, where each of its events is read."""


class InTurns(Asking, ReadsInTurns, ABC):
    """A subclass says what becomes of an answer that is here whole (`read_kept`), and of a slice of a stream
    (`read_slice`). It gives what comes of a stream to `stream_content`."""

    __slots__ = ("_unread",)

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._unread = Unread()

    @abstractmethod
    def read_kept(self) -> Steps[None]:
        """An answer that is here whole: read it, and give it on. A small one has no pause."""

    @abstractmethod
    def is_small(self) -> bool:
        """It is one piece."""

    @abstractmethod
    def may_wait(self) -> bool:
        """Its last part takes memory of the worker from now on, as those before do. False: there is none."""

    # --- what comes

    def kept_whole(self) -> None:
        """All of an answer is here."""
        self.up = None
        turns = self._x.context.turns
        has_time = turns.has_time()
        if (has_time and self.is_small()) or not self.may_wait():
            at_once(self.read_kept())
            turns.has_gone_on(*self._x.makers())
        else:
            self.do(self.read_kept(), has_time)

    def stream_content(self, data: bytes, end: bool) -> None:
        """More of the stream."""
        if end:
            self.up = None
        self.take(data, end)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        if self._unread.waits:
            self.up = None
        self.break_off(cause, stale)

    def broke_off(self, cause: str, stale: bool) -> None:
        super().upstream_lost(cause, stale)

    def hold_carrier(self, held: bool) -> None:
        super().hold(held)

    # --- the client, and the end

    def hold(self, held: bool) -> None:
        self.hold_source(held)

    def over(self) -> None:
        self._unread.drop()  # what was not read is lost with the rest
        super().over()

    def has_more(self) -> bool:
        """The answer is not all read."""
        return self._unread.waits or self.up is not None
