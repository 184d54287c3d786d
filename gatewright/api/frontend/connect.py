"""`frontend.connect`: what happens with CONNECT requests."""

from __future__ import annotations

from typing import Literal

from gatewright.api.schema.model import Model


class FrontendConnect(Model):
    """CONNECT requests of clients. Without this setting they are answered with 405."""

    mode: Literal["Deny", "Route", "Tunnel"]
    """`Deny` rejects them; `Route` matches them as any request and opens a raw tunnel to the chosen backend; `Tunnel`
    ends them here and takes what they carry as a new connection to the bind that they address."""
