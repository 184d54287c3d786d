"""Which namespaces a listener admits routes from, and a Gateway ListenerSets (Gateway API, AllowedRoutes.namespaces and
AllowedListeners.namespaces).

A selector is resolved here, from all namespaces that are known: a listener's message names those that it admits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gatewright.api.objects.gateway import ListenerNamespaces, RouteNamespaces
from gatewright.api.schema.label_selector import LabelSelector

NAME_LABEL = "kubernetes.io/metadata.name"

Labels = tuple[tuple[str, str], ...]

Known = Callable[[], Iterable[tuple[str, Labels]]]
"""All namespaces that there are, or that hold an object that asks, with the labels of their Namespace objects; a
directory need not have any. Read only where a selector is."""


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """`All`, `Same` as the object that says so, those that `selector` selects, or `None`."""

    origin: str
    own: str
    """Namespace of the object."""
    selector: LabelSelector | None = None

    @property
    def reach(self) -> frozenset[str] | None:
        """Those that it may come to admit, whatever their labels; None: all."""
        return None if self.origin in ("All", "Selector") else self.resolved(lambda: ())

    def resolved(self, known: Known) -> frozenset[str] | None:
        """Those that it admits; None: all."""
        if self.origin == "All":
            return None
        if self.origin == "Same":
            return frozenset({self.own})
        if self.origin != "Selector" or self.selector is None:
            return frozenset()
        # Kubernetes itself puts the name label on every namespace.
        matches = self.selector.matches
        return frozenset(name for name, labels in known() if matches(dict(labels) | {NAME_LABEL: name}))


def rule(own: str, namespaces: RouteNamespaces | ListenerNamespaces) -> NamespaceRule:
    """The rule of an object in namespace `own`."""
    selector = namespaces.selector if namespaces.from_ == "Selector" else None
    return NamespaceRule(namespaces.from_, own, selector)
