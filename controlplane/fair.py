"""Whose turn it is: of what waits, each namespace has one thing done before any has a second one. Pure.

Used where one worker serves everybody (`kube.reading.beside`, `pending` and `schedule` of `kube.writing`): what a
namespace puts in delays the others by one thing at a time, however much it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")


class FairQueue(Generic[K]):
    """Things by namespace, each once. `namespace` says whose a thing is."""

    def __init__(self, namespace: Callable[[K], str]) -> None:
        self._namespace: Final = namespace
        self._waiting: dict[str, dict[K, None]] = {}
        """Of each namespace, in order of arrival; the namespaces in the order of their turns."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, key: K) -> bool:
        return key in self._waiting.get(self._namespace(key), ())

    def put(self, key: K) -> None:
        """Behind what its namespace has waiting; nothing where it waits already. A namespace that had nothing waiting
        has the last turn."""
        self._waiting.setdefault(self._namespace(key), {})[key] = None

    def drop(self, key: K) -> None:
        """It waits no more, if it did."""
        namespace = self._namespace(key)
        keys = self._waiting.get(namespace)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._waiting[namespace]

    def take(self, may: Callable[[str], bool] = lambda _: True) -> K | None:
        """The oldest thing of the namespace whose turn it is, whose next turn comes after all others'. None: nothing
        waits. `may`: whether a namespace can have its turn now; otherwise it is the next one's."""
        namespace = next(filter(may, self._waiting), None)
        if namespace is None:
            return None
        keys = self._waiting.pop(namespace)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._waiting[namespace] = keys
        return key

    def has(self, may: Callable[[str], bool]) -> bool:
        """Whether `take` would give something."""
        return any(map(may, self._waiting))


class Budgets:
    """Seconds of work that each namespace has at once: `most`, and `share` of each second that goes by.

    A namespace that has used it up waits behind others (that is for the caller to see to). What time it is, is an
    argument.
    """

    MANY: Final = 256
    """Namespaces that are remembered before those are looked for that have all of theirs again."""

    def __init__(self, most: float, share: float) -> None:
        self._most, self._share = most, share
        self._full_at: dict[str, float] = {}
        """When a namespace that has used some has all of it again."""

    def __len__(self) -> int:
        return len(self._full_at)

    def has(self, namespace: str, now: float) -> bool:
        """Whether anything is left."""
        return (self._full_at.get(namespace, now) - now) * self._share < self._most

    def spend(self, namespace: str, seconds: float, now: float) -> None:
        if len(self._full_at) >= self.MANY and namespace not in self._full_at:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        self._full_at[namespace] = max(self._full_at.get(namespace, now), now) + seconds / self._share
