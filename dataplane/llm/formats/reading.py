"""How formats read JSON: values of the type that a field has, and notes of what a request says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.llm.body import Malformed
from dataplane.llm.chat import Failure
from dataplane.llm.features import Feature
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.halves import ESCAPE, Halves
from dataplane.llm.pieces import Steps, decoded
from dataplane.llm.usage import parsed
from gatewright.turns import at_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.llm.formats.contract import Shape, Shapes

Raw = dict[str, Any]  # Any: JSON of a peer
encode: Final = msgspec.json.Encoder().encode
_anything: Final = msgspec.json.Decoder()
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})
_KINDS: Final = {str: "a string", dict: "an object", list: "an array", bool: "true or false", int: "a whole number"}


def written(value: Any) -> str:  # Any: JSON
    """As the text of JSON."""
    return encode(value).decode()


MAX_VALUES: Final = 100_000
"""Objects, arrays and names of an answer, also those that stand in its texts: building them is what decoding costs."""
_VALUES: Final = (b"{", b"[", b'":')


def of_peer(body: bytes) -> Raw:
    """The object that a provider's answer is. Raises `Unreadable`."""
    if len(body) > MAX_VALUES and sum(map(body.count, _VALUES)) > MAX_VALUES:
        raise Unreadable(f"the answer has more than {MAX_VALUES} values")
    try:
        found = _anything.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        found = parsed(Halves().joined(body)) if ESCAPE in body else None
        if found is None:
            raise Unreadable(f"the answer is no JSON: {error}") from None
    if type(found) is not dict:
        raise Unreadable("the answer is no JSON object")
    return found


MAX_ITEMS: Final = 5_000
"""Messages, parts, calls and tools of a request, or as many things of an answer: of each an object is made, and others
wait meanwhile. A round of a coding agent has five of them."""


def dicts(found: Any) -> Iterator[Raw]:
    """The objects of an array of a peer's; none where it is no array. Raises `Unreadable` where they are too many."""
    if type(found) is not list:
        return iter(())
    if len(found) > MAX_ITEMS:
        raise Unreadable(f"the answer has more than {MAX_ITEMS} things in a list")
    return (each for each in found if type(each) is dict)


def content(found: Raw, name: str) -> Iterator[Raw]:
    """The objects of what an answer is about. Raises `Unreadable` where that is no array: what has none is no answer,
    such as an error under status 200."""
    if type(found.get(name)) is not list:
        raise Unreadable(f"the answer has no {name}")
    return dicts(found[name])


def part(found: Raw, name: str) -> Raw:
    value = found.get(name)
    return value if type(value) is dict else {}


def said(found: Raw, name: str) -> str:
    value = found.get(name)
    return value if type(value) is str else ""


def failure(status: int, body: bytes, parts: Callable[[Raw], tuple[Any, Any]]) -> Failure:
    """An error answer. `parts`: message and kind of its object. What is none of the format's is given as its text."""
    try:
        found = of_peer(body)
    except Unreadable:
        text = body[:_SHOWN].decode("utf-8", "replace").strip()
        return Failure(status, text or f"the provider answered {status}")
    message, kind = parts(found)
    if type(message) is not str or not message:
        message = f"the provider answered {status}"
    return Failure(status, message, kind if type(kind) is str else "")


_SHOWN: Final = 1024
"""Bytes of an error that has no format."""


# --- requests


def of_client(body: bytes) -> Steps[Raw]:
    """The object that a request is. Raises `Malformed`."""
    try:
        found = yield from decoded(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Malformed("", f"the body must be a JSON object: {error}") from None
    if type(found) is not dict:
        raise Malformed("", "must be an object")
    return found


class Reading:
    """One request while it is read. Raises `Malformed` for values of a wrong type."""

    def __init__(self, body: bytes | Raw, shapes: Shapes, quiet: Mapping[str, Any]) -> None:
        """`body`: as it came, or what `of_client` made of it. `quiet`: values of fields that say nothing, as the
        format's defaults do."""
        self.raw: Raw = at_once(of_client(body)) if isinstance(body, bytes) else body
        self.said: dict[Feature, str] = {}
        self._shapes = shapes
        self._quiet = quiet
        self._count = 0
        for name, value in self.raw.items():
            self._field(shapes.fields[""], name, value, name)

    def note(self, feature: Feature, path: str) -> None:
        self.said.setdefault(feature, path)

    def look(self, found: Raw, shape: str, path: str) -> None:
        """Note what the fields of an object say."""
        table = self._shapes.fields[shape]
        for name, value in found.items():
            feature = table.get(name)
            if feature is not Feature.CORE:
                self._field(table, name, value, f"{path}.{name}")

    def _field(self, table: Shape, name: str, value: Any, path: str) -> None:
        feature = table.get(name, Feature.UNKNOWN)
        if feature is Feature.CORE or value in _NOTHING:
            return
        if name not in self._quiet or value != self._quiet[name]:
            self.note(feature, path)

    def is_known(self, shape: str, path: str) -> bool:
        """Whether objects of this shape are read; those that are not are noted as a whole."""
        if shape in self._shapes.fields:
            return True
        self.note(self._shapes.whole.get(shape, Feature.UNKNOWN), path)
        return False

    # --- values: `path` names the field in errors

    def _as(self, kind: type, value: Any, path: str) -> Any:
        if type(value) is not kind:
            raise Malformed(path, f"must be {_KINDS[kind]}")
        return value

    def object(self, value: Any, path: str) -> Raw:
        found: Raw = self._as(dict, value, path)
        return found

    def array(self, value: Any, path: str) -> list[Any]:
        found: list[Any] = self._as(list, value, path)
        return found

    def objects(self, value: Any, path: str) -> Iterator[tuple[Raw, str]]:
        """Those of an array, each with its path; null: none."""
        if value is not None:
            found = self.array(value, path)
            self._count += len(found)
            if self._count > MAX_ITEMS:
                raise Malformed(path, f"there are more than {MAX_ITEMS} messages, parts, calls and tools")
            for index, each in enumerate(found):
                where = f"{path}[{index}]"
                yield self.object(each, where), where

    def parts(self, content: Any, path: str) -> Iterator[tuple[str, Raw, str]]:
        """Of a content, those whose kind is read: kind, object and path of each. Others are noted as a whole."""
        for part, where in self.objects(content, path):
            kind = self.required(part, "type", where)
            shape = f"content[{kind}]"
            if self.is_known(shape, where):
                self.look(part, shape, where)
                yield kind, part, where

    def text(self, found: Raw, name: str, path: str = "") -> str:
        """A field; "" where it is absent or null."""
        value = found.get(name)
        if value is None:
            return ""
        where = f"{path}.{name}" if path else name
        text: str = self._as(str, value, where)
        return text

    def required(self, found: Raw, name: str, path: str = "") -> str:
        if found.get(name) is None:
            raise Malformed(f"{path}.{name}" if path else name, "must be set")
        return self.text(found, name, path)

    def flag(self, found: Raw, name: str, path: str = "") -> bool | None:
        value = found.get(name)
        if value is None:
            return None
        flag: bool = self._as(bool, value, f"{path}.{name}" if path else name)
        return flag

    def whole(self, found: Raw, name: str, path: str = "") -> int | None:
        value = found.get(name)
        if type(value) is float and value.is_integer():
            return int(value)
        number: int | None = None if value is None else self._as(int, value, f"{path}.{name}" if path else name)
        return number

    def number(self, name: str) -> float | None:
        """A field at the top."""
        value = self.raw.get(name)
        if value is None:
            return None
        if type(value) is not int and type(value) is not float:
            raise Malformed(name, "must be a number")
        return value


def cache_mark(part: Raw, name: str) -> str:
    """How long a prompt is cached up to this part, in the words of the field of this name; "": no point is here."""
    found = part.get(name)
    if type(found) is not dict:
        return ""
    ttl = found.get("ttl")
    return ttl if type(ttl) is str else "default"


def put(body: Raw, **fields: Any) -> Raw:
    """Set those that have a value."""
    body.update((name, value) for name, value in fields.items() if value not in _NOTHING)
    return body
