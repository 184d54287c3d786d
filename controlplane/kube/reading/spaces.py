"""Which namespaces of a cluster are read: all, or those whose labels a selector selects. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from controlplane.facts import Fact
from gatewright.api.schema.label_selector import LabelSelector

KIND = "Namespace"


class Spaces:
    """`selector` None: all. Objects of no namespace are always read, Namespaces themselves among them."""

    def __init__(self, selector: LabelSelector | None = None) -> None:
        self._selector = selector
        self._read: set[str] = set()

    def __len__(self) -> int:
        return len(self._read)

    @property
    def is_selective(self) -> bool:
        return self._selector is not None

    def is_read(self, namespace: str) -> bool:
        return self._selector is None or not namespace or namespace in self._read

    def take(self, facts: Iterable[Fact]) -> dict[str, bool]:
        """Facts of Namespaces; the answer is which ones are read from now on, or no more."""
        changes: dict[str, bool] = {}
        if self._selector is None:
            return changes
        for fact in facts:
            name, acts = fact.key.name, fact.acts
            is_read = acts is not None and self._selector.matches(acts.metadata.labels)
            if is_read != (name in self._read):
                changes[name] = is_read
                (self._read.add if is_read else self._read.discard)(name)
        return changes
