"""`backend.tunnel`: a proxy between the gateway and a backend."""

from __future__ import annotations

from typing import Literal

from gatewright.api.schema.model import Model
from gatewright.api.schema.references import PolicyBackendReference


class BackendTunnel(Model):
    """Connections to the backend go through a proxy, as with HTTPS_PROXY."""

    backend_ref: PolicyBackendReference
    """The proxy: a Service or GatewayBackend."""
    plaintext: Literal["Connect", "AbsoluteForm"] | None = None
    """How requests in plain text get through. Connect: by a tunnel, as TLS does; AbsoluteForm: sent to the proxy with
    the whole URL, for proxies that refuse CONNECT to ports other than 443. Unset: Connect. Gatewright extension."""
