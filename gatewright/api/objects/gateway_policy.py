"""GatewayPolicy: policies, and the objects they attach to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, PrivateAttr

from gatewright.api.backend.backend import BackendFull
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.schema.checks import GroupOf, KindOf, Kinds, OfKinds
from gatewright.api.schema.fields import Group, Kind, ObjectName, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.names import GATEWAY_API_GROUP, GATEWAY_BACKEND, GROUP
from gatewright.api.schema.rules import Rule, When, each, exactly_one
from gatewright.api.schema.status import PolicyStatus
from gatewright.api.traffic.traffic import Traffic
from gatewright.attach.policies import BACKEND, FRONTEND, LEVELS, TRAFFIC, Policy, named, of

_GROUPS: Final = {"Service": "", GATEWAY_BACKEND: GROUP}
"""Kinds of targets that are not of Gateway API, with their groups."""

TARGETS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    part: tuple((_GROUPS.get(kind, GATEWAY_API_GROUP), kind) for kind in LEVELS[part])
    for part in (FRONTEND, TRAFFIC, BACKEND)
}
"""Section of the spec to (group, kind) of its targets (Attachment and merge rules)."""
ROUTES: Final = tuple(target for target in TARGETS[TRAFFIC] if target[1].endswith("Route"))


class TargetReference(Model):
    """An object of the policy's namespace, and a section of it."""

    group: Group
    """API group of the target; empty is the core group."""
    kind: Kind
    """Kind of the target."""
    name: ObjectName
    """Name of the target."""
    section_name: SectionName | None = None
    """A listener, a route's rule, a Service's port or a sub-backend of the target."""


class TargetSelector(Model):
    """All objects of a kind in the policy's namespace that carry the labels."""

    group: Group
    """API group of the targets; empty is the core group."""
    kind: Kind
    """Kind of the targets."""
    match_labels: dict[str, str]
    """Labels that a target must carry."""
    section_name: SectionName | None = None
    """A listener, a route's rule, a Service's port or a sub-backend of each target."""


class PolicyStrategy(Model):
    """How traffic policies of several levels meet."""

    inheritance: Literal["Default", "Override"] | None = None
    """`Default`: fields of more specific policies win. `Override`: the fields that this policy sets win over those of
    more specific ones."""


_TARGETS = Field(min_length=1, max_length=16)


def _by_group(kinds: Kinds) -> str:
    groups: dict[str, list[str]] = {}
    for group, kind in kinds:
        groups.setdefault(group, []).append(kind)
    return "; ".join(f'{", ".join(names)} of group "{group}"' for group, names in groups.items())


def _rules_of_targets() -> Iterator[Rule]:
    """What each target must be, of either list."""
    for name in ("targetRefs", "targetSelectors"):
        for section, kinds in TARGETS.items():
            words = ", ".join(kind for _, kind in kinds)
            when = When(section)
            yield each(name, KindOf(kinds), f"{section} policies attach to {words} only", at="kind", when=when)
            yield each(name, GroupOf(kinds), f"{section} policies attach to {_by_group(kinds)}", at="group", when=when)
        for when, what, message, at in _OF_SOME:
            yield each(name, what, message, at=at, when=when)


def _not_on(row: Policy, kind: str) -> tuple[When, str, str, str]:
    """Of a policy that has no meaning on targets of a kind."""
    other = f"!(item.group == '{_GROUPS.get(kind, GATEWAY_API_GROUP)}' && item.kind == '{kind}')"
    return When(named(row)), other, f"{named(row)} acts on no {kind}: it acts on {', '.join(row.levels)}", "kind"


_OF_SOME: Final = (
    (
        When(FRONTEND),
        "!has(item.sectionName)",
        "must be absent: frontend policies attach to whole Gateways",
        "sectionName",
    ),
    *(_not_on(row, kind) for row in of(TRAFFIC, BACKEND) for kind in row.not_on),
    (
        When("traffic.phase", "PreRouting"),
        f"!({OfKinds(ROUTES).cel.replace('{}', 'item')})",
        "PreRouting policies attach to Gateways and listeners only",
        "kind",
    ),
)


class GatewayPolicySpec(RuledModel):
    """Policies, and the objects that they attach to."""

    target_refs: Annotated[tuple[TargetReference, ...], _TARGETS] | None = None
    """Objects by name. Prefer this to selectors where changes must act fast."""
    target_selectors: Annotated[tuple[TargetSelector, ...], _TARGETS] | None = None
    """Objects by their labels."""
    strategy: PolicyStrategy | None = None
    """How traffic policies of several levels meet."""
    frontend: Frontend | None = None
    """What happens with connections of clients. Its target is a Gateway."""
    traffic: Traffic | None = None
    """What happens with requests. Its target is a Gateway, a listener, a ListenerSet, a route or a route's rule."""
    backend: BackendFull | None = None
    """How to connect to backends. Its target is any of the former, a Service or a GatewayBackend."""

    cel_rules = (exactly_one("targetRefs", "targetSelectors"), *_rules_of_targets())


class Unread(NamedTuple):
    """In place of the settings of a policy that is not valid."""

    message: str
    """What is wrong with it."""
    security: frozenset[str]
    """Attributes of `traffic` that it has for security: what they cover is refused."""


class GatewayPolicy(KubeObject):
    """Policies for connections, requests and backends, and the objects that they attach to."""

    _unread: Unread | None = PrivateAttr(default=None)

    @property
    def unread(self) -> Unread | None:
        """Not None for what is left of a policy that is not valid (`unread.unread`)."""
        return self._unread

    spec: GatewayPolicySpec
    """Policies, and the objects that they attach to."""
    status: PolicyStatus | None = None
    """What became of it."""
