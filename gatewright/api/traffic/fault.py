"""`traffic.fault`, a Gatewright extension: some requests are delayed or answered with an error, for tests of
clients."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.schema.cel_field import RequestCondition
from gatewright.api.schema.fields import Duration, Integer
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import Rule


class FaultFraction(RuledModel):
    """A share of requests."""

    cel_rules = (
        Rule("self.numerator <= self.denominator", "numerator must not be more than denominator", path=("numerator",)),
    )

    numerator: Annotated[Integer, Field(ge=0)]
    """How many."""
    denominator: Annotated[Integer, Field(ge=1, le=1_000_000)] = 100
    """Of how many."""


class FaultDelay(RuledModel):
    """Requests that wait before they go on."""

    cel_rules = (
        Rule(
            "duration(self.duration) >= duration('1ms') && duration(self.duration) <= duration('5m')",
            "must be from 1ms to 5m",  # requests that wait hold memory and a connection
            path=("duration",),
        ),
    )

    duration: Duration
    """How long they wait: 5m at most."""
    fraction: FaultFraction | None = None
    """How many of the requests; all of them when unset."""
    condition: RequestCondition | None = None
    """Which requests; all of them when unset. One for which it fails is none of them."""


class FaultAbort(RuledModel):
    """Requests that are answered in place of their backend."""

    status: Annotated[Integer, Field(ge=400, le=599)]
    """Status of the answer; a call of gRPC ends with the code that corresponds to it."""
    body: Annotated[str, Field(max_length=4096)] | None = None
    """Text of the answer."""
    fraction: FaultFraction | None = None
    """As of `delay`."""
    condition: RequestCondition | None = None
    """As of `delay`."""


class Fault(RuledModel):
    """Faults that requests meet: a delay, an error, or the one and then the other. Gatewright extension."""

    cel_rules = (Rule("has(self.delay) || has(self.abort)", "delay or abort must be set"),)

    delay: FaultDelay | None = None
    """Some requests wait."""
    abort: FaultAbort | None = None
    """Some requests are answered with an error."""
