"""A connection to an endpoint whose bytes are no requests: its own end of it. What passes is its holder's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.upstream.settings import Client


class Holder(Protocol):
    """Whose connection it is."""

    def raw_ready(self, end: RawEnd) -> None:
        """The connection is open."""

    def raw_failed(self, cause: str, detail: str) -> None:
        """There is none: "refused", "forbidden", "dns", "endpoints", "limit", "connect" or "tunnel", as in
        `endpoint.Lease`."""

    def raw_received(self, data: bytes) -> None: ...

    def raw_ended(self) -> None:
        """The endpoint sends no more; it may still read."""

    def raw_lost(self, error: Exception | None) -> None:
        """The connection is gone, whichever end closed it."""

    def raw_blocked(self) -> None:
        """It takes no more now."""

    def raw_drained(self) -> None:
        """It takes more."""


class RawEnd:
    """An endpoint's connection: asyncio's protocol by shape."""

    __slots__ = ("_closed", "_holder", "_keeper", "client", "is_open", "reset", "transport")

    def __init__(self, holder: Holder, closed: Callable[[RawEnd], None], client: Client | None = None) -> None:
        """`closed(end)`: an opened connection is gone. `client`: for whom it is."""
        self.client = client
        self._holder: Holder | None = holder
        self._closed = closed
        self._keeper: Holder | None = None
        """Who ends what does not end by itself: it lives until this connection is gone."""
        self.reset: Callable[[Any], None] = _abort
        """Closes a transport so that its peer meets a reset; who opens the connection knows how."""
        self.transport: Any = None
        self.is_open = False
        """It was given to its holder."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.pause_reading()  # until somebody takes what comes

    def opened(self) -> None:
        """Called by the connector when it has counted the connection."""
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._holder is not None:
            self._holder.raw_received(data)

    def eof_received(self) -> bool:
        if self._holder is None:
            return False
        self._holder.raw_ended()
        return self._holder is not None

    def pause_writing(self) -> None:
        if self._holder is not None:
            self._holder.raw_blocked()

    def resume_writing(self) -> None:
        if self._holder is not None:
            self._holder.raw_drained()

    def connection_lost(self, error: Exception | None) -> None:
        holder, self._holder = self._holder, None
        self._keeper = None
        closed, self._closed = self._closed, _ignored  # it knows the holder, which may know this end still
        if self.is_open:
            closed(self)
            if holder is not None:
                holder.raw_lost(error)

    @property
    def is_gone(self) -> bool:
        """It was closed before it was given to its holder."""
        return self.transport is None or self.transport.is_closing()

    def leave(self, in_order: bool) -> None:
        """The holder is done with it. `in_order`: what was written is sent; otherwise the peer meets a reset."""
        holder, self._holder = self._holder, None
        if self.transport is not None:
            if in_order and not self.transport.is_closing():
                self._keeper = holder
                self.transport.close()
            else:
                self.reset(self.transport)


def _ignored(end: RawEnd) -> None:
    """In place of what was called when the end is gone."""


def _abort(transport: Any) -> None:
    transport.abort()
