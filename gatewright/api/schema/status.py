"""What objects report: conditions, and the policy status of Gateway API.

Used by the models of Gatewright's three kinds and by what computes status. Users do not write it; decoding leaves it
out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.fields import Integer
from gatewright.api.schema.model import Model
from gatewright.api.schema.references import ParentReference

REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
CONDITION_TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONTROLLER_PATTERN = (
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$"
)


class Condition(Model):
    """meta/v1 Condition."""

    type: Annotated[str, Field(max_length=316, pattern=CONDITION_TYPE_PATTERN)]
    """What the condition is about, for example Accepted."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=REASON_PATTERN)]
    """Why, in one word."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, in words for people."""
    last_transition_time: str
    """When status changed last."""
    observed_generation: Annotated[Integer, Field(ge=0)] = 0
    """The generation of the object that this was said of."""


class PolicyAncestorStatus(Model):
    """What one ancestor (a Gateway) has to say about a policy."""

    ancestor_ref: ParentReference
    """The ancestor, for example a Gateway."""
    controller_name: Annotated[str, Field(min_length=1, max_length=253, pattern=CONTROLLER_PATTERN)]
    """The controller that says this."""
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=8)]
    """What it says."""


class PolicyStatus(Model):
    """Status of a GatewayPolicy."""

    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)] = ()
    """The worst of what the ancestors say."""
    ancestors: Annotated[tuple[PolicyAncestorStatus, ...], Field(max_length=16)]
    """What each ancestor says."""


class ConditionsStatus(Model):
    """Status that is conditions alone (GatewayBackend, GatewayParameters)."""

    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)] = ()
    """What is said of the object."""
