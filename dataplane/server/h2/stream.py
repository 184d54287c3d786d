"""One stream of a downstream HTTP/2 connection: it carries one exchange (`carriers.Downstream`).

It frames what the exchange says, through the connection's codec, and gives it what comes on its stream. What wakes it,
and what ends all streams at once, is the connection's (`connection`, `watch`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dataplane.http.connect_rules import CONNECT
from dataplane.http.h2.errors import CANCEL, CONNECT_ERROR, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR
from dataplane.http.h2.lines import BadLine
from dataplane.http.h2.states import CLOSED, RECEIVING
from dataplane.http.heads import Head
from dataplane.http.messages import NO_NAMES
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.ends import NO_CARRIER
from dataplane.proxy.response.tunnel import ACCEPT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Upstream
    from dataplane.http.h2.connection import Connection as Codec
    from dataplane.http.h2.streams import Stream
    from dataplane.proxy.context import Context
    from dataplane.proxy.exchange import CarriedExchange

log = logging.getLogger("dataplane.server")

_OK = 200
_REDIRECTION = 300
_BAD_GATEWAY = 502
_EMPTY = b"\r\ncontent-length: 0\r\n"

_CODES = {
    "BadRequest": PROTOCOL_ERROR,
    "RequestTimeout": CANCEL,
    "RequestDeadline": CANCEL,
    "UpstreamTimeout": CANCEL,
}
"""Reason code of a broken off answer -> error code of the RST_STREAM; others are INTERNAL_ERROR (RFC 9113 7)."""


class Carries(Protocol):
    """Whose stream it is (`connection.Connection`)."""

    context: Context
    codec: Codec
    broken: list[StreamCarrier]
    """Whose answers could not be said: their exchanges end when the connection is woken."""
    is_gathered: bool
    """Its flush is asked for."""
    is_blocked: bool
    """The transport takes no more."""

    def arm(self, moment: float) -> None:
        """Be woken at `moment`, unless that is going to happen earlier anyway."""

    def drain(self) -> None:
        """Take no more streams, end when the present ones have (RFC 9113 6.8)."""

    def ended(self, now: float) -> None:
        """A stream, or its exchange, has ended."""

    def gave(self, size: int) -> None:
        """Content was given to the codec."""

    def write_soon(self) -> None:
        """The codec has something to write, it may be; at the end of the turn it is."""


class StreamCarrier:
    """Made by the connection for each request. `exchange` is None when that is over; the stream may still have to send
    what the client's windows did not take."""

    __slots__ = (
        "broken",
        "connection",
        "early",
        "early_end",
        "exchange",
        "has_content",
        "held",
        "holder",
        "is_blocked",
        "is_new",
        "is_paused",
        "is_tunnel",
        "may_buffer",
        "never_indexed",
        "never_indexed_answer",
        "owed",
        "progress",
        "progress_due",
        "stops",
        "stream",
        "upgrade",
    )

    def __init__(self, connection: Carries, stream: Stream) -> None:
        self.connection = connection
        self.stream = stream
        self.exchange: CarriedExchange | None = None
        self.has_content = False
        """The exchange takes what comes: content of the request, or of a tunnel."""
        self.held = 0
        """Bytes of the worker's memory (`link/pools.BodyMemory`) for content that waits in the codec: as many as waited
        at most since nothing did."""
        self.holder = ""
        """Whose they are: an address."""
        self.is_blocked = False
        """As `carriers.Downstream.is_blocked`: a window, or the socket, takes no more."""
        self.may_buffer = 1
        self.never_indexed = self.never_indexed_answer = NO_NAMES
        """Names of fields that may be in no table, of the request and of what is still to come of the response."""
        self.is_new = True
        """Nothing has come behind the head, and the exchange has not started."""
        self.is_paused = False
        """The exchange takes no more: what comes is not acknowledged, so that the client's window closes."""
        self.owed = 0
        """Bytes of content that the exchange has got while it was paused."""
        self.upgrade = False
        """A CONNECT, extended or not: a 2xx head would say that the tunnel stands (RFC 9113 8.5, RFC 8441 5)."""
        self.is_tunnel = False
        self.early = bytearray()
        """What a client sent into a tunnel that does not stand yet; not acknowledged, so bounded by the window."""
        self.early_end = False
        self.stops = False
        """The answer is given, the request not read whole: reset when the answer has left (RFC 9113 8.1)."""
        self.broken = ""
        """The answer could not be said in HTTP/2: the reason code that its exchange is to end with, soon."""
        self.progress = 0
        self.progress_due = NEVER
        """As of a connection of HTTP/1 (`watch`)."""

    # --- from the exchange (`carriers.Downstream`)

    def never_index(self, names: frozenset[bytes]) -> None:
        self.never_indexed_answer |= names

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        connection, x = self.connection, self.exchange
        assert x is not None  # it speaks
        if connection.context.draining:
            connection.drain()
        if self.upgrade and x.status < _REDIRECTION:
            self._refuse_upgrade(x)
            return
        try:
            connection.codec.send_response(self.stream, x.status, block, end and not first, self.never_indexed_answer)
        except BadLine as error:
            self._break(x, "UpstreamInvalid", str(error))
            return
        if first:
            self._give(connection, first, end)
        elif not connection.is_gathered:
            connection.write_soon()

    def take_back(self) -> bool:
        return False

    def content(self, data: bytes, end: bool) -> None:
        if not self.broken:
            self._give(self.connection, data, end)

    def _give(self, connection: Carries, data: bytes, end: bool) -> None:
        waiting = connection.codec.send_content(self.stream, data, end)
        connection.gave(len(data))
        if not waiting:
            if self.held:
                self._free()
            return
        if waiting > self.held and not self._hold(waiting - self.held):
            return
        if not end and not self.is_blocked:
            self.is_blocked = True
            if self.exchange is not None:
                self.exchange.downstream_blocked()

    def _hold(self, more: int) -> bool:
        """Take memory for what the client's windows do not take; without any the answer is broken off."""
        x = self.exchange
        if x is None:
            return True
        if not self.held:
            self.holder = x.peer
        if self.connection.context.body_memory.keep(more, self.holder):
            self.held += more
            return True
        self._break(x, "TooManyResponses", "the client does not take them, and no memory is free (maxHeldBytes)")
        return False

    def _free(self) -> None:
        """Nothing waits any more, or it is no longer needed."""
        held, self.held = self.held, 0
        self.connection.context.body_memory.free(held, self.holder)

    def trailers(self, lines: bytes) -> None:
        if self.broken:
            return
        connection = self.connection
        try:
            connection.codec.send_trailers(self.stream, b"\r\n" + lines, self.never_indexed_answer)
        except BadLine as error:
            log.error("trailers cannot be sent to a client: %s", error)
            connection.codec.reset(self.stream, INTERNAL_ERROR)
            self._free()
        if not connection.is_gathered:
            connection.write_soon()

    def interim(self, line: bytes, block: bytes) -> None:
        never_indexed, self.never_indexed_answer = self.never_indexed_answer, NO_NAMES
        try:
            self.connection.codec.send_interim(self.stream, int(line[9:12]), block, never_indexed)
        except BadLine:  # it is optional
            log.debug("an interim response is left out: it is not well-formed")
        self.connection.write_soon()

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        """RFC 9113 8.5, RFC 8441 5: the tunnel stands. What HTTP/1 proves its handshake with is not said here."""
        x, connection = self.exchange, self.connection
        assert x is not None  # it speaks
        head = Head(block)
        head.remove(ACCEPT)
        try:
            connection.codec.send_response(self.stream, _OK, head.block, False, self.never_indexed_answer)
        except BadLine as error:
            self._break(x, "UpstreamInvalid", str(error))
            return
        self.is_tunnel = self.has_content = True
        if first:
            self.content(first, False)
        early, self.early = self.early, bytearray()
        if early or self.early_end:  # the client did not wait
            self._pass(x, bytes(early), self.early_end)
        connection.write_soon()

    def invite(self) -> None:
        self.connection.codec.send_interim(self.stream, 100, b"\r\n")
        self.connection.write_soon()

    def over(self, now: float) -> None:
        self.exchange = None
        connection, stream = self.connection, self.stream
        codec = connection.codec
        if self.is_tunnel and stream.sends:  # the endpoint has closed both directions
            codec.send_content(stream, b"", True)
        if stream.state in RECEIVING:
            if stream.waiting:
                self.stops = True
            else:
                codec.reset(stream, NO_ERROR)
        if self.owed or self.early:
            codec.acknowledge(stream, self.owed + len(self.early))
            self.owed = 0
            self.early.clear()
        self.has_content = False
        if stream.state == CLOSED:
            stream.owner = None
            if self.held:
                self._free()
        else:  # what it still has to send has its time
            self.progress, self.progress_due = -1, now + connection.context.limits.idle_timeout
        connection.ended(now)

    def reset(self, cause: str) -> None:
        code = self._code(cause)
        self.exchange = None
        self.stream.owner = None
        self._free()
        connection = self.connection
        connection.codec.reset(self.stream, code)
        connection.ended(connection.context.clock())

    def _code(self, cause: str) -> int:
        """The error code of a broken off answer. RFC 9113 8.5 and RFC 8441 5 have one each for a tunnel."""
        if not self.is_tunnel:
            return _CODES.get(cause, INTERNAL_ERROR)
        return CONNECT_ERROR if self.exchange is not None and self.exchange.method == CONNECT else CANCEL

    def close_after(self) -> None:
        """Frames separate requests."""

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        owed, self.owed = self.owed, 0
        if owed:
            connection = self.connection
            connection.codec.acknowledge(self.stream, owed)
            if not connection.is_gathered:
                connection.write_soon()

    def arm(self, moment: float) -> None:
        self.connection.arm(moment)

    def join(self, up: Upstream) -> None:
        """Frames of one connection mean nothing on another."""

    # --- from the connection

    def receive(self, data: bytes, end: bool) -> None:
        """Content came."""
        x = self.exchange
        if x is None or not self.has_content:
            if x is not None and self.upgrade and not self.broken:
                self.early += data
                self.early_end = end
                return
            if data:
                self.connection.codec.acknowledge(self.stream, len(data))
            return
        self._pass(x, data, end)

    def _pass(self, x: CarriedExchange, data: bytes, end: bool) -> None:
        size = len(data)
        x.downstream_content(data, end)
        if self.is_paused and self.exchange is x:
            self.owed += size
        elif size:
            self.connection.codec.acknowledge(self.stream, size)

    def drained(self) -> None:
        """All that was given has left."""
        self._free()
        if self.exchange is not None:
            if self.is_blocked and not self.connection.is_blocked:
                self.is_blocked = False
                self.exchange.downstream_drained()
            return
        if self.stops and not self.stream.closed:
            self.connection.codec.reset(self.stream, NO_ERROR)
        self.stream.owner = None
        self.connection.ended(self.connection.context.clock())

    def gone(self, reason: str, detail: str = "") -> None:
        """The stream is lost."""
        end = self.leave(reason, detail)
        if end is not None:
            end()

    def leave(self, reason: str, detail: str = "") -> Callable[[], None] | None:
        """The stream is lost, and its exchange says nothing more. What is to be called soon, which ends that one."""
        self.stream.owner = None
        self._free()
        x, self.exchange = self.exchange, None
        if x is None:
            return None
        x.down = NO_CARRIER
        if detail:
            x.detail = detail
        return partial(_end, x, reason)

    # --- answers that cannot be said

    def _refuse_upgrade(self, x: CarriedExchange) -> None:
        """The endpoint, or a step, answers 2xx without a switch: a client of HTTP/2 would take it for a tunnel."""
        self.connection.codec.send_response(self.stream, _BAD_GATEWAY, _EMPTY, True)
        x.status = _BAD_GATEWAY
        self._end_soon(x, "UpgradeFailed")

    def _break(self, x: CarriedExchange, reason: str, why: str) -> None:
        """A head has a line that is no header field, or there is no memory for content."""
        x.detail = why
        self.connection.codec.reset(self.stream, INTERNAL_ERROR)
        self._free()
        self._end_soon(x, reason)

    def _end_soon(self, x: CarriedExchange, reason: str) -> None:
        """End the exchange, but not now: it is about to say more (`carriers`, who calls last)."""
        self.broken = x.reason = reason
        connection = self.connection
        connection.broken.append(self)
        connection.arm(connection.context.clock())
        connection.write_soon()

    def __repr__(self) -> str:
        return f"StreamCarrier({self.stream})"


def _end(x: CarriedExchange, reason: str) -> None:
    if not x.ended:  # by its endpoint meanwhile
        x.downstream_gone(reason)
