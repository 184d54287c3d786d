"""From a state's changes to the next table: only what changed is made anew, in slices, published by one assignment.

The worker runs `apply` to its end before it begins with the next state, and gives the loop a turn at each yield. What
a state is changing is in a `Swap`; what outlives it is in `Kept`. Exchanges see nothing of this but `current.table`.

A resource is judged whole before anything is changed, so that a bad one leaves its last good version untouched. Memory
is given back in slices as well (`remains`): what the old table alone held after the swap, the rest of a table that an
exchange still had once it lets go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dataplane.chain.filter import Refused
from dataplane.table import endpoints, listeners, policies, routes
from dataplane.table.collection import Pause
from dataplane.table.kept import Kept
from dataplane.table.outcome import Outcome
from dataplane.table.store import ENDPOINT_TYPE, RESOURCE_TYPE, Change, decode
from dataplane.table.swap import UNCHANGED, Swap
from dataplane.table.table import Table
from dataplane.table.watching import watches
from dataplane.upstream.health import Watched
from gatewright import turns

if TYPE_CHECKING:
    from dataplane.table.store import Store
    from dataplane.upstream.dial.workload import MeshPlan

SLICE = 0.001
"""Seconds of work between two yields."""
AT_ONCE = 0.005
"""Seconds that one resource may take before it is begun anew in slices: those with long expressions do."""

Handler = Callable[[Swap, str, "bytes | None"], None]
Groups = dict[str, deque[Change]]

ENDPOINT, UNKNOWN = "/endpoint", "/unknown"
"""Groups of changes whose names do not begin with a kind; no kind looks like these."""


class Applier(Kept):
    """One per worker."""

    _is_applying = False

    def apply(self, changes: Iterable[Change]) -> Iterator[None]:
        """Apply all changes of a state as one. Yields about every millisecond of work; `outcome` holds afterwards.

        To free memory in slices as well, hand over an iterator that keeps no reference to what it has given.
        A generator that is dropped before its end leaves this object unusable. Raises RuntimeError when the state
        before is not done.
        """
        if self._is_applying:
            raise RuntimeError("a state is being applied")
        self._is_applying = True
        clock = self.clock
        until = clock() + SLICE
        work = self._work(changes)
        del changes  # so that what was worked off is freed
        pause = Pause()
        try:
            for _ in work:
                is_prepared = self.current.prepared is not None
                if is_prepared or clock() >= until:
                    if is_prepared:
                        pause.end()  # how long the commit takes is unknown
                    else:
                        pause.slice_ended()
                    yield
                    until = clock() + SLICE
        finally:
            pause.end()
        self._is_applying = False

    def tidy(self) -> bool:
        """Free for one slice what is left of old tables; whether there is more. For between states (`remains.wake`)."""
        until = self.clock() + SLICE
        return any(self.clock() >= until for _ in self.remains.drop())

    def take_back(self, watched: Watched) -> None:
        """What is shown of endpoints that no health policy covers any more. Called now and then; acts when the table of
        the newest state serves."""
        if self.interns.has_dropped and not self._is_applying:
            self.interns.has_dropped = False
            if watched:
                watched.forget(watches(self.store, self.interns, self.backends))

    def _work(self, changes: Iterable[Change]) -> Iterator[None]:
        """One state in steps of one resource."""
        swap = Swap(self, turns.Within(AT_ONCE, self.clock))
        groups: Groups = {kind: deque() for kind in HANDLERS}
        yield from _sort(changes, groups)
        del changes
        yield from _handle(swap, groups, ENDPOINT, "backend", "secret", "policy")
        for key, value in policies.rebuild(swap):
            yield from _judge(swap, policies.change_policy, key, value)
        for key, value in endpoints.rebuild(swap):
            yield from _judge(swap, endpoints.change_backend, key, value)
        yield from endpoints.make_plans(swap)
        yield from _handle(swap, groups, "gateway", "bind", "listener")
        yield from policies.merge_listeners(swap)
        yield from listeners.secure(swap)
        yield from listeners.fill(swap)
        yield from _handle(swap, groups, "route", "prices", "mesh", UNKNOWN)
        for key, value in routes.rebuilt(swap):
            yield from _judge(swap, routes.change_route, key, value)
        for key in policies.marked_routes(swap):
            routes.change_policies(swap, key)
            yield
        for key, value in routes.unblocked(swap):
            later = self.refused.get(key)
            yield from _judge(swap, routes.change_route, key, value)
            if later is not None:  # the version that waited is in force; what was sent after it is refused as before
                self.refused[key] = later
        yield from self._take_routers(swap)
        yield from listeners.make_plans(swap)
        self._publish(swap)
        yield  # where the caller waits while `current.prepared` is not in effect: a table that serves is not dropped
        swap.drafts.clear()
        yield from _release(swap)
        yield from self.interns.forget_uppers()
        yield from self.remains.drop()

    def _take_routers(self, swap: Swap) -> Iterator[None]:
        """The routers that changed; exchanges have those of their table."""
        for key, draft in swap.drafts.items():
            self.remains.watch(self.routers[key])
            self.remains.add(draft.fresh)
            self.routers[key] = draft.finish()
            swap.listeners.add(key)
            yield

    def _publish(self, swap: Swap) -> None:
        """The swap. Everything that takes long was done before."""
        old = self.current.table
        self.listener_policies |= swap.listener_policies
        binds = listeners.make_binds(swap)
        if swap.backends is not None:
            self.remains.watch(old)
            self.backends = swap.backends
        of_gateway = (
            policies.of_gateway(self.store, self.interns) if swap.merged_places or swap.binds else old.of_gateway
        )
        costs = old.prices if swap.prices is UNCHANGED else swap.prices
        is_new = swap.backends is not None or of_gateway is not old.of_gateway or not old.version
        mesh = _mesh_of(self.store) if swap.is_mesh_new else old.mesh
        is_new = is_new or costs is not old.prices or mesh is not old.mesh
        if swap.binds or is_new:
            rules = old.rules + listeners.reads_otherwise(swap.binds, old.binds, binds)
            limits = listeners.limits_of(binds) if swap.binds else old.limits
            of_requests = limits if limits.are_of_requests else None
            keepalives = {key: bind.tcp for key, bind in binds.items() if bind.tcp is not None}
            made = Table(
                old.version + 1, binds, self.backends, rules, limits, of_requests, keepalives, of_gateway, costs, mesh
            )
            self.current.offer(made)
        self.outcome = Outcome(swap.refused, binds, self._standing(swap), self.waiting.keys())

    def _standing(self, swap: Swap) -> Mapping[str, str]:
        """All that is refused. Made anew only when it differs: it may be long."""
        if not (swap.refused or swap.accepted or swap.binds):
            return self.outcome.standing
        standing: dict[str, str] = {}
        for conflicts in self.conflicts.values():
            standing |= conflicts
        return standing | self.refused

    def __repr__(self) -> str:
        return f"Applier({self.current!r}, {self.store!r}, {len(self.waiting)} waiting, {len(self.refused)} refused)"


def _sort(changes: Iterable[Change], groups: Groups) -> Iterator[None]:
    for change in changes:
        kind = UNKNOWN
        if change.type_url == RESOURCE_TYPE:
            kind = change.name.partition("/")[0]
        elif change.type_url == ENDPOINT_TYPE:
            kind = ENDPOINT
        groups[kind if kind in groups else UNKNOWN].append(change)
        yield


def _handle(swap: Swap, groups: Groups, *kinds: str) -> Iterator[None]:
    for kind in kinds:
        handler, group = HANDLERS[kind], groups[kind]
        while group:
            _, name, value = group.popleft()
            yield from _judge(swap, handler, name, value)


def _judge(swap: Swap, handler: Handler, name: str, value: bytes | None) -> Iterator[None]:
    """One resource, at once when that is short. A handler changes nothing before it has computed what takes long, so it
    can begin anew."""
    try:
        with swap.at_once:
            _decide(swap, handler, name, value)
    except turns.OverTurn:
        yield
        yield from turns.in_turns(partial(_decide, swap, handler, name, value), SLICE, swap.of.clock)
    yield


def _decide(swap: Swap, handler: Handler, name: str, value: bytes | None) -> None:
    try:
        handler(swap, name, value)
    except Refused as error:
        swap.refused[name] = swap.of.refused[name] = str(error)
    else:
        note = swap.notes.pop(name, None)
        if note is not None:
            swap.refused[name] = swap.of.refused[name] = note
        else:
            swap.accepted = swap.of.refused.pop(name, None) is not None or swap.accepted


def _change_unknown(swap: Swap, name: str, value: bytes | None) -> None:
    """A type or kind that this proxy has no use for. Raises `Refused`."""
    if value is not None:
        decode(name, value)
        raise Refused("a kind of resource that this proxy does not know")


def _change_prices(swap: Swap, name: str, value: bytes | None) -> None:
    from dataplane.table.prices import change_prices  # few configurations have some

    change_prices(swap, name, value)


def _change_mesh(swap: Swap, name: str, value: bytes | None) -> None:
    from dataplane.table.mesh import change_mesh  # few proxies are in one

    change_mesh(swap, name, value)


def _mesh_of(store: Store) -> MeshPlan | None:
    from dataplane.table.mesh import plan_of  # as above

    return plan_of(store)


def _release(swap: Swap) -> Iterator[None]:
    """Give back the endpoints that the old table alone named, and close their connections one by one."""
    for endpoint in swap.released:
        for _ in swap.of.carryover.give_back(endpoint):
            yield
        yield


HANDLERS: dict[str, Handler] = {
    ENDPOINT: endpoints.change_endpoint,
    "backend": endpoints.change_backend,
    "secret": policies.change_secret,
    "policy": policies.change_policy,
    "gateway": listeners.change_gateway,
    "bind": listeners.change_bind,
    "listener": listeners.change_listener,
    "route": routes.change_route,
    "prices": _change_prices,
    "mesh": _change_mesh,
    UNKNOWN: _change_unknown,
}
"""By what a key begins with."""
