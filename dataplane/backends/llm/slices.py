"""An answer that is read costs many times what its bytes cost, so it is read in the share of a turn that all work of
unknown length has (`net/turns`): a whole one when a turn has time for it, and piece by piece where it is large, a
stream slice by slice. What waits is held, and a provider that sends a stream is not read meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dataplane.backends.llm.asking import Asking
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.chain.calls import CallFailed
    from dataplane.llm.pieces import Steps

SLICE: Final = 8_192
"""Bytes of a stream between two looks at the time, where each of its events is read."""


class InTurns(Asking, ABC):
    """A subclass says what becomes of an answer that is here whole (`read_kept`), and of a slice of a stream
    (`slice_of_stream`). It gives what comes of a stream to `stream_content`."""

    __slots__ = ("_ends", "_is_held", "_left", "_loss", "_steps", "_waits")
    slice_size: ClassVar[int] = SLICE
    """Bytes of a stream that are read at a time."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._left = bytearray()
        """Of a stream, what has come and is not read."""
        self._ends = False
        """Nothing follows it."""
        self._loss: tuple[str, bool] | None = None
        """How the stream broke off behind it, as `carriers.Consumer.upstream_lost` has it."""
        self._steps: Steps[None] | None = None
        """Of an answer that is here whole, and not all read."""
        self._waits = False
        """For a turn that has time."""
        self._is_held = False
        """The client takes no more for now."""

    @abstractmethod
    def read_kept(self) -> Steps[None]:
        """An answer that is here whole: read it, and give it on. A small one has no pause."""

    @abstractmethod
    def is_small(self) -> bool:
        """It is one piece."""

    @abstractmethod
    def may_wait(self) -> bool:
        """Its last part takes memory of the worker from now on, as those before do. False: there is none."""

    @abstractmethod
    def slice_of_stream(self, data: bytes, end: bool) -> None:
        """Read it, and give on what comes of it. `end`: nothing follows."""

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
            self._steps = self.read_kept()
            self._read_on(has_time)

    def _read_on(self, has_time: bool) -> None:
        """Do steps while there is time. `has_time`: for the first of them."""
        turns, steps = self._x.context.turns, self._steps
        assert steps is not None  # whose they are
        while has_time or turns.has_time():
            has_time = False
            try:
                next(steps)
            except StopIteration:
                self._steps = None
                turns.has_gone_on(*self._x.makers())
                return
        self._wait()

    def stream_content(self, data: bytes, end: bool) -> None:
        """More of the stream."""
        if end:
            self.up = None
        if self._waits:
            self._left += data
            self._ends = end
            return
        if len(data) <= self.slice_size and self._x.context.turns.has_time():
            self.slice_of_stream(data, end)
            self._x.context.turns.has_gone_on(*self._x.makers())
            return
        self._left += data
        self._ends = end
        self._go_on(False)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        if self._waits and self.up is not None:
            self.up, self._loss = None, (cause, stale)  # the client gets what came before
        else:
            super().upstream_lost(cause, stale)

    # --- whose turn has come

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: this turn has time."""
        self._waits = False
        if self.is_over:
            self._left.clear()
            self._steps = None
            return
        try:
            self._read_what_waits()
        except Exception as error:  # a bug in Gatewright must end in an answer
            self._x.failed(error)

    def _read_what_waits(self) -> None:
        if self._steps is not None:
            self._read_on(True)
            return
        self._go_on(True)
        if self._waits or self.is_over:
            return
        loss, self._loss = self._loss, None
        if loss is not None:
            super().upstream_lost(*loss)
        elif not self._is_held:
            super().hold(False)

    def _go_on(self, has_time: bool) -> None:
        """Read slices while there is time. `has_time`: for the first of them, however little is left."""
        turns, left = self._x.context.turns, self._left
        while left or self._ends:
            if not has_time and not turns.has_time():
                self._wait()
                return
            has_time = False
            data = bytes(left[: self.slice_size])
            del left[: self.slice_size]
            is_last = self._ends and not left
            self._ends = self._ends and not is_last
            self.slice_of_stream(data, is_last)
            if self.is_over:
                break
        turns.has_gone_on(*self._x.makers())

    def _wait(self) -> None:
        self._waits = True
        super().hold(True)
        self._x.context.turns.add(self, self._x.makers()[0])

    # --- the client, and the end

    def hold(self, held: bool) -> None:
        self._is_held = held
        if not self._waits:
            super().hold(held)

    def fail(self, error: CallFailed) -> None:
        self._left.clear()  # what was not read is lost with the rest
        super().fail(error)

    def has_more(self) -> bool:
        """The answer is not all read."""
        return self._waits or self.up is not None
