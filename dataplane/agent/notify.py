"""Readiness for the service manager: the datagrams of sd_notify(3), which a systemd unit of `Type=notify` waits for.

Each is lines of `NAME=value`: `READY=1`, `STOPPING=1`, `STATUS=` for people, and names of our own below
`X_GATEWRIGHT_`, which say where the proxy listens. Never fails: a service manager that does not listen is logged.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Mapping

log = logging.getLogger("dataplane.agent.notify")


class Notifier:
    """`path`: what NOTIFY_SOCKET says, a path or `@` and an abstract name; empty: no service manager is there."""

    def __init__(self, path: str) -> None:
        self._path = path

    def ready(self, pages: Mapping[str, str], binds: Mapping[int, list[str]]) -> None:
        """The proxy serves. `pages`: name -> address; `binds`: configured port -> addresses that listen for it."""
        addresses = [f"X_GATEWRIGHT_{name.upper()}={address}" for name, address in pages.items()]
        addresses += [f"X_GATEWRIGHT_BIND_{port}={','.join(found)}" for port, found in binds.items()]
        state = ["READY=1", f"STATUS=serving {len(binds)} binds"]
        if self._send([*state, *addresses]) == errno.EMSGSIZE:
            log.warning("the addresses of %d binds do not fit into a readiness notification", len(binds))
            self._send(state)

    def stopping(self) -> None:
        """The proxy has begun to drain."""
        self._send(["STOPPING=1", "STATUS=draining"])

    def _send(self, lines: list[str]) -> int:
        """Answers the number of the error, or 0."""
        if not self._path:
            return 0
        to = f"\0{self._path[1:]}" if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), to)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                log.warning("cannot notify the service manager at %s: %s", self._path, error.strerror or error)
            return error.errno or errno.EIO
        return 0
