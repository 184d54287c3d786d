"""What a header block has to be (RFC 9113 sections 8.1 to 8.3), and the head that is made of it. Pure.

Strict, because what leaves here is written into HTTP/1 heads: a name or a value that could end a line, a second
length, a coding, a host that differs from the authority is how one request becomes two. Fields come from the HPACK
decoder; a block has the form of `dataplane.http.heads.Head`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from dataplane.http.h2.errors import PROTOCOL_ERROR, StreamFailure
from dataplane.http.h2.events import RequestHead, ResponseHead
from dataplane.http.h2.hpack import Field
from dataplane.http.h2.lines import UNINDEXED
from dataplane.http.heads import plain_name, twin
from dataplane.http.messages import NO_NAMES
from dataplane.http.methods import METHODS
from dataplane.http.trailers import FORBIDDEN_TRAILERS
from dataplane.http.uri import MAX_AUTHORITY, SCHEME_PORTS

REASONS = {
    "FieldName": "8.2: upper case, a colon, or an octet that no name may have",
    "FieldValue": "8.2.1: CR, LF, NUL and other control characters, white space at an end",
    "PseudoHeader": "8.3: unknown, twice, for the other direction, missing, or with a value that it cannot have",
    "LatePseudoHeader": "8.3: behind a regular field, or in trailers",
    "ConnectionHeader": "8.2.2: a field that speaks of one HTTP/1 connection, or te other than trailers",
    "Authority": "8.3.1: user information, empty, none at all, or another than host",
    "ContentLength": "8.1.1: more than one, not a number, or not what came",
    "Connect": "8.5 and RFC 8441 4: CONNECT with the wrong pseudo-headers",
    "Trailers": "8.1: a second head without END_STREAM",
    "Interim": "8.1, 8.6: 101, or 1xx that ends the stream",
    "NoHead": "8.1: content before the head",
}
"""Why a stream is malformed (8.1.1), with the rule."""

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_VALUES = re.compile(rb"\n(?:[\t\x20-\x7e\x80-\xff]*+\n)++").fullmatch
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+\-.]*").fullmatch
_AUTHORITY = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=%:\[\]]+").fullmatch
"""RFC 3986 3.2 without user information, which RFC 9113 8.3.1 forbids."""
_PATH = re.compile(rb"/[\x21-\x22\x24-\x7e]*|\*").fullmatch
_DIGITS = re.compile(rb"[0-9]{1,18}").fullmatch
_STATUS = re.compile(rb"[1-5][0-9]{2}").fullmatch

_FORBIDDEN = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))
_LOOKALIKES = frozenset((b"content_length", b"transfer_encoding", b"http2-settings"))
"""Left out: some origins read "_" as "-"; and what only asks for an upgrade from HTTP/1."""
_SPECIAL = _FORBIDDEN | _LOOKALIKES | {b"te", b"host", b"cookie", b"content-length", b"expect"}
_REQUEST_PSEUDO = frozenset((b":method", b":scheme", b":authority", b":path", b":protocol"))
_RESPONSE_PSEUDO = frozenset((b":status",))
_OVERHEAD = 32
"""RFC 9113 6.5.2: bytes added to each field's size."""
_MOST_PSEUDO = sum([len(name) + _OVERHEAD for name in _REQUEST_PSEUDO])
_LONGEST_KNOWN_NAMES = 512


def _malformed(reason: str) -> NoReturn:
    raise StreamFailure(PROTOCOL_ERROR, reason)


class Regular:
    """What the fields behind the pseudo-headers came to."""

    __slots__ = ("block", "count", "expect", "host", "length", "low", "never_indexed", "size", "takes_trailers")

    def __init__(self) -> None:
        self.block = self.low = b"\r\n"
        self.size = 0
        """As RFC 9113 6.5.2 counts."""
        self.count = 0
        """Lines, after cookie crumbs were joined."""
        self.length = -1
        self.host: bytes | None = None
        self.expect = b""
        self.takes_trailers = False
        self.never_indexed = NO_NAMES


NO_FIELDS = Regular()


def regular(fields: list[Field], server: bool) -> Regular:
    """Check fields that are no pseudo-headers, and make their block. Raises StreamFailure. `server`: of a request."""
    if not fields:
        return NO_FIELDS
    names = [field[0] for field in fields]
    values = [field[1] for field in fields]
    made = Regular()
    made.size = sum(map(len, names))
    special = _known_names(tuple(names)) if made.size <= _LONGEST_KNOWN_NAMES else _check_names(tuple(names))
    _check_values(values)
    made.size += sum(map(len, values)) + _OVERHEAD * len(names)
    if special:
        names, values = _weigh(names, values, made, server)
    made.count = len(names)
    made.block = b"\r\n" + b"".join([name + b": " + value + b"\r\n" for name, value in zip(names, values, strict=True)])
    made.low = twin(made.block)
    if True in [field[2] for field in fields]:
        made.never_indexed = frozenset([field[0] for field in fields if field[2]]) - UNINDEXED
    return made


def _check_names(names: tuple[bytes, ...]) -> bool:
    """Whether some of them need a decision. Raises StreamFailure."""
    for name in names:
        if _NAME(name) is None:
            _malformed("LatePseudoHeader" if name.startswith(b":") else "FieldName")
    return not _SPECIAL.isdisjoint(names)


_known_names = lru_cache(256)(_check_names)
"""Values differ more often than the list of names."""


def _check_values(values: list[bytes]) -> None:
    """One look at all of them: a line feed between two, none within, no white space beside one (RFC 9113 8.2.1)."""
    joined = b"\n%b\n" % b"\n".join(values)
    if joined.count(b"\n") != len(values) + 1 or _VALUES(joined) is None:
        _malformed("FieldValue")
    if b"\n " in joined or b" \n" in joined or b"\n\t" in joined or b"\t\n" in joined:
        _malformed("FieldValue")


def _weigh(names: list[bytes], values: list[bytes], made: Regular, server: bool) -> tuple[list[bytes], list[bytes]]:
    """Take out what does not go on as it is, and what is refused; what stays."""
    kept: list[bytes] = []
    kept_values: list[bytes] = []
    cookie = -1
    for name, value in zip(names, values, strict=True):
        if name in _SPECIAL:
            if name in _FORBIDDEN:
                _malformed("ConnectionHeader")
            if name in _LOOKALIKES:
                continue
            if name == b"content-length":
                if made.length >= 0 or _DIGITS(value) is None:
                    _malformed("ContentLength")
                made.length = int(value)
            elif server:
                if name == b"cookie":  # 8.2.3: crumbs are one field for everybody but HTTP/2
                    if cookie >= 0:
                        kept_values[cookie] += b"; " + value
                        continue
                    cookie = len(kept)
                else:
                    _hop(name, value, made)
                    continue
            elif name == b"te":
                _malformed("ConnectionHeader")
        kept.append(name)
        kept_values.append(value)
    return kept, kept_values


def _hop(name: bytes, value: bytes, made: Regular) -> None:
    """A field of a request that ends here."""
    if name == b"te":
        if value.lower() != b"trailers":
            _malformed("ConnectionHeader")
        made.takes_trailers = True
    elif name == b"host":
        if made.host is not None:
            _malformed("Authority")
        made.host = value
    else:
        made.expect += b", " + value if made.expect else value


def pseudo(fields: list[Field], allowed: frozenset[bytes]) -> tuple[dict[bytes, bytes], int]:
    """The pseudo-headers, and where the regular fields begin. Raises StreamFailure (RFC 9113 8.3)."""
    found: dict[bytes, bytes] = {}
    count = 0
    for name, value, _ in fields:
        if name[:1] != b":":
            break
        if name not in allowed or name in found:
            _malformed("PseudoHeader")
        found[name] = value
        count += 1
    return found, count


class TooLarge(Exception):
    """A header list over the limit (RFC 9113 10.5.1); its fields were well-formed. `low`: its block in lower case;
    `asked`: method, path and authority, as they came."""

    def __init__(self, low: bytes, asked: tuple[bytes, bytes, bytes] = (b"", b"", b"")) -> None:
        super().__init__()
        self.low = low
        self.asked = asked


class HeadReader:
    """Heads of one connection: what was learned from the last fields saves reading them again."""

    __slots__ = ("_last", "_last_fields", "_max_headers", "_max_size", "_protocol", "_server")

    def __init__(self, server: bool, max_size: int, max_headers: int, protocol: bool) -> None:
        """`protocol`: `:protocol` was announced as understood (RFC 8441 3)."""
        self._server = server
        self._max_size = max_size
        self._max_headers = max_headers
        self._protocol = protocol
        self._last_fields: list[Field] = []
        self._last = NO_FIELDS

    def _regular(self, fields: list[Field], found: dict[bytes, bytes]) -> Regular:
        if fields == self._last_fields:
            made = self._last
        else:
            made = regular(fields, self._server)
            self._last_fields, self._last = fields, made
        size = made.size + sum(map(len, found.values()))
        if size + _MOST_PSEUDO > self._max_size:
            size += sum([len(name) + _OVERHEAD for name in found])
        if size > self._max_size or made.count > self._max_headers:
            self._last_fields, self._last = [], NO_FIELDS
            authority = found.get(b":authority") or made.host or b""
            raise TooLarge(made.low, (found.get(b":method", b""), found.get(b":path", b""), authority))
        return made

    def request(self, fields: list[Field]) -> RequestHead:
        """Raises StreamFailure, or TooLarge."""
        found, count = pseudo(fields, _REQUEST_PSEUDO)
        made = self._regular(fields[count:], found)
        method = found.get(b":method", b"")
        scheme = found.get(b":scheme", b"")
        path = found.get(b":path", b"")
        protocol = found.get(b":protocol")
        if method not in METHODS and _TOKEN(method) is None:
            _malformed("PseudoHeader")
        if method == b"CONNECT" or protocol is not None:
            self._connect(method, found)
        elif (
            _PATH(path) is None
            or (path == b"*" and method != b"OPTIONS")
            or (scheme not in SCHEME_PORTS and _SCHEME(scheme) is None)
        ):
            _malformed("PseudoHeader")
        authority = _authority(found.get(b":authority"), made.host)
        return RequestHead(
            method,
            scheme,
            authority,
            path,
            protocol or b"",
            made.block,
            made.low,
            made.length,
            made.expect,
            made.takes_trailers,
            made.never_indexed,
        )

    def _connect(self, method: bytes, found: dict[bytes, bytes]) -> None:
        """8.5: a plain CONNECT names an authority only; RFC 8441 4: an extended one is a request in full."""
        protocol = found.get(b":protocol")
        if protocol is None:
            if b":scheme" in found or b":path" in found or not found.get(b":authority"):
                _malformed("Connect")
        elif method != b"CONNECT" or not self._protocol or _TOKEN(protocol) is None:
            _malformed("Connect")
        elif _PATH(found.get(b":path", b"")) is None or _SCHEME(found.get(b":scheme", b"")) is None:
            _malformed("PseudoHeader")

    def response(self, fields: list[Field]) -> ResponseHead:
        """Raises StreamFailure, or TooLarge."""
        found, count = pseudo(fields, _RESPONSE_PSEUDO)
        status = found.get(b":status", b"")
        if _STATUS(status) is None:
            _malformed("PseudoHeader")
        made = self._regular(fields[count:], found)
        return ResponseHead(int(status), made.block, made.low, made.length, made.never_indexed)

    def trailers(self, fields: list[Field]) -> Regular:
        """Trailers, without what may be none. Raises StreamFailure, or TooLarge."""
        made = regular(fields, self._server)
        if made.size > self._max_size or made.count > self._max_headers:
            raise TooLarge(made.low)
        kept = [field for field in fields if plain_name(field[0]) not in FORBIDDEN_TRAILERS]
        return made if len(kept) == len(fields) else regular(kept, self._server)


@lru_cache(1024)
def _is_authority(text: bytes) -> bool:
    return _AUTHORITY(text) is not None


def _authority(sent: bytes | None, host: bytes | None) -> bytes:
    """8.3.1: `:authority` and `host` agree, and at least one names somebody."""
    authority = host if sent is None else sent
    if authority is None or not (_is_authority if len(authority) <= MAX_AUTHORITY else _AUTHORITY)(authority):
        _malformed("Authority")
    if host is not None and host is not authority and host.lower() != authority.lower():
        _malformed("Authority")
    return authority
