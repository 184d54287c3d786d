"""`backend.http`: HTTP toward a backend."""

from __future__ import annotations

from typing import Literal

from gatewright.api.schema.fields import PositiveDuration
from gatewright.api.schema.model import Model


class BackendHTTP(Model):
    """HTTP settings of requests to a backend."""

    version: Literal["HTTP1", "HTTP2"] | None = None
    """Version of HTTP. When unset: what the Service port's appProtocol says; HTTP2 for gRPC; the client's own version
    for plaintext, HTTP1 for HTTPS."""
    request_timeout: PositiveDuration | None = None
    """How long the backend may take to respond."""
