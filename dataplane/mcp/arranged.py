"""What a client has arranged in its session with one server, and what is repeated to a new session in its place:
the level of logs and subscriptions (MCP 2025-11-25, "Logging", "Resources"). Pure, but for memory that workers share.

What cannot be known is unknown, never taken for nothing: more than a place holds, what made place for others, and
requests that another replica with the same key has served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import UNSET, Raw

from dataplane.link.arranged import Arranged
from dataplane.mcp import messages


class Arrangement(msgspec.Struct, array_like=True, frozen=True):
    """`level`: of logs, "": as the server wants; `uris`: those subscribed to, as the server names them. `is_whole`:
    there is nothing else."""

    target: str
    level: str = ""
    uris: tuple[str, ...] = ()
    is_whole: bool = True

    def requests(self) -> Iterator[tuple[str, Raw]]:
        """Method and params of all that has to be said again."""
        for uri in self.uris:
            yield SUBSCRIBE, messages.raw({"uri": uri})
        if self.level:
            yield SET_LEVEL, messages.raw({"level": self.level})


SET_LEVEL: Final = "logging/setLevel"
SUBSCRIBE: Final = "resources/subscribe"


def _subscribed(before: Arrangement, uri: str) -> Arrangement:
    return before if uri in before.uris else _with(before, uris=(*before.uris, uri))


def _unsubscribed(before: Arrangement, uri: str) -> Arrangement:
    return _with(before, uris=tuple(each for each in before.uris if each != uri))


def _leveled(before: Arrangement, level: str) -> Arrangement:
    return _with(before, level=level)


def _with(before: Arrangement, **changes: object) -> Arrangement:
    return msgspec.structs.replace(before, **changes)


METHODS: Final[dict[str, Callable[[Arrangement, str], Arrangement]]] = {
    SET_LEVEL: _leveled,
    SUBSCRIBE: _subscribed,
    "resources/unsubscribe": _unsubscribed,
}
"""Requests that arrange something: what they make, with the level or URI that they name, of what was there before."""


def can_arrange(hello: Raw) -> bool:
    """Whether a server has anything that could be arranged, by its answer to `initialize`. Raises `Malformed`."""
    able = messages.object_of(messages.object_of(hello).get("capabilities", UNSET))
    resources = messages.object_of(able.get("resources", UNSET))
    return "logging" in able or messages.value_of(resources.get("subscribe"), _FLAG) is True


_FLAG: Final = 16
"""Bytes of a capability that is true or false."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Arrangement).decode


class Arrangements:
    """Of all sessions. `is_alone`: no other proxy serves requests of them."""

    def __init__(self, known: Arranged, is_alone: bool) -> None:
        self._known, self._is_alone = known, is_alone

    def note(self, number: bytes, target: str, method: str, value: str, now: float) -> None:
        """One of `METHODS` goes to this target. Whether it succeeds shows when it is repeated."""
        before = self._found(number, target) or Arrangement(target)
        after = METHODS[method](before, value) if before.is_whole else before
        if after == before:
            return
        content = _encode(after)
        if len(content) > Arranged.most():
            content = _encode(Arrangement(target, is_whole=False))
        self._known.put(number, target, int(now * 1e6), content)

    def of(self, number: bytes, target: str, began: float, is_held: bool) -> Arrangement | None:
        """All that a session has arranged with this target; None: not known. `began`: the session, by the clock
        of `note`; `is_held`: what the target has of it is this proxy's own, a process or a stream."""
        if not (self._is_alone or is_held):
            return None
        found = self._found(number, target)
        if found is not None:
            return found if found.is_whole else None
        return Arrangement(target) if self._known.forgotten < int(began * 1e6) else None

    def _found(self, number: bytes, target: str) -> Arrangement | None:
        place = self._known.get(number, target)
        if place is None:
            return None
        try:
            found = _decode(place.content)
        except msgspec.MsgspecError:
            return Arrangement(target, is_whole=False)  # of a worker that was another version
        return found if found.target == target else None  # the place knows targets by a checksum alone

    def __repr__(self) -> str:
        return f"Arrangements({self._known!r})"
