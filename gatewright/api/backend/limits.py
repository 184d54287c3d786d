"""`backend.limits`, an extension of ours: how much a backend is asked at a time."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.fields import Integer
from gatewright.api.schema.model import Model

Count = Annotated[Integer, Field(ge=1, le=2**32 - 1)]
MOST_PERCENT: Final = 100
Percent = Annotated[Integer, Field(ge=0, le=MOST_PERCENT)]


class BackendLimits(Model):
    """How much a proxy asks of a backend at a time, all its workers together. Gatewright extension."""

    max_requests: Count | None = None
    """Requests in flight, calls of policies and mirrors among them where the policy covers these. What is above it is
    answered with 503 and Retry-After. Unset: no limit. Gatewright extension."""
    retry_budget: Percent | None = None
    """Requests that are tried again, in percent of those in flight; one may be in any case. A response or failure that
    would be tried again beyond it stands. Unset: no limit. Gatewright extension."""
