"""`backend.tcp` (spec 2): TCP toward a backend."""

from __future__ import annotations

from gatewright.api.frontend.tcp import Keepalive
from gatewright.api.schema.fields import PositiveDuration
from gatewright.api.schema.model import Model


class BackendTCP(Model):
    """TCP settings of connections to a backend."""

    keepalive: Keepalive | None = None
    """Probes by which a backend that vanished is noticed."""
    connect_timeout: PositiveDuration | None = None
    """How long establishing a connection may take; 10 seconds when unset."""
