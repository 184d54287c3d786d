"""What applying a state came to, for the agent and for the sockets of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from dataplane.table.binds import BindPlan


@dataclass(frozen=True, slots=True)
class Outcome:
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reason by key of the resources of this state that were refused; their last good versions stay."""
    binds: Mapping[str, BindPlan] = field(default_factory=dict)
    """The binds to be open now, by key."""
    standing: Mapping[str, str] = field(default_factory=dict)
    """As `refused`, of this and all earlier states: a key leaves when it is sent anew and accepted, or removed."""
    waiting: AbstractSet[str] = frozenset()
    """Routes whose newest version waits for the first endpoint of a backend, now: a view, there may be many."""
