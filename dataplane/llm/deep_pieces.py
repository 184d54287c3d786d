"""JSON with many names deep within it, decoded piece by piece in one scan (`pieces` scans each level anew). Pure.

The scan looks at strings and punctuation alone. What it has passed of an array or an object is decoded at a comma where
that is much, and kept with those that are open; what is small stays text of the value around it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, Final

import msgspec

SEGMENT: Final = 32_768
"""Bytes that are decoded at once, or a little more: what ends there is whole."""
TOKENS: Final = 4_096
"""Strings, brackets and commas that are scanned between two pauses."""
DEPTH: Final = 900
"""Arrays and objects within each other. Where nothing is cut, Python's own limit is a little above."""

_anything: Final = msgspec.json.Decoder()
_token: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL).finditer
"""A string (the last one may lack its end), or what opens, closes and parts."""
_ARRAY, _OBJECT, _COMMA, _END_ARRAY, _END_OBJECT = b"[{,]}"
_SPACE: Final = b" \t\r\n"


class _Open:
    """An array or an object whose end has not come yet."""

    __slots__ = ("begun", "comma", "done", "fields", "is_behind", "items", "wanted")

    def __init__(self, begun: int, kind: int) -> None:
        self.begun = begun
        self.comma = begun
        """Behind which its present item begins."""
        self.done = begun + 1
        """So far its text is decoded."""
        self.wanted = begun + SEGMENT
        """Where it is much."""
        self.is_behind = False
        """`done` is the end of a value: a comma or the end of all follows."""
        self.fields: dict[str, Any] | None = {} if kind == _OBJECT else None
        self.items: list[Any] = []

    def is_cut(self) -> bool:
        """Some of it was decoded: it is no text of the value around it."""
        return self.done > self.begun + 1

    def value(self) -> Any:  # Any: JSON
        return self.items if self.fields is None else self.fields

    def take(self, data: bytes, end: int) -> None:
        """Decode what comes before the comma or bracket at `end`."""
        text = data[self.done : end]
        if self.is_behind:
            if text.strip(_SPACE):
                raise _malformed(self.done)
        elif self.fields is None:
            more = _anything.decode(b"[%b]" % text)
            if not more:
                raise _malformed(end)
            self.items += more
        else:
            named = _anything.decode(b"{%b}" % text)
            if not named:
                raise _malformed(end)
            self.fields.update(named)
        self.is_behind = False
        self.done = end + 1
        self.wanted = end + SEGMENT

    def add(self, data: bytes, begun: int, value: Any, end: int) -> None:  # Any: JSON
        """Its present item is, or has, this value, which stands from `begun` to `end`."""
        if self.comma >= self.done:
            self.take(data, self.comma)
        before = data[self.done : begun]
        if self.fields is not None:
            (name,) = _anything.decode(b"{%b[]}" % before)
            self.fields[name] = value
        elif self.is_behind or before.strip(_SPACE):
            raise _malformed(begun)
        else:
            self.items.append(value)
        self.is_behind = True
        self.done = end + 1


def decoded(data: bytes) -> Generator[None, None, Any]:  # Any: JSON
    """The value of a text that begins with an array or an object. Raises `msgspec.DecodeError`, RecursionError and
    UnicodeDecodeError, as decoding it in one piece does."""
    stack: list[_Open] = []
    found, end = None, len(data)
    for number, token in enumerate(_token(data), 1):
        at = token.start()
        kind = data[at]
        if kind in (_ARRAY, _OBJECT):
            stack.append(_Open(at, kind))
            if len(stack) > DEPTH:
                raise RecursionError("JSON is nested too deeply")
        elif kind == _COMMA and stack:
            if at >= stack[-1].wanted:
                stack[-1].take(data, at)
                yield
            stack[-1].comma = at
        elif kind in (_END_ARRAY, _END_OBJECT):
            if not stack or (stack[-1].fields is None) != (kind == _END_ARRAY):
                raise _malformed(at)
            closed = stack.pop()
            if not stack:
                found, end = _whole(closed, data, at), at
                break
            if closed.is_cut():
                closed.take(data, at)
                stack[-1].add(data, closed.begun, closed.value(), at)
                yield
        if not number % TOKENS:
            yield
    if stack or data[end + 1 :].strip(_SPACE):
        raise _malformed(end)
    return found


def _whole(top: _Open, data: bytes, end: int) -> Any:  # Any: JSON
    if data[: top.begun].strip(_SPACE):
        raise _malformed(0)
    if not top.is_cut():
        return _anything.decode(data[: end + 1])
    top.take(data, end)
    return top.value()


def _malformed(at: int) -> msgspec.DecodeError:
    return msgspec.DecodeError(f"JSON is malformed: invalid character (byte {at})")
