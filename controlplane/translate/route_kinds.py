"""The kinds of routes that are served, as rows: what the translation of one does otherwise than that of the others.

Everything else (attachment, references, conditions, resources, statuses, policies) is the same code for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from controlplane.translate import filters
from controlplane.translate.filters import Problem
from gatewright.api.checks.parts import Path
from gatewright.api.lower import to_wire
from gatewright.api.lower.to_wire import MirrorTarget
from gatewright.api.routes.grpc_route import GRPCRouteRule
from gatewright.api.routes.http_route import HTTPRouteRule
from gatewright.api.routes.own_fields import own_fields
from gatewright.attach.outcome import Setting
from gatewright.wire.v1 import policy_pb2, route_pb2


@dataclass(frozen=True, slots=True)
class RouteKind:
    """One kind. `Any` is the row's own model of a rule."""

    kind: str
    """As objects say it."""
    matches: Callable[[Any], list[route_pb2.RouteMatch]]
    """Of a rule."""
    policies: Callable[[Any, MirrorTarget], list[policy_pb2.Policy]]
    """The filters and fields of a rule."""
    problem: Callable[[Any], Problem | None]
    """Why a rule is dropped."""
    own_fields: Callable[[Any], Iterator[tuple[Path, Setting]]]
    """What a rule sets itself that a policy may lock."""
    cannot_speak: frozenset[str]
    """Application protocols of Service ports that cannot carry its requests (Gateway API GRPCBackendRef)."""

    @property
    def wire(self) -> str:
        """As keys of resources say it."""
        return self.kind.lower()


def _matches(rule: HTTPRouteRule | GRPCRouteRule) -> list[route_pb2.RouteMatch]:
    return [to_wire.route_match(match) for match in rule.matches]


def _http_policies(rule: HTTPRouteRule, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    return to_wire.rule_policies(rule.filters, rule.timeouts, rule.retry, mirror_target=mirror_target)


def _grpc_policies(rule: GRPCRouteRule, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    return to_wire.rule_policies(rule.filters, mirror_target=mirror_target)


def _no_own_fields(_: GRPCRouteRule) -> Iterator[tuple[Path, Setting]]:
    """Its filters are modifiers and mirrors, which act beside those of policies."""
    return iter(())


_ROWS = (
    RouteKind("HTTPRoute", _matches, _http_policies, filters.problem, own_fields, frozenset()),
    RouteKind(
        "GRPCRoute", _matches, _grpc_policies, filters.problem, _no_own_fields, frozenset({"http", "kubernetes.io/ws"})
    ),
)

ROUTE_KINDS: Final = {row.kind: row for row in _ROWS}
"""By kind."""
