"""Tunnels of a mesh (HBONE) that workloads open to us: they speak HTTP/2 whatever ALPN came to, and end with the
certificates that they were opened under, the workload's or our own: from then on no connection is taken in them, and a
grace later they are cut.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from dataplane.tls.names import ends_of

if TYPE_CHECKING:
    from dataplane.table.binds import ListenerPlan

GRACE: Final = 60.0
"""Seconds that what a tunnel carries has to end."""


class Tunnel(Protocol):
    """`h2/h2_connection.Connection`."""

    def end_at(self, moment: float, grace: float) -> None: ...


def end_in_time(tunnel: Tunnel, now: float, listener: ListenerPlan, certificate: bytes) -> None:
    """`now`: of the connection's clock. `certificate`: the workload's, DER."""
    ends = ends_of(certificate)
    own = None if listener.tls is None else listener.tls.expires
    first = ends if own is None else min(ends, own)
    tunnel.end_at(now + max(first - time.time(), 0.0), GRACE)
