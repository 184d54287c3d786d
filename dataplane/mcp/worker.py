"""What a worker remembers of sessions: nothing that cannot be made again. Bounded, oldest first.

A session is over when it was not used for `IDLE` seconds. When it was used last is memory of all workers of the
proxy (`link/used`), since its id cannot say that: clients keep the one that they got first. Another replica with the
same key would not know of uses here, nor this one of uses there; so where a key was given, which others may have, idle
sessions are forgotten and not ended: to refuse one that is in use elsewhere would be worse.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.credentials.sealing import Sealer
from dataplane.link.arranged import Arranged
from dataplane.link.ended import Ended
from dataplane.link.renewed import Renewed
from dataplane.link.shared import Region
from dataplane.link.used import Used
from dataplane.mcp import sessions
from dataplane.mcp.arranged import Arrangements
from dataplane.mcp.asked import Heads
from dataplane.mcp.sessions import IDLE, Session, UpstreamSession

MOST: Final = 16_384
"""Sessions that are remembered."""
SWEEP: Final = 30.0
"""Seconds between looks for sessions that are idle."""
MOST_OPENED: Final = 1024
SHORT: Final = 1024
"""Characters of an id that is remembered."""
SMALL: Final = 2048
"""Characters of what such an id says: all of them are a few MiB."""

Goodbye = Callable[[Callable[[str], UpstreamSession | None]], None]
"""Ends a session at its servers. Given: which session of a target took the place of the one in its id."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(UpstreamSession).decode


@dataclass(slots=True)
class Remembered:
    """Of one session."""

    seen: float
    noted: int = -1
    """The second in which others were informed of a use."""
    at_work: int = 0
    """Requests and streams of it that are under way here."""
    renewed: dict[str, tuple[int, UpstreamSession]] = field(default_factory=dict)
    """Sessions of servers that took the place of those in its id here, with the moment."""
    goodbye: Goodbye | None = field(default=None, repr=False)
    """None: no server needs a `DELETE`."""


class Shared(NamedTuple):
    """What all workers of a proxy know of sessions."""

    ended: Ended
    used: Used
    renewed: Renewed
    arranged: Arranged

    @classmethod
    def local(cls) -> Shared:
        """Of one worker that shares nothing."""
        return cls(Ended.local(), Used.local(), Renewed.local(), Arranged.local())

    @classmethod
    def of(cls, region: Region, index: int) -> Shared:
        """For the worker of this index."""
        of = region, index
        return cls(Ended.of(*of), Used.of(*of), Renewed.of(*of), Arranged.of(*of))


class Memory:
    """By number of a session. `known`: what all workers know; `wake_at` as of `Deadlines`; `is_alone`: no other proxy
    has the key."""

    def __init__(
        self, known: Shared, wake_at: Callable[[float, Any], None], is_alone: bool = True
    ) -> None:  # Any: a Sleeper
        self._ended, self._used, self._renewed, arranged = known
        self.arrangements = Arrangements(arranged, is_alone)
        self._wake_at, self._is_alone = wake_at, is_alone
        self.remembered: OrderedDict[bytes, Remembered] = OrderedDict()
        """Sessions that this worker serves, by number: the one that was seen longest ago first."""
        self._is_sweeping = False
        self.heads = Heads()
        self._opened: dict[tuple[str, bytes], Session] = {}
        """By id and owner, oldest first: as a whole, since it is what proves them."""

    def of(self, number: bytes, now: float) -> Remembered:
        found = self.remembered.get(number)
        if found is None:
            found = self.remembered[number] = Remembered(now)
        found.seen = now
        self.remembered.move_to_end(number)
        while len(self.remembered) > MOST:
            self.remembered.popitem(last=False)
        return found

    def opened(self, text: str, sealer: Sealer, owner: bytes, now: float) -> Session | None:
        """As `sessions.opened`, of which small ones are remembered: most requests repeat one of them."""
        key = text, owner
        found = self._opened.get(key)
        if found is None:
            found = sessions.opened(text, sealer, owner, now)
            if found is None or len(text) > SHORT or found.size > SMALL:
                return found
            if len(self._opened) >= MOST_OPENED:
                del self._opened[next(iter(self._opened))]
            self._opened[key] = found
        return found if sessions.is_lasting(found, now) else None

    def renew(self, number: bytes, made: UpstreamSession, now: float) -> None:
        """It takes the place of the session that the same target has in the id, for all workers."""
        moment = int(now * 1e6)
        self.of(number, now).renewed[made.target] = moment, made
        self._renewed.put(number, made.target, moment, _encode(made))

    def renewed(self, number: bytes, target: str) -> UpstreamSession | None:
        """What took its place last; None: nothing has."""
        return self._latest(self.remembered.get(number), number, target)

    def _latest(self, remembered: Remembered | None, number: bytes, target: str) -> UpstreamSession | None:
        moment, own = (-1, None) if remembered is None else remembered.renewed.get(target, (-1, None))
        found = self._renewed.get(number, target)
        if found is None or moment > found.moment:
            return own
        try:
            shared = _decode(found.content)
        except msgspec.MsgspecError:
            return None  # of a worker that was another version
        return shared if shared.target == target else own  # the place knows targets by a checksum alone

    @property
    def ends_idle(self) -> bool:
        """Whether what is idle is ended; otherwise no `Remembered.goodbye` is ever said."""
        return self._is_alone

    def enter(self, number: bytes, now: float) -> Remembered:
        """A request of it begins; `leave` ends it."""
        found = self.of(number, now)
        found.at_work += 1
        self._note(number, found, now)
        if not self._is_sweeping:
            self._is_sweeping = True
            self._wake_at(now + SWEEP, self)
        return found

    def leave(self, number: bytes, remembered: Remembered, now: float) -> None:
        remembered.at_work -= 1
        remembered.seen = now
        if self.remembered.get(number) is remembered:
            self.remembered.move_to_end(number)
            self._note(number, remembered, now)

    def _note(self, number: bytes, remembered: Remembered, now: float) -> None:
        """Moments that others see are whole seconds."""
        if remembered.noted != int(now):
            remembered.noted = int(now)
            self._used.add(number, now)

    def end(self, number: bytes) -> None:
        """The session was ended: its id is worth nothing any more, to no worker."""
        self._ended.add(number)
        found = self.remembered.get(number)
        if found is not None:
            found.goodbye = None

    def has_ended(self, number: bytes) -> bool:
        return number in self._ended

    def is_over(self, number: bytes, now: float) -> bool:
        """It was ended, or not used for long."""
        return number in self._ended or self._is_idle(number, now)

    def _is_idle(self, number: bytes, now: float) -> bool:
        known = self.remembered.get(number)
        if known is not None and now - known.seen <= IDLE:
            return False  # it was used here: whatever others know is later
        last = self._used.last(number) if self._is_alone else None
        return last is not None and now - last > IDLE

    def wake(self, now: float) -> None:
        """As `carriers.Sleeper`: end what is idle, the oldest first; what is at work counts as used."""
        self._is_sweeping = False
        for _ in range(len(self.remembered)):
            number, oldest = next(iter(self.remembered.items()))
            if oldest.at_work:
                oldest.seen = now
                self.remembered.move_to_end(number)
                self._used.add(number, now)
            elif now - oldest.seen > IDLE:
                del self.remembered[number]
                self._forgotten(number, oldest, now)
            else:
                break
        if self.remembered:
            self._is_sweeping = True
            self._wake_at(now + SWEEP, self)

    def _forgotten(self, number: bytes, remembered: Remembered, now: float) -> None:
        """Where another worker has used it since, it is that one's to end."""
        if number in self._ended or not self._is_idle(number, now):
            return
        self.end(number)
        if remembered.goodbye is not None:  # it is known here no more, so `end` has left it alone
            remembered.goodbye(partial(self._latest, remembered, number))

    def __len__(self) -> int:
        return len(self.remembered)

    def __repr__(self) -> str:
        return f"Memory({len(self.remembered)} sessions)"
