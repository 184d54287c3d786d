"""The one reference that a swap changes, and the next table while it waits for the workers of its proxy to be ready.

All workers of a proxy swap as one: each prepares the next table, and it takes effect when all of them have, or the
agent waits no longer for those that have not (`link.commits.Commits`). A request that pins the table looks at
`prepared` first, so a worker that is busy, or has not heard of the commit yet, swaps before its next request: a client
that has seen one answer of a state gets no answer of the state before from any worker. The applier offers tables; the
worker says which number is next and when a commit was announced. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.table.table import Table


def _everything() -> int:
    """No agent holds anything back (the table on its own)."""
    return 0


def _ignored() -> None:
    """No carrier remembers heads, or listens."""


class Current:
    """`table` is read once per exchange and assigned once per swap, both on the loop's thread.

        if current.prepared is not None:  # all that it costs while nothing is prepared
            current.catch_up()
        table = current.table

    `committed` answers the newest number that may take effect.
    """

    __slots__ = ("_committed", "heads_changed", "keepalives_changed", "number", "prepared", "table")

    def __init__(self, committed: Callable[[], int] = _everything) -> None:
        self._committed = committed
        self.table = Table()
        self.prepared: Table | None = None
        """The next table, from its offer until its commit."""
        self.number = 0
        """Of the state that is being prepared, or was last."""
        self.heads_changed: Callable[[], object] = _ignored
        """Called by a swap after which heads are read in another way."""
        self.keepalives_changed: Callable[[], object] = _ignored
        """Called by a swap after which sockets have another keepalive."""

    def offer(self, table: Table) -> None:
        """Make this the next table: at once when its number is committed already, else when it is."""
        self.prepared = table
        self.catch_up()

    def catch_up(self) -> None:
        """Swap, if there is something to swap to and its number is committed."""
        if self.prepared is not None and self.number <= self._committed():
            before, self.table, self.prepared = self.table, self.prepared, None
            if before.rules != self.table.rules:
                self.heads_changed()
            if before.keepalives != self.table.keepalives:
                self.keepalives_changed()

    def __repr__(self) -> str:
        waits = "" if self.prepared is None else f", {self.prepared.version} waits for the commit of {self.number}"
        return f"Current(version={self.table.version}{waits})"
