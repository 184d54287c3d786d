"""A connection to an endpoint as the upstream carrier of an exchange whose content passes as it is: that of a CONNECT.

It is opened before the client hears that its tunnel stands, so a failure is still an answer. Each direction ends by
itself; when both have, the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from dataplane.upstream.destinations import NOTHING, Named
from dataplane.upstream.raw import RawLease
from dataplane.upstream.raw_end import RawEnd

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Sleeper
    from dataplane.http.messages import Peer
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.lease import BackendPlan, Leases

LINGER: Final = 60.0
"""Seconds that an endpoint has to take what was written to it when the tunnel is over."""


class Opener(Protocol):
    """Who wants the tunnel."""

    def tunnel_opened(self) -> None: ...

    def tunnel_failed(self, cause: str, detail: str) -> None:
        """As `raw_end.Holder.raw_failed`."""


class EndpointTunnel:
    """`carriers.Upstream` towards the exchange, `raw_end.Holder` towards the connection."""

    __slots__ = ("__weakref__", "_consumer", "_end", "_got_end", "_lease", "_left", "_opener", "_sent_end", "_wake_at")
    is_shared = False

    def __init__(
        self,
        consumer: Consumer,
        opener: Opener,
        leases: Leases,
        closed: Callable[[], None],
        wake_at: Callable[[float, Sleeper], None],
        peer: Peer,
        named: Named = NOTHING,
    ) -> None:
        """`closed()`: an opened connection is gone. `wake_at(seconds from now, who)`. `peer`: the client;
        `named`: the host and port that it asks for."""
        self._consumer: Consumer | None = consumer
        self._opener: Opener | None = opener
        self._lease = RawLease(self, leases, closed, peer, named=named)
        self._wake_at = wake_at
        self._end: RawEnd | None = None
        self._left: RawEnd | None = None
        """What `_end` was, when the tunnel is over."""
        self._sent_end = self._got_end = False

    def open(self, plan: BackendPlan) -> None:
        """Choose an endpoint and connect to it."""
        self._lease.begin(plan)

    @property
    def endpoint(self) -> Endpoint | None:
        """In use, or last tried."""
        return self._lease.endpoint

    # --- from the exchange (`carriers.Upstream`)

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        raise RuntimeError("a tunnel carries no request")  # who opens one does not ask

    def content(self, data: bytes, end: bool) -> None:
        up = self._end
        if up is None:
            return
        if data:
            up.transport.write(data)
        if end:
            self._sent_end = True
            if self._got_end:
                self._leave(True)
            elif up.transport.can_write_eof():
                up.transport.write_eof()

    def trailers(self, lines: bytes) -> None:
        self.content(b"", True)

    def pause(self) -> None:
        if self._end is not None:
            self._end.transport.pause_reading()

    def resume(self) -> None:
        if self._end is not None:
            self._end.transport.resume_reading()

    def reset(self) -> None:
        self._leave(False)

    def discard(self) -> Sleeper | None:
        self._leave(False)
        return None

    def _leave(self, in_order: bool) -> None:
        """It is over. `in_order`: the endpoint gets what was written; otherwise it meets a reset."""
        self._consumer = self._opener = None
        self._lease.release()
        end, self._end = self._end, None
        if end is not None:
            self._left = end
            end.leave(in_order)
            if in_order:
                self._wake_at(LINGER, self)

    def wake(self, now: float) -> None:
        """As `carriers.Sleeper`: who takes nothing any more has had its time."""
        if self._left is not None:
            self._left.leave(False)

    # --- from the connection (`raw_end.Holder`)

    def raw_ready(self, end: RawEnd) -> None:
        self._end = end
        opener, self._opener = self._opener, None
        if opener is not None:
            opener.tunnel_opened()

    def raw_failed(self, cause: str, detail: str) -> None:
        opener, self._opener = self._opener, None
        if opener is not None:
            opener.tunnel_failed(cause, detail)

    def raw_received(self, data: bytes) -> None:
        if self._consumer is not None:
            self._consumer.upstream_content(data, False)

    def raw_ended(self) -> None:
        self._got_end = True
        if self._consumer is not None:
            self._consumer.upstream_content(b"", True)
        if self._sent_end:
            self._leave(True)

    def raw_lost(self, error: Exception | None) -> None:
        self._end = None
        consumer = self._consumer
        self._leave(False)
        if consumer is not None:
            consumer.upstream_lost("closed" if error is None else "reset", False)

    def raw_blocked(self) -> None:
        if self._consumer is not None:
            self._consumer.upstream_blocked()

    def raw_drained(self) -> None:
        if self._consumer is not None:
            self._consumer.upstream_drained()

    def __repr__(self) -> str:
        return f"EndpointTunnel({self.endpoint.label if self.endpoint is not None else '-'})"
