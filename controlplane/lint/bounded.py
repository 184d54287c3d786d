"""Lint within limits of time and memory: what is much is read by a process of its own (`python -m` this module).

Called by the command line. Little text is read in place: what it can cost is bounded by its length. A process that runs
into a limit is one error that names the limit and the file that was being read: it names a file before it reads it.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final, NamedTuple

from gatewright import folders
from gatewright.api.lint.report import Report
from gatewright.api.text.problem import Problem
from gatewright.aside import NO_MEMORY, OUT_OF_MEMORY, ended_after, limit_memory

NAME_OF_INPUT: Final = "<standard input>"

IN_PLACE: Final = 256 * 1024
"""Bytes of all files together that are linted without a process of its own."""

DEADLINE: Final = 85.0
"""Seconds that linting takes at most."""

MEMORY: Final = 1_500_000_000
"""Bytes that linting takes at most; 60,000 routes take about three quarters of it."""

LAST_WORDS: Final = 1.0
"""Seconds from the end of its answers to its own end."""

COMMAND: Final = (sys.executable, "-P", "-m", "controlplane.lint.bounded")
"""-P: the folder that is linted may be the current one, and hold what looks like a module."""


class Request(NamedTuple):
    """What lint is asked. `piped` is a text from standard input; None without one."""

    paths: tuple[str, ...]
    elsewhere: frozenset[str]
    piped: str | None


Reading = Callable[[str], None]
"""Called with what is about to be read, or to be done."""


def answer(request: Request, reading: Reading) -> Report:
    """What is wrong with the files of the request."""
    from controlplane.lint import lint  # a second of computing: not for who asks another process
    from gatewright.api.lint.lint import Document

    report = lint.lint_paths(request.paths, request.elsewhere, reading)
    if request.piped is None:
        return report
    reading(NAME_OF_INPUT)
    piped = lint.examine([Document(NAME_OF_INPUT, request.piped)])
    problems = (*report.problems, *piped.problems)
    return Report(problems, report.files + piped.files, report.objects + piped.objects, report.absent)


def lint(request: Request, command: Sequence[str] = COMMAND, deadline: float = DEADLINE) -> Report:
    """What is wrong with the files of the request, or which limit of the process they are over."""
    if is_little(request):
        return answer(request, lambda _: None)
    return _asked(request, command, deadline)


def is_little(request: Request) -> bool:
    """Whether it is linted in place, in a second or less."""
    left = IN_PLACE - len(request.piped or "")
    for size in _sizes(request.paths):
        left -= size
        if left < 0:
            return False
    return left >= 0


def _sizes(paths: Iterable[str]) -> Iterable[int]:
    for path in paths:
        with suppress(OSError):  # the code that reads it reports it
            if os.path.isdir(path):
                yield from (status.st_size for _, status in folders.walk(path) if status is not None)
            else:
                yield os.stat(path).st_size


def _asked(request: Request, command: Sequence[str], deadline: float) -> Report:
    late = threading.Event()
    read: list[str] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            with ended_after(deadline, process, late), suppress(OSError, EOFError, pickle.UnpicklingError):
                pickle.dump(request, process.stdin)
                process.stdin.close()
                while not isinstance(found := pickle.load(process.stdout), Report):
                    read.append(found)
                return found
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LAST_WORDS)
            process.kill()
    why = f"linting takes more than {deadline:g} s" if late.is_set() else _end(process.returncode)
    file = read[-1] if read else (request.paths or (NAME_OF_INPUT,))[0]
    message = f"{why}; it ended here: lint this by itself, or fewer files"
    return Report((Problem(file, 0, "", "", message, code="unreadable"),), len(set(read)), 0)


def _end(status: int) -> str:
    if status in OUT_OF_MEMORY:
        return f"linting takes more than {MEMORY} bytes of memory"
    return f"the process that lints ended ({f'signal {-status}' if status < 0 else f'exit code {status}'})"


def answer_to(questions: BinaryIO, answers: BinaryIO) -> None:
    """Read a request, answer it: names of what is about to be read, then the report; each pickled."""

    def report(what: Any) -> None:
        pickle.dump(what, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    report(answer(pickle.load(questions), report))


def main() -> None:
    """Whatever is printed goes to standard error: what is read from here is answers alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: who asked decides
    gc.disable()  # what is made is needed until the end
    limit_memory(MEMORY)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            answer_to(sys.stdin.buffer, answers)
        except MemoryError:
            os._exit(NO_MEMORY)  # nothing else can be relied on
        os._exit(0)  # to free each of a million objects would take a while


if __name__ == "__main__":
    main()
