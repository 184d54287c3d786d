"""An immutable map of records by name, made for small edits to big sets.

Names are spread over a fixed number of small dictionaries. An edit copies the buckets that it touches and shares the
others with the map before it: one change among 100,000 records copies some 200 entries. Comparing two maps skips every
shared bucket, so the difference of neighbouring states costs a few microseconds and needs no journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from controlplane.snapshot.records import Record

BUCKETS: Final = 512

Bucket = Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class Difference:
    """What must be sent to a holder of one map so that it holds another: no order is promised."""

    changed: tuple[Record, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed)


class ResourceMap:
    """Records by name. Never changes; `edited` gives a new map."""

    __slots__ = ("_buckets", "_count")

    def __init__(self, buckets: tuple[Bucket, ...], count: int) -> None:
        self._buckets = buckets
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[Record]:
        for bucket in self._buckets:
            yield from bucket.values()

    def __repr__(self) -> str:
        return f"<ResourceMap of {self._count}>"

    def get(self, name: str) -> Record | None:
        """The record of that name, if it is here."""
        return self._buckets[hash(name) % BUCKETS].get(name)

    def edited(self, edits: Mapping[str, Record | None]) -> ResourceMap:
        """This map with records put, or with None taken away."""
        buckets = list(self._buckets)
        count = self._count
        for index, names in groupby(sorted(edits, key=_bucket_of), key=_bucket_of):
            bucket = dict(buckets[index])
            count -= len(bucket)
            for name in names:
                record = edits[name]
                if record is None:
                    bucket.pop(name, None)
                else:
                    bucket[name] = record
            count += len(bucket)
            buckets[index] = bucket
        return ResourceMap(tuple(buckets), count)

    def since(self, older: ResourceMap) -> Difference:
        """What changed from `older` to this map. Records of equal version are equal."""
        changed: list[Record] = []
        removed: list[str] = []
        for before, after in zip(older._buckets, self._buckets, strict=True):
            if before is after:
                continue
            for name, record in after.items():
                previous = before.get(name)
                if previous is None or previous.version != record.version:
                    changed.append(record)
            removed.extend(name for name in before if name not in after)
        return Difference(tuple(changed), tuple(removed))


def _bucket_of(name: str) -> int:
    return hash(name) % BUCKETS


EMPTY: Final = ResourceMap(({},) * BUCKETS, 0)
