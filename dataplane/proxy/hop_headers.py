"""What changes in a request's header block from hop to hop, edited as bytes (RFC 9110 7.6.1).

Most requests hold none of the rare names, and one regex search over the lower-case block says so; only then are they
looked at one by one. What is left in the block afterwards may go upstream, and policies see it as it will go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dataplane.http.heads import Head

RARE = re.compile(
    rb"\r\n(?:keep-alive|proxy-connection|te|transfer-encoding|upgrade|expect|content-length|http2-settings"
    rb"|forwarded|x[-_]forwarded[-_](?:for|proto|host|client[-_]cert)|x_request[-_]id|x-request_id)[ \t]*:"
).search
"""Request headers that need a decision."""

NOT_REMOVABLE = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"close", b"keep-alive", b"upgrade", b"te", b"x-request-id")
)
"""Options of `Connection` that are no header to take out, or not the client's to take out."""

_FORWARDED = (
    *(b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"),
    *(b"forwarded", b"x-forwarded-client-cert"),
)
"""What says who the client is: ours to say."""
_LOOKALIKES = re.compile(
    rb"\r\n((?:x[-_]forwarded[-_](?:for|proto|host|client[-_]cert)|x[-_]request[-_]id))[ \t]*:"
).findall
_LENGTH = re.compile(rb"[0-9]{1,18}").fullmatch
_DROPPED = (b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"expect", b"http2-settings")


@dataclass(slots=True)
class Framing:
    """How a request's body is delimited, and what it asks of this hop. `error`: reason code of a refusal, or ""."""

    length: int = 0
    chunked: bool = False
    expects: bool = False
    upgrade: bytes = b""
    error: str = ""
    client_forwarded: bytes = b""
    """`x-forwarded-for` as the client sent it."""

    @property
    def has_body(self) -> bool:
        return self.chunked or self.length > 0


NO_BODY = Framing()


def inspect(head: Head, options: list[bytes], version: bytes) -> Framing:
    """Read the rare headers of a request and take out those that end at this hop. `options`: those of `Connection`."""
    framing = Framing()
    framing.error = _body(head, framing, version)
    expect = head.get(b"expect")
    if expect is not None:
        if expect.lower() != b"100-continue":
            framing.error = framing.error or "ExpectationFailed"
        framing.expects = version == b"HTTP/1.1"
    upgrade = head.get(b"upgrade")
    if upgrade and b"upgrade" in options and version == b"HTTP/1.1" and b"h2c" not in connection_options(upgrade):
        framing.upgrade = upgrade
    framing.client_forwarded = b", ".join(filter(None, head.get_all(b"x-forwarded-for")))
    for name in (*_DROPPED, *_FORWARDED):
        head.remove(name)
    for name in _LOOKALIKES(head.low):  # an origin may read x_forwarded_for as x-forwarded-for
        if b"_" in name:
            head.remove(name)
    return framing


def _body(head: Head, framing: Framing, version: bytes) -> str:
    """RFC 9112 section 6.3, without any of its leniency: what two readers could frame differently is refused."""
    lengths = head.get_all(b"content-length")
    codings = head.get_all(b"transfer-encoding")
    if codings:
        if lengths or version != b"HTTP/1.1":
            return "BadRequest"
        names = connection_options(b",".join(codings))
        if names[-1] != b"chunked" or b"chunked" in names[:-1] or b"" in names:
            return "BadRequest"  # 6.3: where the body ends could not be told; that goes before the 501 of 6.1
        if len(names) > 1:
            return "CodingNotImplemented"
        framing.chunked = True
        head.set(b"transfer-encoding", b"chunked")
        return ""
    if lengths:
        if len(lengths) > 1 or _LENGTH(lengths[0]) is None:
            return "BadRequest"
        framing.length = int(lengths[0])
    return ""


def connection_options(value: bytes) -> list[bytes]:
    """`keep-alive, X-Hop` -> [b"keep-alive", b"x-hop"]."""
    return [option.strip(b" \t") for option in value.lower().split(b",")]


def remove_connection(head: Head, options: list[bytes]) -> None:
    """Take out `Connection` and the headers that it names."""
    head.remove(b"connection")
    for name in options:
        if name and name not in NOT_REMOVABLE:
            head.remove(name)
