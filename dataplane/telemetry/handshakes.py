"""Handshakes of TLS with clients: counted each; failed ones are logged at most once a second."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.telemetry.requests import Recorder

log = logging.getLogger("dataplane.tls")

PAUSE: Final = 1.0
"""Seconds between two lines about failed handshakes."""


class HandshakeLog:
    """One per worker. `clock` gives monotonic seconds."""

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._recorder, self._clock = recorder, clock
        self._next = 0.0
        self._silent = 0
        """Failures since the last line."""

    def failed(self, reason: str, address: str, name: bytes, listener: str) -> None:
        """`reason`: Gatewright's or OpenSSL's; `name`: the server name that the client asked for; `listener`: the key
        of the one that was chosen, or ""."""
        self._recorder.handshake_failed(reason)
        now = self._clock()
        if now < self._next:
            self._silent += 1
            return
        self._next = now + PAUSE
        silent, self._silent = self._silent, 0
        log.warning(
            "TLS handshake failed: %s (client %s, server name %s, %s)%s",
            reason,
            address or "of a Unix socket",
            name.decode("ascii", "replace") or "none",
            listener or "no listener",
            f"; {silent} more since this was last logged" if silent else "",
        )
