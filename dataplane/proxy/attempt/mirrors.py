"""Copies of requests for other backends (HTTPRequestMirrorFilter): sent beside the request, their answers ignored.

`proxy/attempt/attempts` draws which mirrors take a request. A copy goes out when the whole body is known, is bounded in
size, time and number, and whatever becomes of it shows in a metric only: the request never waits for it, and never
fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.messages import UNKNOWN
from dataplane.link.pools import key_of
from dataplane.proxy.attempt import outgoing
from dataplane.upstream.calls.sending import Sending
from dataplane.upstream.outgoing import Edits, edited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallFailed
    from dataplane.http.messages import ResponseHead
    from dataplane.link.pools import Key
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.plans import BackendPlan

SECONDS = 10.0
"""For one copy and its answer."""
MAX_ANSWER = 1024 * 1024
"""Bytes of an answer that are read; the connection of a larger one is closed."""


def drawn(x: ActiveExchange, context: Context) -> Mirroring | None:
    """The mirrors that take this request, by their shares; None: no mirror does. An upgrade is not mirrored."""
    if x.upgrade:
        return None
    random = context.random
    backends = [
        outgoing.backend_of(x, each.backend)
        for each in x.policies.mirrors
        if each.numerator >= each.denominator or random() * each.denominator < each.numerator
    ]
    return Mirroring(x, context, backends) if backends else None


class Mirroring:
    """One request on its way to one or more mirrors; the head is as the steps left it when this was made."""

    __slots__ = (
        "attributes",
        "backends",
        "blocks",
        "client",
        "context",
        "is_grpc",
        "key",
        "length",
        "method",
        "never_indexed",
        "peer",
        "scheme",
        "target",
        "version",
    )

    def __init__(self, x: ActiveExchange, context: Context, backends: Sequence[BackendPlan | None]) -> None:
        self.context = context
        self.method = x.method
        self.target = x.target
        self.length = x.length
        self.version = x.version
        self.scheme = x.scheme
        self.client = x.client
        self.peer, self.key = x.peer, key_of(x.peer)
        self.is_grpc = x.length != 0 and x.is_grpc
        self.never_indexed = x.never_indexed
        self.attributes = x.attributes
        self.backends = backends
        self.blocks = [b"" if backend is None else outgoing.copied_lines(x, backend) for backend in backends]

    def send(self, body: bytes, trailers: bytes = b"") -> None:
        """The body is whole: send the copies."""
        is_other = self.length >= 0 and len(body) != self.length  # a step of the backend reference made it
        for backend, block in zip(self.backends, self.blocks, strict=True):
            if backend is None:
                self.context.recorder.mirrored("unresolved")
            elif not self.context.mirrors.fits(self.key, len(body)):
                self.context.recorder.mirrored("busy")
            else:
                lines = edited(block, Edits(length=len(body))) if is_other else block
                _Copy(self, backend, lines, body, trailers).start()

    def skip(self, outcome: str) -> None:
        """There is nothing to send."""
        for _ in self.backends:
            self.context.recorder.mirrored(outcome)


class _Copy(Sending):
    """One copy, from the choice of an endpoint to the end of the answer, of which nothing else is used."""

    __slots__ = (
        "_is_grpc",
        "client",
        "context",
        "key",
        "left",
        "scheme",
        "size",
        "trailers",
        "version",
    )

    def __init__(self, request: Mirroring, backend: BackendPlan, block: bytes, body: bytes, trailers: bytes) -> None:
        self.context = request.context
        length = UNKNOWN if request.length < 0 else len(body)
        super().__init__(request.context.calls, backend, request.method, request.target, block, body, length)
        self.version = request.version
        self.scheme = request.scheme
        self.client = request.client
        self.key: Key = request.key
        self.peer = request.peer
        self._is_grpc = request.is_grpc
        self.attributes = request.attributes
        self.never_indexed = request.never_indexed
        self.trailers = trailers
        self.size = len(block) + len(body) + len(trailers)
        self.left = MAX_ANSWER

    @property
    def is_grpc(self) -> bool:
        return self._is_grpc

    def start(self) -> None:
        self.context.mirrors.hold(self.key, self.size)
        self.begin(SECONDS, SECONDS, None)

    def lease_ready(self, up: Upstream) -> None:
        up.begin(self, self.block, self.body, not self.trailers)
        if self.trailers:
            up.trailers(self.trailers)

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        if cause == "limit":
            self._end("limit")
        else:
            super().lease_failed(cause, detail, others)

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self.upstream_content(first, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        self.left -= len(data)
        if end:
            self.up = None
        if end or self.left < 0:
            self._end("")

    def upstream_trailers(self, lines: bytes) -> None:
        self.upstream_content(b"", True)

    def fail(self, error: CallFailed) -> None:
        self._end(error.cause)

    def _end(self, cause: str) -> None:
        """`cause` is "" when the answer was as whole as anybody wants it, and else why it was not."""
        if self.is_over:
            return
        self.over()
        self.context.mirrors.free(self.key, self.size)
        self.body = b""
        self.context.recorder.mirrored(_OUTCOMES.get(cause, "lost"))


_OUTCOMES = {
    "": "sent",
    "unresolved": "unresolved",
    "connect": "connect",
    "timeout": "timeout",
    "limit": "busy",
    "unfinished": "unfinished",
}
"""By cause; any other is a connection that broke or an answer that was none."""
