"""A stream of which every event is read, and written in another way: that costs many times what its bytes cost, so a
provider that sends much at once gets a share of each turn (`net/turns`), and is not read meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.reading import Reading

if TYPE_CHECKING:
    from dataplane.chain.calls import CallFailed

SLICE: Final = 8_192
"""Bytes of a stream between two looks at the time."""


class InTurns(Reading, ABC):
    """A subclass says what becomes of a slice (`slice_of_stream`), and gives what comes to `stream_content`."""

    __slots__ = ("_ends", "_is_held", "_left", "_waits")

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._left = bytearray()
        """What has come and is not read."""
        self._ends = False
        """Nothing follows it."""
        self._waits = False
        """For the next turn."""
        self._is_held = False
        """The client takes no more for now."""

    @abstractmethod
    def slice_of_stream(self, data: bytes, end: bool) -> None:
        """Read it, and give on what comes of it. `end`: nothing follows."""

    def stream_content(self, data: bytes, end: bool) -> None:
        """More of the stream."""
        if not self._waits and len(data) <= SLICE:
            self.slice_of_stream(data, end)
            return
        self._left += data
        if end:
            self._ends, self.up = True, None
        if not self._waits:
            self._go_on()

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self._waits = False
        if self.is_over:
            self._left.clear()
            return
        self._go_on()
        if not self._waits and not self._is_held:
            super().hold(False)

    def hold(self, held: bool) -> None:
        self._is_held = held
        if not self._waits:
            super().hold(held)

    def fail(self, error: CallFailed) -> None:
        self._left.clear()  # what was not read is lost with the rest
        super().fail(error)

    def _has_more(self) -> bool:
        return bool(self._left) or super()._has_more()

    def _go_on(self) -> None:
        turns = self._x.context.turns
        turns.begin()
        left = self._left
        while left or self._ends:
            data = bytes(left[:SLICE])
            del left[:SLICE]
            is_last = self._ends and not left
            self._ends = self._ends and not is_last
            self.slice_of_stream(data, is_last)
            if is_last or self.is_over:
                return
            if left and turns.is_spent():
                self._waits = True
                super().hold(True)
                turns.add(self)
                return
