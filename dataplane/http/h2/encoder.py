"""Our header blocks (RFC 7541): what was encoded before is looked up.

The table of a connection fills until it is full and then stays as it is, so that the index of a field does not move and
its octets can be remembered; when many fields came that did not fit it begins anew. How one field looks
outside of the table is the library's to say (`jh2._hazmat`), once for all connections.
"""

from __future__ import annotations

from typing import TypeAlias

from jh2._hazmat import Encoder

from dataplane.http.h2.hpack import TABLE_SIZE, Field

_OVERHEAD = 32
"""RFC 7541 4.1: bytes added to an entry's size."""
_STATIC = 61
"""RFC 7541 appendix A: entries of the static table; the dynamic one is behind it."""
_MOST_MISSES = 256
"""Fields that did not fit into the table of HPACK, after which it begins anew."""
_MOST_REMEMBERED = 1024
_LONGEST_REMEMBERED = 256
_MOST_BLOCKS = 32
_LONGEST_BLOCK = 1024
"""Fields and blocks of which a connection remembers how they were written, and bytes of the longest of each."""

Key: TypeAlias = bytes | tuple[bytes, ...] | tuple[int, bytes]
"""What fields were made of."""

_coder = Encoder()
_coder.header_table_size = 0  # so it answers a literal, or an index of the static table, and remembers nothing
_coder.encode([])
_QUESTION: bytes = _coder.encode([(b"", b"?", True)])[2:]
"""How "?" looks as a value; no field of the static table has it."""


class _Names(dict[bytes, bytes]):
    """Name -> what a literal with it begins with that is never indexed (6.2.3), up to the length of its value."""

    def __missing__(self, name: bytes) -> bytes:
        literal: bytes = _coder.encode([(name, b"?", True)])
        made = literal.removesuffix(_QUESTION)
        if len(name) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[name] = made
        return made


_NAMES = _Names()
_LENGTHS = tuple(bytes((size,)) for size in range(0x7F))


def unindexed(name: bytes, value: bytes) -> bytes:
    """A field that no table may have, as it looks on every connection (6.2.3). Mostly new each time, so not worth
    Huffman code."""
    size = len(value)
    return _NAMES[name] + (_LENGTHS[size] if size < 0x7F else _number(0, 0x7F, size)) + value


class BlockEncoder(dict[Field, bytes]):
    """Our fields of one connection. Itself it is what is remembered: octets that hold until an entry is added."""

    __slots__ = ("_limit", "_misses", "_numbers", "_size", "_update", "blocks")

    def __init__(self) -> None:
        super().__init__()
        self._limit = TABLE_SIZE
        self._update = b""
        """Table size updates that the next block begins with (4.2)."""
        self._numbers: dict[Field, int] = {}
        """Entries of the table, counted from 0."""
        self._size = 0
        self._misses = 0
        self.blocks: dict[Key, bytes] = {}
        """Fields that were sent together, and look the same until an entry is added."""

    def limit_table(self, size: int) -> None:
        """The peer announced SETTINGS_HEADER_TABLE_SIZE; the update goes out with the next block (RFC 7541 4.2)."""
        size = min(size, TABLE_SIZE)
        if size != self._limit:
            self._limit = size
            self._begin_anew()

    def encode(self, fields: list[Field]) -> bytes:
        return self.whole(b"".join(map(self.__getitem__, fields)))

    def piece(self, key: Key, fields: list[Field]) -> bytes:
        """A part of a block, which may come again: from then on it is in `blocks`, if it looks like this again. All
        parts are asked for in their order, and `whole` is what ends a block."""
        entries, misses = len(self._numbers), self._misses
        made = b"".join(map(self.__getitem__, fields))
        # what was added to the table is an index from now on, what did not fit has to be counted each time
        if entries == len(self._numbers) and misses == self._misses and len(made) <= _LONGEST_BLOCK:
            if len(self.blocks) >= _MOST_BLOCKS:
                self.blocks.clear()
            self.blocks[key] = made
        return made

    def whole(self, block: bytes) -> bytes:
        """A block whose fields are encoded, as it is to be sent."""
        if self._update:
            block, self._update = self._update + block, b""
        if self._misses > _MOST_MISSES:
            self._begin_anew()
        return block

    def _begin_anew(self) -> None:
        """Empty the table, by an update to nothing and one to its size."""
        self._numbers.clear()
        self.clear()
        self.blocks.clear()
        self._size = self._misses = 0
        self._update = b"\x20" + (_number(0x20, 0x1F, self._limit) if self._limit else b"")

    def __missing__(self, field: Field) -> bytes:
        """A field whose octets are not known."""
        name, value, never_indexed = field
        if never_indexed:
            return unindexed(name, value)
        number = self._numbers.get(field)
        if number is not None:
            index = self[field] = _number(0x80, 0x7F, _STATIC + len(self._numbers) - number)
            return index
        made: bytes = _coder.encode([field])
        if made[0] & 0x80:  # 6.1: it is in the static table
            self[field] = made
            return made
        size = len(name) + len(value) + _OVERHEAD
        if self._size + size > self._limit:
            self._misses += 1
            made = _coder.encode([(name, value, True)])
            return bytes((made[0] & 0x0F,)) + made[1:]  # 6.2.2: the same, not forbidden to be indexed elsewhere
        self._size += size
        self._numbers[field] = len(self._numbers)
        self.clear()  # every index has moved
        self.blocks.clear()
        return made  # 6.2.1


def _number(first: int, prefix: int, value: int) -> bytes:
    """5.1: an integer behind the bits `first`."""
    if value < prefix:
        return bytes((first | value,))
    octets = [first | prefix]
    value -= prefix
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
