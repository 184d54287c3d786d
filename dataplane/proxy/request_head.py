"""What the headers of a request mean for this hop, read once per distinct header block. Pure.

The connection keeps what it learned from its last block: clients that keep a connection often send the same headers
again, and then nothing of this runs. One regex search finds the headers that need a decision; all others pass unseen.
Reading is strict (RFC 9112): a block that two readers could understand differently is refused, and llhttp has to agree
with us on where the message ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import httptools

from dataplane.http import uri
from dataplane.http.heads import without, without_named

_SPECIAL = re.compile(
    rb"\r\n(?=[cefhkptux])(host|connection|content[-_]length|transfer[-_]encoding|expect|upgrade|te|keep-alive|proxy-connection"
    rb"|http2-settings|forwarded|x[-_]forwarded[-_](?:for|proto|host|client[-_]cert)|x[-_]request[-_]id)"
    rb"[ \t]*:[ \t]*([^\r]*)"
).finditer

_STAYS = frozenset((b"host", b"content-length", b"transfer-encoding", b"x-request-id"))
"""Of these, what goes on; the rest ends at this hop (RFC 9110 7.6.1), or says who the client is, which is ours to say
(an origin may read `x_forwarded_for` as `x-forwarded-for`, and `content_length` as what it is not)."""

_NOT_REMOVABLE = frozenset((*_STAYS, b"close", b"keep-alive", b"upgrade", b"te"))
"""Options of `Connection` that are no header to take out, or not the client's to take out."""

_LENGTH = re.compile(rb"[0-9]{1,18}").fullmatch
_SHORTEST_LINE = 4
"""Bytes of `a:` and CRLF."""


@dataclass(slots=True)
class Framing:
    """How a request's body is delimited, and what the request asks of this hop. Constant once it is made."""

    length: int = 0
    chunked: bool = False
    expects: bool = False
    upgrade: bytes = b""

    @property
    def has_body(self) -> bool:
        return self.chunked or self.length > 0


@dataclass(slots=True, eq=False)
class RequestHead:
    """A header block and what it says. The repr has nothing that may hold credentials."""

    block: bytes = field(repr=False)
    """As received."""
    headers: bytes = field(repr=False)
    """As it goes on: hop-by-hop headers out, forwarding headers in."""
    low: bytes = field(repr=False)
    """`headers` in lower case."""
    host: bytes
    authority: bytes
    keep: bool
    """The client wants to keep the connection."""
    framing: Framing
    has_body: bool
    has_id: bool
    """The client sent an `x-request-id`."""


_NO_BODY = Framing()
NOTHING = RequestHead(b"", b"", b"", b"", b"", False, _NO_BODY, False, False)


@dataclass(frozen=True, slots=True)
class Peer:
    """What a connection knows of its client: `address` as text, `scheme` b"http" or b"https"."""

    address: str
    scheme: bytes = b"http"
    local: bytes = b""
    """Our own address and port, where it connected to."""
    port: int = 0
    """Its port."""


def read(line: bytes, block: bytes, version: bytes, absolute: bytes, peer: Peer, max_headers: int) -> RequestHead | str:
    """Understand a header block, or answer the reason code of a refusal.

    `line`: the request line (for llhttp); `absolute`: the authority of an absolute-form target, or b"".
    """
    low = block.lower()
    if len(low) > max_headers * _SHORTEST_LINE and low.count(b"\r\n") > max_headers + 1:
        return "HeadersTooLarge"
    hosts: list[bytes] = []
    options: list[bytes] = []
    spans: list[tuple[int, int]] = []
    rare: list[re.Match[bytes]] = []
    has_id = False
    for match in _SPECIAL(low):  # what almost every request has is handled here, the rest by `_weigh`
        name, value = match.groups()
        if name == b"host":
            hosts.append(value.rstrip(b" \t"))
        elif name == b"connection":
            spans.append(match.span())
            options += [value] if value == b"keep-alive" else [option.strip(b" \t") for option in value.split(b",")]
        elif name == b"x-request-id":
            has_id = True
        else:
            rare.append(match)
            if name not in _STAYS:
                spans.append(match.span())
    named = _authority(hosts, version, absolute.lower())
    if named is None:
        return "BadRequest"
    authority, host = named
    framing, forwarded = _NO_BODY, peer.address.encode()
    if rare:
        weighed = _weigh(rare, options, version)
        if isinstance(weighed, str):
            return weighed
        framing = weighed
        forwarded = _chain(rare, block, forwarded)
    if not _agreed(line, block, framing):
        return "BadRequest"
    keep = (version == b"HTTP/1.1" or b"keep-alive" in options) and b"close" not in options
    headers, low_headers = without(block, low, spans)
    named_options = {*options} - _NOT_REMOVABLE
    if named_options:
        headers, low_headers = without_named(headers, low_headers, named_options)
    ours = _ours(authority, forwarded, not hosts, framing, peer)
    return RequestHead(
        block,
        headers + ours,
        low_headers + ours.lower(),
        host,
        authority or peer.local,
        keep,
        framing,
        framing.has_body,
        has_id,
    )


def _authority(hosts: list[bytes], version: bytes, absolute: bytes) -> tuple[bytes, bytes] | None:
    """(authority, canonical host), or None: RFC 9112 3.2 wants exactly one good Host, 3.2.2 the absolute form to win;
    we want the two to agree."""
    if not hosts:
        if version == b"HTTP/1.1":
            return None
        return absolute, (uri.canonical_host(absolute) if absolute else None) or b""
    authority = hosts[0]
    host = uri.canonical_host(authority)
    if host is None or len(hosts) > 1 or (absolute and absolute != authority):
        return None
    return authority, host


def _weigh(rare: list[re.Match[bytes]], options: list[bytes], version: bytes) -> Framing | str:
    """The framing, or the reason of a refusal: RFC 9112 section 6.3 without any of its leniency."""
    framing = Framing()
    lengths: list[bytes] = []
    codings: list[bytes] = []
    for match in rare:
        name, value = match.groups()
        value = value.rstrip(b" \t")
        if name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings += [coding.strip(b" \t") for coding in value.split(b",")]
        elif name == b"expect":
            if value != b"100-continue":
                return "ExpectationFailed"
            framing.expects = version == b"HTTP/1.1"
        elif name == b"upgrade" and b"upgrade" in options and version == b"HTTP/1.1":
            protocols = [protocol.strip(b" \t") for protocol in value.split(b",")]
            framing.upgrade = b"" if b"h2c" in protocols else value
    if codings:
        if lengths or version != b"HTTP/1.1":
            return "BadRequest"
        if codings[-1] != b"chunked" or b"chunked" in codings[:-1] or b"" in codings:
            return "BadRequest"  # 6.3: where the body ends could not be told; that goes before the 501 of 6.1
        if len(codings) > 1:
            return "CodingNotImplemented"
        framing.chunked = True
    elif lengths:
        if len(lengths) > 1 or _LENGTH(lengths[0]) is None:
            return "BadRequest"
        framing.length = int(lengths[0])
    return framing


def _chain(rare: list[re.Match[bytes]], block: bytes, peer: bytes) -> bytes:
    """`x-forwarded-for` with the peer behind what came."""
    sent = [block[slice(*match.span(2))].strip(b" \t") for match in rare if match[1] == b"x-forwarded-for"]
    return b", ".join([value for value in sent if value] + [peer])


def _ours(authority: bytes, forwarded: bytes, hostless: bool, framing: Framing, peer: Peer) -> bytes:
    """decisions, Forwarding headers: the peer appended to what came, protocol and host set; nothing sent is trusted."""
    lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n" % (forwarded, peer.scheme)
    if authority:
        lines += b"x-forwarded-host: %b\r\n" % authority
    if hostless:  # HTTP/1.0: upstream speaks HTTP/1.1 and wants one (RFC 9112 3.3)
        lines += b"host: %b\r\n" % (authority or peer.local)
    if framing.upgrade:
        lines += b"connection: upgrade\r\nupgrade: %b\r\n" % framing.upgrade
    return lines


class _Judge:
    """What llhttp says of a head: whether the message ends with it."""

    __slots__ = ("complete",)

    def __init__(self) -> None:
        self.complete = False

    def on_message_complete(self) -> None:
        self.complete = True


def _agreed(line: bytes, block: bytes, framing: Framing) -> bool:
    """Whether llhttp takes the head for one and sees the same framing."""
    judge = _Judge()
    try:
        httptools.HttpRequestParser(judge).feed_data(b"%b%b\r\n" % (line, block))
    except httptools.HttpParserUpgrade:
        return not framing.chunked and not framing.length
    except httptools.HttpParserError:
        return False
    return judge.complete == (not framing.chunked and not framing.length)
