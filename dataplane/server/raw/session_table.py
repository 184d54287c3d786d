"""UDP sessions by who they are with, how many there may be, and which one goes for another one. Pure.

Anybody can send datagrams with addresses that are not his. So sessions whose client was never seen to take an answer
(it sent nothing after one came) go first, the one that has been silent longest; a session that passes both ways goes
only when it has been silent for a while. A client address has its share of the places (`link/pools`): where that is
used up, one of its own goes, by the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from dataplane.link.pools import UDP_SESSIONS, Full, Key, Places, Shares

MAX_SESSIONS: Final = 4096
"""Of one worker."""
KEPT: Final = 10.0
"""Seconds of silence after which a session that passes both ways may go for another one."""


class Timed(Protocol):
    source: Key
    """Whose share it draws on."""
    last: float
    """When a datagram passed (monotonic seconds)."""


SessionT = TypeVar("SessionT", bound=Timed)
KeyT = TypeVar("KeyT", bound=Hashable)


class _Order(Generic[KeyT, SessionT]):
    """Sessions in the order in which their clients sent last: those that were never seen to take an answer, and the
    others."""

    __slots__ = ("answered", "new")

    def __init__(self) -> None:
        self.new: dict[KeyT, SessionT] = {}
        self.answered: dict[KeyT, SessionT] = {}

    def touch(self, key: KeyT) -> SessionT | None:
        group = self.new if key in self.new else self.answered
        session = group.pop(key, None)
        if session is not None:
            group[key] = session
        return session

    def remove(self, key: KeyT) -> SessionT | None:
        session = self.new.pop(key, None)
        return self.answered.pop(key, None) if session is None else session

    def goes(self, now: float) -> SessionT | None:
        for session in self.new.values():
            return session
        for session in self.answered.values():
            return session if now - session.last >= KEPT else None
        return None


class SessionTable(Generic[KeyT, SessionT]):
    """`most`: how many there may be. `full` is called for each client that finds no place."""

    __slots__ = ("_all", "_of", "_places")

    def __init__(self, most: int = MAX_SESSIONS, full: Full | None = None) -> None:
        self._places = Places(most, Shares(UDP_SESSIONS, full))
        self._all: _Order[KeyT, SessionT] = _Order()
        self._of: dict[Key, _Order[KeyT, SessionT]] = {}
        """By whose they are."""

    @property
    def most(self) -> int:
        return self._places.most

    @most.setter
    def most(self, most: int) -> None:
        self._places.most = most

    def find(self, key: KeyT) -> SessionT | None:
        """The session of a client that sends; it is the last in order from now on."""
        session = self._all.touch(key)
        if session is not None:
            self._of[session.source].touch(key)
        return session

    def add(self, key: KeyT, session: SessionT) -> None:
        self._places.hold(session.source)
        self._all.new[key] = session
        self._of.setdefault(session.source, _Order()).new[key] = session

    def answered(self, key: KeyT) -> None:
        """The client sent after an answer had come: it is there."""
        session = self._all.new.get(key)
        if session is not None:
            for order in (self._all, self._of[session.source]):
                del order.new[key]
                order.answered[key] = session

    def remove(self, key: KeyT) -> None:
        """It is over, if it was here."""
        session = self._all.remove(key)
        if session is None:
            return
        self._places.free(session.source)
        own = self._of[session.source]
        own.remove(key)
        if not own.new and not own.answered:
            del self._of[session.source]

    def has_capacity(self, source: Key) -> bool:
        """For another session of this client, in its share."""
        return self._places.fits(source)

    def goes(self, now: float, source: Key) -> SessionT | None:
        """The session that goes for another one of `source`: of its own, or whosever it is where all places are taken.
        None: the other one cannot come."""
        order = self._all if len(self) >= self.most else self._of.get(source)
        return None if order is None else order.goes(now)

    def silent(self, now: float, seconds: float) -> list[SessionT]:
        """Those that have been silent so long."""
        return [session for session in self if now - session.last >= seconds]

    def __iter__(self) -> Iterator[SessionT]:
        yield from self._all.new.values()
        yield from self._all.answered.values()

    def __len__(self) -> int:
        return self._places.taken

    def __repr__(self) -> str:
        return f"SessionTable({len(self._all.new)} new, {len(self._all.answered)} answered, {self.most} at most)"
