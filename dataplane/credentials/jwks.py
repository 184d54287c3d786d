"""JSON Web Key Sets (RFC 7517): the public keys that can check a signature, each with the algorithms that it allows.

Used by `jwt` and by the filter that fetches key sets. A token can choose among the algorithms of its key only (`jwk`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from dataplane.credentials.jwk import Check, Key, Unusable, key_of
from gatewright.turns import paced

MOST_OF_NAME = 8
"""Keys of one name that a token is checked with, for each algorithm: an issuer that renews a key has two."""
MOST_WORK = 10_000
"""Microseconds that all checks of a token may take: of more keys the first ones are asked. Each may take so long as
`jwk` says of its kind, which are figures of the worst signatures."""


class KeySet:
    """The usable keys of an issuer. Immutable; another version of it is another object. `text`: what it was read of."""

    __slots__ = ("_by_kid", "keys", "text")

    def __init__(self, keys: Iterable[Key], text: str | bytes = "") -> None:
        self.keys = tuple(keys)
        self.text = text
        self._by_kid: dict[str, list[Key]] = {}
        for key in self.keys:
            if key.kid is not None:
                self._by_kid.setdefault(key.kid, []).append(key)

    def fitting(self, kid: str | None, algorithm: str) -> list[Check]:
        """How a token that names this key and algorithm can be checked, by the first `MOST_OF_NAME`, and no more of
        them than `MOST_WORK` has room for; [] when no key fits. Without a name (or where no key has one) exactly one
        key must fit."""
        return [key.checks[algorithm] for key in self._fitting(kid, algorithm)]

    def work(self, kid: str | None, algorithm: str) -> int:
        """Microseconds that the checks of such a token may take."""
        return sum(key.work for key in self._fitting(kid, algorithm))

    def _fitting(self, kid: str | None, algorithm: str) -> Sequence[Key]:
        if kid is not None and self._by_kid:
            named = (key for key in self._by_kid.get(kid, ()) if algorithm in key.checks)
            return _first(islice(named, MOST_OF_NAME))
        fitting = [key for key in self.keys if algorithm in key.checks]
        return fitting if len(fitting) == 1 else []

    def names(self, kid: str) -> bool:
        """Whether one of the keys has this name."""
        return kid in self._by_kid

    def __repr__(self) -> str:
        return f"KeySet({len(self.keys)} keys)"


def _first(keys: Iterable[Key]) -> list[Key]:
    """As many as `MOST_WORK` has room for."""
    work, found = 0, list[Key]()
    for key in keys:
        work += key.work
        if found and work > MOST_WORK:
            break
        found.append(key)
    return found


def read(text: str | bytes) -> KeySet:
    """A key set of its JSON. Keys that cannot be used are left out (RFC 7517 5). Raises `Unusable` if none is left."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise Unusable("the key set is not JSON") from None
    members = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list):
        raise Unusable('the key set has no list "keys"')
    keys = KeySet((key for member in paced(members) if (key := _usable(member)) is not None), text)
    if not keys.keys:
        raise Unusable(f"none of {len(members)} keys can check signatures (RSA from 2048 bits, EC, Ed25519)")
    return keys


def _usable(member: Any) -> Key | None:
    try:
        return key_of(member)
    except Unusable:
        return None
