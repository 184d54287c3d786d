"""A layer that reads the content of an answer as it passes. Reading costs many times what passing does, so it is done
in the share of a turn that all work of unknown length has (`net/turns`), slice by slice; the carrier is held meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Final

from dataplane.proxy.layers.layer import Layer

if TYPE_CHECKING:
    from dataplane.carriers import Sleeper, Upstream
    from dataplane.proxy.active import ActiveExchange

SLICE: Final = 32_768
"""Bytes that are read between two looks at the time."""


class ReadingLayer(Layer, ABC):
    """A subclass gives what is to be read to `take`, and gets it back in slices (`read`)."""

    __slots__ = ("_is_held", "_is_over", "_loss", "_slices", "_waits")

    def __init__(self, x: ActiveExchange, up: Upstream) -> None:
        super().__init__(x, up)
        self._slices = deque[tuple[bytes, bool]]()
        """What has come and is not read; whether nothing follows."""
        self._loss: tuple[str, bool] | None = None
        """How the answer broke off behind it."""
        self._waits = False
        """For a turn that has time."""
        self._is_held = False
        """The exchange takes no more for now."""
        self._is_over = False
        """The carrier has no more, or was let go: it may carry another exchange."""

    @abstractmethod
    def read(self, data: bytes, end: bool) -> None:
        """Read it, and pass it on. `end`: nothing follows."""

    def take(self, data: bytes, end: bool) -> None:
        """More of the answer."""
        self._is_over = self._is_over or end
        self._slices.append((data, end))
        if not self._waits:
            self._go_on(False)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self._is_over = True
        if self._waits:
            self._loss = cause, stale  # the client gets what came before
        else:
            self.lost(cause, stale)

    def lost(self, cause: str, stale: bool) -> None:
        """All that came is read, and it broke off."""
        super().upstream_lost(cause, stale)

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: this turn has time."""
        self._waits = False
        if not self._slices:
            return  # it was let go
        try:
            self._go_on(True)
        except Exception as error:  # a bug in Gatewright must end in an answer
            self._x.failed(error)
            return
        if self._waits:
            return
        loss, self._loss = self._loss, None
        if loss is not None:
            self.lost(*loss)
        elif not self._is_over and not self._is_held:
            self._up.resume()

    def _go_on(self, has_time: bool) -> None:
        """Read slices while there is time. `has_time`: for the first of them, however little is left."""
        turns, slices = self._x.context.turns, self._slices
        while slices:
            if not has_time and not turns.has_time():
                self._wait()
                return
            has_time = False
            data, end = slices.popleft()
            if len(data) > SLICE:
                slices.appendleft((data[SLICE:], end))
                data, end = data[:SLICE], False
            self.read(data, end)
        turns.has_gone_on(*self._x.makers())

    def _wait(self) -> None:
        self._waits = True
        if not self._is_over:
            self._up.pause()
        self._x.context.turns.add(self, self._x.makers()[0])

    # --- from the exchange

    def pause(self) -> None:
        self._is_held = True
        if not self._is_over:
            self._up.pause()

    def resume(self) -> None:
        self._is_held = False
        if not self._is_over and not self._waits:
            self._up.resume()

    def reset(self) -> None:
        if self._let_go():
            self._up.reset()

    def discard(self) -> Sleeper | None:
        return self._up.discard() if self._let_go() else None

    def _let_go(self) -> bool:
        """Nothing of the answer is wanted any more. Whether the carrier still has to hear that."""
        self._slices.clear()
        self._loss = None
        was_over, self._is_over = self._is_over, True
        return not was_over
