"""What a worker keeps from one state to the next: resources, what was made of them, and what waits or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from dataplane.chain.filter import Env, Row
from dataplane.table.binds import ListenerPlan
from dataplane.table.carryover import Carryover
from dataplane.table.current import Current
from dataplane.table.intern import Interns
from dataplane.table.outcome import Outcome
from dataplane.table.parted import Container
from dataplane.table.plans import BackendPlan, ListenerPolicies
from dataplane.table.remains import Remains
from dataplane.table.router import Router
from dataplane.table.security import TlsPlan
from dataplane.table.store import Store
from dataplane.upstream.kinds import Kind

Load = Callable[[str], Iterator[None]]


def nothing(_kind: str) -> Iterator[None]:
    yield from ()


class Kept:
    """One per worker; changed by its `Applier` alone. `rows`: the registry of policies, in order. `env.carryover` is
    replaced by the table's own."""

    def __init__(
        self,
        rows: Iterable[Row],
        env: Env,
        current: Current | None = None,
        zone: str = "",
        load: Load = nothing,
        *,
        kinds: Mapping[str, Kind],
        in_mesh: bool = False,
    ) -> None:
        """`zone`: where this proxy runs; "": not configured. `load`: the code of a kind of backends, in steps, before
        a table has one. `kinds`: of backends, by name. `in_mesh`: workloads of a mesh are reached by tunnels."""
        self.kinds = kinds
        self.current = Current() if current is None else current
        self.zone = zone
        self.in_mesh = in_mesh
        self.load = load
        self.carryover = Carryover()
        self.holds = self.carryover.holds
        """Whether an address and port are an endpoint of a backend, or were a moment ago."""
        self.store = Store()
        self.outcome = Outcome()
        """Of the last state that was applied."""
        self.interns = Interns(rows, replace(env, carryover=self.carryover, secret=self.store.secret))
        self.interns.secret_digest = self.store.secret_digest
        self.routers: dict[str, Router] = {}
        """By key of listener."""
        self.listener_plans: dict[str, ListenerPlan] = {}
        self.listener_policies: dict[str, ListenerPolicies] = {}
        """Those of the current table, by key of listener; none for a listener without."""
        self.security: dict[str, TlsPlan] = {}
        """Of listeners that have TLS, by key."""
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
        self.remains = Remains()
        """Of old tables, freed with the next state or by `tidy`."""
        self.clock = env.clock
