"""Writes events so that every reader sees what is meant, whatever is in the values."""

from __future__ import annotations

import re

from dataplane.http.sse.events import Aside, Event

_LINE_ENDS = re.compile(rb"\r\n|\n|\r")
_IN_A_LINE = re.compile(rb"[\r\n]").search


def write(event: Event) -> bytes:
    """The bytes of an event, its empty line included.

    CR and CR LF in the data become line feeds, as a reader would have them. Raises ValueError for a type or id with a
    line end, an id with NUL and a negative retry: no stream can carry them.
    """
    parts = []
    if event.type:
        parts.append(_field(b"event", event.type))
    if event.id is not None:
        if b"\0" in event.id:
            raise ValueError("an id cannot have NUL")
        parts.append(_field(b"id", event.id))
    if event.retry is not None:
        parts.append(retry(event.retry))
    parts += [b"data: %b\n" % line for line in _LINE_ENDS.split(event.data)]
    return b"".join((*parts, b"\n"))


def write_aside(aside: Aside) -> bytes:
    """The bytes of what is no event, its empty line included. Raises ValueError as `write`."""
    parts = [] if aside.comment is None else [comment(aside.comment)]
    if aside.id is not None:
        if b"\0" in aside.id:
            raise ValueError("an id cannot have NUL")
        parts.append(_field(b"id", aside.id))
    if aside.retry is not None:
        parts.append(retry(aside.retry))
    return b"".join((*parts, b"\n"))


def comment(text: bytes = b"") -> bytes:
    """Lines that every reader skips: to keep a connection from looking dead."""
    return b"".join(b": %b\n" % line for line in _LINE_ENDS.split(text))


def retry(milliseconds: int) -> bytes:
    """A line for the block of an event, or for one of its own. Raises ValueError below 0."""
    if milliseconds < 0:
        raise ValueError("retry is not negative")
    return b"retry: %d\n" % milliseconds


def _field(name: bytes, value: bytes) -> bytes:
    if _IN_A_LINE(value):
        raise ValueError(f"{name.decode()} has a line end")
    return b"%b: %b\n" % (name, value)
