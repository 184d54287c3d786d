"""The chunked transfer coding (RFC 9112 section 7.1), read strictly, and without copying where the bytes are right.

A reader finds where a body ends, and hands on either the body's bytes as framed by the peer, or its content. Chunk
extensions are dropped (they need not pass a hop, 7.1.1) and trailer fields are held to what may be one
(7.1.2): then what is handed on is written anew, otherwise the peer's own bytes go on untouched.
"""

from __future__ import annotations

import re
import sys
from typing import Protocol

from dataplane.http.heads import is_name, is_value, plain_name
from dataplane.http.trailers import FORBIDDEN_TRAILERS

_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}").fullmatch
_EXTENSIONS = re.compile(
    rb"(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
    rb"(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++|\"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*+\"))?)*+"
).fullmatch
"""RFC 9112 7.1.1, without the white space that a sender must not generate: readers differ on it."""
_BEGINNING = (
    re.compile(rb"[0-9A-Fa-f]{1,15}+(?:;.*+|\r)?", re.DOTALL).fullmatch,
    re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++(?::.*+)?|\r)", re.DOTALL).fullmatch,
)
"""Of a size line, and of a trailer line, of which a part has come."""
MAX_LINE = 4096
"""Bytes of a chunk-size line with its extensions."""
MAX_EXCESS = 262_144
"""Bytes that the framing of a body may have more than its content: chunks of a few bytes cost far more to read than to
send (CVE-2023-39326)."""
MAX_TRAILERS = 16_384
MAX_TRAILER_FIELDS = 100
"""Bytes of trailer lines of one body, and lines."""

SIZE, DATA, DATA_END, TRAILERS, END = range(5)


class BadChunk(ValueError):
    """The bytes are not a chunked body. `too_large`: they are one, but its trailers are over a limit."""

    too_large = False


class TooManyTrailers(BadChunk):
    too_large = True


class ChunkedReader:
    """Reads one chunked body. `decode`: hand on content instead of framed bytes."""

    __slots__ = ("decode", "excess", "fields", "left", "line", "lines", "rest", "size", "state", "trailers")

    def __init__(self, decode: bool = False) -> None:
        self.decode = decode
        self.state = SIZE
        self.left = 0
        self.line = b""
        self.size = 0
        self.excess = 0
        self.fields = 0
        self.lines = 0
        """Chunks that the present call may still begin."""
        self.rest = b""
        """What the last call did not come to: to be given to the next one, in front of everything else."""
        self.trailers = b""
        """Trailer lines that were let through, each with its CRLF."""

    def feed(self, data: bytes, lines: int = sys.maxsize) -> tuple[bytes, int]:
        """Take bytes. Answers (what to hand on, how many of `data` belong to this body or -1 while it has not ended).

        `lines`: chunks that are begun at most; what follows them is kept as `rest`. Raises BadChunk.
        """
        self.lines, self.rest = lines, b""
        if self.state == SIZE and not self.line and not self.decode:
            end = self._whole_chunks(data)
            if end == len(data):
                return data, -1
            if end:
                out, used = self._walk(data, end)
                return data[:end] + out, used
        return self._walk(data, 0)

    def _whole_chunks(self, data: bytes) -> int:
        """Where the run of complete, plain, non-empty chunks at the start of `data` ends: those pass untouched."""
        position, length = 0, len(data)
        while position < length and self.lines:
            eol = data.find(b"\r\n", position, position + 20)
            if eol < 0:
                break
            line = data[position:eol]
            if _SIZE(line) is None:
                break
            size = int(line, 16)
            after = eol + 2 + size
            if not size or data[after : after + 2] != b"\r\n":
                break
            self.size += size
            self.lines -= 1
            self._count(eol - position, size)
            position = after + 2
        return position

    def _count(self, line: int, size: int) -> None:
        """A chunk of `size` bytes whose size line has `line` bytes."""
        excess = self.excess + line + 4 - size
        self.excess = max(excess, 0)
        if excess > MAX_EXCESS:
            raise BadChunk("far more chunk lines than content")

    def _walk(self, data: bytes, position: int) -> tuple[bytes, int]:
        out: list[bytes] = []
        length = len(data)
        while position < length:
            if self.state == DATA:
                take = min(self.left, length - position)
                out.append(data[position : position + take])
                position += take
                self.left -= take
                self.size += take
                if not self.left:
                    self.state, self.left = DATA_END, 2
            elif self.state == DATA_END:
                if data[position] != (13, 10)[2 - self.left]:
                    raise BadChunk("chunk is longer than its size says")
                position += 1
                self.left -= 1
                if not self.left:
                    self.state = SIZE
                    if not self.decode:
                        out.append(b"\r\n")
            elif self.state == SIZE and not self.lines:
                self.rest = data[position:]
                break
            else:
                position = self._take_line(data, position, out)
                if self.state == END:
                    return b"".join(out), position
        return b"".join(out), -1

    def _take_line(self, data: bytes, position: int, out: list[bytes]) -> int:
        """Collect a size or trailer line and act on it when it is whole."""
        eol = data.find(b"\n", position)
        self.line += data[position:] if eol < 0 else data[position : eol + 1]
        if len(self.line) > MAX_LINE:
            raise BadChunk("chunk line or trailer line is too long")
        if eol < 0:
            if _BEGINNING[self.state != SIZE](self.line) is None:
                raise BadChunk("malformed chunk size" if self.state == SIZE else "malformed trailer field")
            return len(data)
        line, self.line = self.line, b""
        if not line.endswith(b"\r\n"):
            raise BadChunk("bare line feed")
        if self.state == SIZE:
            self._size_line(line[:-2], out)
        else:
            self._trailer_line(line[:-2], out)
        return eol + 1

    def _size_line(self, line: bytes, out: list[bytes]) -> None:
        digits = line.partition(b";")[0]
        if _SIZE(digits) is None or _EXTENSIONS(line, len(digits)) is None:
            raise BadChunk("malformed chunk size")
        self.left = int(digits, 16)
        self.lines -= 1
        self._count(len(line), self.left)
        self.state = DATA if self.left else TRAILERS
        if not self.decode and self.left:
            out.append(digits + b"\r\n")

    def _trailer_line(self, line: bytes, out: list[bytes]) -> None:
        if not line:
            self.state = END
            if not self.decode:
                out.append(b"0\r\n" + self.trailers + b"\r\n")
            return
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not colon or is_name(name) is None or is_value(value) is None:
            raise BadChunk("malformed trailer field")
        self.fields += 1
        if plain_name(name) not in FORBIDDEN_TRAILERS:  # an origin may read the one as the other
            self.trailers += name + b": " + value + b"\r\n"
        if self.fields > MAX_TRAILER_FIELDS or len(self.trailers) > MAX_TRAILERS:
            raise TooManyTrailers("too many trailer fields")


def encode(data: bytes) -> bytes:
    """One chunk; `data` is not empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"


def last(trailers: bytes) -> bytes:
    """The end of a body: the last chunk, and finished trailer lines."""
    return b"0\r\n%b\r\n" % trailers


class TakesChunks(Protocol):
    """Who passes the body of a response on in the endpoint's own chunks: the other end of a pair of HTTP/1.1
    connections, which saves taking chunks apart only to make them anew."""

    def chunks(self, framed: bytes, size: int) -> None:
        """Framed bytes with `size` bytes of content in them; the last ones have the last chunk and the trailers."""
