"""BackendSimple: the policies for connecting to anything."""

from __future__ import annotations

from typing import ClassVar

from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.http import BackendHTTP
from gatewright.api.backend.tcp import BackendTCP
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.backend.tunnel import BackendTunnel
from gatewright.api.schema.model import Model
from gatewright.attach.policies import BACKEND


class BackendSimple(Model):
    """Policies for connecting to a backend: transport and credentials."""

    parts: ClassVar[tuple[str, ...]] = (BACKEND,)
    """Of the table of policies: whose the fields are."""

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
