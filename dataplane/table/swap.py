"""What one state is changing: notes that `endpoints`, `listeners` and `routes` leave for the swap at its end.

Made by the applier for each state and dropped with it. What outlives it is in `Kept`; this is what is under way.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from dataplane.table.draft import RouterDraft
from dataplane.table.parted import Container
from dataplane.table.plans import NO_LISTENER_POLICIES, BackendPlan, ListenerPolicies

if TYPE_CHECKING:
    from dataplane.table.kept import Kept
    from dataplane.upstream.endpoint import Endpoint
    from gatewright.turns import Within


class Unchanged(Enum):
    """What a state says nothing of."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


class Swap:
    __slots__ = (
        "accepted",
        "at_once",
        "backends",
        "binds",
        "dirty_backends",
        "drafts",
        "is_mesh_new",
        "listener_policies",
        "listeners",
        "merged_places",
        "merged_routes",
        "notes",
        "of",
        "prices",
        "rebuilt_backends",
        "rebuilt_policies",
        "rebuilt_routes",
        "refused",
        "released",
        "resited",
        "unblocked",
    )

    def __init__(self, kept: Kept, at_once: Within) -> None:
        self.of = kept
        self.at_once = at_once
        """For what is begun anew in slices when it takes longer."""
        self.refused: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        """Reasons of what was entered and refuses what it covers, until they are reported."""
        self.merged_places: set[tuple[str, str, str]] = set()
        """Objects (kind, namespace, name) whose listeners' policies are to be merged anew."""
        self.merged_routes: dict[tuple[str, str, str], None] = {}
        """The same of routes."""
        self.rebuilt_policies: dict[str, None] = {}
        """Keys of policies that are to be built anew, because of a Secret."""
        self.rebuilt_backends: dict[str, None] = {}
        """The same of backends with policies of their own."""
        self.rebuilt_routes: dict[str, None] = {}
        """The same of routes with inline policies."""
        self.listener_policies: dict[str, ListenerPolicies] = {}
        """By key of listener: those that are other than before."""
        self.accepted = False
        """Whether something was accepted that stood refused."""
        self.drafts: dict[str, RouterDraft] = {}
        """By listener: routers that change."""
        self.resited: dict[str, None] = {}
        """Listeners that routes may see otherwise than before: which ones they take is asked anew."""
        self.listeners: set[str] = set()
        """Whose plans are made anew."""
        self.binds: set[str] = set()
        """The same of binds."""
        self.dirty_backends: dict[str, None] = {}
        self.backends: Container[str, BackendPlan] | None = None
        """Changed copy of the table's; None while it is as it was."""
        self.unblocked: list[str] = []
        """Routes that may be able to enter now."""
        self.prices: Any = UNCHANGED  # Any: as `Table.prices`
        """Of models, as they are from now on."""
        self.is_mesh_new = False
        """The part in a mesh is another one, or its certificate is."""
        self.released: list[Endpoint] = []
        """To be given back once no table names them."""

    def refuse_on(self, key: str, reason: str) -> None:
        """A resource is in force and refuses what it covers; "" is no reason."""
        if reason:
            self.notes[key] = reason

    def policies_of(self, listener: str) -> ListenerPolicies:
        """What the policies of a listener come to with this state."""
        found = self.listener_policies.get(listener)
        return self.of.listener_policies.get(listener, NO_LISTENER_POLICIES) if found is None else found

    def draft(self, listener: str) -> RouterDraft:
        """The next router of a listener that is there."""
        draft = self.drafts.get(listener)
        if draft is None:
            draft = self.drafts[listener] = RouterDraft(self.of.routers[listener])
        return draft

    def changed_backends(self) -> Container[str, BackendPlan]:
        if self.backends is None:
            self.backends = self.of.backends.copy()
        return self.backends
