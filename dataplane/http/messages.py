"""The vocabulary of a response that both protocols share. Requests have theirs in `dataplane/exchange`.

A message is a head, content, perhaps trailers, and an end; or it is reset. Header lines stay a block of bytes
(`http/heads`), also those of a protocol that has no lines: its carrier makes the block once. How content is delimited
(chunks, frames, the end of a connection) is known to carriers alone: no block has `transfer-encoding`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.http.heads import Head

UNKNOWN = -1
"""Length of content that its head does not announce."""


NO_NAMES: Final[frozenset[bytes]] = frozenset()
"""Of a message without fields that may be in no table (`carriers.Consumer.never_indexed`)."""


@dataclass(slots=True, eq=False)
class ResponseHead:
    """What an endpoint's response begins with. Carriers share one between equal responses: it is not changed, but for
    what `http/dates` remembers with it."""

    status: int
    line: bytes
    """The status line as HTTP/1.1 has it, without CRLF: a reason phrase passes."""
    block: bytes
    """Header lines without those of the endpoint's connection."""
    low: bytes | None
    """Their lower-case twin (`http/heads`); None: it is made when it is needed, which is rare."""
    length: int
    """Bytes of content that will follow; 0: none will (also to HEAD, whatever `content-length` says); or `UNKNOWN`."""
    is_dated: bool
    """It has `date`; if not, it gets one when it is passed on (`http/dates`)."""
    upgrade: bytes = b""
    """The protocol of a 101."""
    dated: bytes = field(default=b"", init=False)
    dated_from: float = field(default=0.0, init=False)
    dated_until: float = field(default=0.0, init=False)
    """The block with a `date` made here, and between which moments it is right; only `http/dates` looks at it."""


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """What a handshake of TLS came to, as far as somebody asks: that is paid for with each connection."""

    alpn: bytes
    """The protocol that both chose; b"": none."""
    sni: bytes
    """The server name that the client asked for, lower case; b"": none."""
    certificate: bytes = b""
    """The peer's, as DER; b"": it sent none, or it would not have been verified."""
    is_proven: bool = False
    """That certificate was verified."""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """What a connection knows of its two ends: `address` as text, `scheme` b"http" or b"https"."""

    address: str
    scheme: bytes = b"http"
    local: bytes = b""
    """Our own address and port, where it connected to."""
    port: int = 0
    """Its port."""
    raw_address: str = ""
    """Of what connects to us, where a PROXY header has named the client; "": `address` and `port` are."""
    raw_port: int = 0
    is_gateway: bool = False
    """It has sent a PROXY header, without which no client may connect here: the peer is a trusted gateway."""
    tls: TlsInfo | None = None
    """None: plaintext."""
    listener: str = ""
    """Key of the listener that was chosen before any request: by the server name of TLS, or because it is alone."""
    asked: bytes = b""
    """A digest of what that listener asked of the client's certificate when the connection began; b"": nothing."""
    tunnels: int = 0
    """Within how many tunnels of CONNECT it lies."""
    connect: Head | None = field(default=None, repr=False, compare=False)
    """Headers of the request that opened the innermost of these."""
    workload: TlsInfo | None = None
    """Of the tunnel of a mesh that it lies within: who opened that; None: it lies within none."""

    def secured(self, tls: TlsInfo, listener: str, asked: bytes) -> Peer:
        """The same, of whom a handshake is done: all fields by their place, which each connection of TLS pays for."""
        return Peer(
            self.address,
            b"https",
            self.local,
            self.port,
            self.raw_address,
            self.raw_port,
            self.is_gateway,
            tls,
            listener,
            asked,
            self.tunnels,
            self.connect,
            self.workload,
        )
