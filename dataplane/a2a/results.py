"""What came of a call, read of the content of its response as it passes: the state of its task, an error's code.

A watcher takes content and holds a bounded part of it; what it cannot read is left out. It changes nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Protocol

from dataplane.a2a import methods
from dataplane.a2a.call import Call
from dataplane.a2a.documents import Unreadable, number, parse
from dataplane.a2a.protobuf_calls import FRAME
from dataplane.http.sse import EventReader, EventTooLarge

MAX_ANSWER: Final = 262_144
"""Bytes of an answer in one piece that are looked at."""
MAX_PART: Final = 65_536
"""Bytes of one event, or one message of a stream, that are looked at."""

MAX_LINES: Final = 8192
"""Lines, or messages of gRPC, of one piece of a stream that are counted: events have a few hundred bytes each."""

MAX_FRAMES: Final = 32
"""Messages of gRPC in one piece of a stream that are looked at, the last ones."""
MAX_LOOK: Final = 256
"""Fields of one of them, and of each part, that are looked at."""

STATES: Final = (
    *("submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"),
)
"""States of tasks, by the numbers that protobuf has for them, from 1. The names are those of 0.3."""
_BY_TEXT: Final = {name: name for name in (*STATES, "unknown")} | {
    f"TASK_STATE_{name.upper().replace('-', '_')}": name for name in STATES
}
_BY_TEXT["TASK_STATE_CANCELLED"] = "canceled"  # 0.3


class Watcher(Protocol):
    def content(self, data: bytes) -> None: ...

    def end(self) -> None: ...


def watcher(call: Call, content_type: bytes) -> Watcher | None:
    """What notes in `call` what the content of a response says; None: it is of a kind that says nothing."""
    media = content_type.partition(b";")[0].strip().lower()
    if media == b"text/event-stream":
        return _Events(call)
    if media.startswith(b"application/grpc"):
        return _Frames(call) if call.method in _STATES_AT else None
    return _Answer(call) if media == b"application/json" or media.endswith(b"+json") else None


class _Answer:
    """One JSON text."""

    __slots__ = ("_call", "_pieces", "_size")

    def __init__(self, call: Call) -> None:
        self._call, self._pieces, self._size = call, bytearray(), 0

    def content(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_ANSWER:
            self._pieces += data
        else:
            self._pieces.clear()

    def end(self) -> None:
        if self._pieces:
            _note(self._call, bytes(self._pieces))


class _Events:
    """A stream of events, each with one JSON text."""

    __slots__ = ("_call", "_reader")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._reader: EventReader | None = EventReader(MAX_PART)

    def content(self, data: bytes) -> None:
        if self._reader is None:
            return
        if data.count(b"\n") > MAX_LINES:
            self._reader = None  # all others would wait while they are read
            return
        try:
            events = self._reader.feed(data)
        except EventTooLarge:
            self._reader = None  # what follows cannot be known from it
            return
        for event in events:
            if b'"status"' in event.data or b'"error"' in event.data or self._call.task is None:
                _note(self._call, event.data)

    def end(self) -> None:
        """An event that did not end is none."""


_STATES_AT: Final = {
    # method -> where its answers have a status, as paths of field numbers
    methods.SEND: ((1, 3, 1),),
    methods.STREAM: ((1, 3, 1), (3, 3, 1)),
    methods.SUBSCRIBE: ((1, 3, 1), (3, 3, 1)),
    methods.GET: ((3, 1),),
    methods.CANCEL: ((3, 1),),
}


class _Frames:
    """Messages of gRPC."""

    __slots__ = ("_call", "_held", "_is_over", "_skip")

    def __init__(self, call: Call) -> None:
        self._call, self._held, self._skip, self._is_over = call, bytearray(), 0, False

    def content(self, data: bytes) -> None:
        if self._is_over:
            return
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._held += data[skipped:]
        for found in reversed(self._messages()):
            if self._notes(found):
                break  # the last one that says a state counts

    def _messages(self) -> list[bytes]:
        """The last ones that are here whole; they are held no longer."""
        held, at, count, found = self._held, 0, 0, deque[tuple[int, int]](maxlen=MAX_FRAMES)
        while len(held) - at >= FRAME:
            count += 1
            size = FRAME + int.from_bytes(held[at + 1 : at + FRAME], "big")
            if size > MAX_PART:
                self._skip = max(at + size - len(held), 0)
                at = min(at + size, len(held))
                continue
            if len(held) - at < size:
                break
            if count > MAX_LINES:
                self._is_over = True  # all others would wait while they are read
                held.clear()
                return []
            if not held[at]:
                found.append((at + FRAME, at + size))
            at += size
        messages = [bytes(held[start:end]) for start, end in found]
        del held[:at]
        return messages

    def _notes(self, message: bytes) -> bool:
        """Whether a message says a state, which is noted."""
        try:
            for path in _STATES_AT[self._call.method or ""]:
                state = number(message, *path, most=MAX_LOOK)
                if state is not None and 1 <= state <= len(STATES):
                    self._call.state = STATES[state - 1]
                    return True
        except Unreadable:
            return False
        return False

    def end(self) -> None:
        """A message that did not end is none."""


def _note(call: Call, data: bytes) -> None:
    try:
        value = parse(data)
    except Unreadable:
        return
    if not isinstance(value, dict):
        return
    error = value.get("error")
    if isinstance(error, dict) and type(error.get("code")) is int:
        call.error = error["code"]
    inner = value.get("result", value)
    for holder in _holders(inner):
        _note_task(call, holder)


def _holders(value: Any) -> list[dict[str, Any]]:
    """Objects that may be a task, or news of one: bare in 0.3 and as the answer to `tasks/get`, named in 1.0."""
    found = [value]
    if isinstance(value, dict):
        found += [value.get(name) for name in ("task", "statusUpdate", "artifactUpdate", "message", "msg")]
    return [each for each in found if isinstance(each, dict)]


def _note_task(call: Call, holder: dict[str, Any]) -> None:
    status = holder.get("status")
    state = status.get("state") if isinstance(status, dict) else None
    if isinstance(state, str) and state in _BY_TEXT:
        call.state = _BY_TEXT[state]
        call.task = call.task or _short(holder.get("taskId") or holder.get("id"))
    elif "taskId" in holder:
        call.task = call.task or _short(holder["taskId"])
    call.context = call.context or _short(holder.get("contextId"))


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 256 else None
