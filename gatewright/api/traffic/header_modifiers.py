"""`traffic.headerModifiers`: headers set, added and removed."""

from __future__ import annotations

from gatewright.api.routes.http_filters import HTTPHeaderFilter
from gatewright.api.schema.model import Model


class HeaderModifiers(Model):
    """Changes of headers, applied before the request is forwarded and before the response is returned."""

    request: HTTPHeaderFilter | None = None
    """Changes of the request's headers."""
    response: HTTPHeaderFilter | None = None
    """Changes of the response's headers."""
