"""`traffic.hostRewrite`: which Host header the backend sees."""

from __future__ import annotations

from typing import Literal

from gatewright.api.schema.model import Model


class HostnameRewrite(Model):
    """The Host header of the forwarded request. Ignored where an HTTPRoute's URLRewrite filter sets the host."""

    mode: Literal["Auto", "None"]
    """`Auto` takes the destination's host name, the default for backends with a host name; `None` passes the client's
    on, the default for Services and IP addresses."""
