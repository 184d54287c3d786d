"""CORS: which other sites' scripts may use this one (Gateway API HTTPCORSFilter, Fetch standard 3.2).

A preflight (OPTIONS with `Origin` and `Access-Control-Request-Method`) is answered here and goes no further; one from
an origin that is not allowed gets no CORS headers. All other requests go on, and their response gets the headers that
their origin is due, whether the upstream made it or a later step that refused. What the upstream itself says of CORS
is taken out, and `Vary: Origin` is always there, so that no cache gives one site the answer for another.

Whether a method or header is allowed is the browser's to compare: the preflight's answer lists those that are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.filter import Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.origins import NAMED
from dataplane.chain.reply import Reply
from dataplane.http import well_known
from dataplane.http.heads import is_name, without_named
from dataplane.http.uri import MAX_ORIGIN, SCHEME_PORTS
from dataplane.http.well_known import PUBLISHED
from gatewright.turns import paced
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head

NAME = "cors"

DEFAULT_MAX_AGE = 5
"""Seconds (Gateway API)."""

PREFLIGHT = "CorsPreflight"
"""Reason in the log; it is no error."""

VARY, VARY_LOW = b"vary: Origin\r\n", b"vary: origin\r\n"
CREDENTIALS = b"access-control-allow-credentials: true\r\n"

WRITTEN_HERE: Final = {
    b"access-control-" + name
    for name in b"allow-origin allow-credentials allow-headers allow-methods expose-headers max-age".split()
}
"""Response headers that are this policy's alone."""

_PATTERN = re.compile(rb"(https?)://(\*|(?:\*\.)?[a-z0-9.\-]+)(?::([0-9]{1,5}))?").fullmatch
_LIST = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z, \t]{1,4096}").fullmatch
"""RFC 9110 5.6.1: tokens and commas."""

Lines = tuple[bytes, bytes]
"""Finished lines, `Vary` first, and the same in lower case."""

NOT_ALLOWED: Final[Lines] = (VARY, VARY_LOW)

REMEMBERED: Final = 16
"""Origins for which a policy keeps the lines: there may be thousands of policies, and clients choose the origins."""
MAX_HEAD: Final = 2048
"""Bytes of a response head that a policy keeps at most, for the same reason."""

IsAllowed = Callable[[bytes], bool]


def build(config: traffic_pb2.Cors, env: Env) -> Filter:
    """Raises `Refused` for an origin, method or header that none can be."""
    allowed = _allowed(config.allow_origins)
    named = _allowed([each for each in config.allow_origins if not _is_of_any_host(each)])
    any_origin = "*" in config.allow_origins and not config.allow_credentials
    credentials = CREDENTIALS if config.allow_credentials else b""
    exposed = _names(config.expose_headers, "exposeHeaders")
    lists_exposed = exposed == b"*" and config.allow_credentials
    expose = b"" if lists_exposed else _line(b"expose-headers", exposed)
    fixed = credentials + expose
    key = f"cors?{env.origin.key}"
    origins = _Origins(allowed, named, any_origin)
    return Filter(
        NAME,
        request=_request_hook(key, origins, fixed, _preflight(config, credentials, expose)),
        response=_response_hook(key, lists_exposed),
    )


def _is_of_any_host(origin: str) -> bool:
    return origin == "*" or origin.partition("://")[2].partition(":")[0] == "*"


def _allowed(origins: Sequence[str]) -> IsAllowed:
    """Whether an origin, in lower case, is one of those of the configuration."""
    if "*" in origins:
        return lambda origin: True
    exact = set()
    patterns = []
    for index, text in enumerate(paced(origins)):
        match = _PATTERN(text.lower().encode())
        if match is None:
            raise Refused(f"allowOrigins[{index}]: {text!r} is not an origin")
        scheme, host, port = match.groups()
        suffix = b":" + port if port and int(port) != SCHEME_PORTS[scheme] else b""
        if host.startswith(b"*"):
            patterns.append(b"%b://[a-z0-9_.\\-]+%b" % (scheme, re.escape(host[1:] + suffix)))
        else:
            exact.add(b"%b://%b%b" % (scheme, host, suffix))
    if not patterns:
        return exact.__contains__
    matches = re.compile(b"|".join(patterns)).fullmatch
    return lambda origin: origin in exact or matches(origin) is not None


@dataclass(frozen=True, slots=True)
class _Origins:
    """Which origins are allowed; `named`: those of them that are so by more than `*`. `any_origin`: all, without
    credentials."""

    allowed: IsAllowed
    named: IsAllowed
    any_origin: bool


def _request_hook(key: str, origins: _Origins, fixed: bytes, preflight: Preflight) -> RequestHook:
    """Answers preflights; of other requests with an allowed origin it leaves the response's lines at `key`."""
    for_any = _both(VARY + _line(b"allow-origin", b"*") + fixed)

    @lru_cache(REMEMBERED)
    def lines_for(origin: bytes) -> tuple[Lines, bool]:
        """The headers with which the browser lets this origin read the response; whether the origin is named."""
        low = origin.lower()
        if not origins.allowed(low):
            return NOT_ALLOWED, False
        lines = for_any if origins.any_origin else _both(VARY + _line(b"allow-origin", origin) + fixed)
        return lines, origins.named(low)

    def check(x: Exchange) -> Reply | None:
        head = x.request
        low = head.low
        start = low.find(b"\r\norigin:")
        if start < 0:
            return None
        start += 9
        origin = head.block[start : low.find(b"\r\n", start)].strip(b" \t")
        lines, is_named = lines_for(origin) if len(origin) <= MAX_ORIGIN else (NOT_ALLOWED, False)
        if x.method == b"OPTIONS" and (method := head.get(b"access-control-request-method")):
            if _is_about_metadata(x):
                return None
            return preflight.answer(lines[0], method, head)
        if lines is not NOT_ALLOWED:
            x.leave(key, lines)
            if is_named:
                x.leave(NAMED, True)
        return None

    return check


def _is_about_metadata(x: Exchange) -> bool:
    """Whether a later step answers: OAuth metadata is for pages of all sites, which have to find out who may let them
    in."""
    policies: Any = x.policies
    return policies.chain.publishes and well_known.resource_of(x.path) is not None


def _response_hook(key: str, lists_exposed: bool) -> ResponseHook:
    plain = b""
    """The last head that had nothing to take out and no `Vary`: upstreams say much the same again and again."""

    def edit(x: Exchange) -> None:
        nonlocal plain
        head = x.response
        assert head is not None  # response hooks run when there is one
        values = x.attributes
        left: Any = NOT_ALLOWED if values is None else values.get(key, NOT_ALLOWED)  # as the request hook left it
        if values is not None and PUBLISHED in values:
            return None
        lines, low_lines = left
        low = head.low
        if low != plain:
            if lists_exposed or low.find(b"\r\naccess-control-") >= 0 or low.find(b"\r\nvary:") >= 0:
                return _edit(head, lines, lists_exposed)
            plain = low[:MAX_HEAD]  # a longer one is equal to no head
        head.block += lines
        head.low = low + low_lines
        return None

    return edit


def _edit(head: Head, lines: bytes, lists_exposed: bool) -> None:
    head.block, head.low = without_named(head.block, head.low, WRITTEN_HERE)
    if lists_exposed and lines != VARY:
        lines += _line(b"expose-headers", b", ".join(dict.fromkeys(name for name, _ in head.items())))
    head.append(lines[len(VARY) :] if _varies_by_origin(head) else lines)


def _varies_by_origin(head: Head) -> bool:
    names = b",".join(head.get_all(b"vary")).lower().split(b",")
    return any(name.strip(b" \t") in (b"origin", b"*") for name in names)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What answers to preflights say beside the origin."""

    methods: bytes | None
    """A finished line; None: the method that was asked for."""
    headers: bytes | None
    """A finished line; None: the headers that were asked for."""
    wildcard: bytes
    """In place of `headers`, unless `authorization` is among those that were asked for: `*` does not cover it."""
    rest: bytes

    def answer(self, lines: bytes, method: bytes, head: Head) -> Reply:
        """To a preflight whose origin is due `lines`."""
        if lines == VARY:
            return Reply(204, PREFLIGHT, headers=VARY, detail="the origin is not allowed")
        end = lines.find(b"\r\n", len(VARY)) + 2  # after allow-origin: the rest is about reading responses
        methods = _echo(b"allow-methods", method) if self.methods is None else self.methods
        return Reply(204, PREFLIGHT, headers=lines[:end] + methods + self._headers(head) + self.rest)

    def _headers(self, head: Head) -> bytes:
        if self.headers is not None:
            return self.headers
        asked = b", ".join(head.get_all(b"access-control-request-headers"))
        if self.wildcard and b"authorization" not in asked.lower():
            return self.wildcard
        return _echo(b"allow-headers", asked)


def _preflight(config: traffic_pb2.Cors, credentials: bytes, expose: bytes) -> Preflight:
    methods = _names(config.allow_methods, "allowMethods")
    headers = _names(config.allow_headers, "allowHeaders")
    any_headers = headers == b"*"
    return Preflight(
        # With credentials a "*" is a name like others (Fetch 3.2.3), so what was asked for is listed instead.
        methods=None if methods == b"*" and credentials else _line(b"allow-methods", methods),
        headers=None if any_headers else _line(b"allow-headers", headers),
        wildcard=_line(b"allow-headers", headers) if any_headers and not credentials else b"",
        # GEP-1767 wants `expose-headers` here too, although browsers read it of the response itself (Fetch 3.2.3).
        rest=credentials + expose + _line(b"max-age", b"%d" % (config.max_age or DEFAULT_MAX_AGE)),
    )


def _names(names: Iterable[str], field: str) -> bytes:
    """The value of a header that lists them; `*` is a token too. Raises `Refused`."""
    values = [name.encode() for name in names]
    for index, value in enumerate(paced(values)):
        if is_name(value) is None:
            raise Refused(f"{field}[{index}]: {value.decode()!r} is not a token")
    return b", ".join(values)


def _line(name: bytes, value: bytes) -> bytes:
    """`access-control-<name>`, finished; an empty value would mean the same as no line."""
    return b"access-control-%b: %b\r\n" % (name, value) if value else b""


def _both(lines: bytes) -> Lines:
    return lines, lines.lower()


def _echo(name: bytes, asked: bytes) -> bytes:
    return _line(name, asked) if _LIST(asked) else b""
