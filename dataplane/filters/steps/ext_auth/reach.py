"""Whether an authorization server can be reached, as the log tells it: a line when it is lost, one when it is back.

Kept per backend over swaps, and told by one worker for all, so that a thousand policies that ask one server, or a
thousand refused requests, are one line.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.chain.calls import CallFailed
    from dataplane.link.buckets import Sign

log = logging.getLogger("dataplane.ext_auth")

SOCKETS: Final = {"linux": "/run/tailscale/tailscaled.sock", "darwin": "/var/run/tailscale/tailscaled.sock"}
"""Where the daemon of a private network usually has its socket (spec 1), by platform."""


class Reach:
    """Of one server: lost or not. `sign` is what the workers of a proxy share of that; None: each tells for itself."""

    __slots__ = ("__weakref__", "backend", "clock", "lost", "sign")

    def __init__(self, backend: str, clock: Callable[[], float], sign: Sign | None) -> None:
        self.backend = backend
        self.clock = clock
        self.sign = sign
        self.lost = sign is not None
        """Whether it is, or may be: a worker before this one may have put up the sign."""

    def failed(self, origin: str, error: CallFailed) -> None:
        """A call had no answer."""
        was_lost, self.lost = self.lost, True
        if not was_lost if self.sign is None else self.sign.put(self.clock()):
            log.warning("%s: the authorization server gives no answer: %s%s", origin, error, hint(error))

    def answered(self, origin: str) -> None:
        """A call had one. Called only while `lost`."""
        self.lost = False
        if self.sign is None or self.sign.take_down(self.clock()):
            log.warning("%s: the authorization server answers again", origin)

    def __repr__(self) -> str:
        return f"Reach({self.backend}, lost={self.lost})"


def hint(error: CallFailed, platform: str = sys.platform) -> str:
    """What to look at when nobody listens on a Unix socket."""
    if error.cause != "connect" or "unix:" not in str(error):
        return ""
    usual = SOCKETS.get(platform, SOCKETS["linux"])
    return f" (the daemon of a private network usually listens on {usual}; is it running, and may the proxy connect?)"
