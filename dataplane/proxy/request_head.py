"""What the headers of a request mean for this hop, read once per distinct header block. Pure.

The connection keeps what it learned from its last block: clients that keep a connection mostly send the same headers
again, and then nothing of this runs. Reading is strict (RFC 9112): a block that two readers could understand
differently is refused, and llhttp has to agree with us on where the message ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import httptools

from dataplane.http import uri
from dataplane.http.heads import Head
from dataplane.proxy import hop_headers
from dataplane.proxy.hop_headers import Framing

_HOST = b"\r\nhost:"
_CONNECTION = b"\r\nconnection:"
_SHORTEST_LINE = 4
"""Bytes of `a:` and CRLF."""


@dataclass(slots=True, eq=False)
class RequestHead:
    """A header block and what it says."""

    block: bytes
    """As received."""
    headers: bytes
    """As it goes on: hop-by-hop headers out, forwarding headers in."""
    low: bytes
    """`headers` in lower case."""
    host: bytes
    authority: bytes
    keep: bool
    """The client wants to keep the connection."""
    framing: Framing
    has_id: bool
    """The client sent an `x-request-id`."""


NOTHING = RequestHead(b"", b"", b"", b"", b"", False, hop_headers.NO_BODY, False)


@dataclass(frozen=True, slots=True)
class Peer:
    """What a connection knows of its client: `address` as text, `scheme` b"http" or b"https"."""

    address: str
    scheme: bytes = b"http"
    local: bytes = b""
    """Our own address and port, where it connected to."""


def read(line: bytes, block: bytes, version: bytes, absolute: bytes, peer: Peer, max_headers: int) -> RequestHead | str:
    """Understand a header block, or answer the reason code of a refusal.

    `line`: the request line (for llhttp); `absolute`: the authority of an absolute-form target, or b"".
    """
    low = block.lower()
    if len(low) > max_headers * _SHORTEST_LINE and low.count(b"\r\n") > max_headers + 1:
        return "HeadersTooLarge"
    named = _authority(low, version, absolute.lower())
    if named is None:
        return "BadRequest"
    authority, host = named
    head = Head(block, low)
    keep, options = _keep(head, version)
    framing = hop_headers.NO_BODY
    if hop_headers.RARE(low) is not None:
        framing = hop_headers.inspect(head, options, version)
        if framing.error:
            return framing.error
    if not _agreed(line, block, low, framing):
        return "BadRequest"
    if low.find(_HOST) < 0:  # HTTP/1.0: upstream speaks HTTP/1.1 and wants one (RFC 9112 3.3)
        authority = authority or peer.local
        head.append(b"host: %b\r\n" % authority)
    head.append(_forwarding(authority, framing, peer))
    if framing.upgrade:
        head.append(b"connection: upgrade\r\nupgrade: %b\r\n" % framing.upgrade)
    has_id = head.low.find(b"\r\nx-request-id:") >= 0
    return RequestHead(block, head.block, head.low, host, authority, keep, framing, has_id)


def _authority(low: bytes, version: bytes, absolute: bytes) -> tuple[bytes, bytes] | None:
    """(authority, canonical host), or None: RFC 9112 3.2 wants exactly one good Host, 3.2.2 the absolute form to win;
    we want the two to agree."""
    p = low.find(_HOST)
    if p < 0:
        if version == b"HTTP/1.1":
            return None
        return absolute, (uri.canonical_host(absolute) if absolute else None) or b""
    q = low.find(b"\r\n", p + 7)
    authority = low[p + 7 : q].strip(b" \t")
    host = uri.canonical_host(authority)
    if host is None or low.find(_HOST, q) >= 0 or (absolute and absolute != authority):
        return None
    return authority, host


def _keep(head: Head, version: bytes) -> tuple[bool, list[bytes]]:
    """RFC 9112 9.3: whether the connection persists; `Connection` and what it names is taken out."""
    if head.low.find(_CONNECTION) < 0:
        return version == b"HTTP/1.1", []
    options = hop_headers.connection_options(b",".join(head.get_all(b"connection")))
    hop_headers.remove_connection(head, options)
    return (version == b"HTTP/1.1" or b"keep-alive" in options) and b"close" not in options, options


def _forwarding(authority: bytes, framing: Framing, peer: Peer) -> bytes:
    """decisions, Forwarding headers: the peer appended to what came, protocol and host set; nothing sent is trusted."""
    chain = peer.address.encode()
    if framing.client_forwarded:
        chain = framing.client_forwarded + b", " + chain
    host = b"x-forwarded-host: %b\r\n" % authority if authority else b""
    return b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n%b" % (chain, peer.scheme, host)


class _Judge:
    """What llhttp says of a head: whether the message ends with it."""

    __slots__ = ("complete",)

    def __init__(self) -> None:
        self.complete = False

    def on_message_complete(self) -> None:
        self.complete = True


def _agreed(line: bytes, block: bytes, low: bytes, framing: Framing) -> bool:
    """Whether llhttp takes the head for one and sees the same framing."""
    if framing.chunked:
        block = _plain_coding(block, low)
    judge = _Judge()
    try:
        httptools.HttpRequestParser(judge).feed_data(b"%b%b\r\n" % (line, block))
    except httptools.HttpParserUpgrade:
        return not framing.chunked and not framing.length
    except httptools.HttpParserError:
        return False
    return judge.complete == (not framing.chunked and not framing.length)


def _plain_coding(block: bytes, low: bytes) -> bytes:
    """White space around a field's value is legal (RFC 9110 5.5), but llhttp minds it behind `chunked`."""
    p = low.find(b"\r\ntransfer-encoding:") + 20
    return b"%b chunked%b" % (block[:p], block[low.find(b"\r\n", p) :])
