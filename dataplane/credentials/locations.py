"""Where a credential stands in a request: finding it, reading it, taking it out without touching its neighbours.

Used by the filters of JWT, basic and API key authentication. What a client sends twice is never resolved by taking the
first: `AMBIGUOUS`. Nothing here knows whether a credential is good.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.chain import expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import EndHook, Env, Filter, Refused, RequestHook
from dataplane.chain.header_edits import header_name
from dataplane.chain.replies import made
from dataplane.http import cookies
from dataplane.http.heads import is_name, lines_of
from dataplane.http.parameters import parameter
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Found = tuple[bytes, int, int]
"""What stands there, as sent, and which bytes of the head or target go with it."""

AMBIGUOUS: Found = (b"", -1, -1)
"""There are several, or it is no text."""

REDACTED = b"<redacted>"


def _nothing(x: Exchange, found: Found) -> None:
    """Of what an expression computed nothing can be taken out."""


@dataclass(frozen=True, slots=True)
class Location:
    """One place. `find`: what stands there, or None. `read`: the credential in it, or None where it is one of another
    kind (another scheme). `remove`: take it out; the offsets are those of the last `find` on an unchanged request."""

    find: Callable[[Exchange], Found | None]
    read: Callable[[bytes], bytes | None]
    remove: Callable[[Exchange, Found], None]
    needle: bytes = b""
    """What the line of the header that it is in begins with, CRLF before it, in lower case; or b""."""
    scheme: bytes = b""
    """Its authentication scheme, as configured (RFC 9110 11.1), or b""."""
    reads_body: int = 0
    """Whose bodies are read to find it (`expressions.reads_request_body`)."""
    headers: frozenset[bytes] = frozenset()
    """Of which an expression makes it (`Filter.writes`)."""
    end: EndHook | None = None
    """Keeps the credential out of the log, also of requests that another step has answered."""

    def step(self, name: str, hook: RequestHook, env: Env) -> Filter:
        """The filter `name` of a hook that looks here; with the whole body, where finding the credential reads it."""
        request = hook
        if self.reads_body:
            request = buffering(hook, env.buffer_limit, made("BodyTooLarge", str(env.origin)), self.reads_body)
        return Filter(name, request=request, end=self.end, writes=self.headers | {self.needle[2:-1]} - {b""})


def location(config: authentication_pb2.CredentialLocation, scheme: bytes) -> Location:
    """The place that a policy names; where it names none, the header Authorization with `scheme`. Raises `Refused`."""
    kind = config.WhichOneof("kind")
    if kind == "header":
        return in_header(config.header.name, config.header.prefix.encode())
    if kind == "query_parameter":
        return in_query(config.query_parameter.name)
    if kind == "cookie":
        return in_cookie(config.cookie.name)
    if kind == "expression":
        return by_expression(config.expression)
    return in_header("Authorization", scheme)


def hiding(config: authentication_pb2.CredentialLocation) -> EndHook | None:
    """`Location.end` of a place that no location could be made of, or whose policy cannot be built."""
    return _hiding(config.query_parameter.name.encode()) if config.HasField("query_parameter") else None


def whole(raw: bytes) -> bytes:
    return raw


# --- a header

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def in_header(name: str, prefix: bytes) -> Location:
    """The value of a header, after `prefix`. Raises `Refused`."""
    low_name = header_name(name, "location.header.name")
    if low_name == b"host":  # RFC 9112 3.2: a request has one
        raise Refused("location.header.name: host cannot be taken out")
    if _CONTROL.search(prefix):
        raise Refused("location.header.prefix: control characters, which no header has")
    needle = b"\r\n" + low_name + b":"
    length = len(needle)

    def find(x: Exchange) -> Found | None:
        head = x.request
        low = head.low
        start = low.find(needle)
        if start < 0:
            return None
        # A head has CR in CRLF only, and one byte is found ten times faster than two.
        end = low.find(b"\r", start + length)
        if low.find(needle, end) != -1:
            return AMBIGUOUS
        return head.block[start + length : end], start, end

    scheme = prefix.rstrip(b" ")
    read = _after(scheme) if scheme else _stripped
    return Location(find, read, _cut, needle, scheme if is_name(scheme) else b"")


def _stripped(raw: bytes) -> bytes:
    return raw.strip(b" \t")


def _after(prefix: bytes) -> Callable[[bytes], bytes | None]:
    """What follows the prefix, whose letter case does not matter (RFC 9110 11.1). A prefix that could go on as a longer
    scheme is one only when white space follows."""
    low, length = prefix.lower(), len(prefix)
    spaced = is_name(prefix[-1:]) is not None
    usual = b" " + prefix + (b" " if spaced else b"")

    def read(raw: bytes) -> bytes | None:
        if raw.startswith(usual):
            return raw[len(usual) :].strip(b" \t")
        value = raw.strip(b" \t")
        if value[:length].lower() != low:
            return None
        rest = value[length:]
        if spaced and rest and rest[0] not in b" \t":
            return None
        return rest.strip(b" \t")

    return read


def _cut(x: Exchange, found: Found) -> None:
    """Take bytes out of the request's head."""
    _, start, end = found
    head = x.request
    block, low = head.block, head.low
    head.block = block[:start] + block[end:]
    head.low = low[:start] + low[end:]


# --- a parameter of the query


def in_query(name: str) -> Location:
    """The value of a query parameter, percent-decoded ("+" stays: base64 has it). Its value never goes to the log."""
    wanted = name.encode()

    def find(x: Exchange) -> Found | None:
        target = x.target
        at = target.find(b"?") + 1
        if not at:
            return None
        spans = _parameters(target, at, wanted)
        if not spans:
            return None
        x.asked_target = redacted(x.asked_target, wanted)
        if len(spans) > 1:
            return AMBIGUOUS
        start, end = spans[0]
        return target[start:end].partition(b"=")[2], start, end

    return Location(find, _decoded, _cut_parameter, end=_hiding(wanted))


def _parameters(target: bytes, at: int, wanted: bytes) -> list[tuple[int, int]]:
    """Where the parameters called `wanted` stand in a target whose query begins at `at`."""
    mark = at - 1
    return [(at + match.start(), mark + match.end()) for match in parameter(wanted).finditer(target[mark:])]


_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def _decoded(text: bytes) -> bytes:
    """RFC 3986 2.1; what is no escape stays."""
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), text) if b"%" in text else text


def redacted(target: bytes, name: bytes) -> bytes:
    """A target in which the values of a parameter cannot be read."""
    mark = target.find(b"?")
    if mark == -1:
        return target
    pieces = parameter(name).split(target[mark:])
    if len(pieces) == 1:
        return target
    pieces[1::2] = [start + b"=" + REDACTED for start in pieces[1::2]]
    return target[:mark] + b"".join(pieces)


def _hiding(name: bytes) -> EndHook:
    def hide(x: Exchange) -> None:
        x.asked_target = redacted(x.asked_target, name)

    return hide


def _cut_parameter(x: Exchange, found: Found) -> None:
    """Take a parameter and one "&" out; with the last parameter goes the "?"."""
    _, start, end = found
    target = x.target
    if end < len(target):
        target = target[:start] + target[end + 1 :]
    else:
        target = target[: start - 1]
    x.target = target
    x.query = target.partition(b"?")[2]


# --- a cookie


def in_cookie(name: str) -> Location:
    """The value of a cookie (RFC 6265 4.2.1), without the quotation marks that it may stand in. Raises `Refused`."""
    if not is_name(name.encode()):  # with a ";" or "=" in it, this would be found in another cookie
        raise Refused(f"location.cookie.name: {name!r} is no name of a cookie")
    pairs = cookies.pairs(name.encode()).finditer

    def find(x: Exchange) -> Found | None:
        head = x.request
        if cookies.LINE not in head.low:
            return None
        found: Found | None = None
        for line, end in lines_of(head.low, b"cookie"):
            at = line + len(cookies.LINE)
            for match in pairs(head.block[at:end]):
                start, stop = match.span(1)
                if found is not None:
                    return AMBIGUOUS
                value = match[1].partition(b"=")[2].strip(b" \t")
                found = (value, *_cookie_span(head.block, line, end, at + start, at + stop))
        return found

    return Location(find, cookies.unquoted, _cut)


def _cookie_span(block: bytes, line: int, end: int, start: int, stop: int) -> tuple[int, int]:
    """What goes with a cookie: the ";" before it, or for the first the ";" and white space after it; with the only one
    the whole line."""
    at = line + len(cookies.LINE)
    if start > at:
        return start - 1, stop
    rest = block[stop + 1 : end]
    if not rest.strip(b" \t;"):
        return line, end
    gap = len(rest) - len(rest.lstrip(b" \t"))
    indent = len(block[start:stop]) - len(block[start:stop].lstrip(b" \t"))
    return start + indent, stop + 1 + gap


# --- an expression


def by_expression(text: str) -> Location:
    """The value of an expression: text or bytes. One that fails, or gives null or "", finds none. Raises `Refused`."""
    program = expressions.compiled(text, "request", "location.expression")
    value_of = expressions.plain(program)

    def find(x: Exchange) -> Found | None:
        value = value_of(x)
        if value is None or value == b"":
            return None
        return (value, 0, 0) if isinstance(value, bytes) else AMBIGUOUS

    return Location(
        find,
        whole,
        _nothing,
        reads_body=expressions.reads_request_body([program]),
        headers=expressions.headers_read([program]),
    )
