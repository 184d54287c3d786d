"""Reads Kubernetes-style status: which conditions does an object have, do they speak of its newest content, is it well?

Pure; called by `status` and `wait` with rows of `/api/status`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]  # Any: JSON

# Conditions whose "True" is bad news; of every other one it is good news (Gateway API, and our GatewayPolicy).
OVERRIDDEN = "Overridden"
INSECURE = "InsecureFrontendValidationMode"
EXPIRING = "CertificateExpiring"
NEGATIVE = frozenset(
    ("Conflicted", "PartiallyInvalid", "PartiallyValid", "OverlappingTLSConfig", OVERRIDDEN, INSECURE, EXPIRING)
)

# Lists of entries with conditions of their own: the word for one, and where its name stands.
ENTRIES = (("listeners", "listener"), ("parents", "parent"), ("ancestors", "ancestor"))

# What "it works" means by kind, for `wait` without --for; kinds that are absent have no conditions to wait for.
DEFAULTS = {
    "Gateway": ("Accepted", "Programmed"),
    "GatewayClass": ("Accepted",),
    "ListenerSet": ("Accepted", "Programmed"),
    "HTTPRoute": ("Accepted", "ResolvedRefs"),
    "GRPCRoute": ("Accepted", "ResolvedRefs"),
    "TLSRoute": ("Accepted", "ResolvedRefs"),
    "TCPRoute": ("Accepted", "ResolvedRefs"),
    "UDPRoute": ("Accepted", "ResolvedRefs"),
    "GatewayBackend": ("Accepted",),
    "GatewayPolicy": ("Accepted", "Attached", "ResolvedRefs"),
    "GatewayParameters": ("Accepted",),
    "BackendTLSPolicy": ("Accepted",),
    "InferencePool": ("Accepted", "ResolvedRefs"),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, where it stands ("" for the object as a whole), and whether it is about the newest content."""

    place: str
    type: str
    status: str
    reason: str
    message: str
    is_current: bool
    generation: int
    """Of the object, when this was said."""
    since: str
    """When its status became what it is; "" when that is not said."""

    @property
    def is_well(self) -> bool:
        return self.is_current and self.status == ("False" if self.type in NEGATIVE else "True")

    @property
    def is_intended(self) -> bool:
        """Not "well", but as somebody wants it, who wrote `strategy: Override` above or `mode: AllowInsecureFallback`:
        nothing is wrong with this object."""
        return self.type in (OVERRIDDEN, INSECURE) and not self.is_well and self.is_current

    @property
    def is_pending(self) -> bool:
        """Not well yet, but nothing is wrong either."""
        return not self.is_well and (not self.is_current or self.reason == "Pending")

    def __str__(self) -> str:
        state = f"{self.type}={self.status}" if self.is_current else f"{self.type} not yet known"
        text = f"{state} {self.reason}: {self.message}" if self.is_current else state
        return f"{self.place}: {text}" if self.place else text


def conditions(row: Json) -> Iterator[Condition]:
    """Every condition of an object, in the order of its status."""
    status = row["status"] or {}
    yield from _of("", status, row["generation"])
    for field, word in ENTRIES:
        for entry in status.get(field, ()):
            yield from _of(f"{word} {_name(entry)}", entry, row["generation"])


def _of(place: str, holder: Json, generation: int) -> Iterator[Condition]:
    for each in holder.get("conditions", ()):
        observed = each.get("observedGeneration", generation)
        words = (each["type"], each["status"], each["reason"], each.get("message", ""))
        yield Condition(place, *words, observed == generation, observed, each.get("lastTransitionTime", ""))


def _name(entry: Json) -> str:
    reference = entry.get("parentRef") or entry.get("ancestorRef")
    if reference is None:
        return str(entry.get("name", ""))
    name = f"{reference['namespace']}/{reference['name']}" if reference.get("namespace") else reference["name"]
    return f"{name}/{reference['sectionName']}" if reference.get("sectionName") else str(name)


def missing(row: Json, condition: str | None) -> str | None:
    """What still stands between an object and the condition (None: the default of its kind); None when nothing does."""
    wanted = (condition,) if condition else DEFAULTS.get(row["kind"], ())
    found = list(conditions(row))
    for kind in wanted:
        of_kind = [each for each in found if each.type == kind]
        if not of_kind:
            return f"has no condition {kind}"
        # Of an object as a whole, when it has one there (a Gateway's Programmed); else of every parent or ancestor.
        decisive = [each for each in of_kind if not each.place] or of_kind
        for each in decisive:
            if not (each.is_current and each.status == "True"):
                return str(each)
    return None
