"""What a CONNECT carries as a connection of its own: a stream between an exchange and the protocol of the bind that it
addressed. Towards the exchange it is a `carriers.Upstream`, towards the protocol a transport (`net/stream_transport`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dataplane.net.stream_transport import StreamTransport

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Sleeper


class InnerConnection(StreamTransport):
    """`call_soon` is the loop's. Made before the bind's protocol is there: what comes until `open` is kept."""

    __slots__ = ("_consumer",)
    is_shared = False

    def __init__(self, consumer: Consumer, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        super().__init__(call_soon)
        self._consumer: Consumer | None = consumer

    # --- from the exchange (`carriers.Upstream`)

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        raise RuntimeError("a tunnel carries no request")  # who opens one does not ask

    content = StreamTransport.received
    pause = StreamTransport.block
    resume = StreamTransport.unblock

    def trailers(self, lines: bytes) -> None:
        self.received(b"", True)

    def reset(self) -> None:
        """The client's connection, or stream, is gone."""
        self._consumer = None
        self.lost(ConnectionResetError("the tunnel was reset"))

    def discard(self) -> Sleeper | None:
        self.reset()
        return None

    # --- to the exchange

    def _give(self, data: bytes, end: bool) -> None:
        if self._consumer is not None:
            self._consumer.upstream_content(data, end)

    def _hold(self) -> None:
        if self._consumer is not None:
            self._consumer.upstream_blocked()

    def _release(self) -> None:
        if self._consumer is not None:
            self._consumer.upstream_drained()

    def _closed(self, in_order: bool) -> None:
        """What was written has left for the client, whose carrier sends it before its own end."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.upstream_lost("closed" if in_order else "reset", False)
