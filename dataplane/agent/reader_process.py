"""A reader of standalone files in a process of its own, which is there while it is needed.

Started by the first question, and again by the first one after `rest`. It ends with the agent, whatever ends that: its
input ends then. An answer is trusted as the agent's own data are: it is the same program, and no other process has the
pipe.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dataplane.agent.file_reading import MEMORY, Place, ReaderLost, Reading
from gatewright.aside import OUT_OF_MEMORY, ended_after

COMMAND: Final = (sys.executable, "-P", "-m", "dataplane.agent.reader_entry")
"""-P: the current folder is a user's, and may hold what looks like a module."""

DEADLINE: Final = 60.0
"""Seconds for one answer: a file of 10,000 routes takes about ten. Then the reader is ended, and the file counts as one
that cannot be read."""

LAST_WORDS: Final = 1.0
"""Seconds from the end of its answers to its own end."""


class ReaderProcess:
    """A `Reader`. One question at a time; `rest`, from another thread, ends one that is being answered."""

    def __init__(self, command: Sequence[str] = COMMAND, deadline: float = DEADLINE) -> None:
        self._command, self._deadline = command, deadline
        self._process: subprocess.Popen[bytes] | None = None

    def interpret(self, text: str, file: Path, log_modules: Collection[str]) -> Reading:
        """See `Reader`. Raises ReaderLost."""
        found: Reading = self._ask("interpret", text, file, tuple(log_modules))
        return found

    def refusals(self, text: str, file: Path, refused: Sequence[tuple[Place, str]]) -> Sequence[str]:
        """See `Reader`. Raises ReaderLost."""
        found: Sequence[str] = self._ask("refusals", text, file, tuple(refused))
        return found

    def rest(self) -> None:
        """End the process. It has nothing to clean up."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _let_go(process)

    def _ask(self, method: str, *arguments: Any) -> Any:
        late = threading.Event()
        try:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            with ended_after(self._deadline, process, late):
                pickle.dump((method, arguments), process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                return pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:  # ValueError: `rest` closed the pipes
            why = self._why(error)
            raise ReaderLost(f"reading it takes more than {self._deadline:g} s" if late.is_set() else why) from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.rest()  # it ended while nothing was asked of it
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def _why(self, error: Exception) -> str:
        process, self._process = self._process, None
        if process is None:
            return f"the process that reads it cannot be started: {error}"
        with suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS)
        process.kill()  # it may have closed its output and live on
        status = _let_go(process)
        if status in OUT_OF_MEMORY:
            return f"reading it takes more than {MEMORY} bytes of memory"
        return f"the process that reads it ended ({f'signal {-status}' if status < 0 else f'exit code {status}'})"


def _let_go(process: subprocess.Popen[bytes]) -> int:
    """Of one that is ending; answers its exit status."""
    status = process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # what it was not sent any more
            assert pipe is not None
            pipe.close()
    return status
