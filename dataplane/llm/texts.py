"""Which texts of bodies guards judge, and where they stand. Pure.

Every string counts but those that are names of types, ids, addresses or encoded data: a field that is new, or one of
another spelling, holds text as long as nothing here says otherwise. What a text is (`plan.Scope`) is said by what is
around it: the role of a message, a call of a tool, its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataplane.guards.values import Scope, Text
from dataplane.llm.body import Malformed
from dataplane.llm.routes import CHATS, Format

if TYPE_CHECKING:
    from dataplane.llm.body import Body

_OPAQUE: Final = frozenset(
    (
        *("type", "role", "id", "object", "model", "status", "format", "detail", "media_type", "mime_type", "phase"),
        *("call_id", "tool_call_id", "tool_use_id", "item_id", "response_id", "previous_response_id", "file_id"),
        *("container_id", "signature", "encrypted_content", "encrypted_index", "data", "url", "image_url", "file_url"),
        *("file_data", "finish_reason", "stop_reason", "created_by", "server_label", "ttl", "service_tier"),
        *("obfuscation", "event_id", "previous_item_id", "conversation_id"),
    )
)
"""Fields whose strings are no text."""
_ECHOED: Final = frozenset(
    (
        *("usage", "tools", "tool_choice", "instructions", "metadata", "system_fingerprint", "created", "text"),
        *("reasoning", "prompt", "prompt_cache_key", "safety_identifier", "user", "truncation", "conversation"),
    )
)
"""Fields of an answer as a whole, beside these: of the provider, or what the request has said (Responses)."""
_AUDIO: Final = frozenset(("input_audio", "output_audio", "audio", "input_audio_buffer.append"))
"""Types of objects whose `audio` is encoded."""
_TOKENS: Final = "logprobs"
"""They repeat the text, token by token."""
_SYSTEM: Final = frozenset(("system", "developer"))
_INPUTS: Final = frozenset(("tool_calls", "function_call", "arguments", "input", "partial_json"))
"""What a tool is called with."""
_RESULTS: Final = frozenset(("tool", "function"))
"""Roles of results."""


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
    waiting = [(holder, key, scope, path, False)]
    while waiting:
        holder, key, scope, path, is_payload = waiting.pop()
        value = holder[key]
        if type(value) is str:
            yield Slot(holder, key, scope, role), path
        elif type(value) is dict:
            waiting += reversed([*_fields(value, scope, path, is_payload)])
        elif type(value) is list:
            places = range(len(value) - 1, -1, -1)
            waiting += [(value, place, scope, (*path, place), is_payload) for place in places]


_Place = tuple[Any, Any, Scope, tuple[Any, ...], bool]


def _fields(value: dict[str, Any], scope: Scope, path: tuple[Any, ...], is_payload: bool) -> Iterator[_Place]:
    """Of one object. `is_payload`: what a tool is called with, whose names are the tool's own."""
    inner = scope if is_payload else _scope_of(value, scope)
    for name, found in value.items():
        is_text = is_payload or not _is_opaque(value, name)
        if is_text:
            is_input = name in _INPUTS and _is_call(value, name)
            below = Scope.TOOL_INPUT if is_input else inner
            yield value, name, below, (*path, name), is_payload or (is_input and type(found) is dict)


def _is_opaque(value: dict[str, Any], name: str) -> bool:
    """Whether a field of an object is no text, whatever string it has."""
    if name == "audio":
        return value.get("type") in _AUDIO
    return name in _OPAQUE and not (name == "data" and value.get("type") == "text")


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


# --- requests


def _messages(holder: dict[str, Any], name: str) -> Iterator[Slot]:
    """Conversations of all three formats."""
    items = holder[name]
    if type(items) is not list:
        yield from _texts(holder, name, Scope.MESSAGES)
        return
    for place, item in enumerate(items):
        role = item.get("role") if type(item) is dict else None
        role = role if type(role) is str else "user"
        yield from _texts(items, place, _of_role(item, role), role)


def _of_role(item: Any, role: str) -> Scope:
    if role in _SYSTEM:
        return Scope.SYSTEM_PROMPT
    return Scope.TOOL_OUTPUT if role in _RESULTS else Scope.MESSAGES


def _texts(holder: Any, key: Any, scope: Scope, role: str = "user") -> Iterator[Slot]:
    return (slot for slot, _ in strings(holder, key, scope, role))


def _system(holder: dict[str, Any], name: str) -> Iterator[Slot]:
    return _texts(holder, name, Scope.SYSTEM_PROMPT, "system")


def _plain(holder: dict[str, Any], name: str) -> Iterator[Slot]:
    return _texts(holder, name, Scope.MESSAGES)


_Read = Callable[[dict[str, Any], str], "Iterator[Slot]"]
FIELDS: Final[dict[Format, tuple[tuple[str, _Read], ...]]] = {
    Format.COMPLETIONS: (("messages", _messages), ("prompt", _plain), ("suffix", _plain), ("prediction", _plain)),
    Format.MESSAGES: (("system", _system), ("messages", _messages)),
    Format.RESPONSES: (("instructions", _system), ("input", _messages), ("prompt", _plain)),
    Format.EMBEDDINGS: (("input", _plain), ("inputs", _plain), ("texts", _plain)),
    Format.RERANK: (("query", _plain), ("documents", _plain)),
}
"""Fields of requests with text. Formats that are not here are not judged."""


class Asked:
    """The texts of one request, and the fields that they stand in."""

    def __init__(self, form: Format, body: Body) -> None:
        """Raises `Malformed` where it cannot be said what the provider would read."""
        self._body = body
        self._values: dict[str, Any] = {}
        self.slots: list[Slot] = []
        for name, read in FIELDS[form]:
            if body.is_twice(name):
                raise Malformed(name, "stands in the body more than once")
            other = body.other_spelling(name)
            if other:
                raise Malformed(name, f"is written as {other} as well or instead")
            value = body.value(name)
            if value is None:
                continue
            if _has_tokens(form, name, value):
                raise Malformed(name, "must be text: tokens cannot be judged by the prompt guard")
            self._values[name] = value
            self.slots += read(self._values, name)

    def write(self, encode: Callable[[Any], bytes]) -> None:
        """What was judged goes to the provider in place of what came: of a name that stands in an object twice, the one
        that was judged."""
        for name, value in self._values.items():
            self._body.set(name, encode(value))


def _has_tokens(form: Format, name: str, value: Any) -> bool:
    """Texts as numbers, which some APIs take."""
    if form not in (Format.COMPLETIONS, Format.EMBEDDINGS) or name == "messages" or type(value) is not list:
        return False
    return any(type(each) is int or (type(each) is list and any(type(one) is int for one in each)) for each in value)


# --- events of a realtime session


def of_event(event: dict[str, Any]) -> list[Slot]:
    """Texts of an event of a client: instructions of a session and of a response, items, and, of an unknown
    event, all that it has."""
    found: list[Slot] = []
    for name, value in event.items():
        if name in _INSTRUCTED and type(value) is dict:
            found += _of_instructed(value)
        elif name == "item" and type(value) is dict:
            found += _messages({"item": [value]}, "item")
        elif not _is_opaque(event, name):
            found += _texts(event, name, Scope.MESSAGES)
    return [slot for slot in found if slot.text.text]


_INSTRUCTED: Final = ("session", "response")


def _of_instructed(holder: dict[str, Any]) -> Iterator[Slot]:
    """Of a session, or of a response that is asked for: as of a request of Responses."""
    for name, read in FIELDS[Format.RESPONSES]:
        if name in holder:
            yield from read(holder, name)


# --- answers


def of_answer(answer: dict[str, Any]) -> list[Slot]:
    """Texts of a whole answer. What repeats them in another form is taken out."""
    without_tokens(answer)
    found: list[Slot] = []
    for name, value in answer.items():
        if name not in _OPAQUE and (name not in _ECHOED or type(value) is str):
            found += _texts(answer, name, Scope.MESSAGES, "assistant")
    return [slot for slot in found if slot.text.text]


def without_tokens(answer: Any) -> None:
    waiting = [answer]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if value.get(_TOKENS):
                value[_TOKENS] = [] if type(value[_TOKENS]) is list else None
            waiting += value.values()
        elif type(value) is list:
            waiting += value


JUDGED: Final = CHATS | {Format.EMBEDDINGS, Format.RERANK, Format.REALTIME}
