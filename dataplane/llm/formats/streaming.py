"""What readers and writers of streams of all formats have in common: events of JSON, one end, errors as events.
Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dataplane.llm import errors
from dataplane.llm.chat import Asked, Failure
from dataplane.llm.deltas import Arguments, Began, Delta, Failed, Stopped, ToolBegan
from dataplane.llm.events import Events, TooLarge
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.halves import ESCAPE, Halves
from dataplane.llm.formats.reading import Raw
from dataplane.llm.routes import Format
from dataplane.llm.usage import DONE, parsed

MALFORMED: Final = "malformed_stream"
BROKEN: Final = "LlmStreamBroken"
"""Code of a stream that ended before its end, as `chain/replies` has it."""
_BAD_GATEWAY: Final = 502


class Reading:
    """A stream of a provider, as deltas in their order, with one end. A subclass has `feed`, and `done` where its
    format has an end."""

    def __init__(self) -> None:
        self.is_over = False
        """`Stopped` or `Failed` was given."""
        self._has_begun = self._in_tool = False
        self._halves = Halves()

    def end(self) -> list[Delta]:
        return [] if self.is_over else self._taken(self.done())

    def _object(self, data: bytes, reads: Callable[[Raw], Iterable[Delta]]) -> Iterable[Delta]:
        """What it makes of an event's object."""
        found = parsed(data)
        if found is None and ESCAPE in data:
            found = parsed(self._halves.joined(data))
        if type(found) is not dict:
            return [self.failed("an event of the stream is no JSON object", MALFORMED)]
        try:
            return list(reads(found))
        except Unreadable as error:
            return [self.failed(str(error), MALFORMED)]

    def _taken(self, deltas: Iterable[Delta]) -> list[Delta]:
        """Up to the first end, and as the law of deltas has it whatever a provider sends."""
        found: list[Delta] = []
        for delta in deltas:
            each = self._misplaced() if isinstance(delta, Arguments) and not self._in_tool else delta
            if not self._has_begun and not isinstance(each, (Began, Failed)):
                found.append(Began("", ""))
            self._has_begun = True
            self._in_tool = isinstance(each, (ToolBegan, Arguments))
            found.append(each)
            if isinstance(each, (Stopped, Failed)):
                self.is_over = True
                break
        return found

    def _misplaced(self) -> Failed:
        return self.failed("arguments of a tool stand outside of its call", MALFORMED)

    def done(self) -> Iterable[Delta]:
        """The stream has ended."""
        return [self.broken()]

    def failed(self, message: str, kind: str, status: int = 0) -> Failed:
        return Failed(Failure(status or _BAD_GATEWAY, message or "the provider reported an error", kind))

    def broken(self) -> Failed:
        return self.failed("the provider's stream ended before its end", BROKEN)


class JsonReader(Reading, ABC):
    """Of server-sent events, each an object."""

    def __init__(self) -> None:
        super().__init__()
        self._events = Events()

    @abstractmethod
    def event(self, found: Raw) -> Iterable[Delta]:
        """What an event says."""

    def feed(self, data: bytes) -> list[Delta]:
        found: list[Delta] = []
        if self.is_over:
            return found
        try:
            events = self._events.feed(data)
        except TooLarge:
            return self._taken([self.failed("an event of the stream is too large", MALFORMED)])
        for event in events:
            found += self._taken(self._read(event))
            if self.is_over:
                break
        return found

    def _read(self, data: bytes) -> Iterable[Delta]:
        return self.done() if data == DONE else self._object(data, self.event)


class Writer:
    """Deltas as events of a client's format. A subclass has a row for each kind of delta that it writes."""

    form = Format.COMPLETIONS
    rows: Mapping[type, Callable[[Any], bytes]]  # Any: the delta of the row's kind

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def give(self, deltas: Iterable[Delta]) -> bytes:
        rows = self.rows
        found = [rows[type(each)](each) for each in deltas if type(each) in rows]
        return found[0] if len(found) == 1 else b"".join(found)

    def failure(self, delta: Failed) -> bytes:
        found = delta.failure
        return errors.event(self.form, found.status, found.kind, found.message, self.number())

    def number(self) -> int:
        """Of the next event, where the format counts them."""
        return 0
