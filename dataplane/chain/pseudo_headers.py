"""Pseudo-headers (RFC 9113 8.3) of the request and the response, as a step may write them: one function for each.

Each `write_` takes a value that is a header value already, and answers whether it is one of this pseudo-header too;
then the exchange has changed in all places that say the same thing. A value that does not fit changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataplane.http import uri
from dataplane.http.methods import METHODS
from dataplane.http.statuses import SWITCHING

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Write = Callable[["Exchange", bytes], bool]

HEAD: Final = b"HEAD"
FINAL: Final = {b"%d" % status: status for status in range(200, 600)}
"""Statuses of final responses, as they are written."""


def write_method(x: Exchange, value: bytes) -> bool:
    """`:method`. HEAD stays HEAD and nothing becomes it: the client waits for a body, or for none, by what it asked."""
    if value not in METHODS or value == b"CONNECT" or (value == HEAD) != (x.method == HEAD):
        return False
    x.method = value
    return True


def write_path(x: Exchange, value: bytes) -> bool:
    """`:path`: path and query, made canonical as a client's. A prefix that the rule had matched counts no longer when
    the path has another one now."""
    split = uri.split_target(value)
    if split is None:
        return False
    x.path, x.query = split
    x.readings = ()
    x.target = x.path + b"?" + x.query if b"?" in value else x.path
    if x.prefix and not (x.path + b"/").startswith(x.prefix.rstrip(b"/") + b"/"):
        x.prefix = b""
    return True


def write_authority(x: Exchange, value: bytes) -> bool:
    """`:authority`, which is the `Host` header too (RFC 9113 8.3.1)."""
    host = uri.canonical_host(value)
    if not host:
        return False
    set_authority(x, value, host)
    return True


def set_authority(x: Exchange, authority: bytes, host: bytes) -> None:
    """Change all that says whom the request is for; `host`: the authority's, canonical. hostRewrite leaves it then."""
    if not x.host_set:
        x.asked_authority = x.authority
    x.authority, x.host, x.host_set = authority, host, True
    x.request.set(b"host", authority)


def write_scheme(x: Exchange, value: bytes) -> bool:
    """`:scheme`: what later steps and expressions take it for. How the backend is reached is its own setting."""
    if value not in (b"http", b"https"):
        return False
    x.scheme = value
    return True


def write_status(x: Exchange, value: bytes) -> bool:
    """`:status` of a final response. A 101 stays: behind it is what both sides have agreed on."""
    status = FINAL.get(value)
    if status is None:
        return False
    if x.status != SWITCHING:
        x.status = status
    return True


REQUEST: Final[dict[bytes, Write]] = {
    b":method": write_method,
    b":path": write_path,
    b":authority": write_authority,
    b":scheme": write_scheme,
    b"host": write_authority,  # the same thing under its name in HTTP/1.1
}
RESPONSE: Final[dict[bytes, Write]] = {b":status": write_status}
