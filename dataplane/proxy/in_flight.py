"""Copies of requests for mirrors that are under way in one worker (`proxy/attempt/mirrors`): how many there may be, and
how many of them one client may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.link.pools import MIRRORED_BYTES, MIRRORS, Key, Places, Shares

if TYPE_CHECKING:
    from dataplane.link.pools import Full

MAX_IN_FLIGHT: Final = 256
"""Copies of one worker that are under way at once; what comes on top is not mirrored."""
MAX_BYTES: Final = 32 * 1024 * 1024
"""Bytes of all of them."""


class InFlight:
    """One per worker. `full` is called for each client that finds no place."""

    __slots__ = ("_copies", "_sizes")

    def __init__(self, full: Full | None = None) -> None:
        self._copies = Places(MAX_IN_FLIGHT, Shares(MIRRORS, full))
        self._sizes = Places(MAX_BYTES, Shares(MIRRORED_BYTES, full))

    @property
    def count(self) -> int:
        return self._copies.taken

    @property
    def bytes(self) -> int:
        return self._sizes.taken

    def fits(self, key: Key, size: int) -> bool:
        """Whether a client may have one more copy, of so many bytes."""
        return self._copies.fits(key) and self._sizes.fits(key, size=size)

    def hold(self, key: Key, size: int) -> None:
        """One is under way; give its place back by `free`, with the same key and size."""
        self._copies.hold(key)
        self._sizes.hold(key, size=size)

    def free(self, key: Key, size: int) -> None:
        self._copies.free(key)
        self._sizes.free(key, size=size)

    def __repr__(self) -> str:
        return f"InFlight({self.count} copies, {self.bytes} bytes)"
