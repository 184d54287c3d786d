"""The oracles of the HTTP targets: h11 (through `tests.raw.parsers`), llhttp, and a naive decoder of chunks.

None of them is asked by the product in the way it is asked here: the product's own reading of whole messages, bodies
and their ends is compared with theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import h11
import httptools

_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_TEXT = frozenset((9, *range(0x20, 0x7F), *range(0x80, 0x100)))
_HEX = frozenset(b"0123456789abcdefABCDEF")
_TRAILER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
LONGEST_LINE = 4096

WHOLE, INCOMPLETE, BAD = "whole", "incomplete", "bad"


@dataclass(frozen=True, slots=True)
class Chunks:
    """A chunked body by the letter of RFC 9112 section 7.1."""

    verdict: str
    content: bytes = b""
    used: int = 0
    trailers: tuple[tuple[bytes, bytes], ...] = ()


def read_chunks(data: bytes) -> Chunks:
    """Decode from the start, line by line, without any state that survives a call."""
    content, at = b"", 0
    while True:
        line, after = _line(data, at)
        if line is None:
            return Chunks(BAD if after < 0 else INCOMPLETE, content)
        length = _size(line)
        if length is None:
            return Chunks(BAD, content)
        if not length:
            return _read_trailers(data, after, content)
        content += data[after : after + length]
        end = data[after + length : after + length + 2]
        if not b"\r\n".startswith(end):
            return Chunks(BAD, content)
        if len(end) < 2:
            return Chunks(INCOMPLETE, content)
        at = after + length + 2


def _size(line: bytes) -> int | None:
    """The size that a chunk's first line says, None when it is none. Octet by octet."""
    end = _run(line, 0, _HEX)
    if not 0 < end <= 15:
        return None
    at = end
    while at < len(line):
        name = _run(line, at + 1, _TOKEN)
        if line[at : at + 1] != b";" or name == at + 1:
            return None
        at = name
        if line[at : at + 1] == b"=":
            value = _run(line, at + 1, _TOKEN)
            at = value if value > at + 1 else _quoted(line, at + 1)
            if at < 0:
                return None
    return int(line[:end], 16)


def _run(line: bytes, at: int, octets: frozenset[int]) -> int:
    """Where the run of such octets ends that begins at `at`."""
    while at < len(line) and line[at] in octets:
        at += 1
    return at


def _quoted(line: bytes, at: int) -> int:
    """Behind the quoted string that begins at `at`; -1 when none does."""
    if line[at : at + 1] != b'"':
        return -1
    at += 1
    while at < len(line) and line[at] in _TEXT:
        if line[at : at + 1] == b'"':
            return at + 1
        if line[at : at + 1] == b"\\":
            at += 1
            if at == len(line) or line[at] not in _TEXT:
                return -1
        at += 1
    return -1


def _line(data: bytes, at: int) -> tuple[bytes | None, int]:
    """(line, where the next begins); (None, 0) when it is not whole, (None, -1) when it can be none."""
    end = data.find(b"\n", at)
    if (len(data) if end < 0 else end + 1) - at > LONGEST_LINE:
        return None, -1
    if end < 0:
        return None, 0
    return (data[at : end - 1], end + 1) if data[at:end].endswith(b"\r") else (None, -1)


def _read_trailers(data: bytes, at: int, content: bytes) -> Chunks:
    trailers: list[tuple[bytes, bytes]] = []
    while True:
        line, after = _line(data, at)
        if line is None:
            return Chunks(BAD if after < 0 else INCOMPLETE, content)
        if not line:
            return Chunks(WHOLE, content, after, tuple(trailers))
        field = _TRAILER.fullmatch(line)
        if field is None or len(trailers) == 100:
            return Chunks(BAD, content)
        trailers.append((field[1].lower(), field[2]))
        at = after


class _Collector:
    """What llhttp finds in a stream of requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def on_message_begin(self) -> None:
        self.requests.append({"target": b"", "body": b"", "whole": False})

    def on_url(self, url: bytes) -> None:
        self.requests[-1]["target"] += url

    def on_body(self, body: bytes) -> None:
        self.requests[-1]["body"] += body

    def on_message_complete(self) -> None:
        self.requests[-1]["whole"] = True


def read_llhttp(data: bytes) -> list[tuple[bytes, bytes]]:
    """The whole requests at the start of `data`, up to what llhttp refuses, as (target, body)."""
    found: list[tuple[bytes, bytes]] = []
    while data:
        collector = _Collector()
        rest = b""
        try:
            httptools.HttpRequestParser(collector).feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:  # it stops there; who answers 200 did not upgrade
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            rest = b""
        found += [(request["target"], request["body"]) for request in collector.requests if request["whole"]]
        if len(rest) == len(data):
            break
        data = rest
    return found


def read_answers(
    data: bytes, methods: list[bytes], refusals: bool = False
) -> tuple[list[tuple[int, bytes, bool]], bytes]:
    """Final answers (status, body, says close) in order, and what is left over. Raises h11's error for what is none.

    `methods`: of the requests that they answer, as far as they are known; GET afterwards. `refusals`: the last
    answer, which says close, may be one to a request that is not known: without a body if that was HEAD, with one if
    its head was not believed.
    """
    found: list[tuple[int, bytes, bool]] = []
    while data:
        method = methods[len(found)] if len(found) < len(methods) else b"GET"
        answer = _one_answer(data, method)
        if refusals and (answer is None or (answer[2] and answer[3])):
            others = [_one_answer(data, other) for other in (b"GET", b"HEAD")]
            answer = next((other for other in others if other and other[2] and not other[3]), answer)
        if answer is None:
            return found, data
        status, body, close, data = answer
        found.append((status, body, close))
    return found, b""


def _one_answer(data: bytes, method: bytes) -> tuple[int, bytes, bool, bytes] | None:
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    parser.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"a.example")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    status, body, close = 0, b"", False
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
            close = (b"connection", b"close") in list(event.headers)
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and status:
            return status, body, close, parser.trailing_data[0]
        elif not isinstance(event, h11.InformationalResponse):
            return None


def first_end(data: bytes, method: bytes) -> int | None:
    """Where the first final response in `data` ends; None when it has not ended, or when h11 refuses it."""
    try:
        answer = _one_answer(data, method)
    except h11.RemoteProtocolError:
        return None
    return None if answer is None else len(data) - len(answer[3])
