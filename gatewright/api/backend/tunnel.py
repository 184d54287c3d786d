"""`backend.tunnel` (spec 2): a proxy between the gateway and a backend."""

from __future__ import annotations

from gatewright.api.schema.model import Model
from gatewright.api.schema.references import PolicyBackendReference


class BackendTunnel(Model):
    """Connections to the backend go through a proxy, as with HTTPS_PROXY."""

    backend_ref: PolicyBackendReference
    """The proxy: a Service or GatewayBackend."""
