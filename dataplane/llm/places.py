"""Where texts stand in JSON. Pure.

Every string counts but those that are names of types, ids, addresses or encoded data: a field that is new, or one
of another spelling, holds text as long as nothing here says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataplane.guards.values import Scope, Text
from dataplane.llm.pieces import ITEMS, Steps

OPAQUE: Final = frozenset(
    (
        *("type", "role", "id", "object", "model", "status", "format", "detail", "media_type", "mime_type", "phase"),
        *("call_id", "tool_call_id", "tool_use_id", "item_id", "response_id", "previous_response_id", "file_id"),
        *("container_id", "signature", "encrypted_content", "encrypted_index", "data", "url", "image_url", "file_url"),
        *("file_data", "finish_reason", "stop_reason", "created_by", "server_label", "ttl", "service_tier"),
        *("obfuscation", "event_id", "previous_item_id", "conversation_id"),
    )
)
"""Fields whose strings are no text."""
_AUDIO: Final = frozenset(("input_audio", "output_audio", "audio", "input_audio_buffer.append"))
"""Types of objects whose `audio` is encoded."""
_INPUTS: Final = frozenset(("tool_calls", "function_call", "arguments", "input", "partial_json"))
"""What a tool is called with."""


class Slot(NamedTuple):
    """Where a text stands. Any: JSON."""

    holder: Any
    key: Any
    scope: Scope
    role: str = "user"

    @property
    def text(self) -> Text:
        return Text(self.holder[self.key], self.scope, self.role)

    def put(self, text: str) -> None:
        self.holder[self.key] = text


def strings(
    holder: Any, key: Any, scope: Scope, role: str, path: tuple[Any, ...] = ()
) -> Iterator[tuple[Slot, tuple[Any, ...]]]:
    """All below one place, each with its path. Any: JSON."""
    return (found for found in walked(holder, key, scope, role, path) if found is not None)


def walked(
    holder: Any, key: Any, scope: Scope, role: str, path: tuple[Any, ...] = ()
) -> Iterator[tuple[Slot, tuple[Any, ...]] | None]:
    """As `strings`. None: so many places were looked at that others may go on."""
    levels: list[Iterator[_Place]] = [iter(((holder, key, scope, path, False),))]
    looked = 0
    while levels:
        place = next(levels[-1], None)
        if place is None:
            levels.pop()
            continue
        looked += 1
        if looked % ITEMS == 0:
            yield None
        holder, key, scope, path, is_payload = place
        value = holder[key]
        if type(value) is str:
            yield Slot(holder, key, scope, role), path
        elif type(value) is dict:
            levels.append(_fields(value, scope, path, is_payload))
        elif type(value) is list:
            levels.append(_items(value, scope, path, is_payload))


_Place = tuple[Any, Any, Scope, tuple[Any, ...], bool]


def _items(value: list[Any], scope: Scope, path: tuple[Any, ...], is_payload: bool) -> Iterator[_Place]:
    return ((value, place, scope, (*path, place), is_payload) for place in range(len(value)))


def _fields(value: dict[str, Any], scope: Scope, path: tuple[Any, ...], is_payload: bool) -> Iterator[_Place]:
    """Of one object. `is_payload`: what a tool is called with, whose names are the tool's own."""
    inner = scope if is_payload else _scope_of(value, scope)
    for name, found in [*value.items()]:  # who gets a place may change what is there
        is_text = is_payload or not is_opaque(value, name)
        if is_text:
            is_input = name in _INPUTS and _is_call(value, name)
            below = Scope.TOOL_INPUT if is_input else inner
            yield value, name, below, (*path, name), is_payload or (is_input and type(found) is dict)


def is_opaque(value: dict[str, Any], name: str) -> bool:
    """Whether a field of an object is no text, whatever string it has."""
    if name == "audio":
        return value.get("type") in _AUDIO
    return name in OPAQUE and not (name == "data" and value.get("type") == "text")


def _scope_of(value: dict[str, Any], scope: Scope) -> Scope:
    kind = value.get("type")
    if type(kind) is not str:
        return scope
    if kind.endswith(("tool_result", "_call_output")):
        return Scope.TOOL_OUTPUT
    return Scope.TOOL_INPUT if kind.endswith("tool_use") else scope


def _is_call(value: dict[str, Any], name: str) -> bool:
    """Whether a field of this name is what a tool is called with: `input` is in many objects."""
    return name != "input" or value.get("type") in ("custom_tool_call", "custom") or "name" in value


Slots = Iterator["Slot | None"]
"""None: others may go on."""


class Found:
    """Texts, each with the place where it stands; empty ones are none."""

    __slots__ = ("slots", "texts")

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.texts: list[Text] = []

    def take(self, slots: Slots) -> Steps[None]:
        for count, slot in enumerate(slots, 1):
            if slot is not None and slot.holder[slot.key]:
                self.slots.append(slot)
                self.texts.append(slot.text)
            if slot is None or count % ITEMS == 0:
                yield

    def put(self, said: Iterable[str]) -> None:
        for slot, text in zip(self.slots, said, strict=True):
            slot.put(text)
