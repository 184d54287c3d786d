"""Conditions as the Gateway API wants them.

The graph computes status bodies without times, because a transform knows no clock; `status_merge` adds them (Kubernetes
API conventions; Gateway API GEP-1364).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

StatusBody = dict[str, Any]  # Any: the JSON of a Kubernetes status

# Lists of entries with conditions of their own, and the field that says which entry is which.
ENTRY_IDENTITIES = {"listeners": "name", "parents": "parentRef", "ancestors": "ancestorRef"}

MOST_NAMED = 8
"""Losses that one message names: a policy on all routes of a folder can lose everywhere."""

HOUR = 3_600
"""Seconds."""

UNTRANSLATED = "a bug in the controller keeps this object from being translated; see the controller log"
"""Of objects that have no good version to go on with."""

KEEP = "keep"
"""Mark of a condition in a body of the graph: what was said before stays, where it was, as far as `Keeps` says."""


class Keeps(enum.Enum):
    """Which former value of a condition is better than this one."""

    NONE = ""
    ANY = "any"
    """It is not known now."""
    TRUE = "true"
    """True for this generation: it is about to be so again."""


STATUS_TEXT = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `status` None is "Unknown"."""

    type: str
    status: bool | None
    reason: str
    message: str
    keeps: Keeps = Keeps.NONE
    """Which value that was written before is better."""

    def rendered(self, generation: int) -> dict[str, Any]:
        mark = {KEEP: self.keeps} if self.keeps is not Keeps.NONE else {}
        return mark | {
            "type": self.type,
            "status": STATUS_TEXT[self.status],
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": generation,
        }


def rendered(conditions: Iterable[Condition | None], generation: int) -> list[dict[str, Any]]:
    """The JSON of the conditions that are there, in the order given."""
    return [condition.rendered(generation) for condition in conditions if condition is not None]


def joined(texts: Sequence[str]) -> str:
    """One message of several, the first ones in full."""
    over = len(texts) - MOST_NAMED
    return "; ".join(texts[:MOST_NAMED]) + (f"; and {over} more" if over > 0 else "")


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as metav1.Time writes them: RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
