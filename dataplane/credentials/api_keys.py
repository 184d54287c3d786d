"""API keys, kept as keyed digests only: reading Secrets and looking a key up.

Used by the API key filter. A look-up takes the same time for every key that is not there: what is compared are digests
under a key that was drawn when the policy was built, which a client cannot know.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from dataplane.credentials import json_object
from gatewright import invisible
from gatewright.turns import paced

log = logging.getLogger("dataplane.credentials")


class ApiKeys:
    """The keys of a policy, each with its metadata."""

    __slots__ = ("_known", "_salted")

    def __init__(self, entries: Iterable[tuple[bytes, dict[str, Any]]]) -> None:
        self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))
        self._known: dict[bytes, dict[str, Any]] = {}
        for key, metadata in entries:
            self._known.setdefault(self._digest(key), metadata)

    def _digest(self, key: bytes) -> bytes:
        made = self._salted.copy()
        made.update(key)
        return made.digest()

    def metadata(self, key: bytes) -> dict[str, Any] | None:
        """That of a key; None for a key that is not there. Not to be changed."""
        return self._known.get(self._digest(key))

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"ApiKeys({len(self)} keys)"


def read(data: Mapping[str, bytes], where: str) -> Iterable[tuple[bytes, dict[str, Any]]]:
    """The keys of a Secret (apiKeyAuthentication): each entry is a key, or `{"key": ..., "metadata": {...}}`.

    An entry that is neither is left out, and named in the log: a typing error must not become a key.
    """
    for name in paced(sorted(data)):
        try:
            yield entry(data[name])
        except ValueError as error:
            log.warning("%s: entry %s is no API key: %s", where, name, error)


def entry(value: bytes) -> tuple[bytes, dict[str, Any]]:
    """(key, metadata) of one entry; white space around it is that of an editor. Raises ValueError, which holds nothing
    of it."""
    text = invisible.without_mark(value).strip()
    if not text:
        raise ValueError("empty")
    if not text.startswith(b"{"):
        return _visible(text), {}
    members = json_object.read(text)
    key, metadata = members.get("key"), members.get("metadata", {})
    if not isinstance(key, str) or not key:
        raise ValueError('"key" must be text')
    if not isinstance(metadata, dict):
        raise ValueError('"metadata" must be an object')
    return _visible(key.encode()), metadata


def _visible(key: bytes) -> bytes:
    """A key that somebody can have copied as it is seen. Raises ValueError for another one."""
    hidden = invisible.hidden(key)
    if hidden:
        raise ValueError(f"an invisible character, {hidden}")
    return key
