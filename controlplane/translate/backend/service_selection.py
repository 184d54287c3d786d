"""Selectors of GatewayBackends as values, and the groups of Services that they are made of (`derive.selected`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from controlplane.derive import EVERYTHING, Members
from controlplane.translate.keys import ObjectKey
from controlplane.translate.label_rules import Rules, all_of, groups_of, hold, rules_of
from controlplane.translate.namespaces import Labels, with_name
from gatewright.api.backend.mcp_targets import McpSelector
from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.objects.gateway_backend import GatewayBackend


class Selection(NamedTuple):
    """A selector, in one namespace. Equal ones of several backends are one."""

    home: str
    """The namespace of the backends."""
    is_wide: bool
    """Whether other namespaces are searched: those that `namespaces` selects."""
    namespaces: Rules
    services: Rules


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is selected by: labels of a Service, and of its Namespace (None: no such object is there)."""

    own: Labels
    of_namespace: Labels | None


def selection(namespace: str, selector: McpSelector) -> Selection:
    """That of a backend in `namespace`."""
    is_wide = selector.namespaces is not None
    return Selection(namespace, is_wide, rules_of(selector.namespaces), rules_of(selector.services))


def selections(key: ObjectKey, backend: GatewayBackend) -> Iterator[Selection]:
    """All of a backend."""
    for kind in KINDS.values():
        value = getattr(backend.spec, kind.name)
        if value is None or kind.parts is None or not kind.parts.selector:
            continue
        for part in getattr(value, kind.parts.path):
            if (selector := getattr(part, kind.parts.selector)) is not None:
                yield selection(key.namespace, selector)


def groups(service: ObjectKey, labels: Labelled) -> Iterator[Hashable]:
    """Those of a Service: its namespace, and each label with and without its value."""
    yield _IN, service.namespace
    yield from groups_of(_SERVICE, labels.own)
    if labels.of_namespace is not None:
        yield _KNOWN
        yield from groups_of(_NAMESPACE, with_name(service.namespace, labels.of_namespace))


def select(wanted: Selection, members: Members) -> int:
    """The Services of a selection. A namespace without a Namespace object is searched for its own backends alone."""
    found = all_of(wanted.services, _SERVICE, members, members(EVERYTHING))
    home = members((_IN, wanted.home))
    if not wanted.is_wide:
        return found & home
    known = members(_KNOWN)
    searched = all_of(wanted.namespaces, _NAMESPACE, members, known)
    if home & ~known and hold(wanted.namespaces, with_name(wanted.home, ())):
        searched |= home
    return found & searched


_IN: Final = "in"
_KNOWN: Final = "known"
_SERVICE: Final = "service"
_NAMESPACE: Final = "namespace"
