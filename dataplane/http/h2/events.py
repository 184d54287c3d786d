"""What `Connection.receive` reports: the vocabulary between the codec and the two carriers.

Plain slotted classes, made once for each thing that happened; a carrier dispatches by type. Heads are values that may
be shared between requests that sent the same header block: they are not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from dataplane.http.h2.streams import Stream


class RequestHead:
    """A request head as RFC 9113 8.3.1 has it: pseudo-headers apart, all other fields in one checked block.

    `method`, `scheme`, `path` (with its query), `protocol` (RFC 8441, else b"") as sent; scheme and path are b"" for a
    plain CONNECT. `authority`: `:authority`, or `host` where a client sent only that; the two agree, and `host` is
    not in the block. `path` begins with "/" or is "*", and is not made canonical. `block` and its lower-case twin
    `low` have the form of `dataplane.http.heads.Head`; names are lower case, cookie crumbs are one line (8.2.3),
    nothing that belongs to one connection is in it, nor `te` and `expect`. `length`: content-length, or -1. `expect`:
    the value of that field, b"" without. `takes_trailers`: the client sent `te: trailers`. `never_indexed`: names of
    fields that may be in no table on any hop (RFC 7541 7.1.3), beside those that we put into none anyway
    (`lines.UNINDEXED`); pass them on when sending.
    """

    __slots__ = (
        "authority",
        "block",
        "expect",
        "length",
        "low",
        "method",
        "never_indexed",
        "path",
        "protocol",
        "scheme",
        "takes_trailers",
    )

    def __init__(
        self,
        method: bytes,
        scheme: bytes,
        authority: bytes,
        path: bytes,
        protocol: bytes,
        block: bytes,
        low: bytes,
        length: int,
        expect: bytes,
        takes_trailers: bool,
        never_indexed: frozenset[bytes],
    ) -> None:
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.protocol = protocol
        self.block = block
        self.low = low
        self.length = length
        self.expect = expect
        self.takes_trailers = takes_trailers
        self.never_indexed = never_indexed

    def __repr__(self) -> str:  # fields may be secrets, and so may a query
        return f"RequestHead({self.method!r}, {self.authority!r})"


class ResponseHead:
    """A response head (RFC 9113 8.3.2): `status` 100 to 599, the rest as in `RequestHead`."""

    __slots__ = ("block", "length", "low", "never_indexed", "status")

    def __init__(self, status: int, block: bytes, low: bytes, length: int, never_indexed: frozenset[bytes]) -> None:
        self.status = status
        self.block = block
        self.low = low
        self.length = length
        self.never_indexed = never_indexed

    def __repr__(self) -> str:
        return f"ResponseHead({self.status})"


class Request:
    """Server: a client opened `stream`. `end`: there is no content."""

    __slots__ = ("end", "head", "stream")

    def __init__(self, stream: Stream, head: RequestHead, end: bool) -> None:
        self.stream = stream
        self.head = head
        self.end = end

    def __repr__(self) -> str:
        return f"Request({self.stream}, {self.head}, end={self.end})"


class OversizedRequest:
    """Server: a request whose header list is over the limit; the carrier answers 431. Its content is not reported.
    `low`: its block in lower case, for what the answer depends on. `asked`: method, path and authority as they came,
    for the log."""

    __slots__ = ("asked", "low", "stream")

    def __init__(self, stream: Stream, low: bytes, asked: tuple[bytes, bytes, bytes]) -> None:
        self.stream = stream
        self.low = low
        self.asked = asked

    def __repr__(self) -> str:
        return f"OversizedRequest({self.stream})"


class Response:
    """Client: the final response head. `end`: there is no content."""

    __slots__ = ("end", "head", "stream")

    def __init__(self, stream: Stream, head: ResponseHead, end: bool) -> None:
        self.stream = stream
        self.head = head
        self.end = end

    def __repr__(self) -> str:
        return f"Response({self.stream}, {self.head}, end={self.end})"


class Interim:
    """Client: a response head of 1xx (never 101: RFC 9113 8.6); the final one is still to come."""

    __slots__ = ("head", "stream")

    def __init__(self, stream: Stream, head: ResponseHead) -> None:
        self.stream = stream
        self.head = head

    def __repr__(self) -> str:
        return f"Interim({self.stream}, {self.head})"


class Content:
    """Bytes of a body, without padding; b"" only with `end`. The consumer gives them back by `acknowledge`."""

    __slots__ = ("data", "end", "stream")

    def __init__(self, stream: Stream, data: bytes, end: bool) -> None:
        self.stream = stream
        self.data = data
        self.end = end

    def __repr__(self) -> str:
        return f"Content({self.stream}, {len(self.data)} bytes, end={self.end})"


class Trailers:
    """Trailer fields; they end the message. `block` and `never_indexed` as in `RequestHead`, without what may be no
    trailer (RFC 9110 6.5.1)."""

    __slots__ = ("block", "never_indexed", "stream")

    def __init__(self, stream: Stream, block: bytes, never_indexed: frozenset[bytes]) -> None:
        self.stream = stream
        self.block = block
        self.never_indexed = never_indexed

    def __repr__(self) -> str:
        return f"Trailers({self.stream})"


class Reset:
    """A stream that was reported before is over in both directions, before its end.

    `local` False: the peer reset it with `code`, or its GOAWAY left it out. True: the peer broke a rule on it (`reason`
    names it) and the codec has reset it. `unprocessed`: the peer promises that it did nothing with it, so the request
    may be sent again on another connection, whatever its method (RFC 9113 6.8, 8.7).
    """

    __slots__ = ("code", "local", "reason", "stream", "unprocessed")

    def __init__(self, stream: Stream, code: int, local: bool, unprocessed: bool, reason: str) -> None:
        self.stream = stream
        self.code = code
        self.local = local
        self.unprocessed = unprocessed
        self.reason = reason

    def __repr__(self) -> str:
        return f"Reset({self.stream}, {self.code}, {self.reason or 'by the peer'})"


class Drained:
    """Nothing of `stream` waits for a window any more: its source may go on."""

    __slots__ = ("stream",)

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __repr__(self) -> str:
        return f"Drained({self.stream})"


class Refused:
    """A stream was reset at its first frame, and no `Request` was reported: the reason, for a counter.

    `reason` is one of `rules.REASONS`, or "StreamLimit".
    """

    __slots__ = ("reason", "stream_id")

    def __init__(self, stream_id: int, reason: str) -> None:
        self.stream_id = stream_id
        self.reason = reason

    def __repr__(self) -> str:
        return f"Refused({self.stream_id}, {self.reason})"


class SettingsChanged:
    """The peer's settings were received and acknowledged; `Connection.peer` has them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SettingsChanged()"


class SettingsAcknowledged:
    """The peer has acknowledged our SETTINGS: the timeout for that ends."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SettingsAcknowledged()"


class Pong:
    """The answer to a `ping`, with its eight bytes."""

    __slots__ = ("opaque",)

    def __init__(self, opaque: bytes) -> None:
        self.opaque = opaque

    def __repr__(self) -> str:
        return f"Pong({self.opaque!r})"


class GoAway:
    """The peer takes no more streams (RFC 9113 6.8). Streams opened here that it left out are reported by `Reset`
    events."""

    __slots__ = ("code", "debug", "last")

    def __init__(self, last: int, code: int, debug: bytes) -> None:
        self.last = last
        self.code = code
        self.debug = debug

    def __repr__(self) -> str:
        return f"GoAway({self.last}, {self.code}, {self.debug!r})"


class Failed:
    """The connection is over: the peer broke a rule of the connection, or a limit. Always the last event.

    GOAWAY is among the bytes of `take`; the carrier writes them and closes. All streams in `Connection.streams` are
    dead without events of their own. `reason`: one word for counters and the log: a limit's name (`budget`) when
    `code` is ENHANCE_YOUR_CALM, else what was wrong.
    """

    __slots__ = ("code", "reason")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason

    def __repr__(self) -> str:
        return f"Failed({self.code}, {self.reason})"


Event: TypeAlias = (
    Request
    | OversizedRequest
    | Response
    | Interim
    | Content
    | Trailers
    | Reset
    | Drained
    | Refused
    | SettingsChanged
    | SettingsAcknowledged
    | Pong
    | GoAway
    | Failed
)

LAST: Final = frozenset((Trailers, Reset))
"""Those behind which a stream has no more; of others an `end` says so."""
