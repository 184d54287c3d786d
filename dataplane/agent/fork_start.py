"""The start of a fork server of workers, apart from all that the agent knows: nothing heavy is loaded for it.

`agent/forks` asks the server for workers, and starts another one when it has ended.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

CAN_FORK = hasattr(os, "pidfd_open")
"""Elsewhere workers are started one by one (`process.by_command`)."""

HIDDEN = ("SESSION_KEY", "NOTIFY_SOCKET")
"""Variables that children do not get: a worker's key comes over the link, since a child's environment can be read; the
service manager hears of the proxy from the agent alone."""


def environment() -> dict[str, str]:
    """The variables of a child process."""
    return {name: value for name, value in os.environ.items() if name not in HIDDEN}


class Begun(NamedTuple):
    """A server that loads, and the socket where it is asked (`link/forks`)."""

    process: subprocess.Popen[bytes]
    control: socket.socket


def start(command: Sequence[str]) -> Begun:
    """Start a server: the command with `--forks-fd` and the descriptor where it is asked. Raises OSError."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        try:
            process = subprocess.Popen(
                [*command, "--forks-fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment(),
                pass_fds=(theirs.fileno(),),
            )
        except BaseException:
            control.close()
            raise
    return Begun(process, control)


def begin(command: Sequence[str]) -> Begun | None:
    """`start` where it is possible: the first worker tries again, and logs it."""
    try:
        return start(command) if CAN_FORK else None
    except OSError:
        return None
