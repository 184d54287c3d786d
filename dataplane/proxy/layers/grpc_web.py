"""gRPC-Web toward an endpoint of gRPC. Steps, log, retries and mirrors see the call as its client speaks. A response
that is no gRPC passes as it is.
Source: gRPC's document PROTOCOL-WEB.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import TYPE_CHECKING

from dataplane.http import grpc
from dataplane.http.grpc_web import Decoder, Malformed, trailer_message
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.proxy import grpc_calls
from dataplane.proxy.layers.layer import Layer

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Upstream
    from dataplane.proxy.active import ActiveExchange


class WebCall(Layer):
    """One try of one call."""

    __slots__ = ("_decoder", "_is_text", "_translates")

    def __init__(self, x: ActiveExchange, up: Upstream) -> None:
        assert x.grpc is not None  # the caller has checked that
        super().__init__(x, up)
        self._is_text = x.grpc.kind == grpc.WEB_TEXT
        self._decoder = Decoder() if self._is_text else None
        self._translates = False
        """The response is gRPC's."""
        self.is_shared, self.upgrade, self.takes_trailers = True, b"", True
        if self._is_text:
            self.length = UNKNOWN

    # --- from the exchange

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self._consumer = consumer
        head = Head(block)
        value = head.get(b"content-type") or b""
        head.set(b"content-type", b"application/grpc" + _suffix(value))
        if self._is_text:
            head.remove(b"content-length")
        data = self._decoded(first, end)
        if data is not None:
            self._up.begin(self, head.block, data, end)

    def content(self, data: bytes, end: bool) -> None:
        decoded = self._decoded(data, end)
        if decoded or (decoded is not None and end):
            self._up.content(decoded, end)

    def trailers(self, lines: bytes) -> None:
        """A call has none in this direction."""
        self.content(b"", True)

    def _decoded(self, data: bytes, end: bool) -> bytes | None:
        """None: it was malformed, and the call is over."""
        if self._decoder is None:
            return data
        try:
            return self._decoder.content(data, end)
        except Malformed as error:
            self._x.give_up("BadRequest", str(error))
            return None

    # --- from the carrier

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        made = Head(head.block, head.low)
        value = made.get(b"content-type") or b""
        self._translates = grpc.kind(value) == grpc.GRPC
        if not self._translates:
            self._consumer.upstream_head(head, first, end)
            return
        media = b"application/grpc-web-text" if self._is_text else b"application/grpc-web"
        made.set(b"content-type", media + _suffix(value))
        made.remove(b"content-length")
        length = UNKNOWN
        if end and not first:  # the head is the trailers, as it may be for these clients, too
            made.append(b"content-length: 0\r\n")
            length = 0
        translated = ResponseHead(head.status, head.line, made.block, made.low, length, head.is_dated)
        self._consumer.upstream_head(translated, self._encoded(first), end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        self._consumer.upstream_content(self._encoded(data), end)

    def upstream_trailers(self, lines: bytes) -> None:
        if not self._translates:
            self._consumer.upstream_trailers(lines)
            return
        grpc_calls.ended(self._x, lines)
        self._consumer.upstream_content(self._encoded(trailer_message(lines)), True)

    def _encoded(self, data: bytes) -> bytes:
        """Each piece with its own padding, as PROTOCOL-WEB allows: a message must not wait for the next one."""
        return b2a_base64(data, newline=False) if self._translates and self._is_text else data


def _suffix(content_type: bytes) -> bytes:
    """What stands behind the media type: "+proto" and the like, or b""."""
    _, plus, suffix = content_type.partition(b";")[0].strip().partition(b"+")
    return plus + suffix
