"""YAML and JSON text to plain values, and to the positions of their fields.

Called by documents and standalone. Values are built from libyaml's parse events: faster than PyYAML's constructors,
with errors for duplicate keys, bounds on nesting (libyaml's own composer overflows the stack on deep nesting) and on
what aliases repeat (a few lines of aliases of aliases mean billions of values to code that walks through them), dates
left as text as Kubernetes leaves them, and no positions kept (they are looked up in a second pass, only for text that
has problems).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.events import (
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH: Final = 100
"""Nesting of mappings and lists; the deepest thing that we read has about 20 levels."""

MAX_ALIASED: Final = 10_000
"""What the aliases of one document may repeat, in values; every 64 characters of text count as one value more."""


class TextError(Exception):
    """The text is not a document; line and column count from 1."""

    def __init__(self, message: str, line: int, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass(slots=True)
class Position:
    """Where a value begins, and where its parts do; a mapping's parts are found by key, with the key's place."""

    line: int
    column: int
    parts: dict[str | int, Position] = field(default_factory=dict)


def load(text: str) -> Any:
    """The value of one document, None for an empty one. Raises TextError."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _sendable(_shallow(json.loads(text, object_pairs_hook=_json_object)), text)
        except ValueError:
            pass  # YAML's flow style looks alike; and numbers of thousands of digits are left to it
        except RecursionError:
            raise TextError("is nested too deeply", 1) from None
    return _Builder(text).document()


def _shallow(value: Any) -> Any:
    """A value of JSON within the bound on nesting: its readers go down level by level."""
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in parts if isinstance(part, dict | list)]
        if not level:
            return value
    raise TextError("is nested too deeply", 1)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").search


def _sendable(value: Any, text: str) -> Any:
    """A value of JSON, whose escapes can spell half a character: that can be neither printed nor sent."""
    half = _SURROGATE(text)
    if half is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise TextError(f"{half[0]} is half a character", text.count("\n", 0, half.start()) + 1) from None
    return value


def positions(text: str) -> Position | None:
    """The positions in `text`, or None where it has none (JSON that YAML cannot read)."""
    if text.lstrip()[:1] in ("{", "["):
        text = text.replace("\t", " ")
    try:
        return _Locator(text).document()
    except TextError:
        return None


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise TextError(f'duplicate key "{twice}"', 1)
    return value


class _Events:
    """The parse events of a text, one document of it."""

    def __init__(self, text: str) -> None:
        try:
            self._loader = Loader(text)
        except yaml.YAMLError as failure:
            raise _text_error(failure, text) from None
        self._text = text

    def _next(self) -> Any:
        try:
            return self._loader.get_event()
        except yaml.YAMLError as failure:
            raise _text_error(failure, self._text) from None

    def _first(self) -> Any:
        """The first event of the first document, or None when there is no document."""
        self._next()
        event = self._next()
        if event.__class__ is StreamEndEvent:
            return None
        return self._next()

    def _finish(self) -> None:
        """After the document: nothing may follow."""
        self._next()
        event = self._next()
        if event.__class__ is DocumentStartEvent:
            raise _error("a second document begins without a line ---", event)


class _Builder(_Events):
    """Builds values."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._anchors: dict[str, tuple[Any, int]] = {}
        """Values by anchor, with their weights when aliases in them are written out."""
        self._weight = 0
        self._aliased = 0

    def document(self) -> Any:
        event = self._first()
        if event is None:
            return None
        value = self._value(event, 0)
        self._finish()
        return value

    def _value(self, event: Any, depth: int) -> Any:
        kind = event.__class__
        value: Any
        before = self._weight
        self._weight += 1
        if kind is ScalarEvent:
            self._weight += len(event.value) >> 6
            value = _scalar(event)
        elif kind is MappingStartEvent:
            value = self._mapping(event, depth + 1)
        elif kind is SequenceStartEvent:
            value = self._sequence(event, depth + 1)
        else:
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._weight - before
        return value

    def _alias(self, event: Any) -> Any:
        """The value that an alias repeats. It is shared here; lint, models and messages write it out each time."""
        if event.anchor not in self._anchors:
            raise _error(f"unknown alias *{event.anchor}", event)
        value, weight = self._anchors[event.anchor]
        self._weight += weight
        self._aliased += weight
        if self._aliased > MAX_ALIASED:
            raise _error(f"aliases repeat more than {MAX_ALIASED} values; write the values out", event)
        return value

    def _sequence(self, start: Any, depth: int) -> list[Any]:
        if depth > MAX_DEPTH:
            raise _error("is nested too deeply", start)
        items: list[Any] = []
        while (event := self._next()).__class__ is not SequenceEndEvent:
            items.append(self._value(event, depth))
        return items

    def _mapping(self, start: Any, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise _error("is nested too deeply", start)
        fields: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while (event := self._next()).__class__ is not MappingEndEvent:
            if event.__class__ is not ScalarEvent:
                raise _error(_no_key(start, event), event)
            key: str = event.value
            self._weight += len(key) >> 6
            value = self._value(self._next(), depth)
            if value is None and start.flow_style and event.implicit[0] and _COLON_INSIDE(key):
                raise _error(_NO_SPACE, event)  # the key is not shown: it may hold the value of a Secret
            if key == "<<" and event.implicit[0]:
                merged += _merge_sources(value, event)
            elif key in fields:
                raise _error(f'duplicate key "{key}"{_OTHER_OBJECT if key == "apiVersion" else ""}', event)
            else:
                fields[key] = value
        for source in merged:
            for name, each in source.items():
                fields.setdefault(name, each)
        return fields


class _Locator(_Events):
    """Builds positions. An alias has the place where it is used, without parts."""

    def document(self) -> Position | None:
        event = self._first()
        return None if event is None else self._position(event, event, 0)

    def _position(self, start: Any, event: Any, depth: int) -> Position:
        """The position of the value that begins with `event`; `start` is where it is said to be (its key)."""
        if depth > MAX_DEPTH:
            raise _error("is nested too deeply", event)
        mark = start.start_mark
        here = Position(mark.line + 1, mark.column + 1)
        if event.__class__ is MappingStartEvent:
            while (key := self._next()).__class__ is not MappingEndEvent:
                here.parts.setdefault(getattr(key, "value", ""), self._position(key, self._next(), depth + 1))
        elif event.__class__ is SequenceStartEvent:
            while (item := self._next()).__class__ is not SequenceEndEvent:
                here.parts[len(here.parts)] = self._position(item, item, depth + 1)
        return here


_OTHER_OBJECT: Final = "; where another object begins, a line --- stands before it"
_NO_SPACE: Final = "name and value are one word to YAML: write a space after the colon"
_COLON_INSIDE: Final = re.compile(r"\w+:\S+").fullmatch
"""`{name:web}`: without a space the colon belongs to the word. Quoted keys are meant as they are."""


def _no_key(mapping: Any, event: Any) -> str:
    is_template = mapping.flow_style and event.__class__ is MappingStartEvent
    return "a key must be plain text" + ("; a template {{ … }} has to be filled in before" if is_template else "")


def _merge_sources(value: Any, event: Any) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _error("<< needs a mapping or a list of mappings", event)
    return sources


def _error(message: str, event: Any) -> TextError:
    return TextError(message, event.start_mark.line + 1, event.start_mark.column + 1)


def _text_error(failure: yaml.YAMLError, text: str) -> TextError:
    mark = getattr(failure, "problem_mark", None)
    if mark and _is_indented_by_tab(text, mark.line):
        return TextError("not YAML: a tab indents this line; indent with spaces", mark.line + 1, mark.column + 1)
    reason = getattr(failure, "problem", None) or str(failure).splitlines()[0]
    context = getattr(failure, "context", None)
    message = f"not YAML: {reason}" + (f" {context}" if context else "")
    if context == "while scanning an alias":
        message = "not YAML: text that begins with * must be in quotes"
    elif reason == "found character that cannot start any token":
        message += "; text that begins so must be in quotes"
    return TextError(message, mark.line + 1 if mark else 1, mark.column + 1 if mark else 0)


def _is_indented_by_tab(text: str, line: int) -> bool:
    """Whether a tab stands before the content of a line; libyaml says something else of it in each place."""
    found = text.split("\n")[line : line + 1]
    return bool(found) and "\t" in found[0][: len(found[0]) - len(found[0].lstrip())]


# Plain scalars that are not text, by their first character. YAML 1.1 as the API server's own reader takes it, but
# dates stay text and numbers of base 60 do not exist.
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_NUMBER_START: Final = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(?:0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[oO]?_*[0-7][0-7_]*|0b_*[01][01_]*|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_ODD_FLOATS: Final = {".inf": float("inf"), "-.inf": float("-inf"), "+.inf": float("inf"), ".nan": float("nan")}
_TAGS: Final = {"tag:yaml.org,2002:str", "!"}


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0] or event.tag is not None:
        if event.tag is not None and event.tag not in _TAGS:
            raise _error(f"tag {event.tag} is not allowed", event)
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_START:
        return _number(text)
    return text


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text) and len(text) < 64:
        digits = text.replace("_", "")
        bare = digits.lstrip("+-")
        octal = len(bare) > 1 and bare[0] == "0" and bare[1].isdigit()
        return int(digits, 8) if octal else int(digits, 0)
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return _ODD_FLOATS.get(text.lower(), text)
