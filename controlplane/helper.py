"""A process that answers questions about what unknown authors wrote, one at a time, with a limit of time for each.

Used by `sources.aside` for text and by `kube.reading.beside` for objects; what the process does is said by its command,
which calls `serve`. It is there while it is needed, and starts again after it was ended. An answer is trusted: it is
the same program, and no other process has the pipe.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final

from gatewright.aside import NO_MEMORY, OUT_OF_MEMORY, TIME_IS_UP, ended_after, limit_memory

MEMORY: Final = 2 * 1024 * 1024 * 1024
"""Bytes that the process may have, all in all."""

LAST_WORDS: Final = 1.0
"""Seconds from the end of its answers to its own end."""


def command(module: str) -> tuple[str, ...]:
    """That of a process which runs a module of this product."""
    return (sys.executable, "-P", "-m", module)  # -P: the current folder may hold what looks like a module


class Unanswered(Exception):
    """A question has no answer; the text says why. `is_late`: it took too long."""

    def __init__(self, why: str, *, is_late: bool = False) -> None:
        super().__init__(why)
        self.is_late = is_late


class Helper:
    """The process. One question at a time, from a thread; `rest` may be called from another one."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the next question finds a process that has loaded what it needs."""
        return self._process is not None and self._process.poll() is None

    def ask(self, question: object, deadline: float) -> Any:  # Any: what the process answers
        """The answer. Raises Unanswered; then the process has ended."""
        late = threading.Event()
        try:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            with ended_after(deadline, process, late):
                pickle.dump(question, process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                return pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:  # ValueError: `rest` closed the pipes
            status = None if late.is_set() else self._end()
            is_late = late.is_set() or status == TIME_IS_UP
            why = f"takes more than {deadline:g} s to read" if is_late else _why(status, error)
            self.rest()
            raise Unanswered(why, is_late=is_late) from None

    def rest(self) -> None:
        """End the process. It has nothing to clean up, and starts again with the next question."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what it was not sent any more
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


def answer_all(
    questions: BinaryIO,
    answers: BinaryIO,
    answer: Callable[[Any], object],  # Any: what is asked
) -> None:
    """Answer until there are no more questions."""
    while True:
        try:
            question = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(answer(question), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def serve(answer: Callable[[Any], object], memory: int = MEMORY) -> None:  # Any: what is asked
    """The main function of such a process. Whatever is printed goes to standard error: what the controller reads is
    answers alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the controller decides
    limit_memory(memory)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            answer_all(sys.stdin.buffer, answers, answer)
        except MemoryError:
            os._exit(NO_MEMORY)  # nothing else can be relied on
