"""Parts of a backend: an MCP target, an LLM provider, a pool that an endpoint picker chooses from. Pure.

A kind of backend that ends requests itself (`kinds`) sends on to its parts. Each is a Backend of its own on the wire,
with policies of its own; those that are attached to the whole (or to the part by name) and those that the whole says
itself come with the part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.chain.calls import CallFailed
from dataplane.upstream.settings import NO_SETTINGS, Settings

if TYPE_CHECKING:
    from dataplane.upstream.backend_rules import Rules
    from dataplane.upstream.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Part:
    """One part. A kind that knows more of its parts has a subclass."""

    name: str
    """By which policies are attached to it (`sectionName`)."""
    backend: str
    """Key of the Backend that has its address."""
    selector: str = ""
    """Name of the selector that found it: policies for that are for it too."""
    is_local: bool = False
    """It is a process of this proxy: no policy says how it is connected to."""
    own: Settings = NO_SETTINGS
    """How it is connected to, by policies that are attached to the whole or to the part; what its own Backend says
    wins."""
    rules: Rules | None = None
    """What they say for its sake."""
    above: Settings = NO_SETTINGS
    """What the whole says itself; it wins over the Backend of a part, unless that is made for the part alone."""
    rules_above: Rules | None = None
    of_kind: object = None
    """What policies of the kind's own field come to for it, those of the whole included; None: none says anything."""


class Policies(Protocol):
    """Of the route that leads to the whole (`table/plans.RoutePolicies`)."""

    @property
    def backend(self) -> Settings: ...

    @property
    def rules(self) -> Rules | None: ...


class Table(Protocol):
    @property
    def backends(self) -> Mapping[str, Any]: ...  # Any: a BackendPlan; mappings of protocols do not vary


class Leases(Protocol):
    """Of `upstream/lease.Leases`."""

    def resolve(self, plan: Any, ready: Callable[[], None]) -> Sequence[Endpoint] | None: ...

    def rule_state(self, plan: Any, rules: Rules) -> object: ...


def plan_of(
    table: Table, part: Part, policies: Policies, leases: Leases, pinned: str = ""
) -> Any:  # a BackendPlan: `table/plans` is above this package
    """The backend of a part, as all policies want it spoken to. `pinned`: label of the endpoint to use, if it is still
    there. Raises `CallFailed`."""
    plan = table.backends.get(part.backend)
    if plan is None:
        raise CallFailed("unresolved", f"{part.backend} is not known")
    if part.is_local:
        return plan
    if part.above is not NO_SETTINGS or part.rules_above is not None:
        plan = plan.topped(part.above, part.rules_above)
    if part.own is not NO_SETTINGS or policies.backend is not NO_SETTINGS:
        plan = plan.under(part.own.over(policies.backend.without_steps()), 0)
    rules = policies.rules if part.rules is None else part.rules.over(policies.rules)
    if rules is not None:
        plan = plan.with_rules(rules)
    return _pinned(plan, leases, pinned) if pinned else plan


def _pinned(plan: Any, leases: Leases, label: str) -> Any:
    found: Any = plan.endpoints
    if plan.host:
        found = leases.resolve(plan, _nothing) or ()
    if len(found) == 1 and found[0].label == label:
        return plan
    one = tuple(endpoint for endpoint in found if endpoint.label == label)
    if not one:
        return plan  # it is gone: its session as well, which shows
    if plan.rules is not None:
        leases.rule_state(plan, plan.rules)  # counts are the plan's, whichever endpoint is used
    return replace(plan, endpoints=one, far=(), host=b"", _under=None, _with_rules=None, _topped=None)


def _nothing() -> None:
    """The name is not waited for: another endpoint will do."""
