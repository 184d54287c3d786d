"""Connections to a backend with limits, one worker's: who waits, who is refused, what is closed, what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.link.loads import Loads, initialise, sections
from dataplane.link.pools import Key
from dataplane.link.shared import Region
from dataplane.upstream.endpoint import Endpoint, Pool
from dataplane.upstream.gate import BUSY, GIVE_WAY, LOOK, SWEEP, WAIT, Gate
from dataplane.upstream.limits import Quota
from dataplane.upstream.settings import PLAIN_TCP, Transport
from dataplane.upstream.versions import EITHER, HTTP1, HTTP2
from tests.fakes.leases import Holder, Many, Opening, Up

BACKEND = "backend/a"


class Asks:
    """Waits for a connection that it takes where there is one."""

    is_wanted, is_counted = True, False
    source: Key | None = None

    def __init__(self, gate: Gate, since: float = 100.0) -> None:
        self.gate, self.since = gate, since
        self.is_served = False
        self.heard: list[str] = []

    def serve(self, gate: Gate) -> bool:
        if gate.has_capacity:
            gate.begin_opening()
            self.is_served = True
        return self.is_served

    def refuse(self, detail: str) -> None:
        self.heard.append(detail)


class World:
    def __init__(self, loads: Loads | None = None, **limits: Any) -> None:
        self.opens, self.loads = Opening(), loads or Loads.local()
        self.events: list[tuple[str, ...]] = []
        self.load = [0, 0]
        self.quota = Quota(BACKEND, **limits)
        events = SimpleNamespace(
            backend_limited=lambda backend, limit: self.events.append((backend, limit)),
            backend_load=self._changes,
            backend_connection_closed=lambda backend, limit: self.events.append((backend, "closed", limit)),
        )
        self.gate: Any = Gate(self.quota, self.loads, self.opens, self.opens.clock, events)
        self.transport = Transport(PLAIN_TCP, None, "", self.quota)
        self.endpoints = [Endpoint(f"192.0.2.{number}", 80) for number in (1, 2)]
        self.pool: Any
        self.other: Any
        self.pool, self.other = (each.pool(self.transport) for each in self.endpoints)

    def _changes(self, backend: str, connections: int, pending: int) -> None:
        assert backend == BACKEND
        self.load[0] += connections
        self.load[1] += pending

    def counted(self) -> tuple[int, int]:
        """Connections and requests that wait, as other workers see them; operators see the same."""
        seen = tuple(self.loads.counted(self.loads.rows(f"{kind}|{BACKEND}".encode())) for kind in NAMES)
        assert self.loads.workers > 1 or list(seen) == self.load
        return seen[0], seen[1]

    def ask(self, source: Key | None = None) -> Asks:
        asks = Asks(self.gate, self.opens.now)
        asks.source = source
        self.gate.admit(asks)
        return asks

    def opened(self, pool: Pool | None = None) -> Up:
        """A connection that is open, and carries a request."""
        got: list[Any] = []
        self.gate.connect(pool or self.pool, lambda up, cause: got.append((up, cause)))
        up = Up(pool or self.pool)
        self.opens.comes(up)
        assert got == [(up, "")]
        return up

    def idle(self, pool: Pool | None = None) -> Up:
        up = self.opened(pool)
        up.park()
        self.gate.kept(up, pool or self.pool)
        return up


NAMES = ("connections", "pending")


# --- who waits, and who is refused


ONE, OTHER = "192.0.2.10", "192.0.2.11"


def test_where_a_policy_says_how_many_may_wait_they_may_be_of_one_client() -> None:
    world = World(connections=1, pending=8)
    waiting = [world.ask(ONE) for _ in range(10)]
    assert [each.heard for each in waiting[:9]] == [[]] * 9 and len(waiting[9].heard) == 1


def test_who_comes_behind_others_waits_although_there_is_room() -> None:
    world = World(connections=1)
    world.ask()
    second = world.ask()
    second.serve = lambda gate: False  # type: ignore[method-assign]  # it has no use for what there is
    world.gate.end_opening(None)
    third = world.ask()
    assert not third.is_served and world.gate.waiting == 2


@pytest.mark.parametrize(("most", "expected"), [(None, True), (2, True), (1, False)])
def test_how_many_more_may_be(most: int | None, expected: bool) -> None:
    world = World(connections=most, pending=most)
    world.gate.begin_opening(1)
    assert world.gate.has_capacity is expected and world.gate.takes_one_more is expected
    assert world.counted() == (1, 1)


def test_nobody_waits_for_longer_than_ten_seconds() -> None:
    world = World(connections=1)
    world.ask()
    second = world.ask()
    world.opens.passes(0.001)
    third, fourth = world.ask(), world.ask()
    third.is_wanted = False
    world.opens.passes(WAIT - 0.002)
    assert second.heard == []
    world.opens.passes(2 * LOOK)
    assert second.heard == ["backend/a: limits.maxConnections: no connection was free within 10 s"]
    assert third.heard == [] and len(fourth.heard) == 1 and world.counted() == (1, 0)


def test_it_looks_again_as_long_as_somebody_waits_or_all_connections_are_used() -> None:
    world = World(connections=1)
    up = world.opened()
    world.opens.timers.clear()
    world.ask()
    world.ask()
    assert [at for at, _ in world.opens.timers] == [world.opens.now + LOOK], "once for all"
    for _ in range(3):
        world.opens.passes(LOOK)
        assert len(world.opens.timers) == 1
    up.close()
    world.gate.lost(up)
    world.gate.end_opening(None)
    world.gate.end_opening(None)
    world.opens.passes(LOOK)
    assert world.opens.timers == []


# --- connections


def test_what_is_opened_belongs_to_the_gate_and_counts_from_the_beginning() -> None:
    world = World(connections=2)
    got: list[Any] = []
    for _ in range(3):
        world.gate.connect(world.pool, lambda up, cause: got.append((up, cause)))
    assert got == [(None, BUSY)] and len(world.opens.asked) == 2
    assert world.pool.gate is world.gate and world.gate.pools == {world.pool}
    assert world.counted() == (2, 2)
    up = Up(world.pool)
    world.opens.comes(up)
    world.opens.comes(None, "refused")
    assert got[1:] == [(up, ""), (None, "refused")] and world.counted() == (1, 0)
    world.gate.lost(up)
    world.gate.lost(up)
    assert world.counted() == (0, 0)


def test_one_that_is_gone_when_it_is_open_counts_no_more() -> None:
    world = World(connections=1)
    first, second = world.ask(), world.ask()
    up = Up(world.pool)
    up.close()
    world.gate.end_opening(up)
    assert first.is_served and second.is_served and world.counted() == (1, 0)


def test_a_pool_that_has_a_gate_keeps_it() -> None:
    one, other = World(connections=1), World(connections=1)
    one.gate.adopt(one.pool)
    other.gate.adopt(one.pool)
    assert one.pool.gate is one.gate and other.gate.pools == set()
    one.gate.forget(one.pool)
    one.gate.forget(one.pool)
    assert one.gate.pools == set()


def test_what_races_ask_for_goes_to_who_opens() -> None:
    world = World(connections=1)
    world.gate.belongs(world.pool)
    world.gate.later(3.0, lambda: None)
    assert world.opens.belonging == [world.pool] and world.opens.timers[0][0] == world.opens.now + 3.0
    shared = world.gate.share(world.pool)
    assert shared is world.pool.shared is world.gate.share(world.pool) and world.pool.gate is world.gate


def test_the_last_used_is_lent_first_and_what_is_too_old_or_unused_too_long_is_closed() -> None:
    world = World(idle=5.0, age=30.0)
    old = world.idle()
    world.opens.now += 20.0
    unused, fresh, last = (world.idle() for _ in range(3))
    assert world.gate.lend_idle(world.pool) is last and world.pool.idle == [old, unused, fresh]
    assert fresh.idle_since == world.opens.now
    world.opens.now += 5.0
    assert world.gate.lend_idle(world.pool) is fresh, "as long as it may be unused"
    world.opens.now += 5.0
    world.events.clear()
    assert world.gate.lend_idle(world.pool) is None
    assert unused.heard[-1] == old.heard[-1] == "close" and world.pool.idle == []
    assert world.events == [(BACKEND, "closed", "idleTimeout"), (BACKEND, "closed", "maxConnectionDuration")]


def test_one_of_http2_that_is_kept_for_http1_counts_once() -> None:
    world = World(connections=2)
    world.gate.begin_opening()
    up = Up(world.pool)
    up.park()
    world.gate.kept(up, world.pool)
    world.gate.end_opening(None)
    assert world.counted() == (1, 0)
    world.gate.kept(up, world.pool)
    assert world.counted() == (1, 0)


def test_for_another_one_the_longest_unused_is_closed_and_streams_are_not() -> None:
    world = World(connections=3)
    first, second = world.idle(), world.idle()
    world.events.clear()
    assert world.gate.free_idle() and first.is_gone and not second.is_gone and world.pool.idle == [second]
    assert world.gate.free_idle() and second.is_gone
    shared = world.gate.share(world.pool)
    busy, free = Many(streams=1), Many()
    shared.connections += [busy, free]
    assert world.gate.free_idle() and free.heard == ["close"] and busy.heard == []
    shared.connections.remove(free)
    assert not world.gate.free_idle()
    assert world.events == [(BACKEND, "closed", "maxConnections")] * 3


def test_who_waits_for_a_stream_gets_a_connection_when_there_may_be_one() -> None:
    world = World(connections=1)
    up = world.opened()
    shared = world.gate.share(world.other)
    holder = Holder(world.endpoints[1])
    shared.take(holder, ())
    assert world.counted() == (1, 1) and world.opens.asked == []
    world.gate.lost(up)
    ((how, pool, _),) = world.opens.asked
    assert (how, pool) == ("open", world.other) and world.counted() == (1, 1)
    world.opens.comes(Many())
    assert holder.heard[0][0] == "again" and world.counted() == (1, 0)


def test_those_who_wait_for_a_connection_go_before_those_who_wait_for_a_stream() -> None:
    world = World(connections=1)
    up = world.opened()
    world.gate.share(world.other).take(Holder(world.endpoints[1]), ())
    asks = world.ask()
    world.gate.lost(up)
    assert asks.is_served and world.opens.asked == []


# --- looking for what is old or unused


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 2.5),
        ({"idle": 4.0}, 1.0),
        ({"idle": 4.0, "age": 2.0}, 0.5),
        ({"idle": 400.0, "age": 400.0}, SWEEP),
        ({"idle": 0.004}, LOOK),
        ({"idle": 38.0}, 2.5),  # without an age it looks as for one of ten seconds
        ({"age": 36.0}, 9.0),
    ],
)
def test_how_often_it_looks(limits: dict[str, Any], seconds: float) -> None:
    world = World(**limits)
    world.idle()
    world.idle()
    assert [at - world.opens.now for at, _ in world.opens.timers] == pytest.approx([seconds]), "once for all"


def test_what_is_unused_too_long_is_closed_and_it_looks_as_long_as_there_is_any() -> None:
    world = World(idle=4.0)
    unused = world.idle()
    used = world.opened()
    shared = world.gate.share(world.other)
    many = Many(idle_since=world.opens.now)
    shared.connections.append(many)
    world.opens.passes(4.0)
    assert not unused.is_gone and not many.is_gone
    world.opens.passes(1.0)
    assert unused.is_gone and many.is_gone and not used.is_gone and world.pool.idle == []
    assert world.events == [(BACKEND, "closed", "idleTimeout")] * 2
    world.gate.lost(unused)
    assert len(world.opens.timers) == 1
    world.gate.lost(used)
    world.opens.passes(1.0)
    assert world.opens.timers == []
    world.idle()
    assert len(world.opens.timers) == 1


def test_what_is_too_old_takes_no_more_requests() -> None:
    world = World(age=8.0)
    up = world.idle()
    shared = world.gate.share(world.other)
    world.gate.begin_opening()
    many, spent = Many(streams=1), Many(streams=1)
    shared.connections += [many, spent]
    spent.is_spent = True
    world.gate.end_opening(many)
    world.opens.passes(7.9)
    assert not up.is_gone and not many.is_spent
    world.opens.passes(2.1)
    assert up.is_gone and many.heard == ["retire"] and spent.heard == []
    world.opens.passes(4.0)
    assert many.heard == ["retire"], "once"
    assert world.events == [(BACKEND, "closed", "maxConnectionDuration")] * 2


# --- requests of HTTP


def test_a_request_that_is_refused_is_settled() -> None:
    world = World(connections=0, pending=0)
    holder = Holder(world.endpoints[0])
    world.gate.take(holder, world.pool, world.endpoints, HTTP1)
    assert holder.heard == [("limit", "backend/a: limits.maxPending", False)]
    assert world.endpoints[0].pending == 0 and not holder.leased


@pytest.mark.parametrize("again", [False, True])
def test_a_request_has_an_unused_connection_else_a_new_one(again: bool) -> None:
    world = World(connections=2)
    up = world.idle()
    endpoints = () if again else world.endpoints[:1]
    one, other = Holder(world.endpoints[0]), Holder(world.endpoints[0])
    for holder in (one, other):
        world.gate.take(holder, world.pool, endpoints, HTTP1)
    how = "again" if again else "ready"
    assert one.heard == [(how, up)] and one.up is up and other.heard == [] and world.counted() == (2, 1)
    new = Up(world.pool)
    world.opens.comes(new)
    assert other.heard == [(how, new)] and other.up is new


def test_without_a_limit_of_connections_no_other_endpoint_is_looked_at() -> None:
    world = World(pending=0)
    world.idle(world.other)
    holder = Holder(world.endpoints[0])
    world.gate.take(holder, world.pool, world.endpoints, HTTP1)
    assert holder.heard == [("limit", "backend/a: limits.maxPending", False)]


@pytest.mark.parametrize("tried", [None, 0, 1])
def test_a_request_goes_to_another_endpoint_that_has_a_connection(tried: int | None) -> None:
    world = World(connections=1)
    up = world.idle(world.other)
    first, second = world.endpoints
    holder = Holder(first)
    if tried is not None:
        holder.tries(*[first] * tried)
    world.gate.take(holder, world.pool, world.endpoints, HTTP1)
    assert holder.heard == [("ready", up)] and holder.endpoint is second
    assert (first.pending, second.pending) == (0, 1)
    assert tried is None or holder.retries.tried == [second] * tried


@pytest.mark.parametrize(
    ("version", "spoken", "how"),
    [
        (HTTP1, 0, "connect"),
        (HTTP2, 0, "open"),
        (EITHER, 0, "open"),
        (EITHER, HTTP1, "connect"),
        (HTTP1, HTTP2, "connect"),
    ],
)
def test_the_version_is_the_one_that_the_server_has_chosen_where_it_may(version: int, spoken: int, how: str) -> None:
    world = World(connections=1)
    world.pool.spoken = spoken
    world.gate.take(Holder(world.endpoints[0]), world.pool, world.endpoints[:1], version)
    assert [each[:2] for each in world.opens.asked] == [(how, world.pool)]
    assert world.opens.either == ([version == EITHER] if how == "open" else [])
    assert world.counted() == (1, 1)


def test_a_stream_of_a_connection_that_there_is_needs_no_room() -> None:
    world = World(connections=0)
    shared = world.gate.share(world.pool)
    many = Many(most=1)
    shared.connections.append(many)
    one, other = Holder(world.endpoints[0]), Holder(world.endpoints[0])
    for holder in (one, other):
        world.gate.take(holder, world.pool, world.endpoints[:1], HTTP2)
    assert one.up.connection is many and other.heard == [] and world.gate.waiting == 1


# --- beside another worker


@pytest.fixture
def region() -> Iterator[Region]:
    made = Region.create("test", sections(2))
    initialise(made)
    yield made
    made.close()


def workers(region: Region, connections: int | None) -> tuple[World, World]:
    one, other = (World(Loads.of(region, index), connections=connections) for index in (0, 1))
    one.opens.now = other.opens.now = 0.0  # so that sums of moments are what they look like
    return one, other


def give_back(world: World, up: Up) -> None:
    up.park()
    world.gate.kept(up, world.pool)


@pytest.mark.parametrize(("seconds", "gives_way"), [(GIVE_WAY - 0.001, False), (GIVE_WAY, True)])
def test_a_worker_gives_way_now_and_then(region: Region, seconds: float, gives_way: bool) -> None:
    one, other = workers(region, 2)
    first, second = one.opened(), one.opened()
    own = one.ask()
    own.serve = lambda gate: bool(gate.lend_idle(one.pool))  # type: ignore[method-assign]
    one.ask()
    other.ask()
    give_back(one, first)
    assert first.is_gone
    one.opens.now += seconds
    give_back(one, second)
    assert second.is_gone is gives_way


def test_a_worker_that_has_no_more_than_its_part_keeps_it_for_its_own(region: Region) -> None:
    one, other = workers(region, 2)
    up = one.opened()
    other.opened()
    own = one.ask()
    own.serve = lambda gate: bool(gate.lend_idle(one.pool))  # type: ignore[method-assign]
    other.ask()
    give_back(one, up)
    assert not up.is_gone and one.gate.waiting == 0


def test_where_connections_are_not_limited_nothing_is_closed_for_others(region: Region) -> None:
    one, other = workers(region, None)
    up = one.opened()
    other.gate.begin_opening(1)
    give_back(one, up)
    assert one.pool.idle == [up] and len(one.opens.timers) == 1, "to look for what is unused"
