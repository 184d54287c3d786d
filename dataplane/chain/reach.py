"""Whether a server that a policy asks can be reached, as the log reports it: a line when it is lost, one when it is
back.

Kept per backend over swaps, and logged by one worker for all, so that a thousand policies that ask one server, or a
thousand refused requests, are one line.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.chain.calls import CallFailed
    from dataplane.chain.filter import Env
    from dataplane.link.buckets import Sign

SOCKETS: Final = {"linux": "/run/tailscale/tailscaled.sock", "darwin": "/var/run/tailscale/tailscaled.sock"}
"""Where the daemon of a private network usually has its socket, by platform."""


class Reach:
    """Of one server: lost or not. `policy`: whose log it is; `server`: what the log calls it; `sign`: what the workers
    of a proxy share of that; None: each reports for itself."""

    __slots__ = ("__weakref__", "backend", "clock", "log", "lost", "server", "sign")

    def __init__(
        self, policy: str, server: str, backend: str, clock: Callable[[], float], sign: Sign | None = None
    ) -> None:
        self.log = logging.getLogger(f"dataplane.{policy}")
        self.server = server
        self.backend = backend
        self.clock = clock
        self.sign = sign
        self.lost = sign is not None
        """Whether it is, or may be: a worker before this one may have put up the sign."""

    def failed(self, origin: str, error: CallFailed) -> None:
        """A call had no answer."""
        was_lost, self.lost = self.lost, True
        if not was_lost if self.sign is None else self.sign.put(self.clock()):
            self.log.warning("%s: %s gives no answer: %s%s", origin, self.server, error, hint(error))

    def answered(self, origin: str) -> None:
        """A call had one. Called only while `lost`."""
        self.lost = False
        if self.sign is None or self.sign.take_down(self.clock()):
            self.log.warning("%s: %s answers again", origin, self.server)

    def __repr__(self) -> str:
        return f"Reach({self.backend}, lost={self.lost})"


def hint(error: CallFailed, platform: str = sys.platform) -> str:
    """What to check when no process listens on a Unix socket."""
    if error.cause != "connect" or "unix:" not in str(error):
        return ""
    usual = SOCKETS.get(platform, SOCKETS["linux"])
    return f" (the daemon of a private network usually listens on {usual}; is it running, and may the proxy connect?)"


def reach_of(policy: str, server: str, backend: str, env: Env) -> Reach:
    """That of a backend, for all policies of this name."""

    def make() -> Reach:
        sign = None if env.buckets is None else env.buckets.sign(f"{policy} lost {backend}")
        return Reach(policy, server, backend, env.clock, sign)

    return env.kept(f"{policy} reach {backend}", make)
