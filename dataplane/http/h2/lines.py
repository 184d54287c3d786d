"""Header blocks as fields for the HPACK encoder. Pure.

Blocks and lines repeat, so both are remembered: a block that was sent lately costs a look-up, a new one a look-up for
each line that was. What is remembered is bounded in number and length.
"""

from __future__ import annotations

from functools import lru_cache

from dataplane.http.h2.hpack import Field
from dataplane.http.heads import is_name, is_value

MOST_LINES = 4096
LONGEST_LINE = 256
_LONGEST_BLOCK = 2048
"""Lines and blocks whose meaning is remembered by a process: how many lines, and bytes of the longest of each."""

_HOP = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"http2-settings")
)
"""RFC 9113 8.2.2: never sent. An interpreter of HTTP/1 heads has taken out what `Connection` names."""

UNINDEXED = frozenset(
    (
        *(b"authorization", b"proxy-authorization", b"cookie", b"set-cookie", b"x-api-key"),
        *(b"content-length", b"content-range", b"age", b"etag", b"last-modified", b"location", b"if-none-match"),
        *(b"if-modified-since", b"x-request-id", b"x-forwarded-for", b"traceparent", b"tracestate", b"grpc-timeout"),
    )
)
"""Fields that go into no dynamic table: credentials (RFC 7541 7.1: on a connection with streams of many clients one
could find out another's), and values that are new each time, which would drive out those that are not."""


class BadLine(ValueError):
    """A line of a block is no header field; nothing of it may be sent."""


def _field(line: bytes) -> Field | None:
    """One header line; None: it is not sent."""
    name, colon, value = line.partition(b":")
    value = value.strip(b" \t")
    if not colon or is_name(name) is None or is_value(value) is None:
        raise BadLine("a line of the block is no header field")
    name = name.lower()
    if name in _HOP or (name == b"te" and value.lower() != b"trailers"):
        return None
    return name, value, name in UNINDEXED


class Lines(dict[bytes, "Field | None"]):
    """Line -> its field. Looking one up that is not here reads it, and remembers it unless it is long."""

    def __init__(self, left_out: frozenset[bytes] = frozenset()) -> None:
        """`left_out`: names of lines that are not sent."""
        self._left_out = left_out

    def __missing__(self, line: bytes) -> Field | None:
        field = _field(line)
        if field is not None and field[0] in self._left_out:
            field = None
        if len(line) <= LONGEST_LINE:
            if len(self) >= MOST_LINES:  # most of them were seen once
                self.clear()
            self[line] = field
        return field


_LINES, _REQUEST_LINES = Lines(), Lines(frozenset((b"host",)))


def _fields(block: bytes, lines: Lines = _LINES) -> list[Field]:
    if block == b"\r\n":
        return []
    return [field for field in map(lines.__getitem__, block[2:-2].split(b"\r\n")) if field is not None]


_known_fields = lru_cache(512)(_fields)


def fields_of(block: bytes) -> list[Field]:
    """The fields of a block (`heads.Head`), in order, without those that HTTP/2 does not have. The list is not changed.

    Raises BadLine.
    """
    return _known_fields(block) if len(block) <= _LONGEST_BLOCK else _fields(block)


@lru_cache(512)
def _known_without_host(block: bytes) -> list[Field]:
    return _fields(block, _REQUEST_LINES)


def request_fields_of(block: bytes) -> list[Field]:
    """The same without `host`: a request has `:authority` in its place."""
    return _known_without_host(block) if len(block) <= _LONGEST_BLOCK else _fields(block, _REQUEST_LINES)


def last_field(line: bytes) -> Field | None:
    """The last line of a request's block, without its CRLF: mostly the id that it was given, which is not sent twice.
    What stands before it repeats. None: it is not sent. Raises BadLine."""
    if line[:14] == b"x-request-id: ":
        value = line[14:]
        if value.replace(b"-", b"").isalnum():  # as generated ids are: nothing else is to be checked
            return b"x-request-id", value, True
    return _REQUEST_LINES[line]


def marked(fields: list[Field], never_indexed: frozenset[bytes]) -> list[Field]:
    """Fields that a table may not have stay out of our own too (RFC 7541 6.2.3)."""
    if not never_indexed:
        return fields
    return [(name, value, secret or name in never_indexed) for name, value, secret in fields]
