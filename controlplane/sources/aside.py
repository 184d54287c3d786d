"""Long pieces of text are decoded by a process of its own, so that none can hold up the controller or end it.

Called by `directory`. What a short piece can cost is bounded by its length; it is decoded in place, at once. A long one
waits for a process that has a limit of time and of memory (`python -m` this module), and a piece that is over one is in
error. The process is there while it is needed. An answer is trusted: it is the same program, and nobody else has the
pipe.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO, Final

from controlplane.sources.tree import Decoded
from gatewright.api.text.problem import Problem
from gatewright.aside import NO_MEMORY, OUT_OF_MEMORY, ended_after, limit_memory

LONG: Final = 8 * 1024
"""Characters of a piece that is not decoded in place: the worst of a shorter one takes less than 0.1 s (measured)."""

MUCH: Final = 5.0
"""Seconds of computing that a file's short pieces have in place for one change, once the controller runs: other files
wait meanwhile. 10,000 routes take half of it."""

DEADLINE: Final = 20.0
"""Seconds for one piece."""

MEMORY: Final = 2 * 1024 * 1024 * 1024
"""Bytes that the process may have, all in all."""

LAST_WORDS: Final = 1.0
"""Seconds from the end of its answers to its own end."""

COMMAND: Final = (sys.executable, "-P", "-m", "controlplane.sources.aside")
"""-P: the current folder may hold what looks like a module."""

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
        self._command, self._deadline = command, deadline
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, piece: str) -> Decoded:
        """The piece, or why it cannot be decoded."""
        late = threading.Event()
        try:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            with ended_after(self._deadline, process, late):
                pickle.dump(piece, process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                found: Decoded = pickle.load(process.stdout)
                return found
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:  # ValueError: `rest` closed the pipes
            why = f"takes more than {self._deadline:g} s to read" if late.is_set() else _why(self._end(), error)
            self.rest()
            return Decoded(problems=(Problem("", 1, "", "", f"{why}; make it smaller, or split it"),), is_broken=True)

    def rest(self) -> None:
        """End the process. It has nothing to clean up, and starts again with the next piece."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what it was not told any more
                    assert pipe is not None
                    pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.rest()  # it ended while nothing was asked of it
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def _end(self) -> int | None:
        """How it ended; None for one that did not even begin, or that goes on."""
        if self._process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(LAST_WORDS)
        return None


def _why(status: int | None, error: Exception) -> str:
    if status in OUT_OF_MEMORY:
        return f"takes more than {MEMORY} bytes of memory to read"
    ended = f"cannot be read: the process that decodes it ended with {status}"
    return f"cannot be read: {error}" if status is None else ended


def answer_all(pieces: BinaryIO, answers: BinaryIO) -> None:
    """Decode until there are no more pieces."""
    from controlplane.sources.decode import decode

    while True:
        try:
            piece = pickle.load(pieces)
        except EOFError:
            return
        pickle.dump(decode(piece), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    """Whatever is printed goes to standard error: what the controller reads is answers alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the controller decides
    limit_memory(MEMORY)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            answer_all(sys.stdin.buffer, answers)
        except MemoryError:
            os._exit(NO_MEMORY)  # nothing else can be relied on


if __name__ == "__main__":
    main()
