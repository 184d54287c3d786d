"""`traffic.rateLimit`: limits counted by this proxy, and by an external service."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import Cost, RequestKey, RequestNumber, RequestScalar
from gatewright.api.schema.fields import FailureMode, Integer, ShortString, TinyString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.schema.rules import exactly_one
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional, rules_of_conditional

_ITEMS = Field(min_length=1, max_length=16)
_Count = Annotated[Integer, Field(ge=1, le=2**31 - 1)]


class LocalRateLimit(RuledModel):
    """A limit that each proxy counts for itself."""

    requests: _Count | None = None
    """Requests per unit."""
    tokens: _Count | None = None
    """LLM tokens per unit, input and output. Counts are known at the end and affect later requests."""
    unit: Literal["Seconds", "Minutes", "Hours"]
    """The unit of time."""
    burst: Annotated[Integer, Field(ge=0, le=2**31 - 1)] | None = None
    """How much more than the rate may be used within a short time."""
    key: RequestKey | None = None
    """Gatewright extension. An expression: each of its values has this limit for itself, for example source.address.
    Requests for which it has no value share one."""

    cel_rules = (exactly_one("requests", "tokens"),)


class RateLimitEntry(Model):
    """One part of a descriptor."""

    name: TinyString
    """Name of the part."""
    expression: RequestScalar
    """Its value, for example source.address."""


class RateLimitOverride(Model):
    """A limit that comes with the request, in place of the service's own."""

    requests_per_unit: RequestNumber
    """How much for each unit, for example apiKey.budget. Below 0 it is 0, which refuses."""
    unit: Literal["Seconds", "Minutes", "Hours", "Days", "Months", "Years"]
    """The unit of time; days, months and years are those of the calendar, in UTC."""


class RateLimitDescriptor(Model):
    """What the service counts by."""

    entries: Annotated[tuple[RateLimitEntry, ...], _ITEMS]
    """The parts of the descriptor, in order."""
    unit: Literal["Tokens", "Requests"] = "Requests"
    """What is counted."""
    cost: Cost | None = None
    """What one request costs: 1 by default, or the tokens that it used. The cost of Tokens is evaluated after the
    request has completed: `response` is absent then when it was streamed, `llm` is there."""
    limit_override: RateLimitOverride | None = None
    """Gatewright extension. The limit itself, where it is not the service's configuration that has it."""


class GlobalRateLimit(Model):
    """A limit that an external rate limit service counts for all proxies."""

    backend_ref: PolicyBackendReference
    """The service: a Service or GatewayBackend."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when the service is unavailable or fails: refuse (FailClosed) or continue (FailOpen)."""
    domain: ShortString
    """The service's name space for these limits."""
    descriptors: Annotated[tuple[RateLimitDescriptor, ...], _ITEMS]
    """What the service counts by."""


class RateLimits(RuledModel):
    """Local and global limits; a request must keep to all of them."""

    local: Annotated[tuple[LocalRateLimit, ...], _ITEMS] | None = None
    """Limits of each proxy, without coordination between proxies."""
    global_: Annotated[GlobalRateLimit | None, Field(alias="global")] = None
    """A limit that an external service counts."""


class ConditionalRateLimits(ConditionalItem):
    """An item of `rateLimit.conditional`."""

    policy: RateLimits
    """What to do then."""


class RateLimitsOrConditional(OrConditional, RateLimits):
    """`traffic.rateLimit`."""

    conditional: Annotated[tuple[ConditionalRateLimits, ...], ITEMS] | None = None
    """Limits of which the first whose condition is true apply. Excludes all other fields."""

    cel_rules = rules_of_conditional(RateLimits)
