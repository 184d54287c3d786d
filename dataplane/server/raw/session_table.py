"""UDP sessions by who they are with, how many there may be, and which one goes for another. Pure.

Anybody can send datagrams with addresses that are not his. So sessions whose client was never seen to take an answer
(it sent nothing after one came) go first, the one that has been silent longest; a session that passes both ways goes
only when it has been silent for a while.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, Protocol, TypeVar

MAX_SESSIONS: Final = 4096
"""Of one worker."""
KEPT: Final = 10.0
"""Seconds of silence after which a session that passes both ways may go for another one."""


class Timed(Protocol):
    last: float
    """When a datagram passed (monotonic seconds)."""


SessionT = TypeVar("SessionT", bound=Timed)
KeyT = TypeVar("KeyT", bound=Hashable)


class SessionTable(Generic[KeyT, SessionT]):
    """`most`: how many there may be."""

    __slots__ = ("_answered", "_new", "most")

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self.most = most
        self._new: dict[KeyT, SessionT] = {}
        """Both are in the order in which their clients sent last."""
        self._answered: dict[KeyT, SessionT] = {}

    def find(self, key: KeyT) -> SessionT | None:
        """The session of a client that sends; it is the last in order from now on."""
        group = self._new if key in self._new else self._answered
        session = group.pop(key, None)
        if session is not None:
            group[key] = session
        return session

    def add(self, key: KeyT, session: SessionT) -> None:
        self._new[key] = session

    def answered(self, key: KeyT) -> None:
        """The client sent after an answer had come: it is there."""
        session = self._new.pop(key, None)
        if session is not None:
            self._answered[key] = session

    def remove(self, key: KeyT) -> None:
        """It is over, if it was here."""
        if self._new.pop(key, None) is None:
            self._answered.pop(key, None)

    def has_room(self) -> bool:
        return len(self) < self.most

    def goes(self, now: float) -> SessionT | None:
        """The session that goes for another one; None: the other one cannot come."""
        for session in self._new.values():
            return session
        for session in self._answered.values():
            return session if now - session.last >= KEPT else None
        return None

    def silent(self, now: float, seconds: float) -> list[SessionT]:
        """Those that have been silent so long."""
        return [session for session in self if now - session.last >= seconds]

    def __iter__(self) -> Iterator[SessionT]:
        yield from self._new.values()
        yield from self._answered.values()

    def __len__(self) -> int:
        return len(self._new) + len(self._answered)

    def __repr__(self) -> str:
        return f"SessionTable({len(self._new)} new, {len(self._answered)} answered, {self.most} at most)"
