"""CSRF: refuse what another site made a browser send (CSRF).

Three steps: GET, HEAD and OPTIONS pass; a request with neither `Sec-Fetch-Site` nor `Origin` passes, no browser sent
it; otherwise `Sec-Fetch-Site` decides, and without it `Origin` is compared with `Host`. An origin of
`additionalOrigins` passes in any case. `Origin: null` is an origin that equals none.

Hosts are compared with their ports, a missing one being that of the origin's scheme. The scheme itself is not compared,
because TLS may have ended before us; only where it ended here is an origin of `http` another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.uri import MAX_ORIGIN, SCHEME_PORTS
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "csrf"

SAFE: Final = frozenset((b"GET", b"HEAD", b"OPTIONS"))
OWN: Final = frozenset((b"same-origin", b"none"))
"""Values of `Sec-Fetch-Site` (Fetch Metadata 2.5) of requests that the site itself or the user made."""

SITE, ORIGIN = b"\r\nsec-fetch-site:", b"\r\norigin:"
JUDGED: Final = frozenset((b"sec-fetch-site", b"origin"))

_ORIGIN = re.compile(rb"([a-z][a-z0-9+.\-]*)://(\[[0-9a-f:.]+\]|[^\[\]:/?#@\s]+)(?::([0-9]{1,5}))?").fullmatch

Parts = tuple[bytes, bytes, int]
"""Scheme, host and port; 0 where it is not known."""


def build(config: traffic_pb2.Csrf, env: Env) -> Filter:
    """Raises `Refused` for an additional origin that is none."""
    additional = frozenset(_additional(config.additional_origins))
    failed = made("CsrfFailed", str(env.origin))

    def check(x: Exchange) -> Reply | None:
        if x.method in SAFE:
            return None
        low = x.request.low
        site = _value(low, SITE)
        if site is None:
            origin = _value(low, ORIGIN)
            if origin is None or _is_own(origin, x.scheme, x.authority):
                return None
        elif site in OWN:
            return None
        else:
            origin = _value(low, ORIGIN)
        return None if origin is not None and _origin(origin) in additional else failed

    return Filter(NAME, request=check, writes=JUDGED)


def _additional(origins: Iterable[str]) -> Iterable[Parts]:
    for index, text in enumerate(origins):
        origin = _origin(text.encode().lower())
        if origin is None:
            raise Refused(f"additionalOrigins[{index}]: {text!r} is not an origin")
        yield origin


def _value(low: bytes, needle: bytes) -> bytes | None:
    """Of a header, in lower case; None when it is not there. A browser sends one: two of them mean nothing, b""."""
    start = low.find(needle)
    if start < 0:
        return None
    start += len(needle)
    end = low.find(b"\r\n", start)
    return low[start:end].strip(b" \t") if low.find(needle, end) == -1 else b""


@lru_cache(1024)
def _parsed(value: bytes) -> Parts | None:
    match = _ORIGIN(value)
    if match is None:
        return None
    scheme, host, port = match.groups()
    return scheme, host.removesuffix(b"."), int(port) if port else SCHEME_PORTS.get(scheme, 0)


def _origin(value: bytes) -> Parts | None:
    """RFC 6454 6.2, of a text in lower case; None for `null` and whatever is none."""
    return _parsed(value) if len(value) <= MAX_ORIGIN else None


def _is_own(value: bytes, scheme: bytes, authority: bytes) -> bool:
    """Whether a request to this authority comes from its very origin."""
    if scheme == b"https" and value.startswith(b"http:"):
        return False
    name, _, rest = value.partition(b"://")
    if rest == authority and name and rest:  # as browsers write it
        return True
    origin = _origin(value)
    return origin is not None and _origin(b"%b://%b" % (name, authority.lower())) == origin
