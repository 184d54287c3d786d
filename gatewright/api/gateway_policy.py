"""GatewayPolicy (spec 1): the envelope. What `frontend`, `traffic` and `backend` hold is not read yet (unsupported)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.fields import Group, Json, Kind, ObjectName, SectionName
from gatewright.api.metadata import KubeObject
from gatewright.api.model import Broken, Model, RuledModel, one_of
from gatewright.api.status import PolicyStatus


class TargetReference(Model):
    """An object of the policy's namespace, and a section of it."""

    group: Group
    kind: Kind
    name: ObjectName
    section_name: SectionName | None = None


class TargetSelector(Model):
    """All objects of a kind in the policy's namespace that carry the labels."""

    group: Group
    kind: Kind
    match_labels: dict[str, str]
    section_name: SectionName | None = None


class PolicyStrategy(Model):
    """How traffic fields of several levels meet."""

    inheritance: Literal["Default", "Override"] | None = None


class GatewayPolicySpec(RuledModel):
    """GatewayPolicy.spec."""

    target_refs: Annotated[tuple[TargetReference, ...], Field(min_length=1, max_length=16)] | None = None
    target_selectors: Annotated[tuple[TargetSelector, ...], Field(min_length=1, max_length=16)] | None = None
    strategy: PolicyStrategy | None = None
    frontend: Json = None
    traffic: Json = None
    backend: Json = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "target_refs", "target_selectors")
        for name, value in (("frontend", self.frontend), ("traffic", self.traffic), ("backend", self.backend)):
            if value is not None and not isinstance(value, dict):
                yield Broken((name,), "must be an object")
        if self.strategy is not None and self.strategy.inheritance is not None and self.traffic is None:
            yield Broken(("strategy", "inheritance"), "is valid only with traffic")


class GatewayPolicy(KubeObject):
    """A policy and where it attaches."""

    spec: GatewayPolicySpec
    status: PolicyStatus | None = None
