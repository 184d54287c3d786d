"""Which namespaces a listener admits routes from (Gateway API, AllowedRoutes.namespaces)."""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.api.objects.gateway import RouteNamespaces
from gatewright.api.schema.label_selector import LabelSelector

NAME_LABEL = "kubernetes.io/metadata.name"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """`All`, `Same` as the Gateway, or those that `selector` selects."""

    origin: str
    gateway: str
    selector: LabelSelector | None = None

    @property
    def reads_labels(self) -> bool:
        return self.origin == "Selector"

    def admits(self, namespace: str, labels: Labels | None) -> bool:
        """`labels` are those of the Namespace object, None where there is none (a directory need not have any)."""
        if self.origin == "All":
            return True
        if self.origin == "Same":
            return namespace == self.gateway
        # No selector selects nothing. Kubernetes itself puts the name label on every namespace.
        return self.selector is not None and self.selector.matches(dict(labels or ()) | {NAME_LABEL: namespace})


def rule(gateway: str, namespaces: RouteNamespaces) -> NamespaceRule:
    """The rule of a listener whose Gateway is in namespace `gateway`."""
    selector = namespaces.selector if namespaces.from_ == "Selector" else None
    return NamespaceRule(namespaces.from_, gateway, selector)
