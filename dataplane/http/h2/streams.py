"""What one stream is: its state, its windows, and what waits to be sent. The codec is the only one who writes here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.http.h2.states import CLOSED, HALF_CLOSED_REMOTE, IDLE, NAMES, OPEN, RECEIVING

if TYPE_CHECKING:
    from collections import deque

    from dataplane.http.h2.hpack import Field


class Stream:
    """The handle that events and calls share. `owner` is the carrier's; what else has no underscore is for reading."""

    __slots__ = (
        "discards",
        "expected",
        "head_received",
        "head_sent",
        "id",
        "interims",
        "owed",
        "owner",
        "queued",
        "receive_window",
        "send_window",
        "state",
        "to_head",
        "tunnel",
        "unread",
        "waiting",
        "waiting_end",
        "waiting_parts",
        "waiting_trailers",
    )

    def __init__(self, number: int, send_window: int, receive_window: int) -> None:
        self.id = number
        self.owner: Any = None  # the carrier's type is not known here
        self.state = IDLE
        self.head_received = False
        """The request's, or the final response's."""
        self.head_sent = False
        self.to_head = False
        """Client: the request is a HEAD, so a content-length announces nothing (RFC 9110 8.6)."""
        self.tunnel = False
        """CONNECT: content-length announces nothing (RFC 9110 9.3.6)."""
        self.interims = 0
        self.discards = False
        """Content is given back unreported."""
        self.expected = -1
        """Bytes of content that are still to come by content-length; -1: nothing was announced."""

        # flow control (RFC 9113 5.2, 6.9)
        self.send_window = send_window
        """May be negative, after the peer has lowered SETTINGS_INITIAL_WINDOW_SIZE."""
        self.receive_window = receive_window
        self.unread = 0
        """Bytes received that the consumer has not acknowledged."""
        self.owed = 0
        """Bytes acknowledged for which no WINDOW_UPDATE has been sent yet."""

        # what waits for a window
        self.waiting = 0
        """Bytes in `waiting_parts`."""
        self.waiting_parts: deque[bytes | memoryview] | None = None
        """Made when something waits: of most streams nothing does."""
        self.waiting_end = False
        self.waiting_trailers: list[Field] | None = None
        """Encoded when they leave: the order of blocks on the wire is the order of the encoder's table."""
        self.queued = False
        """It is in the connection's line of streams that may send."""

    @property
    def closed(self) -> bool:
        return self.state == CLOSED

    @property
    def receives(self) -> bool:
        """The peer may still send content on it."""
        return self.state in RECEIVING

    @property
    def sends(self) -> bool:
        """Content may still be given to it."""
        return self.state in (OPEN, HALF_CLOSED_REMOTE) and not self.waiting_end

    def __repr__(self) -> str:
        return f"Stream({self.id}, {NAMES[self.state]})"
