"""A layer: to the exchange it is the carrier, to the carrier the consumer; `carriers` has the laws of both.

This one forwards everything as it is. A subclass says what it does otherwise. Each try of a request has layers of its
own; steps, log, retries and mirrors are outside of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Sleeper, Upstream
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange


class Layer:
    """One try: `carriers.Upstream` and `carriers.Consumer`. `up` carries it onward."""

    __slots__ = ("_consumer", "_up", "_x", "is_shared", "length", "method", "takes_trailers", "target", "upgrade")

    def __init__(self, x: ActiveExchange, up: Upstream) -> None:
        self._x = x
        self._up = up
        self._consumer: Consumer = x
        self.is_shared = up.is_shared
        self.method, self.target, self.length = x.method, x.target, x.length
        self.upgrade, self.takes_trailers = x.upgrade, x.takes_trailers

    # --- from the exchange (`carriers.Upstream`)

    @property
    def never_indexed(self) -> frozenset[bytes]:
        return self._x.never_indexed

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self._consumer = consumer
        self._up.begin(self, block, first, end)

    def content(self, data: bytes, end: bool) -> None:
        self._up.content(data, end)

    def trailers(self, lines: bytes) -> None:
        self._up.trailers(lines)

    def pause(self) -> None:
        self._up.pause()

    def resume(self) -> None:
        self._up.resume()

    def reset(self) -> None:
        self._up.reset()

    def discard(self) -> Sleeper | None:
        return self._up.discard()

    # --- from the carrier (`carriers.Consumer`)

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        self._consumer.upstream_never_indexed(names)

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._consumer.upstream_head(head, first, end)

    def upstream_interim(self, head: ResponseHead) -> None:
        self._consumer.upstream_interim(head)

    def upstream_content(self, data: bytes, end: bool) -> None:
        self._consumer.upstream_content(data, end)

    def upstream_trailers(self, lines: bytes) -> None:
        self._consumer.upstream_trailers(lines)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self._consumer.upstream_lost(cause, stale)

    def upstream_blocked(self) -> None:
        self._consumer.upstream_blocked()

    def upstream_drained(self) -> None:
        self._consumer.upstream_drained()
