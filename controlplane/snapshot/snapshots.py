"""The published state of every Gateway: what the control plane wants its proxies to hold, now.

`controlplane.app` applies batches of changes; the xDS server reads the newest snapshot of a Gateway and is notified
when there is a newer one. Old snapshots share what did not change, and live as long as somebody holds them; the last
few are remembered (`history`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from controlplane.snapshot.history import History, bytes_of
from controlplane.snapshot.records import SECRETS, Record, make_record, version_of
from controlplane.snapshot.resource_map import ResourceMap
from controlplane.snapshot.snapshot import WEIGHT_BYTES, Snapshot
from gatewright.turns import at_once

Change = tuple[str, str, str, bytes | None]
"""(gateway "namespace/name", type URL, resource name, serialised message or None when it is gone)."""

Listener = Callable[[Snapshot], None]

PIECE: Final = 100
"""Resources of a big batch that are taken in at once."""

KNOWN_VERSIONS: Final = 1000
"""Of a Gateway's states whose sequences are remembered."""

_WEIGHTS: Final = 1 << (8 * WEIGHT_BYTES)


class Snapshots:
    """The newest snapshot of each Gateway. Owned by one thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._newest: dict[str, Snapshot] = {}
        self._histories: dict[str, History] = defaultdict(History)
        self._listeners: list[Listener] = []
        self._sequences: dict[str, dict[str, int]] = defaultdict(dict)

    def gateways(self) -> tuple[str, ...]:
        """Every Gateway that ever had a resource, sorted."""
        return tuple(sorted(self._newest))

    def newest(self, gateway: str) -> Snapshot:
        """The state that proxies of this Gateway should hold; an empty one of sequence 0 for an unknown Gateway."""
        return self._newest.get(gateway) or Snapshot(gateway)

    def recall(self, gateway: str, version: str) -> Snapshot | None:
        """A recent state of that version, if it is remembered: not the newest one."""
        return self._histories[gateway].get(version) if gateway in self._histories else None

    def sequence_of(self, gateway: str, version: str) -> int:
        """The newest sequence of a state of that version, -1 when none of the last `KNOWN_VERSIONS` had it. For
        comparing with what another controller published: versions are the same there, sequences are not."""
        newest = self.newest(gateway)
        if version == newest.version:
            return newest.sequence
        return self._sequences[gateway].get(version, -1) if gateway in self._sequences else -1

    def remembered(self, gateway: str) -> int:
        """About the bytes that are kept for the sake of older states."""
        return self._histories[gateway].size if gateway in self._histories else 0

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called with each new snapshot; the answer ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def apply(self, changes: Iterable[Change]) -> tuple[Snapshot, ...]:
        """Publish a batch; of several changes to one resource the last one counts.

        Gives the new snapshots, at most one per Gateway, in the order of first mention. A change that brings the
        bytes which are already there is no change.
        """
        return at_once(self.steps(changes))

    def steps(self, changes: Iterable[Change]) -> Generator[None, None, tuple[Snapshot, ...]]:
        """`apply`, a piece at a time: the caller may let others run where it yields, but apply nothing else.

        All of the batch is published at the end, in one go.
        """
        batches: dict[str, dict[str, dict[str, bytes | None]]] = defaultdict(lambda: defaultdict(dict))
        for gateway, type_url, name, content in changes:
            batches[gateway][type_url][name] = content
            yield
        now = self._clock()
        made = []
        for gateway, by_type in batches.items():
            made.append((yield from _next_state(self.newest(gateway), by_type, now)))
        published = tuple(snapshot for snapshot, _ in filter(None, made))
        for snapshot, replaced in filter(None, made):
            self._histories[snapshot.gateway].add(self.newest(snapshot.gateway), replaced)
            self._newest[snapshot.gateway] = snapshot
            self._note_version(snapshot)
        for snapshot in published:
            for listener in tuple(self._listeners):
                listener(snapshot)
        return published

    def _note_version(self, snapshot: Snapshot) -> None:
        known = self._sequences[snapshot.gateway]
        known.pop(snapshot.version, None)
        known[snapshot.version] = snapshot.sequence
        if len(known) > KNOWN_VERSIONS:
            del known[next(iter(known))]


def _next_state(
    current: Snapshot, batch: Mapping[str, Mapping[str, bytes | None]], now: float
) -> Generator[None, None, tuple[Snapshot, int] | None]:
    """The state after a batch (contents by type and name) and the bytes that it no longer holds; None: no change."""
    types = dict(current.types)
    weights = {False: current.weight, True: current.secret_weight}  # by whether it is of secrets
    replaced = 0
    for type_url, contents in batch.items():
        held = current.resources(type_url)
        for piece in _pieces(contents):
            edits = _edits(held, type_url, piece, now)
            replaced += bytes_of(map(held.get, edits))
            for name, each in edits.items():
                weights[name.startswith(SECRETS)] += _weight(type_url, each) - _weight(type_url, held.get(name))
            if edits:
                types[type_url] = held = held.edited(edits)
            yield
    if all(types.get(type_url) is current.types.get(type_url) for type_url in batch):
        return None
    weight, secret_weight = (each % _WEIGHTS for each in weights.values())
    following = Snapshot(current.gateway, current.sequence + 1, MappingProxyType(types), weight, secret_weight)
    return following, replaced


def _pieces(contents: Mapping[str, bytes | None]) -> Iterator[Mapping[str, bytes | None]]:
    items = list(contents.items())
    for start in range(0, len(items), PIECE):
        yield dict(items[start : start + PIECE])


def _edits(
    held: ResourceMap, type_url: str, contents: Mapping[str, bytes | None], now: float
) -> dict[str, Record | None]:
    """The real changes among `contents`, as records."""
    edits: dict[str, Record | None] = {}
    for name, content in contents.items():
        record = held.get(name)
        if content is None:
            if record is not None:
                edits[name] = None
        elif record is None or record.version != version_of(content):
            edits[name] = make_record(type_url, name, content, now)
    return edits


def _weight(type_url: str, record: Record | None) -> int:
    """What a record adds to the state's version. Sums do not depend on the order and change with each edit alone."""
    if record is None:
        return 0
    text = f"{type_url}\0{record.name}\0{record.version}"
    return int.from_bytes(blake2b(text.encode(), digest_size=WEIGHT_BYTES).digest(), "big")
