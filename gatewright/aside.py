"""Work on text of unknown authors in a process of its own, which has so much time and memory and no more.

Called by what starts such a process (`ended_after`) and by the process itself (`limit_memory`, `limit_time`).
Imports the standard library only.
"""

from __future__ import annotations

import math
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

NO_MEMORY: Final = 71
"""Exit code of a process that ran into its limit of memory (EX_OSERR of sysexits.h)."""

OUT_OF_MEMORY: Final = frozenset((NO_MEMORY, -signal.SIGABRT))
"""How such a process ends: some libraries abort where they get no more."""

TIME_IS_UP: Final = -signal.SIGXCPU
"""How a process ends that ran into its limit of time (`limit_time`)."""


def limit_memory(most: int) -> None:
    """Let this process have no more than so many bytes, all in all. Where the system has no such limit, or a smaller
    one, that stays."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_time(seconds: float) -> None:
    """Let this process compute for so many seconds more, rounded up; then it ends with TIME_IS_UP. What it waits for
    does not count, nor that others have the processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


@contextmanager
def ended_after(seconds: float, process: subprocess.Popen[bytes], late: threading.Event) -> Iterator[None]:
    """Kills the process when the block takes longer, and sets `late`: its caller gets no answer."""

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # from here on its number can be that of another process
