"""From a state's changes to the next table: only what changed is made anew, in slices, published by one assignment.

The worker runs `apply` to its end before it begins with the next state, and gives the loop a turn at each yield. The
work of a state is a `Swap`; what outlives it is here. Nothing of this is seen by exchanges but `current.table`.

Memory is given back in slices as well: a table's big containers fall apart piece by piece once no table needs them.
Tables hold no cycles, so an exchange that still has the old one frees it by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dataplane.chain.filter import Env, Row
from dataplane.table.carryover import Carryover
from dataplane.table.current import Current
from dataplane.table.intern import Interns
from dataplane.table.outcome import Outcome
from dataplane.table.parted import Container
from dataplane.table.plans import BackendPlan, ListenerPlan
from dataplane.table.router import Router
from dataplane.table.store import Change, Store
from dataplane.table.swap import Swap

SLICE = 0.001
"""Seconds of work between two yields."""


class Applier:
    """One per worker. `rows`: the registry of policies, in order. `env.carryover` is replaced by the table's own."""

    def __init__(self, rows: Iterable[Row], env: Env, current: Current | None = None) -> None:
        self.current = Current() if current is None else current
        self.carryover = Carryover()
        self.store = Store()
        self.outcome = Outcome()
        """Of the last state that was applied."""
        self.interns = Interns(rows, replace(env, carryover=self.carryover))
        self.routers: dict[str, Router] = {}
        """By key of listener."""
        self.listener_plans: dict[str, ListenerPlan] = {}
        self.backends: Container[str, BackendPlan] = {}
        """Those of the current table."""
        self.waiting: dict[str, bytes] = {}
        """Newest version of routes that wait for endpoints, by key."""
        self.blocked: dict[str, dict[str, None]] = {}
        """Keys of these routes by backend."""
        self.refused: dict[str, str] = {}
        """Reason by key of what was refused when it was last sent."""
        self.conflicts: dict[str, dict[str, str]] = {}
        """By bind: listeners that share a hostname with an earlier one."""
        self._clock = env.clock
        self._applying = False

    def apply(self, changes: Iterable[Change]) -> Iterator[None]:
        """Apply all changes of a state as one. Yields about every millisecond of work; `outcome` holds afterwards.

        To free memory in slices as well, hand over an iterator that keeps no reference to what it has given.
        A generator that is dropped before its end leaves this object unusable. Raises RuntimeError when the state
        before is not done.
        """
        if self._applying:
            raise RuntimeError("a state is being applied")
        self._applying = True
        clock = self._clock
        until = clock() + SLICE
        work = Swap(self).run(changes)
        del changes  # what was worked off is nobody's
        for _ in work:
            if clock() >= until:
                yield
                until = clock() + SLICE
        self._applying = False

    def __repr__(self) -> str:
        return f"Applier({self.current!r}, {self.store!r}, {len(self.waiting)} waiting, {len(self.refused)} refused)"
