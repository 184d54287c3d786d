"""All plans of a process: what an exchange pins while it is routed. Never changed after it was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataplane.net.keepalive import Keepalive
from dataplane.table.binds import BindPlan
from dataplane.table.limits import NO_LIMITS, LimitsPlan
from dataplane.table.plans import NO_POLICIES, BackendPlan, RoutePolicies


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Table:
    version: int = 0
    """Counts the swaps of this process."""
    binds: Mapping[str, BindPlan] = field(default_factory=dict)
    """By key of the Bind; those with at least one listener."""
    backends: Mapping[str, BackendPlan] = field(default_factory=dict)
    """By key of the Backend."""
    rules: int = 0
    """Counts the changes of how heads are read (`http/rules`): what connections remember of heads is of one count."""
    limits: LimitsPlan = NO_LIMITS
    """What holds for all binds together."""
    request_limits: LimitsPlan | None = None
    """The same, when there is something that holds for requests."""
    keepalives: Mapping[str, Keepalive] = field(default_factory=dict)
    """Of sockets, by key of the Bind; those that are otherwise than by default."""
    of_gateway: RoutePolicies = NO_POLICIES
    """What policies of the Gateway say of connections to backends, for calls that no exchange asks for."""
    prices: Any = None  # Any: `Prices` of a package that few tables need
    """Of models of LLM providers, over the catalogue; None: none are configured."""
    mesh: Any = None  # Any: `MeshPlan` of a package that few tables need
    """What tunnels of a mesh are opened with; None: it takes no part in one."""
