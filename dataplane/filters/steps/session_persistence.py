"""Session persistence (Gateway API SessionPersistence): reads the session of a request, and writes what came of it.

The client keeps it, in a cookie or a header, sealed under the session key: a client cannot read which endpoint it is,
choose another one, or make it last longer. What is no session (of another key, changed, over) is none, and the response
brings a new one. Who finds the endpoint is `upstream/persistence`. A response that we made ourselves, or one of a
backend that chooses by other means, says nothing of sessions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.header_edits import header_name
from dataplane.http import cookies
from dataplane.http.heads import Head, is_name
from dataplane.upstream import persistence
from dataplane.upstream.persistence import ATTRIBUTE, Session, digest
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "session_persistence"

PURPOSE: Final = b"session persistence\0"
"""Of what is sealed, before the name of cookie or header: a session of one is none of another."""
MAX_READ: Final = 8
"""Cookies of the name, or headers, that are looked at: a client may have several, of other paths (RFC 6265 5.4)."""

_is_path = re.compile(r"/[!-:<-~]*").fullmatch
"""RFC 6265 4.1.1, path-value."""


class Place(NamedTuple):
    """Where a client keeps its session."""

    name: Callable[[Exchange], bytes]
    """Of the cookie or header."""
    texts: Callable[[Head, bytes], Iterable[bytes]]
    """What stands there, in a request's head, by name."""
    write: Callable[[Exchange, bytes, bytes], None]
    """Put a text there, by name, with the response."""


def build(config: traffic_pb2.SessionPersistence, env: Env) -> Filter:
    """Raises `Refused` for a name or path that none can be."""
    from dataplane.credentials.sealing import Sealer  # most workers have no session

    seconds = config.absolute_timeout_ms / 1000 or math.inf
    place = _in_header(config.header) if config.HasField("header") else _in_cookie(config.cookie, seconds)
    sealer = Sealer(env.session_key)

    def begin(x: Exchange) -> None:
        name, oldest = place.name(x), env.wall_clock() - seconds
        texts = islice(place.texts(x.request, name), MAX_READ)
        opened = (sealer.open(text.decode("latin-1"), PURPOSE + name) for text in texts if text)
        pins = [pin for content in opened if content for pin in persistence.read(content) if pin.begun > oldest]
        x.leave(ATTRIBUTE, Session(sorted(pins, key=persistence.begun)))

    def end(x: Exchange) -> None:
        session = persistence.session_of(x)
        if session is None or not session.backend or x.endpoint is None or x.reason:
            return
        pins = session.renewed(x.endpoint.label, int(env.wall_clock()))
        if pins is not None:
            name = place.name(x)
            place.write(x, name, sealer.seal(persistence.written(pins), PURPOSE + name).encode())

    return Filter(NAME, request=begin, response=end, silent=True)


def _in_header(config: traffic_pb2.SessionHeader) -> Place:
    name = header_name(config.name, "header.name")

    def write(x: Exchange, name: bytes, text: bytes) -> None:
        assert x.response is not None  # response hooks run when there is one
        x.response.set(config.name.encode(), text)

    return Place(lambda x: name, Head.get_all, write)


def _in_cookie(config: traffic_pb2.SessionCookie, seconds: float) -> Place:
    given = config.name.encode()
    if given and not is_name(given):
        raise Refused(f"cookie.name: {config.name!r} is no name of a cookie")
    if config.path and not _is_path(config.path):
        raise Refused(f"cookie.path: {config.path!r} is no path of a cookie")
    lasts = b"; Max-Age=%d" % math.ceil(seconds) if config.permanent and seconds < math.inf else b""
    attributes = b"; Path=%b%b; HttpOnly; SameSite=Strict" % (config.path.encode() or b"/", lasts)

    def write(x: Exchange, name: bytes, text: bytes) -> None:
        assert x.response is not None  # as above
        # Browsers take no Secure cookie from a page without TLS.
        secure = b"; Secure" if x.scheme == b"https" else b""
        x.response.add(b"set-cookie", b"%b=%b%b%b" % (name, text, attributes, secure))

    return Place(lambda x: given or _name(x), cookies.values, write)


def _name(x: Exchange) -> bytes:
    """Of the cookie of a route that does not say: one for all of its rules, which no other route has."""
    assert x.plan is not None  # the steps are those of a route
    return _of_route(x.plan.key.rpartition("/")[0])


@lru_cache(1024)
def _of_route(key: str) -> bytes:
    return b"gatewright-session-" + digest(key).hex().encode()
