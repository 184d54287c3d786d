"""Entry of `gatewright-proxy` and of `python -m dataplane`: begins what loads longest, then loads the rest.

A fork server of workers (`fork_server`) loads half a second. So it is started before anything else is loaded here, and
before anybody has looked at the command line; where that cannot be used, the server is ended again.
"""

from __future__ import annotations

import gc
import os
import resource
import sys

from dataplane.agent import fork_start

TYPE_CHECKING = False  # `typing` takes as long to load as all above; type checkers know this name
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FILES = 1_048_576

STDERR = 2

WORKER = (sys.executable, "-P", "-m", "dataplane.worker_entry")
"""-P: the current folder is a user's, and may hold what looks like a module."""


def main(argv: Sequence[str] | None = None, worker_command: Sequence[str] = WORKER) -> int:
    """Run one proxy; answers the exit code. `worker_command` may start workers with further policies."""
    _hold_standard_files()
    _allow_files()
    begun = fork_start.begin(worker_command)
    gc.disable()  # until the agent is loaded (`agent/entry`)
    try:
        from dataplane.agent import entry

        return entry.main(list(sys.argv[1:] if argv is None else argv), worker_command, begun)
    finally:
        gc.enable()  # where it did not come to that


def _hold_standard_files() -> None:
    """Where one of the first three descriptors is closed, a connection would get its number, and log lines with it."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def _allow_files() -> None:
    """As many open files as the system allows: each connection is one, and the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
