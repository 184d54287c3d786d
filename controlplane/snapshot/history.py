"""The last few states of each Gateway, by version: what a proxy that comes back most likely holds.

Written by `snapshots`, asked for claims (`controlplane.xds.protocol.claim`). States share what did not change, so a
remembered one costs the records that its successor replaced or took away. Bounded by count and by these bytes; a state
that no proxy may remember is forgotten with all older ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from controlplane.snapshot.records import Record
from controlplane.snapshot.snapshot import Snapshot

MOST_STATES: Final = 64
MOST_BYTES: Final = 8 << 20
"""Of one Gateway: records that are kept for the sake of older states only."""


@dataclass(slots=True)
class History:
    """Older states of one Gateway, the oldest first."""

    most_states: int = MOST_STATES
    most_bytes: int = MOST_BYTES
    size: int = 0
    _states: OrderedDict[str, tuple[Snapshot, int]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[Snapshot]:
        return (snapshot for snapshot, _ in self._states.values())

    def add(self, snapshot: Snapshot, replaced: int) -> None:
        """Remember a state whose successor no longer has `replaced` bytes of it."""
        again = self._states.pop(snapshot.version, None)
        if again is not None:
            replaced += again[1]  # what only the older of the two held stays for those between them
        self._states[snapshot.version] = (snapshot, replaced)
        self.size += replaced - (again[1] if again is not None else 0)
        while len(self._states) > self.most_states or self.size > self.most_bytes:
            self.size -= self._states.popitem(last=False)[1][1]

    def get(self, version: str) -> Snapshot | None:
        """The state of that version, if it is remembered."""
        found = self._states.get(version)
        return found[0] if found is not None else None


def bytes_of(records: Iterable[Record | None]) -> int:
    """What records take, about."""
    return sum(len(record.wire) for record in records if record is not None)
