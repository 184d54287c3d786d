"""Which texts the events of a stream have, and which of them belong together. Pure.

A text that comes in pieces is a track: the content of a choice, a block, an item, or the arguments of a call of a tool.
`pieces` says which tracks an event goes on with, `ended` which it ends, and `rest` makes the event that gives what was
held of a track.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataplane.guards.values import Scope
from dataplane.llm.places import Slot, strings
from dataplane.llm.routes import Format
from dataplane.llm.texts import of_answer

Event = dict[str, Any]  # Any: JSON of a provider
Key = tuple[Any, ...]
"""Of a track: what it belongs to (a choice, a block, an item), and where the text stands in it."""
_ROLE: Final = "assistant"


class Piece(NamedTuple):
    key: Key
    slot: Slot


class Reader(NamedTuple):
    """How one format says it."""

    pieces: Callable[[Event], Iterable[Piece]]
    ended: Callable[[Event, Iterable[Key]], list[Key]]
    """Of tracks that are open, those that get no more pieces; of pieces in the event itself too."""
    rest: Callable[[Event, Key, str], Event]
    """`Event`: the last one that has gone on with the track."""


def _number(found: Any) -> int:
    return found if type(found) is int else 0


# --- Completions

_WHOLE: Final = frozenset(("name", "annotations"))
"""Fields below a choice whose texts come in one piece."""


def _completions_pieces(event: Event) -> Iterator[Piece]:
    for choice in _dicts(event.get("choices")):
        index = _number(choice.get("index"))
        for name in ("delta", "text"):
            if name in choice:
                for slot, path in strings(choice, name, Scope.MESSAGES, _ROLE, (name,)):
                    if not _WHOLE.intersection(path):
                        yield Piece((index, *_by_index(choice, path)), slot)


def _by_index(choice: Event, path: Key) -> Iterator[Any]:
    """The path with what items of lists say of themselves in place of where they stand in this event."""
    value: Any = choice
    for step in path:
        value = value[step]
        yield ("index", _number(value.get("index", step))) if type(step) is int and type(value) is dict else step


def _completions_ended(event: Event, open_keys: Iterable[Key]) -> list[Key]:
    if "error" in event:
        return [*open_keys]
    over = {
        _number(choice.get("index"))
        for choice in _dicts(event.get("choices"))
        if choice.get("finish_reason") is not None
    }
    return [key for key in open_keys if key[0] in over]


def _completions_rest(event: Event, key: Key, text: str) -> Event:
    index, *path = key
    value: Any = text
    for step in reversed(path):
        if type(step) is tuple:
            value = [{"index": step[1], **value}] if type(value) is dict else [value]
        else:
            value = [value] if type(step) is int else {step: value}
    above = {name: found for name, found in event.items() if name not in ("choices", "usage", "obfuscation")}
    return {**above, "choices": [{"index": index, **value, "finish_reason": None}]}


# --- Messages

_OF_BLOCKS: Final = {"text": "text_delta", "thinking": "thinking_delta"}
"""Fields of a block that begins with some of its text, and the type of the pieces that follow."""


def _messages_pieces(event: Event) -> Iterator[Piece]:
    index = _number(event.get("index"))
    if event.get("type") == "content_block_start" and type(event.get("content_block")) is dict:
        block = event["content_block"]
        for name, kind in _OF_BLOCKS.items():
            if type(block.get(name)) is str and block.get("type") == name:
                yield Piece((index, kind, name), Slot(block, name, Scope.MESSAGES, _ROLE))
    elif event.get("type") == "content_block_delta" and type(event.get("delta")) is dict:
        kind = event["delta"].get("type")
        for slot, path in strings(event, "delta", Scope.MESSAGES, _ROLE):
            if len(path) == 1:
                yield Piece((index, kind, *path), slot)


def _messages_ended(event: Event, open_keys: Iterable[Key]) -> list[Key]:
    if event.get("type") == "content_block_stop":
        index = _number(event.get("index"))
        return [key for key in open_keys if key[0] == index]
    return [*open_keys] if event.get("type") in ("message_delta", "message_stop", "error") else []


def _messages_rest(event: Event, key: Key, text: str) -> Event:
    index, kind, name = key
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}}


# --- Responses

_DELTA, _DONE = ".delta", ".done"
_PLACES: Final = ("output_index", "content_index", "summary_index")
_INPUTS: Final = ("arguments", "_call_input", "_call_code")
"""In names of events whose text is what a tool is called with."""


def _responses_pieces(event: Event) -> Iterator[Piece]:
    kind = event.get("type")
    if type(kind) is str and kind.endswith(_DELTA) and type(event.get("delta")) is str:
        scope = Scope.TOOL_INPUT if any(each in kind for each in _INPUTS) else Scope.MESSAGES
        yield Piece(_responses_key(kind.removesuffix(_DELTA), event), Slot(event, "delta", scope, _ROLE))


def _responses_key(kind: str, event: Event) -> Key:
    return (kind, *(_number(event.get(name)) for name in _PLACES))


def _responses_ended(event: Event, open_keys: Iterable[Key]) -> list[Key]:
    kind = event.get("type")
    if type(kind) is not str or kind.endswith(_DELTA):
        return []
    if kind in ("response.completed", "response.incomplete", "response.failed", "error"):
        return [*open_keys]
    key = _responses_key(kind.removesuffix(_DONE), event)
    if kind == "response.output_item.done":
        return [each for each in open_keys if each[1] == key[1]]
    if kind == "response.content_part.done":
        return [each for each in open_keys if each[1:] == key[1:]]
    return [each for each in open_keys if each == key]


def _responses_rest(event: Event, key: Key, text: str) -> Event:
    return {name: found for name, found in event.items() if name not in ("obfuscation", "logprobs")} | {"delta": text}


# --- Realtime

_OF_AUDIO: Final = ("response.output_audio", "response.audio")
"""Events whose pieces are encoded sound."""
_PLAIN: Final = ("session.", "input_audio_buffer.", "output_audio_buffer.", "rate_limits.", "transcription_session.")
"""What types of events begin with that have no text, or repeat what the client has said of its session."""
RESPONSE: Final = 1
"""Where a key has the id of the response."""


def _realtime_pieces(event: Event) -> Iterator[Piece]:
    kind = event.get("type")
    if type(kind) is str and kind.endswith(_DELTA) and type(event.get("delta")) is str:
        kind = kind.removesuffix(_DELTA)
        if kind not in _OF_AUDIO:
            scope = Scope.TOOL_INPUT if "arguments" in kind else Scope.MESSAGES
            yield Piece(_realtime_key(kind, event), Slot(event, "delta", scope, _ROLE))


def _realtime_key(kind: str, event: Event) -> Key:
    return (kind, _id(event.get("response_id")), _id(event.get("item_id")), _number(event.get("content_index")))


def _id(found: Any) -> str:
    return found if type(found) is str else ""


def _realtime_ended(event: Event, open_keys: Iterable[Key]) -> list[Key]:
    kind, whole = event.get("type"), event.get("item")
    if type(kind) is not str or kind.endswith(_DELTA):
        return []
    if kind == "response.done":
        response = event.get("response")
        ended = _id(response.get("id") if type(response) is dict else None)
        return [key for key in open_keys if key[RESPONSE] == ended]
    key = _realtime_key(kind.rpartition(".")[0], event)
    if kind == "response.content_part.done":
        return [each for each in open_keys if each[RESPONSE:] == key[RESPONSE:]]
    if kind in ("response.output_item.done", "conversation.item.done") and type(whole) is dict:
        return [each for each in open_keys if each[RESPONSE + 1] == _id(whole.get("id"))]
    return [each for each in open_keys if each == key] if kind.endswith((".done", ".completed", ".failed")) else []


READERS: Final[dict[Format, Reader]] = {
    Format.COMPLETIONS: Reader(_completions_pieces, _completions_ended, _completions_rest),
    Format.MESSAGES: Reader(_messages_pieces, _messages_ended, _messages_rest),
    Format.RESPONSES: Reader(_responses_pieces, _responses_ended, _responses_rest),
    Format.REALTIME: Reader(_realtime_pieces, _realtime_ended, _responses_rest),
}
COUNTS: Final = "sequence_number"
"""Of events of Responses: there is none twice, and none is left out."""


def others(event: Event, pieces: Iterable[Piece]) -> list[Slot]:
    """Texts that are here whole: of events that repeat a track, and of unknown ones."""
    known = {(id(piece.slot.holder), piece.slot.key) for piece in pieces}
    whole = event.get("response")  # of Responses: what it repeats of the request is not judged again
    return [
        slot for slot in of_answer(whole if type(whole) is dict else event) if (id(slot.holder), slot.key) not in known
    ]


def says_nothing(event: Event) -> bool:
    """An event of a realtime session that has no text, by its type."""
    kind = event.get("type")
    if type(kind) is not str:
        return False
    return kind.startswith(_PLAIN) or kind.removesuffix(_DELTA) in _OF_AUDIO


def is_empty(form: Format, event: Event) -> bool:
    """An event that says nothing, since all of its text is held."""
    if form is Format.MESSAGES:
        delta = event.get("delta")
        return event.get("type") == "content_block_delta" and type(delta) is dict and _says_nothing(delta)
    if form is not Format.COMPLETIONS or event.get("usage") or not event.get("choices"):
        return False
    return all(
        choice.get("finish_reason") is None and type(choice.get("delta")) is dict and _says_nothing(choice["delta"])
        for choice in _dicts(event["choices"])
    )


def _says_nothing(delta: dict[str, Any]) -> bool:
    return all(not value for name, value in delta.items() if name != "type")


def _dicts(found: Any) -> Iterator[dict[str, Any]]:
    if type(found) is list:
        yield from (each for each in found if type(each) is dict)
