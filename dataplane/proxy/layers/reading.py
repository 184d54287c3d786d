"""A layer that reads the content of an answer as it passes, in turns (`chain/slices`): reading costs many times what
passing does.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING

from dataplane.chain.slices import ReadsInTurns, Unread
from dataplane.proxy.layers.layer import Layer

if TYPE_CHECKING:
    from dataplane.carriers import Sleeper, Upstream
    from dataplane.proxy.active import ActiveExchange


class ReadingLayer(Layer, ReadsInTurns, ABC):
    """A subclass gives what is to be read to `take`, and gets it back in slices (`read_slice`)."""

    __slots__ = ("_is_over", "_unread")
    slice_size = 32_768

    def __init__(self, x: ActiveExchange, up: Upstream) -> None:
        super().__init__(x, up)
        self._unread = Unread()
        self._is_over = False
        """The carrier has no more, or was let go: it may carry another exchange."""

    def take(self, data: bytes, end: bool) -> None:
        self._is_over = self._is_over or end
        super().take(data, end)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self._is_over = True
        self.break_off(cause, stale)

    def broke_off(self, cause: str, stale: bool) -> None:
        super().upstream_lost(cause, stale)

    def hold_carrier(self, held: bool) -> None:
        if self._is_over:
            return
        if held:
            self._up.pause()
        else:
            self._up.resume()

    # --- from the exchange

    def pause(self) -> None:
        self.hold_source(True)

    def resume(self) -> None:
        self.hold_source(False)

    def reset(self) -> None:
        if self._let_go():
            self._up.reset()

    def discard(self) -> Sleeper | None:
        return self._up.discard() if self._let_go() else None

    def _let_go(self) -> bool:
        """Nothing of the answer is wanted any more. Whether the carrier still has to hear that."""
        self._unread.drop()
        was_over, self._is_over = self._is_over, True
        return not was_over
