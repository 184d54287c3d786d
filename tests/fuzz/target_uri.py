"""Target `uri`: targets and authorities against a second, naive reading of RFC 3986 sections 5.2.4 and 6.2.2.

Promises: every answer is canonical (asking again changes nothing), holds no dot segment and no escaped unreserved
character, and is what the naive reading makes of the same bytes.
"""

from __future__ import annotations

import ipaddress
import string

from dataplane.http import uri
from tests.fuzz.rig import require

SEEDS = (
    b"/",
    b"/a/../b/./c%2e%2E/%41?q=/../",
    b"/..;/%2F//%5c/%00",
    b"http://A.example:80/x/../y?z",
    b"[::1]:8080",
    b"a.example.:443",
    b"[fe80::1%25eth0]",
    b"127.0.0.1:65536",
)
LONGEST = 400

UNRESERVED = frozenset((string.ascii_letters + string.digits + "-._~").encode())
_PATH = UNRESERVED | frozenset(b"!$&'()*+,;=:@/|^`{}\"<>[]")
_HEX = frozenset(string.hexdigits.encode())
_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_.-")


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    split = uri.split_target(data)
    path, _, query = data.partition(b"?")
    naive = naive_path(path) if path[:1] == b"/" and all(32 < c < 127 and c != 35 for c in query) else None
    require((split is None) == (naive is None), f"{data!r}: {split}, the naive reading gives {naive!r}")
    if split is not None:
        require(split == (naive, query), f"{data!r} became {split}, wanted {(naive, query)}")
        require(uri.canonical_path(split[0]) == split[0], f"{split[0]!r} is not canonical")
    absolute = uri.split_absolute(data)
    if absolute is not None:
        scheme, authority, rest = absolute
        require(data.lower().startswith(scheme + b"://" + authority.lower()), f"{data!r} became {absolute}")
        require(rest[:1] == b"/" and data.endswith(rest[1:]), f"{data!r} became {absolute}")
    host = uri.canonical_host(data)
    require(host == naive_host(data), f"host {data!r}: {host!r}, wanted {naive_host(data)!r}")
    if host is not None:
        require(uri.canonical_host(host) == host, f"{host!r} is not canonical")


def naive_target(target: bytes) -> tuple[bytes, bytes]:
    """(origin-form as it must go upstream, authority of an absolute-form) of a target that was accepted."""
    authority = b""
    low = target.lower()
    if low.startswith((b"http://", b"https://")):
        rest = target.partition(b"://")[2]
        ends = [at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0]
        end = min(ends, default=len(rest))
        authority, target = rest[:end], rest[end:]
        if not target.startswith(b"/"):
            target = b"/" + target
    path, mark, query = target.partition(b"?")
    return (naive_path(path) or b"refused") + mark + query, authority


def naive_path(path: bytes) -> bytes | None:
    """Octet by octet, then segment by segment; None: not a path."""
    out, at = b"", 0
    while at < len(path):
        octet = path[at]
        if octet == 0x25:
            digits = path[at + 1 : at + 3]
            if len(digits) < 2 or not set(digits) <= _HEX or digits == b"00":
                return None
            value = int(digits, 16)
            out += bytes((value,)) if value in UNRESERVED else b"%" + digits.upper()
            at += 3
        elif octet in _PATH:
            out += path[at : at + 1]
            at += 1
        else:
            return None
    return remove_dots(out)


def remove_dots(path: bytes) -> bytes:
    """RFC 3986 section 5.2.4, as it is written there."""
    out: list[bytes] = []
    while path:
        if path.startswith(b"/./") or path == b"/.":
            path = b"/" + path[3:]
        elif path.startswith(b"/../") or path == b"/..":
            path = b"/" + path[4:]
            if out:
                out.pop()
        else:
            end = path.find(b"/", 1)
            end = len(path) if end < 0 else end
            out.append(path[:end])
            path = path[end:]
    return b"".join(out)


def naive_host(authority: bytes) -> bytes | None:
    """RFC 3986 section 3.2.2 with RFC 1123 names; underscores are taken, zones and user names are not."""
    low = authority.lower()
    if len(low) > uri.MAX_AUTHORITY:
        return None
    if low.startswith(b"["):
        end = low.find(b"]")
        host, after = low[1:end], low[end + 1 :]
        if end < 0 or b"%" in host or (after and (after[:1] != b":" or not _is_port(after[1:]))):
            return None
        try:
            return b"[" + str(ipaddress.IPv6Address(host.decode("ascii"))).encode() + b"]"
        except ValueError:
            return None
    host, _, port = low.partition(b":")
    host = host.removesuffix(b".")
    whole = 0 < len(host) <= 253 and set(host) <= _NAME and b".." not in host
    return host if whole and host[:1] not in b".-" and host[-1:] not in b".-" and _is_port(port) else None


def _is_port(text: bytes) -> bool:
    """Empty, or a number up to 65535 of at most five digits; five do not begin with a zero."""
    if len(text) == 5 and text.startswith(b"0"):
        return False
    return not text or (text.isdigit() and len(text) <= 5 and int(text) < 65536)
