"""What calls inherit: which policies above a backend say how it is called. Pure, and the only place that says so.

A call takes from the levels above it only how to connect: `tcp`, `tls`, `http`, `tunnel` (`Settings`), `limits` and
`health` (`Rules`). Credentials, transformations and authorization act on it only where they are attached to the backend
that is called, or written at the call: they come with its plan (`finishers`, `steps`), never from above. So a
route's credential never reaches a key server, and an authorization server is not asked about itself.

Which levels: for the sake of a request, those of its rule, route, listener and Gateway, as for the request itself;
before there is a route, those of listener and Gateway; for no request (key sets and metadata of an identity provider,
which all requests share), those of the Gateway alone. A copy for a mirror stands in the place of its request: it takes
what the request takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.upstream.backend_rules import Rules
    from dataplane.upstream.settings import Settings


class Inherited(Protocol):
    """What a call reads of the policies above its backend (`table/plans.RoutePolicies`)."""

    @property
    def backend(self) -> Settings: ...

    @property
    def rules(self) -> Rules | None: ...


class Connecting(NamedTuple):
    """What remains of policies whose credential and steps are not for calls."""

    backend: Settings
    rules: Rules | None


class Table(Protocol):
    @property
    def backends(self) -> Mapping[str, Any]: ...  # Any: a BackendPlan; mappings of protocols do not vary

    @property
    def of_gateway(self) -> Inherited:
        """Policies of the Gateway."""


def inherited(table: Table, x: Exchange | None) -> Inherited:
    """What policies above the backend say of connections to it. `x`: for whose sake; None: for no request's."""
    above = table.of_gateway if x is None else _of_request(table, x)
    return above if above.backend.is_connecting else Connecting(above.backend.connecting, above.rules)


def _of_request(table: Table, x: Exchange) -> Inherited:
    found: Any = x.policies  # Any: plans of routes and listeners, whose types this package does not know
    if found is None:  # there is no route yet
        listener: Any = x.listener
        upper = None if listener is None else listener.upper
        found = table.of_gateway if upper is None else upper.policies
    above: Inherited = found
    return above


def plan_of(backends: Mapping[str, Any], key: str, above: Inherited, version: int = 0) -> Any:  # Any: as `Table`
    """The BackendPlan of this key below those policies; None: there is no such backend. `version`: of HTTP, where
    none is configured (of a GRPCRoute, for its requests and their copies)."""
    plan = backends.get(key)
    return None if plan is None else plan.beneath(above.backend, above.rules, version)
