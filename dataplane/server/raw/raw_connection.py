"""One connection of a client whose bytes pass as they are, to a connection of its own to an endpoint, and back.

Begun by a listener of protocol TCP, or handed over by an earlier phase (TLS, passed through or terminated; a CONNECT).
Nothing is read from the client before there is an endpoint: what it sends waits in its socket. Each direction ends by
itself; when both have, the connection is over. A side that reads slowly stops the other one's reading.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.http.messages import Peer
from dataplane.net import tcp
from dataplane.net.crowd import BUSY
from dataplane.server import admission
from dataplane.server.peers import peer_of
from dataplane.server.raw import loops
from dataplane.server.raw.routing import FAILURES, Goal, goal
from dataplane.telemetry.connections import ConnectionRecord
from dataplane.upstream.destinations import Named
from dataplane.upstream.raw import RawLease
from dataplane.upstream.raw_end import RawEnd

if TYPE_CHECKING:
    from dataplane.server.plan import ConnectionPlan
    from dataplane.table.binds import ListenerPlan

IDLE_TIMEOUT: Final = 3600.0
"""Seconds without a byte in either direction after which a connection is closed, where `frontend.limits` says no
`streamIdleTimeout`."""


LINGER: Final = 60.0
"""Seconds that a side has to take what was written to it when the connection is over."""


class RawConnection:
    """asyncio's protocol by shape. A phase hands a connection over by `carry`."""

    __slots__ = (
        "__weakref__",
        "_has_ended",
        "_idle",
        "_is_over",
        "_last",
        "_lease",
        "_left",
        "_record",
        "_up",
        "_up_ended",
        "_waiting",
        "bind",
        "context",
        "number",
        "peer",
        "plan",
        "transport",
    )

    def __init__(self, plan: ConnectionPlan) -> None:
        self.plan = plan
        self.context = plan.context
        self.bind = plan.bind
        self.peer = Peer("")
        self.transport: Any = None
        self.number = 0
        """For the agent (`link/last_served`)."""
        self._record = ConnectionRecord("tcp", "", 0.0)
        self._lease: RawLease | None = None
        self._up: RawEnd | None = None
        self._left: RawEnd | None = None
        """What `_up` was, when the connection is over."""
        self._waiting = b""
        """Read before there was an endpoint."""
        self._has_ended = False
        """The client sends no more."""
        self._up_ended = False
        self._is_over = False
        self._idle = IDLE_TIMEOUT
        self._last = 0.0
        """When a byte passed; of a connection that is over: how long it may linger."""

    # --- life

    def connection_made(self, transport: Any) -> None:
        """As the first phase of a plaintext bind: the listener is the bind's own."""
        context = self.context
        self.transport, self.peer = transport, peer_of(transport)
        context.recorder.connected(self.bind)
        context.connections.add(self, self.peer.address)
        transport.pause_reading()
        admission.admit(self)
        if not transport.is_closing():
            bind = context.bind_of(self.bind)
            self._begin(None if bind is None else bind.default, "tcp", b"")

    def carry(
        self,
        transport: Any,
        peer: Peer,
        data: bytes,
        listener: ListenerPlan | None,
        protocol: str = "tcp",
        server_name: bytes = b"",
    ) -> None:
        """Go on with `transport`, counted and limited already, of which `data` was read. `listener`: whose it is.
        `protocol`: "tcp" or "tls", for the log. `server_name`: that the client asked for, in lower case."""
        self.transport, self.peer, self._waiting = transport, peer, data
        transport.pause_reading()
        transport.set_protocol(self)
        self._begin(listener, protocol, server_name)

    def _begin(self, listener: ListenerPlan | None, protocol: str, server_name: bytes) -> None:
        context = self.context
        self.number = context.writes.served.enter("client", protocol.upper(), self.peer.address, self.bind)
        self.transport.set_write_buffer_limits(high=context.limits.write_buffer)
        now = self._last = context.clock()
        name = server_name.decode("latin-1")
        self._record = record = ConnectionRecord(protocol, self.peer.address, now, listener, server_name=name)
        record.received = len(self._waiting)
        context.recorder.raw.began(protocol)
        table = context.current.table
        idle = table.limits.stream_idle
        self._idle = IDLE_TIMEOUT if idle is None else idle
        context.deadlines.wake_at(now + self._idle, self)
        if listener is None:
            self._end("ListenerNotFound")
            return
        found = goal(table, listener, server_name, context.random)
        record.route = found.route
        self._go(found, server_name)

    def _go(self, found: Goal, server_name: bytes) -> None:
        if found.backend is None:
            self._end(found.reason, found.detail)
            return
        context = self.context
        way = loops.Way(loops.TCP, self.bind, server_name)
        refuses = partial(loops.refusal, way, context)
        bind = context.bind_of(self.bind)
        named = Named(server_name, 0 if bind is None else bind.port, self.peer.address)
        self._lease = RawLease(self, context.leases, context.recorder.upstream_closed, self.peer, refuses, named)
        self._lease.begin(found.backend)

    def connection_lost(self, error: Exception | None) -> None:
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)
        self._end("" if error is None else "ClientReset", "" if error is None else str(error))

    def _end(self, reason: str = "", detail: str = "", in_order: bool = False) -> None:
        """It is over; the first reason counts. `in_order`: each side gets what was written to it, and an end;
        otherwise a reset, which says that something was cut."""
        if self._is_over:
            return
        self._is_over = True
        record, context = self._record, self.context
        lease, up = self._lease, self._up
        self._lease = self._up = None
        if lease is not None:
            if lease.endpoint is not None:
                record.endpoint = lease.endpoint.label
            lease.release()
        self._last = context.clock() + LINGER
        context.deadlines.wake_at(self._last, self)
        if up is not None:
            self._left = up
            up.leave(in_order or not reason)
        if not self.transport.is_closing():
            if in_order or not reason:
                self.transport.close()
            else:
                tcp.reset(self.transport)
        if not record.started:  # it was refused before it began
            return
        record.reason, record.detail = reason, detail
        context.recorder.raw.ended(record)
        context.access_log.connection(record, context.clock() - record.started)

    # --- as a guest of the worker

    @property
    def idle_from(self) -> float:
        """As `net.crowd.Guest`: whether its two ends are done with it is unknown."""
        return BUSY

    def close_idle(self) -> None:
        """As `net.crowd.Guest`: it came when no more could be accepted."""
        self.transport.abort()

    def drain(self) -> None:
        """Nothing says where a message ends: it goes on until its ends close it, or the drain is over."""

    def forget_heads(self) -> None:
        """It has none."""

    def wake(self, now: float) -> None:
        """As `proxy.deadlines.Sleeper`."""
        if self._is_over:
            if now >= self._last:  # both are closed by now, or take nothing
                self.transport.abort()
                if self._left is not None:
                    self._left.leave(False)
        elif now >= self._last + self._idle:
            self._end("IdleTimeout")
        else:
            self.context.deadlines.wake_at(self._last + self._idle, self)

    # --- from the client

    def data_received(self, data: bytes) -> None:
        self.context.writes.now[0] = self.number
        self._record.received += len(data)
        self._last = self.context.clock()
        up = self._up
        if up is None:  # transports may give on what they had read before they were asked to pause
            self._waiting += data
        else:
            up.transport.write(data)

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._up is not None:
            self._pass_end(self._up)
        return not self._is_over

    def _pass_end(self, up: RawEnd) -> None:
        if self._up_ended:
            self._end()
        elif up.transport.can_write_eof():
            up.transport.write_eof()
        else:
            self._end()

    def pause_writing(self) -> None:
        if self._up is not None:
            self._up.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._up is not None:
            self._up.transport.resume_reading()

    # --- from the endpoint (`upstream.raw_end.Holder`)

    def raw_ready(self, end: RawEnd) -> None:
        self._up = end
        end.transport.set_write_buffer_limits(high=self.context.limits.write_buffer)
        self._last = self.context.clock()
        end.transport.resume_reading()
        self.transport.resume_reading()
        data, self._waiting = self._waiting, b""
        if data:
            end.transport.write(data)
        if self._has_ended:
            self._pass_end(end)

    def raw_failed(self, cause: str, detail: str) -> None:
        self._end(FAILURES[cause], detail)

    def raw_received(self, data: bytes) -> None:
        self._record.sent += len(data)
        self._last = self.context.clock()
        self.transport.write(data)

    def raw_ended(self) -> None:
        self._up_ended = True
        if self._has_ended:
            self._end()
        elif self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self._end()

    def raw_lost(self, error: Exception | None) -> None:
        self._up = None
        if error is None:
            self._end("" if self._up_ended else "UpstreamClosed", in_order=True)
        else:
            self._end("UpstreamReset", str(error))

    def raw_blocked(self) -> None:
        self.transport.pause_reading()

    def raw_drained(self) -> None:
        self.transport.resume_reading()

    def __repr__(self) -> str:
        return f"RawConnection({self.peer.address} -> {self._record.endpoint or '-'}, over={self._is_over})"
