"""Messages as values: what a client sends and gets, what an endpoint receives and answers.

They hold what HTTP/1 and HTTP/2 have in common (RFC 9110) and nothing else. Header names are lower-case; the order of
headers counts within one name only; there are no reason phrases, no framing, no headers of the connection
(`CONNECTION_HEADERS`), and the host is `authority`. Text is UTF-8; bytes that are no UTF-8 are kept as surrogates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tests.fakes.dates import shown_fields

Pairs = Sequence[tuple[str, str]]

CONNECTION_HEADERS: Final = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"))
"""Headers that are no part of a message, but of the connection that carries it (RFC 9110 7.6.1)."""


ADDED_HEADERS: Final = ("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id")
"""Headers that the proxy adds to every request."""


def encoded(text: str) -> bytes:
    """As it travels."""
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    """As a test reads it."""
    return data.decode("utf-8", "surrogateescape")


class Headers:
    """Header lines, or trailers. Equal when each name has the same values in the same order."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Pairs | Mapping[str, str] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
            assert name == name.lower(), f"header names are lower-case here: {name}"
            self._values.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> str:
        """The value of a header that is there once. Raises AssertionError when it is not."""
        values = self._values.get(name, [])
        assert len(values) == 1, f"{name}: {values}"
        return values[0]

    def get(self, name: str) -> str | None:
        """The value of a header that is there once; None when it is absent."""
        return self[name] if name in self._values else None

    def all(self, name: str) -> list[str]:
        """Every value of a name, in the order of the message."""
        return list(self._values.get(name, ()))

    def but(self, *names: str) -> Headers:
        """The others."""
        return Headers([pair for pair in self.pairs() if pair[0] not in names])

    def starting(self, prefix: str) -> Headers:
        """Those whose name begins so."""
        return Headers([pair for pair in self.pairs() if pair[0].startswith(prefix)])

    def plain(self) -> dict[str, str]:
        """As a dictionary, of headers none of which is there twice."""
        return {name: self[name] for name in self._values}

    def pairs(self) -> list[tuple[str, str]]:
        """Name and value of each line, by name."""
        return [(name, value) for name, values in self._values.items() for value in values]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return sum(map(len, self._values.values()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            other = Headers(other)
        return self._values == other._values if isinstance(other, Headers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Headers({self.pairs()})"


@dataclass(frozen=True)
class Request:
    """What a client sends.

    `body`: bytes travel at once with the head; pieces follow the head one by one. With `sized` the length of a body
    is announced (content-length), else it is not; a test may also write a content-length itself.
    """

    method: str = "GET"
    target: str = "/"
    headers: Pairs = ()
    body: bytes | Sequence[bytes] = b""
    trailers: Pairs = ()
    authority: str = "a"
    scheme: str = "http"
    sized: bool = True

    def plus(self, *headers: tuple[str, str]) -> Request:
        """The request with further headers."""
        return replace(self, headers=(*self.headers, *headers))

    def to(self, target: str) -> Request:
        """The request for another target."""
        return replace(self, target=target)


@dataclass(frozen=True)
class Response:
    """What an endpoint answers; `body` and `sized` as in `Request`. `last`: it takes no further request on the
    connection (HTTP/1: `connection: close`; HTTP/2: GOAWAY)."""

    status: int = 200
    headers: Pairs = ()
    body: bytes | Sequence[bytes] = b""
    trailers: Pairs = ()
    sized: bool = True
    last: bool = False


OK: Final = Response(200, (), b"ok")


@dataclass(frozen=True)
class Answer:
    """What a client has got so far."""

    status: int | None = None
    """None: nothing came yet."""
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    trailers: Headers = field(default_factory=Headers)
    interim: tuple[tuple[int, Headers], ...] = ()
    """Status and headers of the responses before the final one."""
    ended: bool = False
    """It came whole."""
    reset: bool = False
    """It was broken off: what came must not pass for a whole answer."""


@dataclass(frozen=True)
class Received:
    """What an endpoint has got so far of a request."""

    method: str
    target: str
    authority: str
    headers: Headers
    body: bytes = b""
    trailers: Headers = field(default_factory=Headers)
    ended: bool = False
    """It came whole."""

    @property
    def passed(self) -> Headers:
        """The headers but those that the proxy adds to every request."""
        return self.headers.but(*ADDED_HEADERS)


@dataclass(frozen=True)
class Carried:
    """One whole exchange: what the client got, what reached endpoints, and the line of the access log."""

    answer: Answer
    reached: tuple[Received, ...]
    line: str

    @property
    def received(self) -> Received:
        """What reached the endpoint. Raises AssertionError unless it was one request."""
        assert len(self.reached) == 1, self.reached
        return self.reached[0]

    @property
    def reason(self) -> str:
        """The reason code of the line, "" when there is none."""
        return _found(r" reason=(\S+)", self.line)

    @property
    def error(self) -> str:
        """What the line says for operators, "" when it says nothing."""
        return _found(r' error="((?:[^"\\]|\\.)*)"', self.line)


def _found(pattern: str, line: str) -> str:
    found = re.findall(pattern, line)
    assert len(found) <= 1, line
    return str(found[0]) if found else ""


def shown(pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of a message that travelled, without those of the connection, and without the `date` of endpoints."""
    fields = shown_fields([(name.lower(), value) for name, value in pairs])
    decoded_pairs = [(decoded(name), decoded(value)) for name, value in fields]
    return Headers([pair for pair in decoded_pairs if pair[0] not in CONNECTION_HEADERS])


def pieces(body: bytes | Sequence[bytes]) -> list[bytes]:
    """What follows the head."""
    return ([body] if body else []) if isinstance(body, bytes) else list(body)


def announced(message: Request | Response, length_is_due: bool) -> Pairs:
    """The headers with the content-length that `sized` asks for; `length_is_due`: also for an empty body."""
    size = sum(map(len, pieces(message.body)))
    written = any(name == "content-length" for name, _ in message.headers)
    if written or not message.sized or not (size or length_is_due):
        return message.headers
    return (*message.headers, ("content-length", str(size)))
