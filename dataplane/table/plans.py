"""Finished settings of a bind, listener, route and backend: what a request meets. Built at swap time, never changed after.

A plan holds keys of backends, never the backends: those change far more often, so the exchange looks them up in the
table that it pinned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dataplane.chain.chain import EMPTY, Chain

if TYPE_CHECKING:
    from dataplane.table.router import Router
    from dataplane.upstream.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Target:
    """One weighted backend reference of a rule. `backend` is "" for a reference that cannot be honoured (`invalid`)."""

    backend: str
    invalid: str = ""
    chain: Chain = EMPTY
    """Filters of this backend reference: run after the route's, once the backend is chosen."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; None: no limit (spec 2 Timeouts, HTTPRoute `timeouts`)."""

    request: float | None = None
    backend_request: float | None = None


@dataclass(slots=True, eq=False)
class RoutePlan:
    """One rule of a route."""

    key: str
    """Key of its resource."""
    log: str
    """Ready-made log fields of route and rule: ` route=ns/name route_rule=0` (text) and the same as JSON in `log_json`."""
    log_json: str
    chain: Chain = EMPTY
    targets: tuple[Target, ...] = ()
    weights: tuple[int, ...] = ()
    """Cumulative weights of `targets`; empty when there is one target or none."""
    timeouts: Timeouts = Timeouts()
    retry: Any = None
    mirrors: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class BackendPlan:
    """One backend with the endpoints that can be chosen now."""

    key: str
    endpoints: tuple[Endpoint, ...] = ()
    host: bytes = b""
    """Host name to resolve (static backends with a name): endpoints then come from DNS."""


@dataclass(slots=True, eq=False)
class ListenerPlan:
    key: str
    name: str
    gateway: str
    """`namespace/name`."""
    hostname: str
    log: str
    """Ready-made log fields: ` gateway=ns/name listener=name`."""
    log_json: str
    router: Router
    chain: Chain = EMPTY
    """Gateway phase (PreRouting)."""


@dataclass(slots=True, eq=False)
class BindPlan:
    key: str
    port: int
    addresses: tuple[str, ...]
    exact: dict[bytes, ListenerPlan] = field(default_factory=dict)
    """By host name, lower case."""
    wildcards: dict[bytes, ListenerPlan] = field(default_factory=dict)
    """By what follows the "*" (b".example.com")."""
    default: ListenerPlan | None = None
