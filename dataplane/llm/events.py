"""Server-sent events of a stream, split anywhere, one after the other (WHATWG HTML 9.2). Pure.

For streams that are read whole; `streams.Watch` passes bytes and looks at few events.
"""

from __future__ import annotations

import re
from typing import Final

MAX_EVENT: Final = 1_048_576
"""Bytes of one event. A stream with one that is larger cannot be translated."""
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DATA: Final = re.compile(rb"(?:^|[\r\n])data:[ ]?([^\r\n]*)")

_TAIL: Final = 3
"""Bytes that may be the beginning of an end; what is before them has none."""


class TooLarge(Exception):
    """An event is larger than may be held."""


class Events:
    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the events that are complete now. Raises `TooLarge`."""
        held = self._held
        seen = max(0, len(held) - _TAIL)
        if held:
            held += data  # pieces of one event cost what they are, however many they are
        whole = held or data
        found, start = [], 0
        for end in _END.finditer(whole, seen):
            lines = _DATA.findall(bytes(whole[start : end.start()]))
            if lines:
                found.append(lines[0] if len(lines) == 1 else b"\n".join(lines))
            start = end.end()
        rest = bytearray(whole[start:]) if start or whole is data else held
        self._held = rest
        if len(rest) > MAX_EVENT:
            raise TooLarge
        return found
