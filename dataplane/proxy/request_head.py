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
from dataplane.http.heads import lines_of, without

_SPECIAL = re.compile(
    rb"\r\n(host|connection|content-length|transfer-encoding|expect|upgrade|te|keep-alive|proxy-connection"
    rb"|http2-settings|forwarded|x[-_]forwarded[-_](?:for|proto|host|client[-_]cert)|x[-_]request[-_]id)"
    rb"[ \t]*:[ \t]*([^\r]*)"
).finditer

_STAYS = frozenset((b"host", b"content-length", b"transfer-encoding", b"x-request-id"))
"""Of these, what goes on; the rest ends at this hop (RFC 9110 7.6.1), or says who the client is, which is ours to say
(an origin may read `x_forwarded_for` as `x-forwarded-for`)."""

_NOT_REMOVABLE = frozenset((*_STAYS, b"close", b"keep-alive", b"upgrade", b"te"))
"""Options of `Connection` that are no header to take out, or not the client's to take out."""

_LENGTH = re.compile(rb"[0-9]{1,18}").fullmatch
_SHORTEST_LINE = 4
"""Bytes of `a:` and CRLF."""


@dataclass(slots=True)
class Framing:
    """How a request's body is delimited, and what the request asks of this hop."""

    length: int = 0
    chunked: bool = False
    expects: bool = False
    upgrade: bytes = b""

    @property
    def has_body(self) -> bool:
        return self.chunked or self.length > 0


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
    has_body: bool
    has_id: bool
    """The client sent an `x-request-id`."""


NOTHING = RequestHead(b"", b"", b"", b"", b"", False, Framing(), False, False)


@dataclass(frozen=True, slots=True)
class Peer:
    """What a connection knows of its client: `address` as text, `scheme` b"http" or b"https"."""

    address: str
    scheme: bytes = b"http"
    local: bytes = b""
    """Our own address and port, where it connected to."""


@dataclass(slots=True)
class _Found:
    """The values of the special headers, in order."""

    hosts: list[bytes] = field(default_factory=list)
    options: list[bytes] = field(default_factory=list)
    lengths: list[bytes] = field(default_factory=list)
    codings: list[bytes] = field(default_factory=list)
    expect: bytes = b""
    upgrade: bytes = b""
    forwarded: list[tuple[int, int]] = field(default_factory=list)
    """Where the values of `x-forwarded-for` stand."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """What is to be cut out."""
    has_id: bool = False


def read(line: bytes, block: bytes, version: bytes, absolute: bytes, peer: Peer, max_headers: int) -> RequestHead | str:
    """Understand a header block, or answer the reason code of a refusal.

    `line`: the request line (for llhttp); `absolute`: the authority of an absolute-form target, or b"".
    """
    low = block.lower()
    if len(low) > max_headers * _SHORTEST_LINE and low.count(b"\r\n") > max_headers + 1:
        return "HeadersTooLarge"
    found = _look(low)
    named = _authority(found.hosts, version, absolute.lower())
    if named is None:
        return "BadRequest"
    authority, host = named
    framing, reason = _frame(found, version)
    if reason:
        return reason
    if not _agreed(line, block, framing):
        return "BadRequest"
    options = found.options
    keep = (version == b"HTTP/1.1" or b"keep-alive" in options) and b"close" not in options
    headers, low_headers = without(block, low, found.spans)
    for name in options:
        if name and name not in _NOT_REMOVABLE:
            headers, low_headers = without(headers, low_headers, lines_of(low_headers, name))
    ours = _ours(authority, found, block, framing, peer)
    headers, low_headers = headers + ours, low_headers + ours.lower()
    return RequestHead(
        block, headers, low_headers, host, authority or peer.local, keep, framing, framing.has_body, found.has_id
    )


def _look(low: bytes) -> _Found:
    """Find the special headers of a block in lower case."""
    found = _Found()
    for match in _SPECIAL(low):
        name, value = match.groups()
        if name not in _STAYS:
            found.spans.append((match.start(), match.end()))
        if name == b"host":
            found.hosts.append(value.rstrip(b" \t"))
        elif name == b"connection":
            found.options += [option.strip(b" \t") for option in value.split(b",")]
        elif name == b"content-length":
            found.lengths.append(value.rstrip(b" \t"))
        elif name == b"transfer-encoding":
            found.codings += [coding.strip(b" \t") for coding in value.split(b",")]
        elif name == b"x-request-id":
            found.has_id = True
        elif name == b"x-forwarded-for":
            found.forwarded.append(match.span(2))
        elif name == b"expect":
            found.expect = value.rstrip(b" \t")
        elif name == b"upgrade":
            found.upgrade = value.rstrip(b" \t")
    return found


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


def _frame(found: _Found, version: bytes) -> tuple[Framing, str]:
    """(framing, reason of a refusal): RFC 9112 section 6.3 without any of its leniency."""
    framing = Framing()
    if found.expect:
        if found.expect != b"100-continue":
            return framing, "ExpectationFailed"
        framing.expects = version == b"HTTP/1.1"
    protocols = [name.strip(b" \t") for name in found.upgrade.split(b",")]
    if found.upgrade and b"upgrade" in found.options and b"h2c" not in protocols and version == b"HTTP/1.1":
        framing.upgrade = found.upgrade
    lengths, codings = found.lengths, found.codings
    if codings:
        if lengths or version != b"HTTP/1.1":
            return framing, "BadRequest"
        if codings[-1] != b"chunked" or b"chunked" in codings[:-1] or b"" in codings:
            return framing, "BadRequest"  # 6.3: where the body ends could not be told; that goes before the 501 of 6.1
        if len(codings) > 1:
            return framing, "CodingNotImplemented"
        framing.chunked = True
    elif lengths:
        if len(lengths) > 1 or _LENGTH(lengths[0]) is None:
            return framing, "BadRequest"
        framing.length = int(lengths[0])
    return framing, ""


def _ours(authority: bytes, found: _Found, block: bytes, framing: Framing, peer: Peer) -> bytes:
    """decisions, Forwarding headers: the peer appended to what came, protocol and host set; nothing sent is trusted."""
    chain = peer.address.encode()
    if found.forwarded:
        sent = [block[start:end].strip(b" \t") for start, end in found.forwarded]
        chain = b", ".join([value for value in sent if value] + [chain])
    lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n" % (chain, peer.scheme)
    if not found.hosts:  # HTTP/1.0: upstream speaks HTTP/1.1 and wants one (RFC 9112 3.3)
        lines += b"host: %b\r\n" % (authority or peer.local)
    if authority:
        lines += b"x-forwarded-host: %b\r\n" % authority
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
