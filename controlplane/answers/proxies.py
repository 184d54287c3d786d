"""What is known of proxies: of one that is connected, and of all of a Gateway at one moment. Values, and how they are
made. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.answers.nacks import NONE, Refusal

NOTHING: Final = -1
"""The sequence of a proxy that has not answered anything yet: states count from 0."""


MOST_REFUSERS: Final = 16
"""Named in a view: 500 proxies that refuse 500 resources would be a quarter of a million."""


@dataclass(slots=True, eq=False)
class Proxy:
    """One connected proxy. Written by `Fleet` alone. Times are wall-clock seconds but for `connected_since`, which is
    steady: what is subtracted must not jump with the clock."""

    node_id: str
    gateway: str
    address: str
    connected_since: float
    acknowledged: int = NOTHING
    acknowledged_version: str = ""
    acknowledged_at: float | None = None
    answered: int = NOTHING
    answered_version: str = ""
    refused: int = NOTHING
    refused_version: str = ""
    refused_at: float | None = None
    refusals: Mapping[str, Refusal] = field(default_factory=lambda: NONE)
    report: str = ""
    """Of endpoints that are not well, as it wrote it."""
    reported_at: float = 0.0
    is_expected_back: bool = False
    """Its stream was ended by us, for it to come back with a new credential: until then it counts as it is."""


@dataclass(frozen=True, slots=True)
class Refuser:
    """A proxy's refusal of one resource: which proxy, why, of which state."""

    node_id: str
    error: str
    sequence: int
    version: str


@dataclass(frozen=True, slots=True)
class View:
    """All proxies of one Gateway at one moment.

    `refusals` has for each refused resource the first few that refuse it, `refused_by` how many do.
    """

    gateway: str
    connected: int
    acknowledged: tuple[int, ...]
    answered: tuple[int, ...]
    refusals: Mapping[str, tuple[Refuser, ...]]
    refused_by: Mapping[str, int]
    complete: bool
    """Whether the proxies of all controllers are known."""

    def acknowledged_by(self, sequence: int) -> int:
        """How many proxies hold the state of that sequence, or a later one, without refusing anything."""
        return sum(held >= sequence for held in self.acknowledged)

    def answered_by(self, sequence: int) -> int:
        """How many proxies have applied that state or a later one, be it without the resources that they refuse."""
        return sum(held >= sequence for held in self.answered)


@dataclass(frozen=True, slots=True)
class ProxyStatus:
    """A row of the list that `status` shows. `lag` counts the states published since the acknowledged one."""

    node_id: str
    gateway: str
    address: str
    connected_since: float
    acknowledged_version: str
    acknowledged_at: float | None
    lag: int
    refusals: tuple[Refusal, ...]
    refused_version: str
    refused_at: float | None
    report: str = ""
    """Of endpoints that are not well (`reports`), not read yet."""
    reported_at: float = 0.0


def refused_by_key(proxies: Iterable[Proxy]) -> Counter[str]:
    """How many proxies refuse each resource. Those that say the same share a mapping, which is gone through once."""
    shared = {id(proxy.refusals): proxy.refusals for proxy in proxies}
    counts: Counter[str] = Counter()
    for identity, count in Counter(id(proxy.refusals) for proxy in proxies).items():
        if count == 1:
            counts.update(shared[identity].keys())
        else:
            counts.update(dict.fromkeys(shared[identity], count))
    return counts


def refusers(proxies: Iterable[Proxy], refused_by: Mapping[str, int]) -> dict[str, tuple[Refuser, ...]]:
    """The first of each resource; looks no further when all that are wanted are found."""
    found: dict[str, list[Refuser]] = {key: [] for key in refused_by}
    wanted = sum(min(count, MOST_REFUSERS) for count in refused_by.values())
    for proxy in proxies:
        if not wanted:
            break
        for key, refusal in proxy.refusals.items():
            if len(found[key]) < MOST_REFUSERS:
                found[key].append(Refuser(proxy.node_id, refusal.error, proxy.refused, proxy.refused_version))
                wanted -= 1
    return {key: tuple(refusers) for key, refusers in found.items()}


def status(proxy: Proxy, newest: int) -> ProxyStatus:
    return ProxyStatus(
        proxy.node_id,
        proxy.gateway,
        proxy.address,
        proxy.connected_since,
        proxy.acknowledged_version,
        proxy.acknowledged_at,
        max(0, newest - max(proxy.acknowledged, 0)),
        tuple(proxy.refusals.values()),
        proxy.refused_version,
        proxy.refused_at,
        proxy.report,
        proxy.reported_at,
    )
