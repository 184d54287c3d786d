"""Lists of models that providers give of themselves: what they say, and how long it counts. Pure: the caller asks them
and moves the clock.

A list counts for five minutes, then it is asked for anew while readers get the last one; while that fails,
the last one counts for an hour. Each provider is asked once at a time, and after a failure not again for half a
minute.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from dataplane.chain.filter import Future

FRESH: Final = 300.0
"""Seconds after which a list is asked for anew."""
LONGEST: Final = 3_600.0
"""Seconds after which it counts no more, if nothing newer came."""
PAUSE: Final = 30.0
"""Seconds after a failure."""
MAX_MODELS: Final = 1_000
"""Of one list; the rest is left out."""
MAX_NAME: Final = 256
"""Characters; a longer name is left out."""
MAX_LISTS: Final = 128
"""Of one policy: as many as a backend can have providers. Of more the oldest are forgotten."""
_PREFIX: Final = "models/"
"""In Google's list, before each name that its API takes without as well."""
_NEVER: Final = float("-inf")


class Unreadable(ValueError):
    """It is no list of models."""


class Listed(NamedTuple):
    name: str
    created: int
    """Seconds since the epoch; 0: not known."""


class Kept:
    """What is known of one provider's list."""

    __slots__ = ("_came", "_models", "_next", "is_asked", "problem", "waiting")

    def __init__(self) -> None:
        self._models: tuple[Listed, ...] = ()
        self._came = self._next = _NEVER
        self.is_asked = False
        """Somebody waits for the provider's answer."""
        self.problem = ""
        """Why the last try failed; "": it did not."""
        self.waiting: list[Future] = []
        """Of requests that wait for the first list."""

    def is_due(self, now: float) -> bool:
        """Whether to ask for it."""
        return not self.is_asked and now >= self._next

    def is_unknown(self, now: float) -> bool:
        """Nothing is known, and no try has failed: it is worth waiting for."""
        return not self.problem and now >= self._came + LONGEST

    def models(self, now: float) -> tuple[Listed, ...]:
        return self._models if now < self._came + LONGEST else ()

    def came(self, now: float, models: tuple[Listed, ...]) -> None:
        self._models, self._came, self._next, self.problem = models, now, now + FRESH, ""

    def failed(self, now: float, why: str) -> bool:
        """Whether that is new: the log says it once."""
        is_new, self.problem = why != self.problem, why
        self._next = now + PAUSE
        return is_new

    def __repr__(self) -> str:
        return f"Kept({len(self._models)} models, {self.problem!r})"


class Lists:
    """Those that one policy asks for. A key says whose list it is, and by whose credential."""

    __slots__ = ("__weakref__", "_known")

    def __init__(self) -> None:
        self._known: dict[Hashable, Kept] = {}

    def of(self, key: Hashable) -> Kept:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_LISTS:
                del self._known[next(iter(self._known))]
            found = self._known[key] = Kept()
        return found

    def __repr__(self) -> str:
        return f"Lists({len(self._known)} known)"


class _Model(msgspec.Struct):
    id: str
    created: object = 0


class _List(msgspec.Struct):
    data: list[_Model]


_list: Final = msgspec.json.Decoder(_List)


def read(body: bytes) -> tuple[Listed, ...]:
    """Of OpenAI's API or Anthropic's, which both have `data` with an `id` each. Raises `Unreadable`."""
    try:
        found = _list.decode(body).data
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"no list of models: {error}") from None
    named = ((each.id.removeprefix(_PREFIX), each.created) for each in found[:MAX_MODELS])
    return tuple(
        Listed(name, created if type(created) is int else 0) for name, created in named if 0 < len(name) <= MAX_NAME
    )
