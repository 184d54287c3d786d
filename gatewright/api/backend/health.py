"""`backend.health`: which endpoints of a backend get no requests for a while."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.schema.cel_field import HeadCondition
from gatewright.api.schema.fields import Integer, PositiveDuration
from gatewright.api.schema.model import Model

_Percent = Annotated[Integer, Field(ge=0, le=100)]


class BackendEviction(Model):
    """When an endpoint is evicted. With neither consecutiveFailures nor healthThreshold one unhealthy response does
    it; with both either does."""

    duration: PositiveDuration = "3s"
    """How long the first time; later times this long for each eviction so far. When all endpoints are evicted,
    requests go to them all the same."""
    restore_health: _Percent | None = None
    """Health on return; when unset the health at eviction."""
    consecutive_failures: Annotated[Integer, Field(ge=0, le=2**31 - 1)] | None = None
    """Evict after so many unhealthy responses in a row."""
    health_threshold: _Percent | None = None
    """Evict when health, a sliding average, falls below this after an unhealthy response."""


class Health(Model):
    """What is unhealthy, and what follows."""

    unhealthy_condition: HeadCondition | None = None
    """Responses for which this is true are unhealthy. When unset, 5xx and failed connections lower health, but do not
    evict by themselves."""
    eviction: BackendEviction | None = None
    """When an endpoint is evicted."""
