"""Copies of requests for other backends (HTTPRequestMirrorFilter): sent beside the request, their answers ignored.

`proxy/attempts` draws which mirrors take a request. A copy goes out when the whole body is known, is bounded in size,
time and number, and whatever becomes of it shows in a metric only: the request never waits for it, and never fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http import chunked
from dataplane.proxy import outgoing
from dataplane.upstream import balance
from dataplane.upstream.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.endpoint import Endpoint

MAX_IN_FLIGHT = 256
"""Copies of one worker that are under way at once; what comes on top is not mirrored."""
MAX_BYTES = 32 * 1024 * 1024
"""Bytes of all of them."""
SECONDS = 10.0
"""For one copy and its answer."""
MAX_ANSWER = 1024 * 1024
"""Bytes of an answer that are read; the connection of a larger one is closed."""


class InFlight:
    """What the copies of one worker hold now."""

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count = self.bytes = 0

    def has_room(self, size: int) -> bool:
        return self.count < MAX_IN_FLIGHT and self.bytes + size <= MAX_BYTES


def drawn(x: Exchange, context: Context) -> Mirroring | None:
    """The mirrors that take this request, by their shares; None: no mirror does. An upgrade is not mirrored."""
    if x.down.upgrade:
        return None
    random = context.random
    backends = [
        x.table.backends.get(each.backend)
        for each in x.policies.mirrors
        if each.numerator >= each.denominator or random() * each.denominator < each.numerator
    ]
    return Mirroring(x, context, backends) if backends else None


class Mirroring:
    """One request on its way to one or more mirrors; the head is as the steps left it when this was made."""

    __slots__ = ("backends", "chunked", "context", "heads", "length", "line", "method")

    def __init__(self, x: Exchange, context: Context, backends: Sequence[BackendPlan | None]) -> None:
        self.context = context
        self.method = x.method
        self.chunked = b"\r\ntransfer-encoding:" in x.request.low
        self.backends = backends
        self.length = max(outgoing.length(x), 0)
        self.line = b"%b %b HTTP/1.1" % (x.method, x.target)
        self.heads = [b"" if backend is None else outgoing.block(x, backend) for backend in backends]

    def send(self, body: bytes) -> None:
        """The body is whole: send the copies."""
        is_other = not self.chunked and len(body) != self.length  # a step of the backend reference made it
        if self.chunked:
            body = (chunked.encode(body) if body else b"") + chunked.LAST
        for backend, head in zip(self.backends, self.heads, strict=True):
            if backend is None:
                self.context.recorder.mirrored("unresolved")
            elif not self.context.mirrors.has_room(len(body)):
                self.context.recorder.mirrored("busy")
            else:
                block = outgoing.with_length(head, len(body)) if is_other else head
                request = b"%b%b\r\n%b" % (self.line, block, body)
                _Copy(self.context, backend, request, self.method == b"HEAD").start()

    def skip(self, outcome: str) -> None:
        """There is nothing to send."""
        for _ in self.backends:
            self.context.recorder.mirrored(outcome)


class _Copy:
    """One copy, from the choice of an endpoint to the end of the answer."""

    __slots__ = ("__weakref__", "backend", "context", "ended", "endpoint", "request", "second", "sink", "to_head")

    def __init__(self, context: Context, backend: BackendPlan, request: bytes, to_head: bool) -> None:
        self.context = context
        self.backend = backend
        self.request = request
        self.to_head = to_head
        self.endpoint: Endpoint | None = None
        self.sink: Sink | None = None
        self.second = False
        """It is sent the second time."""
        self.ended = False

    def start(self) -> None:
        flight = self.context.mirrors
        flight.count += 1
        flight.bytes += len(self.request)
        self.context.deadlines.wake_at(self.context.clock() + SECONDS, self)
        self._choose()

    def wake(self, now: float) -> None:
        """The time is over."""
        if self.sink is not None:
            self.sink.wake(now)
        else:
            self._end("timeout", False)

    def _choose(self) -> None:
        """Pick an endpoint as a request does."""
        backend, context = self.backend, self.context
        endpoints = backend.endpoints
        if self.ended:
            return
        if backend.host:
            known = context.resolver.endpoints(backend.host, backend.port, self._choose)
            if known is None:
                return
            endpoints = known
        if not endpoints:
            self._end("unresolved", False)
            return
        endpoint = self.endpoint = balance.choose(endpoints, context.random)
        endpoint.pending += 1
        if endpoint.idle:
            self._send(endpoint.idle.pop())
        else:
            context.connector.connect(endpoint, self._connected)

    def _connected(self, connection: UpstreamConnection | None, cause: str) -> None:
        if self.ended:
            if connection is not None:
                connection.park()
        elif connection is None:
            self._end("connect", False)
        else:
            self._send(connection)

    def _send(self, connection: UpstreamConnection) -> None:
        self.sink = Sink(MAX_ANSWER, self._end)
        self.sink.begin(connection, self.request, self.to_head)

    def _end(self, cause: str, stale: bool) -> None:
        """`cause` is "" when the answer was whole, and else why it was not."""
        if self.ended:
            return
        if stale and self.endpoint is not None and not self.second:  # the idle connection was closed already
            self.second, self.sink = True, None
            self.context.connector.connect(self.endpoint, self._connected)
            return
        self.ended = True
        flight = self.context.mirrors
        flight.count -= 1
        flight.bytes -= len(self.request)
        self.request, self.sink = b"", None  # the sink knows this object: no cycle may be left
        if self.endpoint is not None:
            self.endpoint.pending -= 1
        self.context.recorder.mirrored(_OUTCOMES.get(cause, "lost"))


_OUTCOMES = {"": "sent", "unresolved": "unresolved", "connect": "connect", "timeout": "timeout"}
"""By cause; any other is a connection that broke or an answer that was none."""
