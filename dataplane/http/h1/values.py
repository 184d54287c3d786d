"""Heads that differ from the last one in values alone.

A client that keeps its connection sends the same fields in the same order again and again; what changes is an id, a
date, a token, a length. Such a head needs no reading: what the last one meant holds for it, as long as no line that
means something to this hop differs, and each new value is text that could not be anything else.

A connection learns which of the lines change (`Like`). What stands between their values is compared in one piece, and
of a value only its characters are looked at; after some heads one expression does both at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import ne

UNLIKE, ALIKE = -2, -1
"""Of `Like.compare`: the head has to be read; it says what the known one says."""

_LENGTH = b"content-length"
_ANY_LENGTH = rb"[ \t]*+([0-9]{1,18})[ \t]*+"
_DIGITS = re.compile(_ANY_LENGTH).fullmatch
_ANY_TEXT = rb"[ -~\xa1-\xac\xae-\xff]*+"
"""As `str.isprintable` of Latin-1 has it."""

WORTH = 32
"""Heads that were compared piece by piece, after which an expression is made that compares the pieces at once: making
it costs as much as a hundred comparisons."""
_LARGEST = 512
"""Bytes of pieces that such an expression is made of: what it costs to make grows with them."""


def is_worth_learning(known: bytes, head: bytes, means: Callable[[bytes], object]) -> bool:
    """Whether a `Like` of `known` may help with `head`: the same names in the same order, and no value differs that
    means something to this hop. `means`: as for `Like`.

    Making one costs more than reading a head. Where many clients share a connection, or each request names another
    host, it would be made anew for each head, and help with none.
    """
    was, now = known.split(b"\r\n"), head.split(b"\r\n")
    if len(was) != len(now):
        return False
    for old, new in zip(was, now, strict=True):
        if old != new:
            name, colon, _ = old.partition(b":")
            low = name.lower()
            if not colon or not new.startswith(name + colon) or (low != _LENGTH and means(low)):
                return False
    return True


class Like:
    """How the heads look that mean what a known one means.

    A new value has to be printable text of Latin-1, which is less than RFC 9110 5.5 allows: no other octet may stand
    in a line that is not read.
    """

    __slots__ = ("_changing", "_compared", "_first", "_pieces", "_rest", "_sized", "_stems", "kept")

    def __init__(self, known: bytes, onward: bytes, means: Callable[[bytes], object], length: bool) -> None:
        """`known`: the head, which was read and is good; `onward`: what of it goes on, made by leaving out fields by
        name; `means`: whether the value of the field of this lower-case name means something to this hop; `length`: a
        `content-length` may be another one all the same."""
        lines = known.split(b"\r\n")
        self._stems = (None, *(_stem(line, means, length) for line in lines[1:]))
        """For each line: how another head's line in this place must begin to be allowed another value; None where it
        must be the same, as the first must, which is a start line or nothing."""
        self.kept = _kept(lines, onward)
        """Places of the lines that go on; None: all do."""
        self._changing: set[int] = set()
        """Places of the lines that were seen with another value."""
        self._pieces: tuple[bytes, ...] = (known,)
        """What stands before, between and behind their values."""
        self._first = len(known)
        """Bytes of the first piece."""
        self._sized = -1
        """Which of the values is the content's length; -1: none."""
        self._compared = 0
        """Heads that the pieces were compared with since they are as they are, up to `WORTH`."""
        self._rest: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        """Matches what stands behind the first piece of a head that is alike; None: the pieces are compared."""

    def compare(self, known: bytes, head: bytes) -> int:
        """Whether `head` means what `known` means: `UNLIKE`, `ALIKE`, or another `content-length`.

        `known`: the head that this was made of, or one that was alike since.
        """
        if self._rest is not None and head.startswith(self._pieces[0]):
            rest = self._rest(head, self._first)
            if rest is not None:
                return ALIKE if self._sized < 0 else int(rest[1])
        length = self._match(head)
        return length if length != UNLIKE else self._learn(known, head)

    def onward(self, head: bytes) -> bytes:
        """What goes on of a head that is alike."""
        if self.kept is None:
            return head
        lines = head.split(b"\r\n")
        return b"\r\n".join([lines[place] for place in self.kept])

    def _match(self, head: bytes) -> int:
        """As `compare`, where no other lines change than before."""
        pieces = iter(self._pieces)
        if not head.startswith(next(pieces)):
            return UNLIKE
        self._compared += 1
        if self._compared == WORTH:
            self._rest = _expression(self._pieces[1:], self._sized)
        at, left, length = self._first, self._sized, ALIKE
        for piece in pieces:
            end = head.find(b"\r\n", at)
            value = head[at:end]
            if not head.startswith(piece, end) or not value.decode("latin-1").isprintable():
                return UNLIKE
            if not left:
                length = _length(value)
            left -= 1
            at = end + len(piece)
        return length if at == len(head) else UNLIKE

    def _learn(self, known: bytes, head: bytes) -> int:
        """As `compare`, line by line; notes which lines change."""
        was, now = known.split(b"\r\n"), head.split(b"\r\n")
        if len(was) != len(now):
            return UNLIKE
        length, changed = ALIKE, set(compress(count(), map(ne, was, now)))
        for place in changed:
            stem, line = self._stems[place], now[place]
            if stem is None or not line.startswith(stem) or not line.decode("latin-1").isprintable():
                return UNLIKE
            if _is_length(stem):
                length = _length(line[len(stem) :])
                if length == UNLIKE:
                    return UNLIKE
        self._changing |= changed
        self._cut(now)
        return length

    def _cut(self, lines: Sequence[bytes]) -> None:
        """Make the pieces of what does not change."""
        pieces: list[bytes] = []
        text = b""
        for place, line in enumerate(lines):
            stem = self._stems[place]
            if place in self._changing and stem is not None:
                if _is_length(stem):
                    self._sized = len(pieces)
                pieces.append(text + stem)
                text = b"\r\n"
            else:
                text += line + b"\r\n"
        pieces.append(text[:-2])
        self._pieces = tuple(pieces)
        self._first = len(pieces[0])
        self._compared, self._rest = 0, None


def _expression(pieces: Sequence[bytes], sized: int) -> Callable[[bytes, int], re.Match[bytes] | None] | None:
    """Matches values with these pieces between and behind them; None where it would cost more than it is worth."""
    if sum(map(len, pieces)) > _LARGEST:
        return None
    values = (_ANY_LENGTH if place == sized else _ANY_TEXT for place in range(len(pieces)))
    return re.compile(
        b"".join([value + re.escape(piece) for value, piece in zip(values, pieces, strict=True)])
    ).fullmatch


def _stem(line: bytes, means: Callable[[bytes], object], length: bool) -> bytes | None:
    name, colon, _ = line.partition(b":")
    low = name.lower()
    if not colon or (means(low) and not (length and low == _LENGTH)):
        return None
    return name + colon


def _is_length(stem: bytes) -> bool:
    return stem[:-1].lower() == _LENGTH


def _length(value: bytes) -> int:
    match = _DIGITS(value)
    return UNLIKE if match is None else int(match[1])


def _kept(lines: Sequence[bytes], onward: bytes) -> tuple[int, ...] | None:
    names = {line.partition(b":")[0] for line in onward.split(b"\r\n")}
    places = tuple(place for place, line in enumerate(lines) if line.partition(b":")[0] in names)
    return None if len(places) == len(lines) else places
