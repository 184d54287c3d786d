"""Random changes to the corpus: what a fuzzer would try, bounded, and the same again for the same seed of a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

FRAGMENTS = (
    *(b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\x00", b" ", b"\t", b"\x0b", b":", b";", b",", b"%", b"\\", b"\xff", b"#"),
    *(b"0", b"1", b"0\r\n\r\n", b"+", b"-", b"0x", b"_", b"chunked", b"/../", b"%2e", b"@", b"?"),
    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: b.example\r\n", b"Connection: close\r\n"),
    *(
        b"GET /two HTTP/1.1\r\n",
        b"GET /two HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"X: 1\r\n",
        b"Expect: 100-continue\r\n",
    ),
)

Change = Callable[[random.Random, bytes], bytes]


def _insert(dice: random.Random, data: bytes) -> bytes:
    place = dice.randrange(len(data) + 1)
    return data[:place] + dice.choice(FRAGMENTS) + data[place:]


def _delete(dice: random.Random, data: bytes) -> bytes:
    place = dice.randrange(len(data) or 1)
    return data[:place] + data[place + dice.randint(1, 4) :]


def _replace(dice: random.Random, data: bytes) -> bytes:
    place = dice.randrange(len(data) or 1)
    return data[:place] + bytes((dice.randrange(256),)) + data[place + 1 :]


def _double_line(dice: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    place = dice.randrange(len(lines))
    return b"\r\n".join((*lines[:place], lines[place], *lines[place:]))


def _swap_lines(dice: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    one, two = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\r\n".join(lines)


def _insert_line(dice: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    lines.insert(dice.randint(1, len(lines)), dice.choice(FRAGMENTS).strip(b"\r\n"))
    return b"\r\n".join(lines)


def _loosen_line_end(dice: random.Random, data: bytes) -> bytes:
    parts = data.split(b"\r\n")
    place = dice.randrange(len(parts))
    return b"\r\n".join(parts[:place]) + dice.choice((b"\n", b"\r", b"\r\r\n")) + b"\r\n".join(parts[place:])


CHANGES: tuple[Change, ...] = (_insert, _delete, _replace, _double_line, _swap_lines, _insert_line, _loosen_line_end)


def mutants(seeds: Sequence[bytes], count: int, dice: random.Random) -> Iterator[bytes]:
    """`count` changed inputs, as `dice` has them."""
    for _ in range(count):
        data = dice.choice(seeds)
        for _ in range(dice.randint(1, 3)):
            data = dice.choice(CHANGES)(dice, data)
        yield data
