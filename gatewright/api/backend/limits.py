"""`backend.limits`, a Gatewright extension: how much a backend is asked at a time."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.fields import Integer, PositiveDuration
from gatewright.api.schema.model import Model

Count = Annotated[Integer, Field(ge=1, le=2**32 - 1)]
MOST_PERCENT: Final = 100
Percent = Annotated[Integer, Field(ge=0, le=MOST_PERCENT)]


class BackendLimits(Model):
    """How much a proxy asks of a backend at a time, all its workers together. Gatewright extension."""

    max_connections: Count | None = None
    """Connections to the backend's endpoints, those that are being opened among them. Requests that would need another
    one wait. Unset: no limit for HTTP/1 and TCP, 32 to an endpoint from each worker for HTTP/2. Gatewright
    extension."""
    max_pending: Count | None = None
    """Requests that wait for a connection, because it is being opened or none may be. What is above it is answered with
    503 and Retry-After. Unset: 1024 where maxConnections is set, else no limit. Gatewright extension."""
    idle_timeout: PositiveDuration | None = None
    """After this time without a request a connection is closed; 90 seconds when unset. Gatewright extension."""
    max_connection_duration: PositiveDuration | None = None
    """After this time a connection takes no further request, and is closed when the last one has ended. Unset: no
    limit. Gatewright extension."""
    max_requests: Count | None = None
    """Requests in flight, calls of policies and mirrors among them where the policy covers these. What is above it is
    answered with 503 and Retry-After. Unset: no limit. Gatewright extension."""
    retry_budget: Percent | None = None
    """Requests that are tried again, in percent of those in flight; one may be in any case. A response or failure that
    would be tried again beyond it stands. Unset: no limit. Gatewright extension."""
