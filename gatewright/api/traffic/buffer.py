"""`traffic.buffer`: bodies are held in memory until they are complete."""

from __future__ import annotations

from gatewright.api.schema.fields import ByteSize
from gatewright.api.schema.model import Model


class BufferedBody(Model):
    """How large a held body may be."""

    max_bytes: ByteSize | None = None
    """The largest body; default is the proxy's setting (frontend http.maxBufferSize), which is 2Mi by default."""


class Buffer(Model):
    """Which bodies are held instead of streamed."""

    request: BufferedBody | None = None
    """Hold the bodies of requests."""
    response: BufferedBody | None = None
    """Hold the bodies of responses."""
