"""`backend.tcp`: TCP toward a backend."""

from __future__ import annotations

from typing import Literal

from gatewright.api.frontend.tcp import Keepalive
from gatewright.api.schema.fields import PositiveDuration
from gatewright.api.schema.model import Model


class BackendTCP(Model):
    """TCP settings of connections to a backend."""

    keepalive: Keepalive | None = None
    """Probes by which a backend that vanished is noticed."""
    connect_timeout: PositiveDuration | None = None
    """How long establishing a connection may take; 10 seconds when unset."""
    proxy_protocol: Literal["V1", "V2"] | None = None
    """Connections begin with a PROXY header of this version, which names the client; they are used for that client
    alone. Unset: no header. Gatewright extension."""
