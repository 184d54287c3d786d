"""Routes to wire: one Route per rule and Gateway, and what is wrong with which rule (Gateway API HTTPRouteRule,
GRPCRouteRule).

Two steps, because their causes differ. `translate` makes of a route what it says wherever it attaches; it runs once per
edit of the route, and when what one of its references leads to changes. `placed_routes` joins that with the route's
parents (module `attachment`), and runs again when these come or go. What differs by kind is in `route_kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.derive import Context
from controlplane.translate import support
from controlplane.translate.backend.backends import BACKEND_NOT_FOUND, Backends, Referrer, parts, resolve
from controlplane.translate.conditions import UNTRANSLATED, Condition
from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.route.filters import Problem
from controlplane.translate.route.route_kinds import RouteKind, RouteMessage
from gatewright.api.lower import to_wire
from gatewright.api.routes.grpc_route import GRPCBackendRef
from gatewright.api.routes.http_route import HTTPBackendRef
from gatewright.api.routes.stream_routes import BackendRef
from gatewright.api.schema.references import BackendObjectReference
from gatewright.wire.v1 import policy_pb2, route_pb2


@dataclass(frozen=True, slots=True)
class RouteTranslation:
    """What a route says, wherever it attaches."""

    rules: tuple[tuple[int, bytes], ...] = ()
    """Rule index, and the Route message without parents."""
    failing: frozenset[int] = frozenset()
    """Indexes of those that answer 500."""
    hostnames: tuple[str, ...] = ()
    named: tuple[BackendKey, ...] = ()
    """Backends that its rules name."""
    brought: tuple[tuple[BackendKey, ObjectKey], ...] = ()
    """Parts of these, with the GatewayBackend that they are parts of."""
    unfinished: tuple[int, ...] = ()
    """Indexes of rules with a backend that is not there: perhaps it is still being written."""
    refused: Condition | None = None
    """`Accepted` False for every parent, because of the route itself. Rules that it has all the same answer 500."""
    unresolved: Condition | None = None
    partially_invalid: Condition | None = None

    @property
    def backends(self) -> tuple[BackendKey, ...]:
        """All that proxies need for it."""
        return tuple(dict.fromkeys((*self.named, *(part for part, _ in self.brought)))) if self.brought else self.named


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule without what differs per Gateway."""

    position: int
    message: RouteMessage
    named: tuple[BackendKey, ...] = ()
    brought: tuple[tuple[BackendKey, ObjectKey], ...] = ()
    unresolved: tuple[Condition, ...] = ()
    unfinished: bool = False
    """Whether a backend is not there."""


def translate(context: Context, backends: Backends, kind: RouteKind, key: ObjectKey, route: Any) -> RouteTranslation:
    """The rules of a route (Any: the model of its kind), and the verdicts over them."""
    unsupported = support.unsupported_fields(route)
    if any(_rule_of(path) is None for path in unsupported):
        return RouteTranslation(refused=_refused("UnsupportedValue", support.message(unsupported)))
    problems = _problems(kind, route, unsupported)
    translator = _Translator(context, backends, kind, key, route)
    outcomes = [
        translator.rule(position, rule, problems.get(position)) for position, rule in enumerate(route.spec.rules)
    ]
    rules = [outcome for outcome in outcomes if outcome is not None]
    works = not problems or len(problems) < len(route.spec.rules)
    return RouteTranslation(
        rules=tuple((rule.position, rule.message.SerializeToString(deterministic=True)) for rule in rules),
        failing=frozenset(problems),
        hostnames=tuple(route.spec.hostnames),
        named=tuple(sorted({backend for rule in rules for backend in rule.named})),
        brought=tuple(sorted({part for rule in rules for part in rule.brought})),
        unfinished=tuple(rule.position for rule in rules if rule.unfinished),
        refused=None if works else _all_dropped(problems),
        unresolved=_summary([condition for rule in rules for condition in rule.unresolved]),
        partially_invalid=_partially_invalid(problems) if works else None,
    )


def rest(context: Context, backends: Backends, kind: RouteKind, key: ObjectKey, route: Any) -> RouteTranslation:
    """Of a route that cannot be read, what its filters would protect (`gatewright.api.decode.partly`)."""
    made = translate(context, backends, kind, key, route) if route.spec.rules else RouteTranslation()
    return made if made.refused is not None else RouteTranslation()


def untranslated(_: ObjectKey, __: bool) -> RouteTranslation:
    """The result for a route on which `translate` raised, which is a bug: it is not served, and says so."""
    return RouteTranslation(refused=_refused("UnsupportedValue", UNTRANSLATED))


def _refused(reason: str, message: str) -> Condition:
    return Condition("Accepted", False, reason, message)


def _summary(unresolved: Sequence[Condition]) -> Condition | None:
    """One condition for all bad references: the reason of the first, the messages of all."""
    if not unresolved:
        return None
    messages = dict.fromkeys(condition.message for condition in unresolved)
    return Condition("ResolvedRefs", False, unresolved[0].reason, "; ".join(messages))


def _rule_of(path: support.Path) -> int | None:
    """The rule that a setting is in."""
    return path[2] if path[:2] == ("spec", "rules") and len(path) > 2 and isinstance(path[2], int) else None


def _problems(kind: RouteKind, route: Any, unsupported: Sequence[support.Path]) -> dict[int, Problem]:
    """What is wrong with rules, by their positions. `unsupported`: settings of them that are not supported yet."""
    found: dict[int, Problem] = {}
    for position, rule in enumerate(route.spec.rules):
        paths = [path for path in unsupported if _rule_of(path) == position]
        problem = kind.problem(rule)
        if paths and problem is None:
            fails = any("filters" in path for path in paths)
            problem = Problem("UnsupportedValue", support.message(paths), fails)
        if problem is not None:
            found[position] = problem
    return found


def _all_dropped(problems: Mapping[int, Problem]) -> Condition:
    """`Accepted` of a route of which no rule works."""
    message = "; ".join(f"rule {position}: {each.described}" for position, each in problems.items())
    return _refused(next(iter(problems.values())).reason, message)


def _partially_invalid(problems: Mapping[int, Problem]) -> Condition | None:
    """Gateway API wants the message to begin with "Dropped Rule" when rules are left out. We never fall back to what a
    rule was before: it would be unknown after the next start."""
    if not problems:
        return None
    message = "; ".join(f"Dropped Rule {position}: {each.described}" for position, each in problems.items())
    return Condition("PartiallyInvalid", True, next(iter(problems.values())).reason, message)


class _Translator:
    """One run over one route."""

    def __init__(self, context: Context, backends: Backends, kind: RouteKind, key: ObjectKey, route: Any) -> None:
        self._kind = kind
        self._context = context
        self._backends = backends
        self._source = policy_pb2.ObjectRef(kind=kind.kind, namespace=key.namespace, name=key.name)
        self._referrer = kind.referrer(key.namespace)
        self._hostnames = sorted(route.spec.hostnames)
        # Equal matches: the older route wins, then the smaller namespace/name. Files have no time, and come first.
        self._order = f"{route.metadata.creation_timestamp or ''} {key}"

    def rule(self, position: int, rule: Any, problem: Problem | None) -> Rule | None:  # Any: the model of its kind
        """None for one that is left out."""
        if problem is not None:
            return self._failing(position, rule, problem) if problem.fails else None
        references = _References(self._context, self._backends, self._referrer)
        message = self._message(position, rule, [_backend(each, references) for each in rule.backend_refs])
        if isinstance(message, route_pb2.Route):
            message.policies.extend(self._kind.policies(rule, references.key))
            if reason := _unusable(message.policies):  # a filter must not be skipped (Gateway API, HTTPRouteFilter)
                del message.policies[:], message.backends[:]
                message.backends.add(weight=1).invalid.reason = reason
        named, brought = tuple(references.named), tuple(references.brought)
        return Rule(position, message, named, brought, tuple(references.unresolved), references.unfinished)

    def _failing(self, position: int, rule: Any, problem: Problem) -> Rule:
        """It answers 500 to all that it matches."""
        invalid = route_pb2.InvalidBackend(reason=f"{problem.reason}: {problem.message}")
        return Rule(position, self._message(position, rule, [route_pb2.RouteBackend(weight=1, invalid=invalid)]))

    def _message(self, position: int, rule: Any, backends: Sequence[route_pb2.RouteBackend]) -> RouteMessage:
        message = self._kind.message(source=self._source, rule=rule.name or "", backends=backends, order=self._order)
        if isinstance(message, route_pb2.Route):
            message.rule_index = position
            message.matches.extend(self._kind.matches(rule))
        if not isinstance(message, route_pb2.UdpRoute):
            message.hostnames.extend(self._hostnames)
        return message


class _References:
    """The backend references of one rule: what they lead to, and what is wrong with them."""

    def __init__(self, context: Context, backends: Backends, referrer: Referrer) -> None:
        self._context = context
        self._backends = backends
        self._referrer = referrer
        self.named: list[BackendKey] = []
        self.brought: list[tuple[BackendKey, ObjectKey]] = []
        self.unresolved: list[Condition] = []
        self.unfinished = False

    def resolve(self, reference: BackendObjectReference) -> BackendKey | Condition:
        found = resolve(self._context, self._backends, self._referrer, reference)
        if isinstance(found, BackendKey):
            self.named.append(found)
            self.brought += ((part, found.object) for part in parts(self._context, self._backends, found))
        else:
            self.unresolved.append(found)
        return found

    def key(self, reference: BackendObjectReference) -> str | None:
        """The resource key; None for a bad reference, which leaves a mirror out."""
        found = self.resolve(reference)
        return found.resource if isinstance(found, BackendKey) else None


def _unusable(policies: Iterable[policy_pb2.Policy]) -> str:
    """Why what these filters protect must not be reached; "": it may."""
    return next((each.invalid for each in policies if each.invalid), "")


def _backend(
    reference: HTTPBackendRef | GRPCBackendRef | BackendRef, references: _References
) -> route_pb2.RouteBackend:
    message = route_pb2.RouteBackend(
        weight=reference.weight, policies=to_wire.rule_policies(reference.filters, mirror_target=references.key)
    )
    found = references.resolve(reference)
    if reason := _unusable(message.policies):
        del message.policies[:]
        message.invalid.reason = reason
    elif isinstance(found, BackendKey):
        message.backend = found.resource
    else:
        message.invalid.reason = f"{found.reason}: {found.message}"
        references.unfinished |= found.reason == BACKEND_NOT_FOUND
    return message
