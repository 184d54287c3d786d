"""What a proxy refuses, read from its NACK.

Pure. Our proxies write `error_detail.message` as a JSON array of {"key": resource key, "error": reason}, and name in
every answer all that they still refuse. Any other client's message is one refusal without a key. The text comes from
the network: it is cut, cleaned of control characters and never trusted to be well-formed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from weakref import WeakValueDictionary, ref

MOST_REFUSALS: Final = 1000
LONGEST_MESSAGE: Final = 1 << 20
LONGEST_KEY: Final = 1024
LONGEST_REASON: Final = 2000
MOST_TEXT: Final = 128 << 10
"""Characters of keys and reasons kept of one proxy: 500 keys of Gatewright are half of it. What is over is counted, not
kept."""

_OVERHEAD: Final = 200  # of a refusal, and of its place in a dictionary

UNSAID: Final = "refused without a reason"

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One resource that a proxy refuses, and why. An empty key: the proxy did not say which."""

    key: str
    error: str


def parse(message: str) -> tuple[Refusal, ...]:
    """The refusals of a NACK: at least one, the first one of each key, as far as they fit into `MOST_TEXT`."""
    if not message.lstrip().startswith("["):
        return (Refusal("", _clean(message, LONGEST_REASON) or UNSAID),)
    try:
        entries = json.loads(message) if len(message) <= LONGEST_MESSAGE else None
    except (ValueError, RecursionError):
        entries = None
    refusals: dict[str, Refusal] = {}
    _add(refusals, filter(None, map(_refusal, entries[:MOST_REFUSALS] if isinstance(entries, list) else ())))
    return tuple(refusals.values()) or (Refusal("", _clean(message, LONGEST_REASON)),)


def _weight(refusal: Refusal) -> int:
    return len(refusal.key) + len(refusal.error)


class Refusals(dict[str, Refusal]):
    """What one message refuses, by key. It is never changed: proxies that say the same share it, while any of them
    does.

    A dictionary that can be referred to weakly.
    """

    __slots__ = ("__weakref__", "holder", "weight")

    def __init__(self, refusals: Iterable[Refusal] = ()) -> None:
        super().__init__((refusal.key, refusal) for refusal in refusals)
        self.weight = sum(map(_weight, self.values())) + len(self) * _OVERHEAD
        self.holder: ref[object] | None = None
        """Who of those that share it has its weight."""


NONE: Final[Mapping[str, Refusal]] = Refusals()

_shared: Final[WeakValueDictionary[bytes, Refusals]] = WeakValueDictionary()
"""By a digest of the message: 500 proxies that refuse 500 resources would else keep a quarter of a million entries."""


def share(message: str) -> Refusals:
    """The refusals of a NACK, parsed once while anybody has them."""
    digest = blake2b(message.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    found = _shared.get(digest)
    if found is None:
        found = _shared[digest] = Refusals(parse(message))
    return found


def weight(refusals: Mapping[str, Refusal], holder: object) -> int:
    """About the bytes that these make us keep because of `holder`: nothing where somebody else said the same."""
    if not isinstance(refusals, Refusals):
        return sum(map(_weight, refusals.values())) + len(refusals) * _OVERHEAD
    if refusals.holder is None or refusals.holder() is None:
        refusals.holder = ref(holder)
    return refusals.weight if refusals.holder() is holder else 0


def noted(known: Mapping[str, Refusal], message: str) -> Mapping[str, Refusal]:
    """The refusals of a NACK beside those that are known already; the mapping that is passed stays as it is."""
    if not known:
        return share(message)
    refusals = dict(known)
    note(refusals, message)
    return refusals


def note(known: dict[str, Refusal], message: str) -> None:
    """Add the refusals of a NACK to those that are known; however many NACKs come, no more than of one are kept.

    Of a key that is known the newer reason counts, where it fits; what is new never drives out what is known.
    """
    found = share(message).values()
    free = MOST_TEXT - sum(map(_weight, known.values()))
    for refusal in found:
        older = known.get(refusal.key)
        if older is not None and (more := _weight(refusal) - _weight(older)) <= free:
            known[refusal.key] = refusal
            free -= more
    _add(known, found)


def _add(known: dict[str, Refusal], refusals: Iterable[Refusal]) -> None:
    """Take in refusals of keys that are not known, while they fit, and return how many did not."""
    free = MOST_TEXT - sum(map(_weight, known.values()))
    named, over = len(known) - ("" in known), 0
    for refusal in refusals:
        if refusal.key in known:
            continue
        free -= _weight(refusal)
        if free < 0 or named == MOST_REFUSALS:
            over += 1
        else:
            known[refusal.key] = refusal
            named += 1
    if over:
        known.setdefault("", Refusal("", f"and {over} more"))


def _refusal(entry: object) -> Refusal | None:
    if not isinstance(entry, dict):
        return None
    key, error = entry.get("key"), entry.get("error")
    if not isinstance(key, str) or not isinstance(error, str) or len(key) > LONGEST_KEY:
        return None
    return Refusal(_clean(key, LONGEST_KEY), _clean(error, LONGEST_REASON) or UNSAID)


def _clean(text: str, longest: int) -> str:
    """Interned, as hundreds of proxies that refuse the same say the same."""
    return sys.intern(_UNPRINTABLE.sub(" ", text[:longest]).strip())
