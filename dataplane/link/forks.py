"""What the agent and its fork server say to each other, over a stream of Unix sockets.

The agent asks for one worker by one byte, which carries the worker's end of its link. The server answers each question
in order, with a descriptor of the new process where there is one, and says of each process when it has ended.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

QUESTION: Final = b"w"

_REPORT: Final = struct.Struct("=?ii")
REPORT_BYTES: Final = _REPORT.size


class Report(NamedTuple):
    """One thing that the server says. `value` of a beginning: 0, or the number of the error that stood in its way (then
    `pid` is 0). Of an end: the exit status, negative for a signal."""

    is_end: bool
    pid: int
    value: int

    def encode(self) -> bytes:
        """REPORT_BYTES of them."""
        return _REPORT.pack(*self)


def decode(data: bytes) -> Report:
    """Of REPORT_BYTES bytes."""
    return Report(*_REPORT.unpack(data))
