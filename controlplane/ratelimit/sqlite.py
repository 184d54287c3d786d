"""The store in one file (SQLite): durable, for one server.

A decision is one transaction of some 30 microseconds, made in the loop's own thread: one writer at a time is what
SQLite has anyway. What is committed survives the end of the process; of the last moments before a power failure it may
lose some (`synchronous=NORMAL`), never its consistency.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.ratelimit.store import Budget, Charge, Key, StoreFailed, is_refused
from controlplane.ratelimit.windows import Window

MOST_COUNTERS: Final = 1_000_000
"""Windows that are not over; requests for further ones fail."""
MOST_COUNT: Final = 2**62
EVERY: Final = 60.0
"""Seconds between two looks for windows that are over."""
AT_ONCE: Final = 10_000
"""Counters that one look takes away."""

_TABLE: Final = """
create table if not exists counters (
  domain text not null, entries text not null, unit integer not null, start integer not null,
  ends integer not null, used integer not null, most integer not null,
  primary key (domain, entries, unit, start)
) without rowid, strict
"""
_INDEX: Final = "create index if not exists counters_ends on counters (ends)"
_READ: Final = "select used from counters where domain = ? and entries = ? and unit = ? and start = ?"
_WRITE: Final = """
insert into counters (domain, entries, unit, start, ends, used, most) values (?, ?, ?, ?, ?, ?, ?)
on conflict do update set used = excluded.used, most = excluded.most
"""


class SqliteStore:
    """`path`: of the file, ":memory:" for none. Raises `StoreFailed` when it cannot be opened."""

    def __init__(self, path: Path | str, now: Callable[[], float] = time.time, most: int = MOST_COUNTERS) -> None:
        self._now = now
        self._most = most
        try:
            self._file = sqlite3.connect(path, isolation_level=None)
            for pragma in ("journal_mode=wal", "synchronous=normal", "busy_timeout=2000"):
                self._file.execute(f"pragma {pragma}")
            self._file.execute(_TABLE)
            self._file.execute(_INDEX)
            (self._count,) = self._file.execute("select count(*) from counters").fetchone()
        except sqlite3.Error as error:
            raise StoreFailed(f"{path}: {error}") from None
        self._looked = -EVERY

    async def take(self, charges: Sequence[Charge], if_admitted: bool) -> Sequence[int]:
        now = self._now()
        if now - self._looked >= EVERY or self._count + len(charges) > self._most:
            with self._transaction():
                self._forget(now)
        with self._transaction():
            found = [self._file.execute(_READ, (*each.key, each.window.start)).fetchone() for each in charges]
            before = _in_order(charges, [0 if row is None else row[0] for row in found])
            if not (if_admitted and is_refused(charges, before)):
                self._charge(charges, before, sum(row is None for row in found))
        return before

    def _charge(self, charges: Sequence[Charge], before: Sequence[int], new: int) -> None:
        if self._count + new > self._most:
            raise StoreFailed(f"there are {self._count} counters already")
        for each, used in zip(charges, before, strict=True):
            after = min(used + each.hits, MOST_COUNT)
            self._file.execute(_WRITE, (*each.key, *each.window, after, each.limit))
        self._count += new

    def _forget(self, now: float) -> None:
        self._looked = now
        gone = "delete from counters where (domain, entries, unit, start) in (select domain, entries, unit, start"
        self._count -= self._file.execute(
            f"{gone} from counters where ends <= ? limit ?)", (int(now), AT_ONCE)
        ).rowcount

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._file.execute("begin immediate")
            yield
            self._file.execute("commit")
        except sqlite3.Error as error:
            raise StoreFailed(str(error)) from None
        finally:
            if self._file.in_transaction:  # a full disk has ended it already
                self._file.execute("rollback")

    async def budgets(self, most: int) -> Sequence[Budget]:
        rows = "select domain, entries, unit, start, ends, used, most from counters where ends > ?"
        try:
            found = self._file.execute(f"{rows} order by domain, entries, unit limit ?", (int(self._now()), most))
            return [Budget(Key(*row[:3]), Window(*row[3:5]), *row[5:]) for row in found]
        except sqlite3.Error as error:
            raise StoreFailed(str(error)) from None

    async def close(self) -> None:
        self._file.close()


def _in_order(charges: Sequence[Charge], stored: Sequence[int]) -> list[int]:
    """What each counter holds when its turn comes: one request may name a counter twice."""
    held: dict[tuple[Key, int], int] = {}
    before = []
    for each, used in zip(charges, stored, strict=True):
        place = (each.key, each.window.start)
        before.append(held.setdefault(place, used))
        held[place] += each.hits
    return before
