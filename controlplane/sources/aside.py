"""Long pieces of text are decoded by a process of its own, so that none can hold up the controller or end it.

Called by `directory`. What a short piece can cost is bounded by its length; it is decoded in place, at once. A long one
waits for a process that has a limit of time and of memory (`helper`; it runs this module), and a piece that is over one
is in error. The process is there while it is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from controlplane.helper import Helper, Unanswered, command, serve
from controlplane.sources.file_state import Decoded
from gatewright.api.text.problem import Problem

LONG: Final = 8 * 1024
"""Characters of a piece that is not decoded in place: the worst of a shorter one takes less than 0.1 s (measured)."""

MUCH: Final = 5.0
"""Seconds of computing that a file's short pieces have in place for one change, once the controller runs: other files
wait meanwhile. 10,000 routes take half of it."""

DEADLINE: Final = 20.0
"""Seconds for one piece."""

COMMAND: Final = command("controlplane.sources.aside")

Decode = Callable[[str], Decoded]


class Pieces:
    """Decodes for a `Tree`: what is long, and not known yet, is noted as wanted in place of decoding it."""

    def __init__(self, decode: Decode, clock: Callable[[], float] = time.thread_time) -> None:
        self._decode, self._clock = decode, clock
        self._known: dict[str, dict[str, Decoded]] = {}
        self._file = ""
        self._left = MUCH
        self._wanted: list[str] = []

    def __repr__(self) -> str:
        return f"<Pieces known={sum(map(len, self._known.values()))}>"

    def begin(self, file: str, much: float = MUCH) -> None:
        """What is decoded from here on is of this file; so many seconds of it in place."""
        self._file, self._left, self._wanted = file, much, []

    def wanted(self) -> list[str]:
        """The pieces that have to be decoded elsewhere before the file can be staged."""
        return list(dict.fromkeys(self._wanted))

    def learn(self, file: str, piece: str, decoded: Decoded) -> None:
        """What became of a piece that was wanted."""
        self._known.setdefault(file, {})[piece] = decoded

    def forget(self, file: str) -> None:
        """The file is in force, or gone."""
        self._known.pop(file, None)

    def decode(self, piece: str) -> Decoded:
        """As the function that it was made with; of what is wanted an empty answer, which counts for nothing."""
        known = self._known.get(self._file)
        if known is not None and (found := known.get(piece)) is not None:
            return found
        if len(piece) > LONG or self._left <= 0:
            self._wanted.append(piece)
            return Decoded()
        begun = self._clock()
        decoded = self._decode(piece)
        self._left -= self._clock() - begun
        return decoded


class Decoder:
    """The process. One piece at a time, from a thread; `rest` may be called from another one."""

    def __init__(self, command: Sequence[str] = COMMAND, deadline: float = DEADLINE) -> None:
        self._helper, self._deadline = Helper(command), deadline

    def decode(self, piece: str) -> Decoded:
        """The piece, or why it cannot be decoded."""
        try:
            found: Decoded = self._helper.ask(piece, self._deadline)
        except Unanswered as why:
            return Decoded(problems=(Problem("", 1, "", "", f"{why}; make it smaller, or split it"),), is_broken=True)
        return found

    def rest(self) -> None:
        """End the process. It starts again with the next piece."""
        self._helper.rest()


def main() -> None:
    from controlplane.sources.decode import decode

    serve(decode)


if __name__ == "__main__":
    main()
