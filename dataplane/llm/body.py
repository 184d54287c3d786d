"""The fields at the top of a JSON body (RFC 8259): read, set, removed, and written again. Pure.

What is not edited keeps its bytes: order, white space, numbers of any size, escapes. So a body of a shape that we do
not know passes, and megabytes of an image are neither decoded nor written anew. Values are raw until somebody asks for
one.
"""

from __future__ import annotations

import re
from itertools import islice
from json.decoder import JSONDecoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from dataplane.llm import pieces
from gatewright.kept_errors import again
from gatewright.turns import at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SPACE: Final = b" \t\r\n"
_key: Final = re.compile(rb'[ \t\r\n]*+"((?:[^"\\]|\\.)*+)"[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL).match
_end: Final = re.compile(rb"[ \t\r\n]*+([,}])").match
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text: Final = msgspec.json.Decoder(str)


MAX_READ: Final = 262_144
"""Bytes of a body with a field that stands there twice: finding its values builds each of them."""


MAX_FIELDS: Final = 1_000
"""At the top of a body: finding where each stands costs more than its bytes. APIs have some dozens."""


class Malformed(Exception):
    """The body is not what the API takes. `field`: which of its fields, "" the whole; the text is for the client."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}" if field else why)
        self.field = field


_TOO_MANY: Final = f"the body has more than {MAX_FIELDS} fields"
_COLON: Final = b'":'
_MANY: Final = 20 * MAX_FIELDS
"""Names of fields, also within values, that a body may have outside of those that have many."""
_NOTHING: Final = msgspec.Raw(b"")


class _Large(msgspec.Struct):
    """Fields in which are most names of large requests."""

    messages: msgspec.Raw = _NOTHING
    input: msgspec.Raw = _NOTHING
    system: msgspec.Raw = _NOTHING
    tools: msgspec.Raw = _NOTHING
    documents: msgspec.Raw = _NOTHING


_large: Final = msgspec.json.Decoder(_Large)


def _outside(data: bytes) -> int:
    """About how many names stand outside of these. Reading each field as one of many would cost more."""
    found = _large.decode(data)
    within = (found.messages, found.input, found.system, found.tools, found.documents)
    return data.count(_COLON) - sum(bytes(each).count(_COLON) for each in within)


_COSTLY: Final = 16_384
"""Bytes of a value that is decoded once."""


class _Span(NamedTuple):
    """A field as it stands: from the separator before it to the one behind it, and its value within."""

    name: str
    start: int
    value: int
    value_end: int
    end: int


class Body:
    """One body. Raises `Malformed` for what is no JSON object."""

    __slots__ = ("_data", "_edits", "_found", "_raw", "_values", "names")

    def __init__(self, data: bytes) -> None:
        try:
            if data.count(_COLON) > _MANY and _outside(data) > _MANY:
                raise Malformed("", _TOO_MANY)
            self._raw = _fields.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Malformed("", f"the body must be a JSON object: {_why(error)}") from None
        if len(self._raw) > MAX_FIELDS:
            raise Malformed("", _TOO_MANY)
        self._data = data
        self._edits: dict[str, bytes | None] = {}
        self._values: dict[str, Any] = {}
        """Large ones that somebody has asked for: several may. Of one that cannot be decoded, why."""
        self._found: list[_Span] | None = None
        """Where its fields stand; None: not needed yet."""
        self.names = self._raw.keys()
        """Of the fields as they came."""

    def __contains__(self, name: str) -> bool:
        edited = self._edits.get(name, b"")
        return edited is not None and (bool(edited) or name in self._raw)

    @property
    def size(self) -> int:
        """Bytes of it as it came."""
        return len(self._data)

    def raw(self, name: str) -> bytes | None:
        """The value as JSON; None: there is none. Of a field that stands there twice, the last."""
        if name in self._edits:
            return self._edits[name]
        found = self._raw.get(name)
        return None if found is None else bytes(found)

    def value(self, name: str) -> Any:  # Any: whatever JSON has
        """The value; None for null and where there is none. Raises `Malformed`."""
        if name not in self._values:
            found = self.raw(name)
            if found is None:
                return None
            value = at_once(_value(name, found))
            if len(found) <= _COSTLY and not isinstance(value, Malformed):
                return value
            self._values[name] = value
        value = self._values[name]
        if isinstance(value, Malformed):
            raise again(value)
        return value

    def prepare(self, names: Iterable[str]) -> pieces.Steps[None]:
        """Decode the large ones of these fields piece by piece, before somebody asks for one."""
        for name in names:
            found = None if name in self._values else self.raw(name)
            if found is not None and len(found) > _COSTLY:
                self._values[name] = yield from _value(name, found)
                yield

    def text(self, name: str) -> str | None:
        """The value where it is a string; None where it is none."""
        found = self.raw(name)
        if found is None or found[:1] != b'"':
            return None
        try:
            return _text.decode(found)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Malformed(name, _why(error)) from None

    def fields(self, name: str) -> dict[str, msgspec.Raw]:
        """Those of the value where it is an object; empty where it is none. They stay raw."""
        found = self.raw(name)
        try:
            return {} if found is None or found[:1] != b"{" else _fields.decode(found)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Malformed(name, _why(error)) from None

    def is_true(self, name: str) -> bool:
        return self.raw(name) == b"true"

    def set(self, name: str, value: bytes) -> None:
        """`value`: JSON."""
        self._edits[name] = value
        self._values.pop(name, None)

    def remove(self, name: str) -> None:
        self._edits[name] = None
        self._values.pop(name, None)

    @property
    def is_edited(self) -> bool:
        return bool(self._edits)

    def is_twice(self, name: str) -> bool:
        """Whether a field stands there more than once: readers differ in which of them counts."""
        spans = self._spans()
        return len(spans) != len(self._raw) and sum(span.name == name for span in spans) > 1

    def other_spelling(self, name: str) -> str:
        """A field that a reader which ignores case takes for `name`, and that is not it; "": there is none."""
        return next((each for each in self.names if each != name and each.lower() == name), "")

    def written(self) -> bytes:
        """The body with its edits. An edited field that was there twice is there once, where it was first."""
        if not self._edits:
            return self._data
        data, left = self._data, dict(self._edits)
        parts, seen = [], set[str]()
        spans = self._spans()
        for span in spans:
            if span.name not in self._edits:
                parts.append(data[span.start : span.end])
            elif span.name not in seen:
                seen.add(span.name)
                new = left.pop(span.name)
                if new is not None:
                    parts.append(data[span.start : span.value] + new + data[span.value_end : span.end])
        parts += [msgspec.json.encode(name) + b":" + new for name, new in left.items() if new is not None]
        opening, closing = data.index(b"{") + 1, data.rindex(b"}")
        return data[:opening] + b",".join(parts) + data[closing:]

    def _spans(self) -> list[_Span]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def _find(self) -> list[_Span]:
        found = list(islice(self._counted(), len(self._raw) + 1))  # one more is there twice
        if len(found) == len(self._raw) and self._is_last(found):
            return found
        if len(self._data) > MAX_READ:
            raise Malformed("", "a field stands in the body more than once")
        found = list(islice(_read_spans(self._data), MAX_FIELDS + 1))
        if len(found) > MAX_FIELDS:
            raise Malformed("", _TOO_MANY)
        return found

    def _is_last(self, spans: list[_Span]) -> bool:
        return not spans or self._data[spans[-1].end : spans[-1].end + 1] == b"}"

    def _counted(self) -> Iterator[_Span]:
        """By the lengths of the values that are known: quick, and right where no field stands there twice. It ends at
        the first that is not as expected."""
        data = self._data
        position = data.index(b"{") + 1
        while (key := _key(data, position)) is not None:
            name = _name(key[1])
            raw = self._raw.get(name)
            if raw is None:
                return
            value = key.end()
            value_end = value + len(memoryview(raw))
            end = _end(data, value_end)
            if end is None or not data.startswith(bytes(raw), value):
                return
            yield _Span(name, position, value, value_end, end.start(1))
            position = end.end()
            if end[1] == b"}":
                return

    def __repr__(self) -> str:
        return f"Body({len(self._data)} bytes, {len(self._raw)} fields)"  # its content may be secret


def _value(name: str, data: bytes) -> pieces.Steps[Any]:  # Any: JSON, or the `Malformed` that it is
    try:
        return (yield from pieces.decoded(data))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return Malformed(name, _why(error))


def _name(escaped: bytes) -> str:
    if b"\\" not in escaped:
        return escaped.decode()
    found: str = _text.decode(b'"%b"' % escaped)
    return found


_scan: Final = JSONDecoder(parse_int=len, parse_float=len, parse_constant=len, strict=False).raw_decode
"""Finds the end of a value; numbers are not computed."""


def _read_spans(data: bytes) -> Iterator[_Span]:
    """By reading each value, in characters of Latin-1: one is one byte, and nothing of the syntax is beyond ASCII."""
    text = data.decode("latin-1")
    position = data.index(b"{") + 1
    while (key := _key(data, position)) is not None:
        value = key.end()
        try:
            _, value_end = _scan(text, value)
        except (ValueError, RecursionError):
            raise Malformed("", "the body must be a JSON object") from None
        end = _end(data, value_end)
        if end is None:
            raise Malformed("", "the body must be a JSON object")
        yield _Span(_name(key[1]), position, value, value_end, end.start(1))
        position = end.end()
        if end[1] == b"}":
            return


def _why(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
