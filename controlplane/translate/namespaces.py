"""Which namespaces a listener admits routes from, and a Gateway ListenerSets (Gateway API, AllowedRoutes.namespaces and
AllowedListeners.namespaces).

A selector is resolved here, from all namespaces that are known: a listener's message names those that it admits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from controlplane.derive import EVERYTHING, Members
from controlplane.translate.label_rules import Rules, all_of, groups_of, rules_of
from gatewright.api.objects.gateway import ListenerNamespaces, RouteNamespaces

NAME_LABEL = "kubernetes.io/metadata.name"

Labels = tuple[tuple[str, str], ...]

Known = Callable[[Rules], frozenset[str]]
"""A selector to the namespaces that it selects, of all that there are or that hold an object that asks; a directory
need not have Namespace objects."""


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """`All`, `Same` as the object that says so, those that `selector` selects, or `None`."""

    origin: str
    own: str
    """Namespace of the object."""
    selector: Rules | None = None

    @property
    def reach(self) -> frozenset[str] | None:
        """Those that it may come to admit, whatever their labels; None: all."""
        return None if self.origin in ("All", "Selector") else self.resolved(lambda _: frozenset())

    def resolved(self, known: Known) -> frozenset[str] | None:
        """Those that it admits; None: all."""
        if self.origin == "All":
            return None
        if self.origin == "Same":
            return frozenset({self.own})
        if self.origin != "Selector" or self.selector is None:
            return frozenset()
        return known(self.selector)


def rule(own: str, namespaces: RouteNamespaces | ListenerNamespaces) -> NamespaceRule:
    """The rule of an object in namespace `own`."""
    selector = namespaces.selector if namespaces.from_ == "Selector" else None
    return NamespaceRule(namespaces.from_, own, None if selector is None else rules_of(selector))


def selectors(rules: Iterable[NamespaceRule]) -> Iterator[Rules]:
    """What is selected by some of them."""
    return (each.selector for each in rules if each.selector is not None)


def with_name(name: str, labels: Labels) -> Labels:
    """Labels of a Namespace as selectors see them: Kubernetes itself puts the name label on each."""
    return tuple((dict(labels) | {NAME_LABEL: name}).items())


def groups(name: str, labels: Labels) -> Iterator[Hashable]:
    """Those of a namespace, for `select`."""
    return groups_of("", with_name(name, labels))


def select(wanted: Rules, members: Members) -> int:
    return all_of(wanted, "", members, members(EVERYTHING))
