"""What one state is changing: notes that `endpoints`, `listeners` and `routes` leave for the swap at its end.

Made by the applier for each state and dropped with it. The applier is where things are kept; this is what is under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.table.draft import RouterDraft
from dataplane.table.parted import Container, PartedDict
from dataplane.table.plans import BackendPlan

if TYPE_CHECKING:
    from dataplane.table.applier import Applier
    from dataplane.upstream.endpoint import Endpoint


class Swap:
    __slots__ = (
        "backends",
        "binds",
        "dirty_backends",
        "drafts",
        "garbage",
        "listeners",
        "new_listeners",
        "of",
        "refused",
        "released",
        "unblocked",
    )

    def __init__(self, applier: Applier) -> None:
        self.of = applier
        self.refused: dict[str, str] = {}
        self.drafts: dict[str, RouterDraft] = {}
        """By listener: routers that change."""
        self.new_listeners: list[str] = []
        self.listeners: set[str] = set()
        """Whose plans are made anew."""
        self.binds: set[str] = set()
        """The same of binds."""
        self.dirty_backends: dict[str, None] = {}
        self.backends: Container[str, BackendPlan] | None = None
        """Changed copy of the table's; None while it is as it was."""
        self.unblocked: list[str] = []
        """Routes that may be able to enter now."""
        self.released: list[Endpoint] = []
        """To be given back once no table names them."""
        self.garbage: list[Any] = []
        """Pieces of the old table, of any type, kept until they can be dropped one by one."""

    def draft(self, listener: str) -> RouterDraft | None:
        """The next router of a listener; None when the listener is not there."""
        draft = self.drafts.get(listener)
        if draft is None:
            router = self.of.routers.get(listener)
            if router is None:
                return None
            draft = self.drafts[listener] = RouterDraft(router)
            for container in (router.hosts, router.wildcards):
                self.garbage.extend(parts(container))
        return draft

    def changed_backends(self) -> Container[str, BackendPlan]:
        if self.backends is None:
            self.backends = self.of.backends.copy()
            self.garbage.extend(parts(self.of.backends))
        return self.backends


def parts(container: Container[Any, Any] | None) -> list[Any]:
    """What a large container falls into, so that dropping the container itself frees little; of any type."""
    return container.parts() if type(container) is PartedDict else []


def pieces(container: Container[Any, Any]) -> list[Any]:
    """The same for one whose values go with it: a small one falls into these."""
    return container.parts() if type(container) is PartedDict else list(container.values())
