"""BackendSimple (spec 2): the policies for connecting to anything."""

from __future__ import annotations

from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.http import BackendHTTP
from gatewright.api.backend.tcp import BackendTCP
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.backend.tunnel import BackendTunnel
from gatewright.api.schema.model import Model


class BackendSimple(Model):
    """Policies for connecting to a backend: transport and credentials."""

    tcp: BackendTCP | None = None
    """TCP settings of connections."""
    tls: BackendTLS | None = None
    """When set, even to {}, TLS is spoken with the backend."""
    http: BackendHTTP | None = None
    """HTTP settings of requests."""
    tunnel: BackendTunnel | None = None
    """A proxy between the gateway and the backend."""
    auth: BackendAuth | None = None
    """Credentials toward the backend."""
