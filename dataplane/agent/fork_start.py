"""The start of a fork server of workers, apart from all that the agent knows: nothing heavy is loaded for it.

Half of a proxy's start is what this server loads, so all that stands before it counts: `socket`, `subprocess` and
`typing` would take as long as an interpreter does. `agent/forks` asks the server for workers, and starts another one
when it has ended.
"""

from __future__ import annotations

import _socket  # `socket` makes enumerations of whatever the system knows
import os
import select

TYPE_CHECKING = False  # type checkers know this name
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CAN_FORK = hasattr(os, "pidfd_open")
"""Elsewhere workers are started one by one (`process.by_command`)."""

HIDDEN = ("SESSION_KEY", "NOTIFY_SOCKET")
"""Variables that children do not get: a worker's key comes over the link, since a child's environment can be read; the
service manager hears of the proxy from the agent alone."""

STANDARD_FILES = 3
KILL = 9


def environment() -> dict[str, str]:
    """The variables of a child process."""
    return {name: value for name, value in os.environ.items() if name not in HIDDEN}


class Process:
    """A child of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._is_over = False

    def kill(self) -> None:
        if not self._is_over:  # until it was waited for, no other process has its number
            os.kill(self.pid, KILL)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        if not self._is_over:
            fd = os.pidfd_open(self.pid)
            try:
                if not select.select([fd], [], [], seconds)[0]:
                    return False
                os.waitpid(self.pid, 0)
            finally:
                os.close(fd)
            self._is_over = True
        return True


class Begun:
    """A server that loads, and the socket where it is asked (`link/forks`): its descriptor, which is the owner's."""

    def __init__(self, process: Process, control: int) -> None:
        self.process = process
        self.control = control


def start(command: Sequence[str]) -> Begun:
    """Start a server: the command with `--forks-fd` and the descriptor where it is asked. Raises OSError."""
    own_end, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        process = spawn([*command, "--forks-fd", str(theirs.fileno())], theirs.fileno())
    except BaseException:
        own_end.close()
        raise
    finally:
        theirs.close()
    return Begun(process, own_end.detach())


def begin(command: Sequence[str]) -> Begun | None:
    """`start` where it is possible: the first worker tries again, and logs it."""
    try:
        return start(command) if CAN_FORK else None
    except OSError:
        return None


def spawn(words: Sequence[str], kept: int) -> Process:
    """A program with no descriptor of this process but the standard files and `kept`; its input is empty. Raises
    OSError."""
    actions: list[tuple[int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited() if fd != kept),
    ]
    os.set_inheritable(kept, True)
    try:
        return Process(os.posix_spawn(words[0], [*words], environment(), file_actions=actions))
    finally:
        os.set_inheritable(kept, False)


def _inherited() -> Iterator[int]:
    """Descriptors that a child would get: those that this process was given itself."""
    try:
        fds = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        fds = [*range(STANDARD_FILES, 1024)]
    for fd in fds:
        try:
            if fd >= STANDARD_FILES and os.get_inheritable(fd):
                yield fd
        except OSError:  # it was that of the folder
            continue
