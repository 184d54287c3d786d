"""The kinds of routes, as rows: what the translation of one does otherwise than that of the others.

Everything else (attachment, references, conditions, resources, statuses, policies) is the same code for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from controlplane.translate.backend.backends import Referrer
from controlplane.translate.route import filters
from controlplane.translate.route.filters import Problem
from gatewright.api.checks.parts import Path
from gatewright.api.lower import to_wire
from gatewright.api.lower.to_wire import MirrorTarget
from gatewright.api.routes.grpc_route import GRPCRouteRule
from gatewright.api.routes.http_route import HTTPRouteRule
from gatewright.api.routes.own_fields import own_fields
from gatewright.api.routes.stream_routes import StreamRouteRule
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.attach.outcome import Setting
from gatewright.wire.v1 import policy_pb2, route_pb2

RouteMessage = route_pb2.Route | route_pb2.TcpRoute | route_pb2.UdpRoute

MESSAGES: Final[dict[str, type[RouteMessage]]] = {
    "route": route_pb2.Route,
    "tcp_route": route_pb2.TcpRoute,
    "udp_route": route_pb2.UdpRoute,
}
"""Field of the wire's Resource to its message."""


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
    cannot_speak: frozenset[str] = frozenset()
    """Application protocols of Service ports that cannot carry its requests (Gateway API GRPCBackendRef)."""
    field: str = "route"
    """Of the wire's Resource, whose message it becomes: one for each rule."""
    transport: str = "TCP"
    """Protocol of the Service ports that it leads to."""

    @property
    def reads_content(self) -> bool:
        """Its content is HTTP; otherwise bytes pass as they are."""
        return self.field == "route"

    def referrer(self, namespace: str) -> Referrer:
        """A route of this kind as one who names backends."""
        return Referrer(GATEWAY_API_GROUP, self.kind, namespace, self.cannot_speak, self.transport, self.reads_content)

    @property
    def message(self) -> type[RouteMessage]:
        return MESSAGES[self.field]

    @property
    def wire(self) -> str:
        """As keys of resources say it."""
        return self.kind.lower()


def _matches(rule: HTTPRouteRule | GRPCRouteRule) -> list[route_pb2.RouteMatch]:
    return [to_wire.route_match(match) for match in rule.matches]


def _http_policies(rule: HTTPRouteRule, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    fields = {"timeouts": rule.timeouts, "retry": rule.retry, "session_persistence": rule.session_persistence}
    return to_wire.rule_policies(rule.filters, fields, mirror_target=mirror_target)


def _grpc_policies(rule: GRPCRouteRule, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    fields = {"session_persistence": rule.session_persistence}
    return to_wire.rule_policies(rule.filters, fields, mirror_target=mirror_target)


def _no_own_fields(_: GRPCRouteRule | StreamRouteRule) -> Iterator[tuple[Path, Setting]]:
    """Filters of a GRPCRoute are modifiers and mirrors, which act beside those of policies."""
    return iter(())


def _no_matches(_: StreamRouteRule) -> list[route_pb2.RouteMatch]:
    return []


def _no_policies(_: StreamRouteRule, __: MirrorTarget) -> list[policy_pb2.Policy]:
    return []


def _no_problem(_: StreamRouteRule) -> None:
    return None


def _stream(kind: str, field: str, transport: str = "TCP") -> RouteKind:
    """A kind whose rule is nothing but where connections go."""
    return RouteKind(kind, _no_matches, _no_policies, _no_problem, _no_own_fields, field=field, transport=transport)


_ROWS = (
    RouteKind("HTTPRoute", _matches, _http_policies, filters.problem, own_fields),
    RouteKind(
        "GRPCRoute", _matches, _grpc_policies, filters.problem, _no_own_fields, frozenset({"http", "kubernetes.io/ws"})
    ),
    _stream("TLSRoute", "tcp_route"),
    _stream("TCPRoute", "tcp_route"),
    _stream("UDPRoute", "udp_route", "UDP"),
)

ROUTE_KINDS: Final = {row.kind: row for row in _ROWS}
"""By kind."""
