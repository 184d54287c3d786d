"""Request targets and host names, made canonical once, before anything matches or decides on them.

What is matched is what is sent upstream: a path that policies see differently from the origin is how `/public/../admin`
gets past a rule. Rules: RFC 3986 section 6.2.2 (percent-encoding and dot-segment normalisation), RFC 9112 section 3.2
(forms of the request target), RFC 9110 section 7.2 (Host).
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

PLAIN_PATH = rb"(?=/)(?>(?:/[A-Za-z0-9\-_~!$&'()*+,=:@][A-Za-z0-9\-_~!$&'()*+,=:@.]*+)*)/?"
"""A path that needs no normalising and is read alike by all: no escapes, no segment that is empty or begins with a dot,
no parameters (`http/spellings`). Not a possessive group: with an assertion in it, CPython before 3.11.5 matches nothing
by one (its issue 100061)."""
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_OF_PATHS = _UNRESERVED + b"!$&'()*+,;=:@/|^`{}\"<>[]%"
"""RFC 3986 pchar and "/", and the characters that browsers and SDKs send raw; no backslash and no "#"."""
_QUERY = re.compile(rb"[\x21\x22\x24-\x7e]*")
"""Any visible character but "#": queries are opaque to us."""
_escapes = re.compile(rb"%[0-9A-Fa-f]{2}").findall
_HEX = "0123456789ABCDEFabcdef"
_WRITTEN = {
    f"{high}{low}".encode(): bytes((octet,)) if (octet := int(high + low, 16)) in _UNRESERVED else b"%%%02X" % octet
    for high in _HEX
    for low in _HEX
}
"""What stands behind the "%" of an escape, and what is written for both."""
_CHANGED = {b"%" + digits: written for digits, written in _WRITTEN.items() if written != b"%" + digits}
_FEW = 64
"""Escapes that are replaced one kind after the other: each is a look at the whole path."""
_ABSOLUTE = re.compile(rb"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_REG_NAME = re.compile(rb"[a-z0-9_](?:[a-z0-9_.\-]*[a-z0-9_])?")
_PORT_OF_AUTHORITY = re.compile(rb".*:([1-9][0-9]{0,4})").fullmatch
"""Written plainly, from 1; that it is no greater than 65535 `_PORT` sees to."""
_PORT = re.compile(rb"(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})?")


_CONFIGURED = re.compile(r"/[\x21\x22\x24-\x7e]*").fullmatch

NO_PATH = b"*"
"""In place of a path: of `OPTIONS *`, which asks about the server as a whole, and of a CONNECT, which has none."""


def is_target(path: str) -> bool:
    """Whether a request can ask for it as configuration wrote it: from "/" on, with its query if it has one."""
    return _CONFIGURED(path) is not None


def canonical_path(path: bytes) -> bytes | None:
    """The path with unreserved characters decoded, escapes in upper case and dot segments removed; None: refuse it.

    Refused are characters that no path may hold, malformed escapes and an escaped NUL. "%2F" stays an escape, and empty
    segments ("//") stay: both mean something to some origins.
    """
    if path.translate(None, _OF_PATHS):
        return None
    if b"%" in path:
        escapes = _escapes(path)
        if len(escapes) != path.count(b"%"):
            return None
        path = _resolved(path, _CHANGED.keys() & set(escapes))
        if b"%00" in path:
            return None
    return without_dots(path) if b"/." in path else path


def _resolved(path: bytes, changed: set[bytes]) -> bytes:
    """`changed`: its escapes that are not canonical. No call for each of them: a client may send ten thousand."""
    if len(changed) <= _FEW:
        for escape in changed:
            path = path.replace(escape, _CHANGED[escape])
        return path
    first, *others = path.split(b"%")
    return first + b"".join([_WRITTEN[each[:2]] + each[2:] for each in others])


def without_dots(path: bytes) -> bytes:
    """RFC 3986 section 5.2.4 on an absolute path."""
    kept: list[bytes] = []
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            if kept:
                kept.pop()
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    return b"/" + b"/".join(kept)


def split_target(target: bytes) -> tuple[bytes, bytes] | None:
    """Origin-form `/path?query` -> (canonical path, query); None: refuse it."""
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/") or _QUERY.fullmatch(query) is None:
        return None
    canonical = canonical_path(path)
    return None if canonical is None else (canonical, query)


def split_absolute(target: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Absolute-form (RFC 9112 3.2.2) -> (scheme, authority, origin-form); None when it is not one."""
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        return None
    rest = match[3]
    return match[1].lower(), match[2], rest if rest.startswith(b"/") else b"/" + rest


def split_authority(target: bytes) -> tuple[bytes, int] | None:
    """Authority-form of a CONNECT (RFC 9112 3.2.3) -> (canonical host, port); None: refuse it. RFC 9110 9.3.6: there is
    no default port."""
    host = canonical_host(target)
    port = _PORT_OF_AUTHORITY(target)
    return None if host is None or port is None else (host, int(port[1]))


SCHEME_PORTS = {b"http": 80, b"https": 443}
"""Ports that a URI need not name (RFC 9110 4.2.1, 4.2.2)."""

MAX_ORIGIN = 512
"""Bytes of an origin's text (RFC 6454 6.2); nothing longer is one, or is remembered."""

MAX_AUTHORITY = 260
"""Bytes of the longest name, a trailing dot, and a port."""


def canonical_host(authority: bytes) -> bytes | None:
    """`Host` value -> lower-case host without port and trailing dot, IPv6 in brackets; None: refuse it."""
    return remembered_host(authority) if len(authority) <= MAX_AUTHORITY else None  # nothing long is remembered


@lru_cache(4096)
def remembered_host(authority: bytes) -> bytes | None:
    low = authority.lower()
    if low.startswith(b"["):
        literal, bracket, port = low.partition(b"]")
        if not bracket or (port and not port.startswith(b":")) or _PORT.fullmatch(port[1:]) is None:
            return None
        return _ipv6(literal[1:])
    host, _, port = low.partition(b":")
    if _PORT.fullmatch(port) is None:
        return None
    if host.endswith(b"."):
        host = host[:-1]
    if len(host) > 253 or _REG_NAME.fullmatch(host) is None or b".." in host:
        return None
    return host


def _ipv6(literal: bytes) -> bytes | None:
    if b"%" in literal:  # a zone means nothing to anybody but the sender (RFC 9110 4.2)
        return None
    try:
        return b"[" + ipaddress.IPv6Address(literal.decode("ascii")).compressed.encode() + b"]"
    except ValueError:
        return None
