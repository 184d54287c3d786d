"""`traffic.retry`: further attempts. The fields of Gateway API's HTTPRouteRetry and two expressions."""

from __future__ import annotations

from gatewright.api.routes.http_route import HTTPRouteRetry
from gatewright.api.schema.cel_field import RequestCondition, ResponseCondition


class Retry(HTTPRouteRetry):
    """When a request is sent again."""

    precondition: RequestCondition | None = None
    """Evaluated before the first attempt. When false, only that one is made, and the body is not kept for another."""
    condition: ResponseCondition | None = None
    """Evaluated for each response, which is tried again when this is true or its status is among the codes."""
