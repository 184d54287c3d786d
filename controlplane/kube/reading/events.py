"""Answers of an API server taken apart as far as all kinds have it in common: pages of lists, events of watches. Pure.

Objects stay the bytes that they came as, for the reader of their kind, so that of a page no more than one is decoded
at a time.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

REMOVED: Final = "DELETED"
CHANGES: Final = ("ADDED", "MODIFIED")
"""What a watch says of an object that is there."""
_TROUBLE: Final = "ERROR"
EXPIRED: Final = 410

DEEPEST: Final = 64
"""Levels of an answer that are read."""
TOO_DEEP: Final = b'"nested too deeply"'
_MARKS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
"""Texts, which may have brackets, and brackets."""

Json = dict[str, Any]  # Any: JSON
Item = Raw | bytes
"""An object as JSON."""


class Expired(Exception):
    """The API server remembers no longer what a watch should go on from: the kind has to be listed anew."""


class Failed(Exception):
    """The API server ended a watch with an error, whose text is its own; or its answer cannot be read."""


class Bare(Struct, gc=False):
    """What of the metadata of an object says which one it is."""

    name: str = ""
    namespace: str | None = None
    version: str = field(name="resourceVersion", default="")


class Page(Struct, gc=False):
    """A part of a list."""

    class Metadata(Struct, gc=False):
        """`more`: asks for the next part; "" in the last one."""

        version: str = field(name="resourceVersion", default="")
        more: str = field(name="continue", default="")

    metadata: Metadata = field(default_factory=Metadata)
    items: list[Raw] | None = None


class _Versions(Struct, gc=False):
    """`metav1.APIVersions`."""

    kind: str
    versions: list[str]


class _Event(Struct, gc=False):
    type: str
    object: Raw


class _Object(Struct, gc=False):
    metadata: Bare = field(default_factory=Bare)


class _Status(Struct, gc=False):
    code: int = 0
    message: str = ""
    reason: str = ""


_EVENTS: Final = msgspec.json.Decoder(_Event)
_OBJECTS: Final = msgspec.json.Decoder(_Object)
_PAGES: Final = msgspec.json.Decoder(Page)
_VERSIONS: Final = msgspec.json.Decoder(_Versions)
_STATUSES: Final = msgspec.json.Decoder(_Status)


def opened(line: bytes) -> tuple[str, Raw]:
    """The type and the object of an event of a watch. Raises Expired, Failed."""
    event: _Event = _decoded(_EVENTS, line, "an event")
    if event.type == _TROUBLE:
        status: _Status = _decoded(_STATUSES, event.object, "an error")
        if status.code == EXPIRED:
            raise Expired
        raise Failed(status.message or status.reason or "unknown error")
    return event.type, event.object


def bare(item: Item) -> Bare:
    """Raises Failed."""
    found: _Object = _decoded(_OBJECTS, item, "an object")
    return found.metadata


def page(raw: bytes) -> Page:
    """Raises Failed, also for what has no moment that a watch could go on from: every list has one."""
    found: Page = _decoded(_PAGES, raw, "a list")
    if not found.metadata.version:
        raise Failed("a list that cannot be read: it has no resourceVersion")
    return found


def core_versions(raw: bytes) -> None:
    """That of an API server (`paths.CORE`). Raises Failed for any other answer."""
    found: _Versions = _decoded(_VERSIONS, raw, "versions of the core")
    if found.kind != "APIVersions" or not found.versions:
        raise Failed("versions of the core that cannot be read: there are none")


def tree(item: Item) -> Json:
    """All of an object, as far as it is nested as any that means something. Raises Failed."""
    try:
        value = msgspec.json.decode(item)
        value = msgspec.json.decode(shallow(item)) if _is_deep(value) else value
    except RecursionError:
        value = msgspec.json.decode(shallow(item))
    if not isinstance(value, dict):
        raise Failed("an object that cannot be read: it is none")
    return value


def _is_deep(value: Any) -> bool:  # Any: JSON
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        parts = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in parts if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def shallow(raw: Item) -> bytes:
    """JSON without what is nested more deeply than any object that means something: a text stands there instead, which
    the check of the object refuses. Fields that a schema leaves open take any depth, and code that walks through them
    would run out of stack."""
    parts: list[bytes] = []
    depth, start, text = 0, 0, bytes(memoryview(raw))
    for found in _MARKS.finditer(text):
        if found[0] in b"{[":
            depth += 1
            if depth == DEEPEST + 1:
                parts += (text[start : found.start()], TOO_DEEP)
        elif found[0] in b"}]":
            depth -= 1
            if depth == DEEPEST:
                start = found.end()
    return b"".join((*parts, text[start:]))


def _decoded(decoder: msgspec.json.Decoder[Any], raw: Item, what: str) -> Any:  # Any: the decoder's form
    try:
        try:
            return decoder.decode(raw)
        except RecursionError:
            return decoder.decode(shallow(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Failed(f"{what} that cannot be read: {error}") from None
