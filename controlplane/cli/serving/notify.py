"""Readiness for the service manager: the datagrams of sd_notify(3), which a systemd unit of `Type=notify` waits for.

`controller` and `up` send `READY=1` when they are what they were started for, `STOPPING=1` when they begin to end, and
addresses under names of our own below `X_GATEWRIGHT_`. Never fails: a service manager that does not listen is logged.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping

log = logging.getLogger("controlplane.cli.serving.notify")

VARIABLE = "NOTIFY_SOCKET"
"""Names the service manager's socket: a path, or `@` and an abstract name. Children do not get it: they are not the
service."""


def ready(environment: Mapping[str, str], status: str, addresses: Mapping[str, str]) -> None:
    """`status`: a line for people; `addresses`: names like `ADMIN` -> host and port."""
    named = [f"X_GATEWRIGHT_{name}={address}" for name, address in addresses.items()]
    _send(environment, ["READY=1", f"STATUS={status}", *named])


def stopping(environment: Mapping[str, str]) -> None:
    """A signal asked for the end."""
    _send(environment, ["STOPPING=1", "STATUS=stopping"])


def _send(environment: Mapping[str, str], lines: list[str]) -> None:
    path = environment.get(VARIABLE, "")
    if not path:
        return
    to = f"\0{path[1:]}" if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), to)
    except OSError as error:
        log.warning("cannot notify the service manager at %s: %s", path, error.strerror or error)
