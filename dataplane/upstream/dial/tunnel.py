"""A tunnel through a forward proxy (`backend.tunnel`): what is beneath a connection in place of a socket.

The connection to the proxy is a lease like that of a TCP route: its endpoints, limits, health, TLS and own pages are
those of the proxy's own Backend. CONNECT goes out with the proxy's credentials (its `auth`); when it is answered, the
two ends are a transport, in which whatever was asked for begins: a PROXY header, TLS, HTTP, bytes as they are.
Where requests go to the proxy itself, in absolute form, nothing is asked: its credentials go with each of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from dataplane.http.heads import lines_without
from dataplane.net.stream_transport import StreamTransport
from dataplane.upstream import outgoing
from dataplane.upstream.dial import tunnel_answer
from dataplane.upstream.opening import Forwards, TunnelFailed
from dataplane.upstream.raw import RawLease

if TYPE_CHECKING:
    from dataplane.upstream.lease import BackendPlan, Leases
    from dataplane.upstream.raw_end import RawEnd

log = logging.getLogger("dataplane.upstream")

CREDENTIALS: Final = b"authorization"
FOR_PROXIES: Final = b"proxy-authorization"
"""RFC 9110 11.7.2: where credentials for a proxy stand."""


_HOST: Final = frozenset((b"host",))
_CLOSED: Final = ("closed the connection before it answered CONNECT", "closed")


async def opened(
    plan: BackendPlan, leases: Leases, closed: Callable[[], None], goal: tuple[str, int], make: Callable[[], Any]
) -> StreamTransport:
    """Connect a protocol that `make` makes to host and port of `goal`, through the proxy of `plan`. `closed()`: a
    connection to a proxy is gone. Raises `TunnelFailed`."""
    end = _End(leases, closed, asyncio.get_running_loop())
    rest = await _within(plan, end, end.asked(plan, *goal), "answer CONNECT")
    _connect(end, make(), rest)
    return end


async def reached(
    plan: BackendPlan,
    leases: Leases,
    closed: Callable[[], None],
    goal: tuple[str, int],
    connection: Forwards,
) -> StreamTransport:
    """As `opened`: connect what sends requests for `goal` to the proxy itself."""
    end = _End(leases, closed, asyncio.get_running_loop())
    connection.credentials = await _within(plan, end, end.joined(plan, *goal), "connect")
    connection.proxy = end.label
    _connect(end, connection, b"")
    return end


async def _within(plan: BackendPlan, end: _End, work: Coroutine[Any, Any, bytes], what: str) -> bytes:
    """In the time that the proxy's own policies give it. Raises `TunnelFailed`."""
    try:
        async with asyncio.timeout(plan.request_timeout):
            return await work
    except TimeoutError:
        end.give_up()
        raise TunnelFailed(f"proxy {end.label} did not {what} in time", "timed out") from None
    except BaseException:
        end.give_up()
        raise


def _connect(end: _End, protocol: Any, rest: bytes) -> None:  # Any: asyncio's, by shape
    end.set_protocol(protocol)
    protocol.connection_made(end)
    if not end.begins_paused:
        end.open()
    if rest:
        end.received(rest, False)


class _End(StreamTransport):
    """Our end of a tunnel, from the moment that it is asked for. `raw_end.Holder` toward the connection."""

    __slots__ = ("_answer", "_below", "_came", "_is_asking", "_lease", "_loop", "_uncount", "begins_paused")

    def __init__(self, leases: Leases, closed: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop.call_soon)
        self._lease = RawLease(self, leases, self._gone)
        self._uncount = closed
        self._loop = loop
        self._below: RawEnd | None = None
        self._answer: asyncio.Future[bytes] = loop.create_future()
        self._is_asking = True
        self._came = b""
        """Of the answer."""
        self.begins_paused = False
        """Its protocol wants to read nothing yet."""

    @property
    def label(self) -> str:
        """Of the proxy's endpoint."""
        endpoint = self._lease.endpoint
        return "-" if endpoint is None else endpoint.label

    async def asked(self, plan: BackendPlan, host: str, port: int) -> bytes:
        """Connect to the proxy and ask it; the first bytes behind its answer. Raises `TunnelFailed`."""
        target, lines = tunnel_answer.question(host, port)
        lines = await self._ready(plan, b"CONNECT", target, lines)
        self._write(b"CONNECT %b HTTP/1.1%b\r\n" % (target, lines))
        rest = await self._answer
        self._hand_over()
        return rest

    async def joined(self, plan: BackendPlan, host: str, port: int) -> bytes:
        """Connect to the proxy, which is asked nothing; the lines of its credentials. Raises `TunnelFailed`."""
        target, lines = tunnel_answer.question(host, port)
        lines = await self._ready(plan, b"GET", target, lines)
        self._hand_over()
        return lines_without(lines, lines.lower(), _HOST)

    async def _ready(self, plan: BackendPlan, method: bytes, target: bytes, lines: bytes) -> bytes:
        """Connect to the proxy: `lines` with its credentials. Raises `TunnelFailed`."""
        self._lease.begin(plan)
        await self._answer  # that it is connected
        self._answer = self._loop.create_future()
        return await _with_credentials(plan, method, target, lines)

    def _hand_over(self) -> None:
        """From here on it belongs to the connection through it, which is counted. Raises `TunnelFailed`."""
        if self._below is None:  # it was lost since
            raise self._failed(*_CLOSED)
        self._is_asking = False
        self._lease.leave_endpoint()
        self._uncount()

    def _write(self, question: bytes) -> None:
        if self._below is None:  # it was lost while credentials were waited for
            raise self._failed(*_CLOSED)
        self._below.transport.resume_reading()
        self._below.transport.write(question)

    def _gone(self) -> None:
        """The connection to the proxy is gone."""
        if self._is_asking:
            self._uncount()

    def give_up(self) -> None:
        """It is not wanted any more."""
        if self._answer.done() and not self._answer.cancelled():
            self._answer.exception()  # it was seen
        self._leave_below(False)

    def _failed(self, what: str, reason: str) -> TunnelFailed:
        return TunnelFailed(f"proxy {self.label} {what}", reason)

    def _finish(self, failure: TunnelFailed | None, rest: bytes = b"") -> None:
        if self._answer.done():
            return
        if failure is None:
            self._answer.set_result(rest)
        else:
            self._answer.set_exception(failure)

    # --- as `raw_end.Holder`

    def raw_ready(self, end: RawEnd) -> None:
        self._below = end
        self._finish(None)

    def raw_failed(self, cause: str, detail: str) -> None:
        self._finish(TunnelFailed(f"the tunnel's proxy cannot be used: {detail}", f"proxy: {cause}"))

    def raw_received(self, data: bytes) -> None:
        if not self._is_asking:
            self.received(data, False)
            return
        self._came += data
        answer = tunnel_answer.read(self._came)
        if answer is None:
            return
        self._came = b""
        if self._below is not None:
            self._below.transport.pause_reading()
        if answer.problem:
            self._finish(self._failed(answer.problem, f"answered {answer.status}" if answer.status else "no answer"))
        else:
            self._finish(None, answer.rest)

    def raw_ended(self) -> None:
        if self._is_asking:
            self._finish(self._failed(*_CLOSED))
        else:
            self.received(b"", True)

    def raw_lost(self, error: Exception | None) -> None:
        self._below = None
        self._lease.release()
        if self._is_asking:
            self._finish(self._failed(*_CLOSED))
        else:
            self.lost(error)

    def raw_blocked(self) -> None:
        self.block()

    def raw_drained(self) -> None:
        self.unblock()

    # --- as `StreamTransport`

    def pause_reading(self) -> None:
        self.begins_paused = True
        super().pause_reading()

    def resume_reading(self) -> None:
        self.begins_paused = False
        super().resume_reading()

    def _give(self, data: bytes, end: bool) -> None:
        if self._below is None:
            return
        transport = self._below.transport
        if data:
            transport.write(data)
        if end and transport.can_write_eof():
            transport.write_eof()

    def _hold(self) -> None:
        if self._below is not None:
            self._below.transport.pause_reading()

    def _release(self) -> None:
        if self._below is not None:
            self._below.transport.resume_reading()

    def _closed(self, in_order: bool) -> None:
        self._leave_below(in_order)

    def _leave_below(self, in_order: bool) -> None:
        self._lease.release()
        end, self._below = self._below, None
        if end is not None:
            end.leave(in_order)


async def _with_credentials(plan: BackendPlan, method: bytes, target: bytes, lines: bytes) -> bytes:
    """Header lines with the credentials of the proxy's Backend. Raises `TunnelFailed`."""
    if plan.finishers is not None:
        out = outgoing.Outgoing(method, target, lines, b"", plan, None, 0)
        try:
            waits = outgoing.finish(out)
            if waits is not None:
                await waits
        except outgoing.Unfinished as error:
            raise TunnelFailed(f"credentials for the tunnel's proxy: {error}", "credentials") from None
        except Exception as error:  # a bug of a finisher: those that wait must hear of it
            log.exception("credentials for the proxy %s", plan.key)
            raise TunnelFailed(f"credentials for the tunnel's proxy: {type(error).__name__}", "credentials") from None
        if out.target != target:
            raise TunnelFailed("credentials for the tunnel's proxy stand in no header", "credentials")
        lines = _for_proxy(out.head.block)
    return lines


def _for_proxy(lines: bytes) -> bytes:
    """What is written for a server, where a proxy reads it."""
    named = [
        FOR_PROXIES + line[len(CREDENTIALS) :] if line.lower().startswith(CREDENTIALS + b":") else line
        for line in lines.split(b"\r\n")
    ]
    return b"\r\n".join(named)
