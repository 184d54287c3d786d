"""What a Lease says of who leads (coordination.k8s.io/v1), and what to write into it: pure.

Clocks of machines differ, so another's times are never compared with one's own: a holder is taken to be gone when its
Lease has not changed for as long as it promises, by our own clock, since we saw it change last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Json = dict[str, Any]  # Any: JSON

DURATION: Final = 15
"""Seconds that a holder leads without renewing."""
RENEW: Final = 10.0
"""Seconds after which a holder that could not renew steps back: before any other may take its place."""
RETRY: Final = 2.0
"""Seconds between two looks, or renewals."""
API: Final = "/apis/coordination.k8s.io/v1"
ADDRESS: Final = "gatewright.dev/peer-address"
"""Annotation: where other controllers report to the holder what their proxies answered."""
CONTROLLERS: Final = "gatewright.dev/controllers"
"""Annotation: the other controllers, separated by spaces. A new holder waits for their reports."""
MOST: Final = 64
"""Controllers that are named."""


class Watched:
    """What was seen of one Lease. `identity`: that of this controller."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.holder = ""
        self.address = ""
        """Of the holder."""
        self.others: tuple[str, ...] = ()
        """The controllers beside the holder."""
        self._seen: tuple[str, str, str] | None = None
        self._since = 0.0
        self._duration = float(DURATION)

    def saw(self, lease: Json, now: float) -> None:
        spec = lease.get("spec") or {}
        record = tuple(str(spec.get(name) or "") for name in ("holderIdentity", "renewTime", "leaseTransitions"))
        if record != self._seen:
            self._seen, self._since = record, now  # type: ignore[assignment]  # three texts
        self.holder = record[0]
        annotations = (lease.get("metadata") or {}).get("annotations") or {}
        self.address = str(annotations.get(ADDRESS) or "")
        self.others = tuple(str(annotations.get(CONTROLLERS) or "").split()[:MOST])
        duration = spec.get("leaseDurationSeconds")
        self._duration = float(duration) if isinstance(duration, int) and duration > 0 else float(DURATION)

    def may_take(self, now: float) -> bool:
        """Whether there is no leader, this controller leads, or the leader has been silent for too long."""
        return self.holder in ("", self.identity) or now - self._since > self._duration


@dataclass(frozen=True, slots=True)
class Place:
    """Where a holder takes reports, and which other controllers it knows."""

    address: str
    others: frozenset[str] = frozenset()


def wanted(
    lease: Json | None, name: str, namespace: str, identity: str, now: datetime, place: Place | None = None
) -> Json:
    """The Lease with us as its holder; `lease` as it was read, None when there is none. A holder that stays keeps its
    time of acquisition."""
    spec = dict((lease or {}).get("spec") or {})
    time = timestamp(now)
    if spec.get("holderIdentity") != identity:
        changes = spec.get("leaseTransitions")
        spec["leaseTransitions"] = (changes if isinstance(changes, int) else 0) + (1 if lease is not None else 0)
        spec["acquireTime"] = time
    spec |= {"holderIdentity": identity, "leaseDurationSeconds": DURATION, "renewTime": time}
    metadata = dict((lease or {}).get("metadata") or {"name": name, "namespace": namespace})
    if place is not None:
        annotations = {ADDRESS: place.address, CONTROLLERS: " ".join(sorted(place.others)[:MOST])}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def joined(lease: Json, identity: str) -> Json | None:
    """The Lease with us among the other controllers; None when we are there already, or there are too many."""
    metadata = dict(lease.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    named = str(annotations.get(CONTROLLERS) or "").split()
    if identity in named or len(named) >= MOST:
        return None
    metadata["annotations"] = annotations | {CONTROLLERS: " ".join(sorted([*named, identity]))}
    return {**lease, "metadata": metadata}


def released(lease: Json) -> Json:
    """The Lease without a holder, so that another one need not wait."""
    spec = {**(lease.get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1}
    return {**lease, "spec": spec}


def timestamp(now: datetime) -> str:
    """Kubernetes MicroTime."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
