"""A connection to a forward proxy that carries requests in absolute form (`backend.tunnel`, RFC 9112 3.2.2).

It is kept for one destination, as a tunnel would be: what a target and Host name is the endpoint that was chosen, never
what a client has sent, so no client can choose where the proxy goes. The proxy's credentials are made once for each
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.http.heads import lines_without
from dataplane.upstream.dial.tunnel_answer import UNAUTHENTICATED, refusal
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.opening import NoTunnel

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Consumer
    from dataplane.http.h1.response_head import H1ResponseHead
    from dataplane.net.writes import Writes
    from dataplane.upstream.endpoint import Pool

_REPLACED: Final = frozenset((b"host", b"proxy-authorization"))
"""A proxy takes the host from the target (RFC 9112 3.2.2); credentials of a client are not for this proxy."""
_DEFAULT_PORT: Final = ":80"


class ForwardedConnection(UpstreamConnection):
    """`credentials`: lines for the proxy, `proxy`: its name in messages; the opener of the connection sets both before
    the first request."""

    __slots__ = ("_host", "before_target", "credentials", "proxy")

    def __init__(self, endpoint: Pool, writes: Writes, on_close: Callable[[], None] = lambda: None) -> None:
        super().__init__(endpoint, writes, on_close)
        self._host = endpoint.label.removesuffix(_DEFAULT_PORT).encode("latin-1")
        self.before_target = b" http://" + self._host
        self.credentials = b""
        self.proxy = "-"

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        lines = lines_without(block, block.lower(), _REPLACED)
        super().begin(consumer, b"\r\nhost: %b\r\n%b%b" % (self._host, lines, self.credentials), first, end)

    def _learn(self, raw: bytes) -> H1ResponseHead | str:
        """That a proxy wants credentials is between us and it: a client cannot answer that."""
        head = super()._learn(raw)
        if not isinstance(head, str) and head.status == UNAUTHENTICATED:
            return NoTunnel(f"proxy {self.proxy} {refusal(UNAUTHENTICATED)}")
        return head
