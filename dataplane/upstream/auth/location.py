"""Where a credential toward a backend is written: a header, a parameter of the query, or a cookie. Pure.

What stands there already is replaced, however it is spelt: nothing that a client sent passes for our credential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote_from_bytes

from dataplane.http.heads import is_name, is_value, plain_name
from dataplane.http.parameters import without
from dataplane.upstream.outgoing import Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.upstream.outgoing import Outgoing

REASON: Final = "BackendAuthenticationFailed"
"""As `chain/replies`."""

_COOKIE: Final = b"cookie"
_UNFIT: Final = frozenset(b'",;\\') | frozenset(range(0x21)) | frozenset(range(0x7F, 0x100))
"""What a cookie's value cannot have (RFC 6265 4.1.1)."""


class Place(NamedTuple):
    """`write(out, credential)` raises `Unfinished` for one that cannot stand there; `fits` says why not, "" where it
    can."""

    write: Callable[[Outgoing, bytes], None]
    fits: Callable[[bytes], str]


def in_header(name: bytes, prefix: bytes) -> Place:
    """The only header of this name. `prefix`: what stands before the credential; with white space between where it
    ends like a name (RFC 9110 11.4), as the policies that read clients' credentials take it."""
    before = prefix.rstrip(b" ")
    if before and is_name(before[-1:]) is not None:
        before += b" "
    low = name.lower()

    def write(out: Outgoing, credential: bytes) -> None:
        _require(fits_header(credential))
        out.head.set(name, before + credential)
        out.hide(low)

    return Place(write, fits_header)


def in_query(name: bytes) -> Place:
    """The last parameter of the query, escaped (RFC 3986 2.1)."""
    start = quote_from_bytes(name, safe="").encode() + b"="

    def write(out: Outgoing, credential: bytes) -> None:
        target = without(out.target, name)
        mark = b"&" if b"?" in target else b"?"
        out.target = target + mark + start + quote_from_bytes(credential, safe="").encode()

    return Place(write, _fits_anything)


def in_cookie(name: bytes) -> Place:
    """The last pair of one header Cookie (RFC 6265 5.4)."""

    def write(out: Outgoing, credential: bytes) -> None:
        _require(fits_cookie(credential))
        sent = b";".join(out.head.get_all(_COOKIE)).split(b";")
        pairs = [pair.strip(b" \t") for pair in sent]
        others = [pair for pair in pairs if pair and pair.partition(b"=")[0].rstrip(b" \t") != name]
        out.head.set(_COOKIE, b"; ".join((*others, name + b"=" + credential)))

    return Place(write, fits_cookie)


def fits_header(credential: bytes) -> str:
    return "" if is_value(credential) is not None else "it has characters that a header cannot have"


def fits_cookie(credential: bytes) -> str:
    return "it has characters that a cookie cannot have" if _UNFIT.intersection(credential) else ""


def _fits_anything(_: bytes) -> str:
    return ""


def _require(problem: str) -> None:
    if problem:
        raise Unfinished(REASON, f"the credential cannot be sent: {problem}")


AUTHORIZATION: Final = b"authorization"
BEARER: Final = in_header(AUTHORIZATION, b"Bearer")
"""Where no location is given (`backend.auth.location`)."""
BASIC: Final = in_header(AUTHORIZATION, b"Basic")
"""The same for user and password, whose scheme is part of them (RFC 7617)."""

RESERVED: Final = frozenset((b"host", b"content-length", b"transfer-encoding", b"connection", b"cookie", b"te"))
"""Headers that frame the message or that a request has one of: no credential is written there."""


def is_reserved(name: bytes) -> bool:
    return plain_name(name) in RESERVED
