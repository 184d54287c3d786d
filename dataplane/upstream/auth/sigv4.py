"""AWS Signature Version 4 of a request, in its header `authorization`. Pure; of our own.

Source: AWS, "Create a signed AWS API request" (IAM user guide). S3 alone takes paths as they are; of all others dot
segments are resolved and the path is escaped once more.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ALGORITHM: Final = b"AWS4-HMAC-SHA256"
UNSIGNED: Final = b"UNSIGNED-PAYLOAD"
"""In place of a digest of the content, for services that take it (`UNSIGNED_SERVICES`)."""
UNSIGNED_SERVICES: Final = frozenset((b"s3", b"s3-object-lambda"))
"""Their content passes as it comes, without a digest; their paths stay as they are."""

_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_ESCAPES: Final = [bytes((octet,)) if octet in _UNRESERVED else b"%%%02X" % octet for octet in range(256)]
_escape: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_gaps: Final = re.compile(rb" +")


class Keys(NamedTuple):
    """Credentials of AWS."""

    access: bytes
    secret: bytes
    token: bytes = b""
    """Of a temporary session; b"": they are permanent."""

    def __repr__(self) -> str:
        return "Keys(<redacted>)"


class Paths(NamedTuple):
    """How the path is signed."""

    normalizes: bool = True
    """Dot segments and empty ones are resolved."""
    escapes: bool = True
    """What is sent is escaped once more."""


class Scope(NamedTuple):
    """What a signature is for."""

    region: bytes
    service: bytes

    @property
    def paths(self) -> Paths:
        is_literal = self.service in UNSIGNED_SERVICES
        return Paths(not is_literal, not is_literal)


class Request(NamedTuple):
    """What is signed. `headers`: of those, each with its value; host among them. `content`: digest of the content in
    hexadecimal digits, or UNSIGNED."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    content: bytes


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def authorization(request: Request, keys: Keys, scope: Scope, moment: bytes, key: bytes = b"") -> bytes:
    """The value of the header. `moment`: as the header x-amz-date has it, which is one of `request.headers`; `key`: of
    `signing_key`, where somebody has it."""
    names, _ = _canonical_headers(request.headers)
    credential = b"/".join((keys.access, *_scope(scope, moment)))
    signature = signed(string_to_sign(request, scope, moment), key or signing_key(keys.secret, moment[:8], scope))
    return b"%b Credential=%b, SignedHeaders=%b, Signature=%b" % (ALGORITHM, credential, names, signature)


def signed(text: bytes, key: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()


def string_to_sign(request: Request, scope: Scope, moment: bytes, paths: Paths | None = None) -> bytes:
    canonical = canonical_request(request, scope.paths if paths is None else paths)
    return b"\n".join((ALGORITHM, moment, b"/".join(_scope(scope, moment)), digest_of(canonical)))


def canonical_request(request: Request, paths: Paths) -> bytes:
    path, _, query = request.target.partition(b"?")
    names, lines = _canonical_headers(request.headers)
    return b"\n".join(
        (request.method, _canonical_path(path, paths), _canonical_query(query), lines, names, request.content)
    )


def _scope(scope: Scope, moment: bytes) -> tuple[bytes, ...]:
    return moment[:8], scope.region, scope.service, b"aws4_request"


def signing_key(secret: bytes, day: bytes, scope: Scope) -> bytes:
    """It holds for a day."""
    key = b"AWS4" + secret
    for part in (day, scope.region, scope.service, b"aws4_request"):
        key = hmac.new(key, part, hashlib.sha256).digest()
    return key


def _escaped(text: bytes) -> bytes:
    return b"".join([_ESCAPES[octet] for octet in text])


def _unescaped(text: bytes) -> bytes:
    return _escape.sub(lambda match: bytes((int(match[1], 16),)), text) if b"%" in text else text


def _canonical_path(path: bytes, paths: Paths) -> bytes:
    """Segment by segment: an escaped slash separates none."""
    segments = (_normalized(path) if paths.normalizes else path or b"/").split(b"/")
    return b"/".join([_escaped(each if paths.escapes else _unescaped(each)) for each in segments])


def _normalized(path: bytes) -> bytes:
    """Without dot segments and empty ones (RFC 3986 5.2.4); a slash at the end stays."""
    kept: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    ends = path.endswith((b"/", b"/.", b"/..")) and kept
    return b"/" + b"/".join(kept) + (b"/" if ends else b"")


def _canonical_query(query: bytes) -> bytes:
    """Sorted by name, then value, after both are escaped in the one usual way."""
    pairs = [each.partition(b"=") for each in query.split(b"&") if each]
    return b"&".join(
        b"%b=%b" % pair
        for pair in sorted((_escaped(_unescaped(name)), _escaped(_unescaped(value))) for name, _, value in pairs)
    )


def _canonical_headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Names, and lines; of a name that comes several times the values in their order."""
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(_gaps.sub(b" ", value.strip(b" \t")))
    names = sorted(values)
    return b";".join(names), b"".join(b"%b:%b\n" % (name, b",".join(values[name])) for name in names)
