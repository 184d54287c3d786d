"""Work on text of unknown authors in a process of its own, which has so much time and memory and no more.

Called by whoever starts such a process (`ended_after`) and by the process itself (`limit_memory`). Imports the standard
library only.
"""

from __future__ import annotations

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


def limit_memory(most: int) -> None:
    """Let this process have no more than so many bytes, all in all. Where the system has no such limit, or a smaller
    one, that stays."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def ended_after(seconds: float, process: subprocess.Popen[bytes], late: threading.Event) -> Iterator[None]:
    """Kills the process when the block takes longer, and sets `late`: whoever waits for its answer gets none."""

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
