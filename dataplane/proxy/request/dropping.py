"""What still comes of a request's content that is no longer needed is read, and dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange


class _Dropping:
    """`active.Inlet`. A step made another body before the request's own had come whole: what still comes of that is not
    used."""

    __slots__ = ()

    def received(self, x: ActiveExchange, data: bytes, end: bool, lines: bytes = b"") -> None:
        if end:
            x.request_done = True

    def pause(self, x: ActiveExchange) -> None:
        x.down.pause()

    def resume(self, x: ActiveExchange) -> None:
        x.down.resume()

    def leave(self, x: ActiveExchange) -> None:
        """It holds nothing."""


DROPPING: Final = _Dropping()
