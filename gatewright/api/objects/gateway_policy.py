"""GatewayPolicy (spec 1): policies, and the objects they attach to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, PrivateAttr

from gatewright.api.backend.backend import BackendFull
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.schema.fields import Group, Kind, ObjectName, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, one_of
from gatewright.api.schema.names import GATEWAY_API_GROUP, GATEWAY_BACKEND, GROUP
from gatewright.api.schema.status import PolicyStatus
from gatewright.api.traffic.traffic import Traffic

ROUTES: Final = tuple((GATEWAY_API_GROUP, kind) for kind in ("HTTPRoute", "GRPCRoute"))
_STREAM_ROUTES: Final = tuple((GATEWAY_API_GROUP, kind) for kind in ("TCPRoute", "TLSRoute", "UDPRoute"))
_GATEWAY: Final = (GATEWAY_API_GROUP, "Gateway")
_LISTENERS: Final = (_GATEWAY, (GATEWAY_API_GROUP, "ListenerSet"))

TARGETS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "frontend": (_GATEWAY,),
    "traffic": (*_LISTENERS, *ROUTES),
    "backend": (*_LISTENERS, *ROUTES, *_STREAM_ROUTES, ("", "Service"), (GROUP, GATEWAY_BACKEND)),
}
"""Section of the spec to (group, kind) of its targets (spec 1, Attachment and merge rules)."""


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

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "target_refs", "target_selectors")
        lists: tuple[tuple[str, tuple[TargetReference | TargetSelector, ...]], ...] = (
            ("targetRefs", self.target_refs or ()),
            ("targetSelectors", self.target_selectors or ()),
        )
        for name, targets in lists:
            for index, target in enumerate(targets):
                for field, message in self._target_rules(target):
                    yield Broken((name, index, field), message)

    def _target_rules(self, target: TargetReference | TargetSelector) -> Iterator[tuple[str, str]]:
        """What is wrong with one target, by the field to blame."""
        for section, kinds in TARGETS.items():
            if getattr(self, section) is not None and (target.group, target.kind) not in kinds:
                yield _elsewhere(section, target)
        if self.frontend is not None and target.section_name is not None:
            yield "sectionName", "must be absent: frontend policies attach to whole Gateways"
        if self.backend is not None and self.backend.ai is not None and (target.group, target.kind) == ("", "Service"):
            yield "kind", "backend.ai acts on no Service: it is for the LLM providers of a GatewayBackend"
        early = self.traffic is not None and self.traffic.phase == "PreRouting"
        if early and (target.group, target.kind) in ROUTES:
            yield "kind", "PreRouting policies attach to Gateways and listeners only"


def _elsewhere(section: str, target: TargetReference | TargetSelector) -> tuple[str, str]:
    """What is wrong with a target that no policy of the section attaches to: its group alone, or its kind."""
    groups = {kind: group for group, kind in TARGETS[section]}
    if target.kind in groups:
        return "group", f'{section} policies attach to {target.kind} of group "{groups[target.kind]}"'
    return "kind", f"{section} policies attach to {', '.join(groups)} only"


class Unread(NamedTuple):
    """Stands for the settings of a policy that is not valid."""

    message: str
    """What is wrong with it."""
    guards: frozenset[str]
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
