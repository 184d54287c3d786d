"""Selectors of MCP backends as values, and the groups of Services that they are made of (`derive.selected`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Final, NamedTuple

from controlplane.derive import EVERYTHING, Members
from controlplane.translate.keys import ObjectKey
from controlplane.translate.namespaces import NAME_LABEL, Labels
from gatewright.api.backend.mcp_targets import McpSelector
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.schema.label_selector import LabelSelector


class Rule(NamedTuple):
    """One requirement of a label selector."""

    label: str
    operator: str
    values: tuple[str, ...]


class Selection(NamedTuple):
    """A selector, in one namespace. Equal ones of several backends are one."""

    home: str
    """The namespace of the backends."""
    is_wide: bool
    """Whether other namespaces are searched: those that `namespaces` selects."""
    namespaces: tuple[Rule, ...]
    services: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is selected by: labels of a Service, and of its Namespace (None: no such object is there)."""

    own: Labels
    of_namespace: Labels | None


def selection(namespace: str, selector: McpSelector) -> Selection:
    """That of a backend in `namespace`."""
    is_wide = selector.namespaces is not None
    return Selection(namespace, is_wide, _rules(selector.namespaces), _rules(selector.services))


def selections(key: ObjectKey, backend: GatewayBackend) -> Iterator[Selection]:
    """All of a backend."""
    for target in backend.spec.mcp.targets if backend.spec.mcp is not None else ():
        if target.selector is not None:
            yield selection(key.namespace, target.selector)


def groups(service: ObjectKey, labels: Labelled) -> Iterator[Hashable]:
    """Those of a Service: its namespace, and each label with and without its value."""
    yield _IN, service.namespace
    yield from _of_labels(_SERVICE, labels.own)
    if labels.of_namespace is not None:
        yield _KNOWN
        # Kubernetes itself puts the name label on every namespace.
        yield from _of_labels(_NAMESPACE, (dict(labels.of_namespace) | {NAME_LABEL: service.namespace}).items())


def select(wanted: Selection, members: Members) -> int:
    """The Services of a selection. A namespace without a Namespace object is searched for its own backends alone."""
    found = _all_of(wanted.services, _SERVICE, members, members(EVERYTHING))
    home = members((_IN, wanted.home))
    if not wanted.is_wide:
        return found & home
    known = members(_KNOWN)
    searched = _all_of(wanted.namespaces, _NAMESPACE, members, known)
    if home & ~known and all(_holds(each, wanted.home) for each in wanted.namespaces):
        searched |= home
    return found & searched


_IN: Final = "in"
_KNOWN: Final = "known"
_SERVICE: Final = "service"
_NAMESPACE: Final = "namespace"


def _rules(selector: LabelSelector | None) -> tuple[Rule, ...]:
    if selector is None:
        return ()
    equal = (Rule(label, "In", (value,)) for label, value in selector.match_labels.items())
    others = (Rule(each.key, each.operator, tuple(sorted(each.values))) for each in selector.match_expressions)
    return tuple(sorted({*equal, *others}))


def _of_labels(whose: str, labels: Iterable[tuple[str, str]]) -> Iterator[Hashable]:
    for label, value in labels:
        yield whose, label
        yield whose, label, value


def _all_of(rules: tuple[Rule, ...], whose: str, members: Members, everything: int) -> int:
    return reduce(and_, (_members_of(each, whose, members, everything) for each in rules), everything)


def _members_of(rule: Rule, whose: str, members: Members, everything: int) -> int:
    if rule.operator in ("Exists", "DoesNotExist"):
        found = members((whose, rule.label))
    else:
        found = reduce(or_, (members((whose, rule.label, value)) for value in rule.values), 0)
    return found if rule.operator in ("Exists", "In") else everything & ~found


def _holds(rule: Rule, namespace: str) -> bool:
    """Of a namespace of which nothing but its name is known."""
    is_there = rule.label == NAME_LABEL and (rule.operator in ("Exists", "DoesNotExist") or namespace in rule.values)
    return is_there == (rule.operator in ("Exists", "In"))
