"""A stream of events on its way to the client: passed as bytes, and read beside. Pure.

`Watch` takes pieces as they come, split anywhere, and gives what goes on to the client. It holds nothing back unless
the event that we have asked for is to be hidden; then the piece of an event that is not complete waits. Events are
parsed only where one may have what is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from dataplane.llm import content, usage
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Report, Usage

EDGE: Final = 32
"""Events at the begin and at the end of a piece that are read. Of a piece with more, those between pass unread: what
says something of the whole is first or last, and a provider that says it without end must delay no other request."""
MAX_EVENT: Final = 1_048_576
"""Bytes of one event that are kept to read it. One that is larger passes unread."""
_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_NUMBER: Final = re.compile(rb'"sequence_number"\s*:\s*(\d{1,9})\b')
DATA: Final = re.compile(rb"(?:^|[\r\n])data:[ ]?([^\r\n]*)")
"""Lines with what an event says."""
MARKS: Final = {
    Format.COMPLETIONS: re.compile(rb'"usage"\s*:\s*\{|"finish_reason"\s*:\s*"|"error"|\[DONE\]'),
    Format.MESSAGES: re.compile(rb"message_|error"),
    Format.RESPONSES: re.compile(rb"error|response\.(?:created|completed|incomplete|failed)"),
}
"""What an event has that says something of the whole."""


class Watch:
    """One stream. `hides`: the event with nothing but usage, which the client has not asked for, is taken out."""

    __slots__ = (
        *("_form", "_held", "_hides", "_is_lost", "_last", "_marks"),
        *("failed", "has_token", "is_complete", "model", "tier", "usage"),
    )

    def __init__(self, form: Format, hides: bool = False) -> None:
        self._form = form
        self._hides = hides
        self._marks = MARKS.get(form)
        self._held = self._last = b""
        """The beginning of an event; and the events before it."""
        self._is_lost = False
        """The event that is under way is too large to be read."""
        self.usage: Usage = NO_USAGE
        self.model = self.tier = self.failed = ""
        self.has_token = False
        """Something of the answer itself has come."""
        self.is_complete = False

    def feed(self, data: bytes) -> bytes:
        """What goes on to the client now."""
        whole = self._held + data if self._held else data
        end = last_end(whole)
        if not end:
            return self._more(data, whole)
        events, self._held = whole[:end], whole[end:]
        self._last = events
        if self._is_lost:
            self._is_lost = False
            first = _EVENT_END.search(events)
            assert first is not None  # there is an end
            events = events[first.end() :]
            given = whole[: first.end()] if self._hides else b""
            return given + self._events(events) if self._hides else self._seen(events, data)
        return self._events(events) if self._hides else self._seen(events, data)

    def end(self) -> bytes:
        """What is left, of a stream that ended within an event."""
        held, self._held = self._held, b""
        return held if self._hides else b""

    @property
    def is_between_events(self) -> bool:
        """An event may be added behind what the client has."""
        return self._hides or not (self._held or self._is_lost)

    @property
    def next_number(self) -> int:
        """Of the next event, where the format counts them."""
        found = _NUMBER.findall(self._last)
        return int(found[-1]) + 1 if found else 0

    def _more(self, data: bytes, whole: bytes) -> bytes:
        if self._is_lost or len(whole) > MAX_EVENT:
            self._is_lost, self._held = True, whole[-_TAIL:] if not self._hides else b""
            return whole if self._hides else data
        self._held = whole
        return b"" if self._hides else data

    def _seen(self, events: bytes, data: bytes) -> bytes:
        if self._is_wanted(events):
            first, _, last = _edges(events)
            for event in (*first, *last):
                self._read(event)
        return data

    def _events(self, events: bytes) -> bytes:
        if not self._is_wanted(events):
            return events
        first, between, last = _edges(events)
        kept = [event for event in first if not self._read(event)]
        return b"".join([*kept, between, *[event for event in last if not self._read(event)]])

    def _is_wanted(self, events: bytes) -> bool:
        """Whether one of them may have what is to be read."""
        if not self.has_token:
            return True
        return self._marks is not None and self._marks.search(events) is not None

    def _read(self, event: bytes) -> bool:
        """True: it is the one to hide."""
        found = DATA.findall(event)
        if not found:
            return False
        data = found[0] if len(found) == 1 else b"\n".join(found)
        if data == usage.DONE:
            self.is_complete = True
            return False
        if self.has_token and not (self._marks and self._marks.search(data)):
            return False
        parsed = usage.parsed(data)
        if type(parsed) is not dict:
            return False
        if not self.has_token:
            self.has_token = content.has_token(self._form, parsed)
        reader = usage.EVENTS.get(self._form)
        if reader is not None:
            self._note(reader(parsed))
        return self._hides and parsed.get("choices") == [] and type(parsed.get("usage")) is dict

    def _note(self, report: Report) -> None:
        self.usage = report.usage.over(self.usage)
        self.model = report.model or self.model
        self.tier = report.tier or self.tier
        self.failed = report.failed or self.failed
        self.is_complete = self.is_complete or report.is_last

    def __repr__(self) -> str:
        return f"Watch({self._form}, {len(self._held)} bytes held)"


_TAIL: Final = 3
"""Bytes of an end that may have come."""


def last_end(data: bytes) -> int:
    """Where the last event that is complete ends; 0: none is."""
    found = max((data.rfind(end) + len(end) if end in data else 0) for end in (b"\n\n", b"\r\n\r\n", b"\r\r"))
    return found


def parsed(data: bytes) -> Iterator[Any]:
    """The data of each event that is there whole, as JSON; others are left out. Any: JSON of a provider."""
    for event in split(data[: last_end(data)]):
        found = usage.parsed(b"\n".join(DATA.findall(event)))
        if found is not None:
            yield found


def from_first_token(form: Format, data: bytes) -> bytes:
    """From the event on that has it; all where none does."""
    start = 0
    for event in split(data):
        if content.has_token(form, usage.parsed(b"\n".join(DATA.findall(event)))):
            return data[start:]
        start += len(event)
    return data


def _edges(events: bytes) -> tuple[list[bytes], bytes, list[bytes]]:
    """The first events, what is between, and the last ones."""
    first: list[bytes] = []
    start, found = 0, None
    while len(first) < EDGE and (found := _EVENT_END.search(events, start)) is not None:
        first.append(events[start : found.end()])
        start = found.end()
    if found is None or start == len(events):
        return first, events[start:], []
    ending, places = found[0], [len(events)]
    while len(places) <= EDGE and (place := events.rfind(ending, start, places[-1] - len(ending))) >= 0:
        places.append(place + len(ending))
    if len(places) <= EDGE:
        places.append(start)
    last = [events[begin:end] for end, begin in pairwise(places)]
    return first, events[start : places[-1]], last[::-1]


def split(events: bytes) -> list[bytes]:
    """Each with its empty line."""
    found, start = [], 0
    for end in _EVENT_END.finditer(events):
        found.append(events[start : end.end()])
        start = end.end()
    if start < len(events):
        found.append(events[start:])
    return found
