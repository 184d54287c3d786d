"""How long a write waits that somebody else undoes each time. Pure.

A second installation, another controller, or a program that was forgotten may say the same thing differently: then
each write of one of them is answered by one of the other, as fast as the API server can. So what was written not long
ago, and is wanted again as it was, waits twice as long each time. Whatever is new does not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

REMEMBERED: Final = 120.0
"""Seconds after a write in which the same one counts as undone by somebody."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 30.0
"""Seconds that such a write waits, doubled each time."""
_MOST_DOUBLINGS: Final = 10


@dataclass(slots=True)
class _Written:
    content: object
    at: float
    undone: int = 0


class Contests(Generic[K]):
    """What was written by key, as far as it is remembered: what there is is bounded by the writes of that time.
    `content` is compared, and not copied."""

    def __init__(self) -> None:
        self._written: dict[K, _Written] = {}
        self._looks: deque[tuple[float, K]] = deque()
        """When to see whether one can be forgotten; each once."""

    def __len__(self) -> int:
        return len(self._written)

    def wrote(self, key: K, content: object, now: float) -> None:
        """It is there now."""
        self._forget(now)
        known = self._written.get(key)
        if known is None:
            self._looks.append((now + REMEMBERED, key))
            self._written[key] = _Written(content, now)
        elif known.content == content:
            known.at, known.undone = now, known.undone + 1
        else:
            self._written[key] = _Written(content, now)

    def wait(self, key: K, content: object, now: float) -> float:
        """Seconds for which something that is wanted now waits; 0: it was not undone."""
        known = self._written.get(key)
        if known is None or known.content != content or now - known.at >= REMEMBERED:
            return 0.0
        return float(min(FIRST_WAIT * 2.0 ** min(known.undone, _MOST_DOUBLINGS), LONGEST_WAIT))

    def rest(self, key: K, content: object, now: float) -> float:
        """The same, of something that waits since it was written."""
        wait = self.wait(key, content, now)
        return max(0.0, self._written[key].at + wait - now) if wait else 0.0

    def _forget(self, now: float) -> None:
        while self._looks and self._looks[0][0] <= now:
            _, key = self._looks.popleft()
            end = self._written[key].at + REMEMBERED
            if end <= now:
                del self._written[key]
            else:
                self._looks.append((end, key))
