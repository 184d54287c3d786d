"""`frontend.proxyProtocol`: the PROXY protocol in front of a connection."""

from __future__ import annotations

from typing import Literal

from gatewright.api.schema.model import Model


class FrontendProxyProtocol(Model):
    """A PROXY header has the client's address."""

    version: Literal["V1", "V2", "All"] = "V2"
    """Which versions are accepted."""
    mode: Literal["Strict", "Optional"] = "Strict"
    """`Strict` asks for a valid header; `Optional` takes connections with one and without on the same listener."""
