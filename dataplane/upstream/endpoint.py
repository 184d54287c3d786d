"""One address that requests are sent to, with what this worker knows about it.

Endpoints outlive swaps (`table/carryover` keeps them by address), so their idle connections and scores do as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.upstream.connection import UpstreamConnection

INITIAL_LATENCY = 0.001
"""Seconds: optimistic, so that a new endpoint is tried."""


class Endpoint:
    """An IP address and port, or the path of a Unix socket. `idle` is used as a stack: the last used stays warm."""

    __slots__ = ("address", "closed", "idle", "label", "latency", "pending", "port", "unix_path")

    def __init__(self, address: str, port: int, unix_path: str = "") -> None:
        self.address = address
        self.port = port
        self.unix_path = unix_path
        self.label = _label(address, port, unix_path)
        """As it appears in logs."""
        self.idle: list[UpstreamConnection] = []
        self.pending = 0
        self.latency = INITIAL_LATENCY
        self.closed = False

    def close_idle(self) -> None:
        """No table knows this endpoint any more: keep no connection to it."""
        for _ in self.retire():
            pass

    def retire(self) -> Iterator[None]:
        """As `close_idle`, in steps of one connection (10 us): there may be a thousand."""
        self.closed = True
        while self.idle:
            self.idle.pop().close()
            yield

    def __repr__(self) -> str:
        return f"Endpoint({self.label}, pending={self.pending}, idle={len(self.idle)})"


def _label(address: str, port: int, unix_path: str) -> str:
    if unix_path:
        return f"unix:{unix_path}"
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
