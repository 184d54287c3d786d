"""Calls of policies to other services: one HTTP/1.1 request over the endpoints and pools that clients' requests use.

The real `chain.calls.Calls`. A worker has one and hands it to the builders of policies. A call costs one object and one
Future; its deadline is a look of the coarse sweep, its answer is framed by `UpstreamConnection`, whose consumer it is.
It follows no redirects, keeps no answers, and knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.upstream import balance
from dataplane.upstream.connection import UNSENT
from dataplane.upstream.response_head import LENGTH, TUNNEL

if TYPE_CHECKING:
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.response_head import ResponseHead

BODILESS: Final = frozenset((b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE"))
"""Methods whose empty body need not be announced (RFC 9110 8.6)."""
REPEATABLE: Final = frozenset((b"GET", b"HEAD"))
"""What is sent once more when an idle connection turns out to be closed."""
MAX_CONNECTS: Final = 3
"""Endpoints that a call tries to connect to: nothing was sent to the ones before."""


class Backend(Protocol):
    """What a call reads of a `table.plans.BackendPlan`."""

    key: str
    endpoints: tuple[Endpoint, ...]
    host: bytes
    port: int
    authority: bytes


class Table(Protocol):
    @property
    def backends(self) -> Mapping[str, Any]: ...  # Any: a Backend; mappings of protocols do not vary


class Connects(Protocol):
    """`connector.Connector`."""

    def connect(self, endpoint: Endpoint, done: Callable[[UpstreamConnection | None, str], None]) -> None: ...


class Resolves(Protocol):
    """`connector.Resolver`."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> Sequence[Endpoint] | None: ...


class HttpCalls:
    """`table()`: the one that serves now; a call has no exchange to pin one. `wake_at(moment, sleeper)`: of
    `proxy/deadlines`. `make_future()`: the loop's. `clock`: monotonic seconds. `random`: uniform in [0, 1)."""

    __slots__ = ("clock", "connector", "make_future", "random", "resolver", "table", "wake_at")

    def __init__(
        self,
        table: Callable[[], Table],
        connector: Connects,
        resolver: Resolves,
        wake_at: Callable[[float, Any], None],
        make_future: Callable[[], Any],
        clock: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.table = table
        self.connector = connector
        self.resolver = resolver
        self.wake_at = wake_at
        self.make_future = make_future
        self.clock = clock
        self.random = random

    async def http(self, backend: str, request: CallRequest, seconds: float, max_body: int = 1024 * 1024) -> CallAnswer:
        """As `chain.calls.Calls.http`."""
        call = _Call(self, backend, request, seconds, max_body)
        call.begin()
        if call.outcome is None:
            call.future = self.make_future()
            self.wake_at(call.started + seconds, call)
            try:
                await call.future
            finally:
                if call.outcome is None:  # the caller was cancelled: nobody awaits it any more
                    call.future = None
                    call.end(_given_up(call.where()))
        outcome: Any = call.outcome
        if type(outcome) is CallAnswer:
            return outcome
        try:
            raise outcome
        finally:
            del call, outcome  # this frame is in its traceback: it would be freed by the garbage collector only


class _Call:
    """One call under way: the consumer of its connection, woken at its deadline."""

    __slots__ = (
        "__weakref__",
        "calls",
        "cause",
        "data",
        "endpoint",
        "future",
        "head",
        "key",
        "max_body",
        "outcome",
        "parts",
        "request",
        "seconds",
        "sent_again",
        "size",
        "started",
        "tried",
        "up",
    )
    raw_chunks = False

    def __init__(self, calls: HttpCalls, key: str, request: CallRequest, seconds: float, max_body: int) -> None:
        self.calls = calls
        self.key = key
        self.request = request
        self.seconds = seconds
        self.max_body = max_body
        self.started = calls.clock()
        self.endpoint: Endpoint | None = None
        """While it counts as pending there."""
        self.tried: tuple[Endpoint, ...] = ()
        """Endpoints that could not be connected to; `cause`: why not the last."""
        self.cause = ""
        self.up: UpstreamConnection | None = None
        self.data = b""
        self.sent_again = False
        self.head: ResponseHead | None = None
        self.parts: list[bytes] = []
        self.size = 0
        self.future: Any = None
        self.outcome: CallAnswer | CallFailed | None = None

    # --- out

    def begin(self) -> None:
        """Choose an endpoint and send; or wait for a name or a connection."""
        calls = self.calls
        backend: Backend | None = calls.table().backends.get(self.key)
        if backend is None:
            self.end(CallFailed("unresolved", f"{self.key} is not known"))
            return
        endpoints: Sequence[Endpoint] = backend.endpoints
        if backend.host:
            resolved = calls.resolver.endpoints(backend.host, backend.port, self._resolved)
            if resolved is None:
                return
            endpoints = resolved
        if self.tried:
            endpoints = [each for each in endpoints if each not in self.tried]
        if not endpoints:
            self.end(self._nowhere(backend))
            return
        endpoint = self.endpoint = endpoints[0] if len(endpoints) == 1 else balance.choose(endpoints, calls.random)
        endpoint.pending += 1
        self.data = _message(self.request, backend)
        if endpoint.idle:
            self._send(endpoint.idle.pop())
        else:
            calls.connector.connect(endpoint, self._connected)

    def _resolved(self) -> None:
        if self.outcome is None:
            self.begin()

    def _connected(self, connection: UpstreamConnection | None, cause: str) -> None:
        if self.outcome is not None:  # nobody waits for it any more
            if connection is not None:
                connection.park()
        elif connection is not None:
            self._send(connection)
        else:
            self._connect_failed(cause)

    def _connect_failed(self, cause: str) -> None:
        """Another endpoint, where there is one: a name may have an address that nobody listens on."""
        assert self.endpoint is not None  # it was chosen to be connected to
        self.tried = (*self.tried, self.endpoint)
        self.cause = cause
        self._settle()
        if len(self.tried) < MAX_CONNECTS:
            self.begin()
        else:
            self.end(CallFailed("connect", cause))

    def _nowhere(self, backend: Backend) -> CallFailed:
        """Why there is no endpoint to send to."""
        if self.tried:
            return CallFailed("connect", self.cause)
        what = "its name cannot be resolved" if backend.host else "it has no endpoints"
        return CallFailed("unresolved", f"{self.key}: {what}")

    def _send(self, connection: UpstreamConnection) -> None:
        self.up = connection
        connection.request_done = True
        connection.begin(self, self.data, self.request.method == b"HEAD")

    # --- in

    def upstream_head(self, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        assert self.endpoint is not None  # it was sent there
        balance.observe(self.endpoint, self.calls.clock() - self.started)
        if head.framing == TUNNEL:
            self.end(CallFailed("invalid", f"{self.where()} switched protocols"))
            return
        self.head = head
        if head.framing == LENGTH and head.length > self.max_body:
            self._too_large()
        elif first:
            self.upstream_body(first)

    def upstream_interim(self, head: ResponseHead) -> None:
        """1xx: the final response is still to come."""

    def upstream_body(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.max_body:
            self._too_large()
        else:
            self.parts.append(data)

    def upstream_end(self) -> None:
        self.up = None
        head = self.head
        assert head is not None  # it came before the end
        self.end(CallAnswer(head.status, Head(head.block, head.low), b"".join(self.parts)))

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self.up = None
        if stale and not self.sent_again and (cause == UNSENT or self.request.method in REPEATABLE):
            self.sent_again = True
            assert self.endpoint is not None  # it was sent there
            self.calls.connector.connect(self.endpoint, self._connected)  # another idle one may be just as stale
        elif cause in ("closed", "reset", UNSENT):
            self.end(CallFailed("lost", f"{self.where()}: connection {cause}"))
        else:
            self.end(CallFailed("invalid", f"{self.where()}: {cause}"))

    def upstream_paused(self, paused: bool) -> None:
        """The request is written already; nothing to hold back."""

    def _too_large(self) -> None:
        self.end(CallFailed("too_large", f"{self.where()}: the answer has more than {self.max_body} bytes"))

    # --- over

    def wake(self, now: float) -> None:
        """The deadline."""
        if self.outcome is None:
            self.end(CallFailed("timeout", f"{self.where()} gave no answer within {self.seconds:g} s"))

    def end(self, outcome: CallAnswer | CallFailed) -> None:
        """The call is over: nothing of it stays behind."""
        self.outcome = outcome
        self._settle()
        up, self.up = self.up, None
        if up is not None:
            up.release()
        future = self.future
        if future is not None and not future.done():
            future.set_result(None)

    def _settle(self) -> None:
        endpoint, self.endpoint = self.endpoint, None
        if endpoint is not None:
            endpoint.pending -= 1

    def where(self) -> str:
        """For messages: the endpoint, or the backend while there is none."""
        return self.key if self.endpoint is None else self.endpoint.label

    def __repr__(self) -> str:
        return f"_Call({self.key}, {self.outcome!r})"


def _given_up(where: str) -> CallFailed:
    return CallFailed("lost", f"{where}: given up")


def _message(request: CallRequest, backend: Backend) -> bytes:
    """The whole request as bytes. Its Host is the backend's own (RFC 9110 7.2) unless the caller has another; a socket
    has no name."""
    method, body = request.method, request.body
    length = b"" if not body and method in BODILESS else b"content-length: %d\r\n" % len(body)
    host = request.authority or backend.authority or b"localhost"
    return b"%b %b HTTP/1.1\r\nhost: %b\r\n%b%b\r\n%b" % (method, request.target, host, length, request.headers, body)
