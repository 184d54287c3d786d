"""Tokens that were verified, by what a client sent: a dictionary with bounds.

Used by the JWT filter, which looks into `entries` itself: a method call would cost as much as the look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataplane.credentials.jwks import KeySet
    from dataplane.credentials.key_sources import InlineKeys, RemoteKeys

COUNT: Final = 4096
"""Tokens that a policy remembers."""

LONGEST: Final = 8192
"""Bytes of the longest that is remembered."""

BYTES: Final = 8 * 1024 * 1024
"""Bytes of all of them; with their claims it is some times as much."""

Known = tuple[float, "InlineKeys | RemoteKeys", "KeySet", dict[str, Any]]
"""Valid until (seconds since the epoch); whose keys; the keys that it was checked with (others: it is checked
again); what it leaves for expressions."""


class KnownTokens:
    __slots__ = ("_bytes", "entries")

    def __init__(self) -> None:
        self.entries: dict[bytes, Known] = {}
        self._bytes = 0

    def remember(self, sent: bytes, known: Known) -> None:
        """The oldest are forgotten when there are too many."""
        if len(sent) > LONGEST:
            return
        self.forget(sent)
        while self.entries and (len(self.entries) >= COUNT or self._bytes + len(sent) > BYTES):
            self.forget(next(iter(self.entries)))
        self.entries[sent] = known
        self._bytes += len(sent)

    def forget(self, sent: bytes) -> None:
        if self.entries.pop(sent, None) is not None:
            self._bytes -= len(sent)

    def __repr__(self) -> str:
        return f"KnownTokens({len(self.entries)})"
