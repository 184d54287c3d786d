"""Who is connected to a worker, by client address, and whose connection goes when another has to be accepted.

Client addresses are `link/sources`. Decides and counts; who closes a connection is the connection itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

from dataplane.link.loads import CONNECTIONS, Loads, Rows
from dataplane.link.sources import source_of

LOOKS: Final = 256
"""Connections that are looked at for one that is idle, those first that have been there longest: so a connection more
costs no more where there are many."""

BUSY: Final = float("inf")


class Guest(Protocol):
    """A client's connection."""

    @property
    def idle_from(self) -> float:
        """When its last request ended, or it came (monotonic seconds); `BUSY`: it has one now."""

    def close_idle(self) -> None:
        """Close, in good order and now. Not called while it is busy."""


GuestT = TypeVar("GuestT", bound=Guest)


class _Source(Generic[GuestT]):
    """The connections of one client address, in the order in which they came."""

    __slots__ = ("guests", "rows")

    def __init__(self, rows: Rows) -> None:
        self.guests: dict[GuestT, None] = {}
        self.rows = rows


class Crowd(Generic[GuestT]):
    """The connections of one worker. Counted in `loads`, which all workers of a proxy share."""

    __slots__ = ("_by_size", "_guests", "_sources", "loads")

    def __init__(self, loads: Loads) -> None:
        self.loads = loads
        self._guests: dict[GuestT, str | bytes] = {}
        self._sources: dict[str | bytes, _Source[GuestT]] = {}
        self._by_size: dict[int, dict[str | bytes, None]] = {}
        """Sources by how many connections they have: who has most is found at once."""

    def add(self, guest: GuestT, address: str) -> None:
        """It came, from this address."""
        key = source_of(address)
        source = self._sources.get(key)
        if source is None:
            rows = self.loads.rows(key if isinstance(key, bytes) else key.encode())
            source = self._sources[key] = _Source(rows)
        self._guests[guest] = key
        source.guests[guest] = None
        self._resize(key, len(source.guests) - 1, len(source.guests))
        self._publish(source, 1)

    def replace(self, guest: GuestT, successor: GuestT) -> None:
        """`guest`, who is here, is `successor` from now on: none came or went."""
        key = self._guests[successor] = self._guests.pop(guest)
        guests = self._sources[key].guests
        del guests[guest]
        guests[successor] = None

    def discard(self, guest: GuestT) -> None:
        """It is gone, if it was here."""
        key = self._guests.pop(guest, None)
        if key is None:
            return
        source = self._sources[key]
        del source.guests[guest]
        self._resize(key, len(source.guests) + 1, len(source.guests))
        if not source.guests:
            del self._sources[key]
        self._publish(source, -1)

    def _publish(self, source: _Source[GuestT], by: int) -> None:
        self.loads.count(source.rows, by)
        self.loads.put(CONNECTIONS, len(self._guests))

    def _resize(self, key: str | bytes, old: int, new: int) -> None:
        if old:
            same = self._by_size[old]
            del same[key]
            if not same:
                del self._by_size[old]
        if new:
            self._by_size.setdefault(new, {})[key] = None

    def of_source(self, guest: GuestT) -> int:
        """Connections of its address, at all workers."""
        return self.loads.counted(self._sources[self._guests[guest]].rows)

    def here(self, guest: GuestT) -> int:
        """Connections of its address at this worker."""
        return len(self._sources[self._guests[guest]].guests)

    def oldest_idle_of(self, guest: GuestT) -> GuestT | None:
        """The connection of the same address that has been idle longest, perhaps this one; None: none is idle."""
        return _oldest(_seen(self._sources[self._guests[guest]], LOOKS))

    def oldest_idle(self) -> GuestT | None:
        """The connection that has been idle longest, of the address that has most connections here; where several have
        as many, of these; where none of theirs is idle, of those with fewer. None: none is idle."""
        left = LOOKS
        for size in sorted(self._by_size, reverse=True):
            seen: list[GuestT] = []
            same = self._by_size[size]
            for key in list(islice(same, left)):
                new = _seen(self._sources[key], left)
                left -= len(new)
                seen += new
                if all(guest.idle_from == BUSY for guest in new):  # others get their turn
                    del same[key]
                    same[key] = None
                if left <= 0:
                    break
            found = _oldest(seen)
            if found is not None or left <= 0:
                return found
        return None

    def __iter__(self) -> Iterator[GuestT]:
        return iter(self._guests)

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: object) -> bool:
        return guest in self._guests

    def __repr__(self) -> str:
        return f"Crowd({len(self._guests)} connections of {len(self._sources)} addresses)"


def _seen(source: _Source[GuestT], most: int) -> list[GuestT]:
    """The next connections to look at: those that came first. Busy ones among them are put behind all others when not
    all are looked at, so that those get their turn."""
    guests = source.guests
    if len(guests) <= most:
        return list(guests)
    seen = list(islice(guests, most))
    for guest in seen:
        if guest.idle_from == BUSY:
            del guests[guest]
            guests[guest] = None
    return seen


def _oldest(guests: list[GuestT]) -> GuestT | None:
    found, since = None, BUSY
    for guest in guests:
        idle_from = guest.idle_from
        if idle_from < since:
            found, since = guest, idle_from
    return found
