"""Connections whose bytes pass: which endpoint gets one, what is tried after a failure, and who hears of what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.messages import Peer
from dataplane.link.loads import Loads
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.gate import Gate
from dataplane.upstream.limits import Quota
from dataplane.upstream.raw import MAX_CONNECTS, RawLease
from dataplane.upstream.raw_end import RawEnd
from dataplane.upstream.settings import OURSELVES, PLAIN_TCP, Transport
from tests.fakes.leases import Opening


class Holder:
    """Who wants a connection; it notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.on_end: Any = lambda: None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("raw_"):
            raise AttributeError(name)

        def hears(*said: Any) -> None:
            self.heard.append((name.removeprefix("raw_"), *said))
            if name == "raw_ended":
                self.on_end()

        return hears


class World:
    def __init__(self, count: int = 1, quota: Quota | None = None, **plan: Any) -> None:
        self.opens, self.closed = Opening(), 0
        self.names: Any = None
        self.waiting: list[Any] = []
        self.failed: list[Any] = []
        self.endpoints = tuple(Endpoint(f"192.0.2.{number}", 80) for number in range(count))
        events = SimpleNamespace(
            backend_limited=lambda *_: None, backend_load=lambda *_: None, backend_connection_closed=lambda *_: None
        )
        self.gate: Any = None
        if quota is not None:
            self.gate = Gate(quota, Loads.local(), self.opens, self.opens.clock, events)
        self.leases: Any = SimpleNamespace(
            connector=self.opens,
            random=lambda: 0.0,
            resolve=self._resolve,
            failed=lambda plan, endpoint: self.failed.append(endpoint),
            rule_states=SimpleNamespace(gate=lambda *_: self.gate),
            rule_state=lambda plan, rules: SimpleNamespace(usable=lambda endpoints: endpoints[1:]),
        )
        self.transport = None if quota is None else Transport(PLAIN_TCP, None, "", quota)
        fields = {"key": "backend/a", "refused": "", "host": b"", "port": 0, "rules": None, "by_request": False, **plan}
        fields["refused_as_bytes"] = fields["refused"]
        self.plan: Any = SimpleNamespace(endpoints=self.endpoints, transport=self.transport, **fields)

    def _resolve(self, plan: Any, ready: Any) -> Any:
        assert (plan.host, plan.port) == (b"db.test", 5432)
        self.waiting.append(ready)
        return self.names

    def begin(self, peer: Peer | None = None) -> tuple[Any, Any]:
        holder: Any = Holder()
        lease: Any = RawLease(holder, self.leases, self._closed, peer)
        lease.begin(self.plan)
        return lease, holder

    def _closed(self) -> None:
        self.closed += 1

    @property
    def pending(self) -> list[int]:
        return [endpoint.pending for endpoint in self.endpoints]

    @property
    def end(self) -> Any:
        return self.opens.dialled[-1]


class Wire:
    """The transport of a connection."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closing = False

    def pause_reading(self) -> None:
        self.heard.append("pause")

    def close(self) -> None:
        self.heard.append("close")
        self.closing = True

    def abort(self) -> None:
        self.heard.append("abort")
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


# --- which endpoint


def test_others_are_tried_when_one_fails_but_no_more_than_there_may_be() -> None:
    world = World(MAX_CONNECTS + 1)
    lease, holder = world.begin()
    for number in range(MAX_CONNECTS):
        assert sum(world.pending) == 1 and len(set(lease.tried)) == number + 1
        assert holder.heard == []
        world.opens.comes(None, f"refused {number}")
    assert holder.heard == [("failed", "connect", "refused 2")]
    assert world.failed == lease.tried and len(lease.tried) == MAX_CONNECTS == 3 and sum(world.pending) == 0


@pytest.mark.parametrize("count", [1, 2])
def test_an_endpoint_is_tried_once(count: int) -> None:
    world = World(count)
    _, holder = world.begin()
    for _ in range(count):
        world.opens.comes(None, "refused")
    assert holder.heard == [("failed", "connect", "refused")] and len(world.failed) == count
    assert world.opens.asked == []


def test_one_that_comes_when_its_holder_has_left_is_closed() -> None:
    world = World()
    lease, holder = world.begin()
    lease.release()
    wire = Wire()
    world.end.connection_made(wire)
    world.opens.comes(None)
    assert wire.heard == ["pause", "abort"] and holder.heard == []
    lease, holder = world.begin()
    lease.release()
    world.opens.comes(None, "refused")
    assert holder.heard == [] and world.failed == [] and world.pending == [0]


def test_a_name_is_waited_for_unless_the_holder_leaves() -> None:
    world = World(0, host=b"db.test", port=5432)
    lease, holder = world.begin()
    assert holder.heard == [] and lease.endpoint is None
    found = Endpoint("198.51.100.1", 5432)
    world.names = (found,)
    world.waiting[0]()
    assert lease.endpoint is found and len(world.opens.asked) == 1
    world.names = None
    late, _ = world.begin()
    late.release()
    world.names = (found,)
    world.waiting[-1]()
    assert len(world.opens.asked) == 1 and found.pending == 1


# --- limits


def test_connections_of_a_limited_backend_are_those_of_its_gate() -> None:
    world = World(1, Quota("backend/a", 1))
    first, one = world.begin()
    second, other = world.begin()
    third, _ = world.begin()
    pool: Any = world.endpoints[0].pool(world.transport)  # type: ignore[arg-type]
    assert pool.gate is world.gate and world.gate.connections == 1 and world.gate.waiting == 2
    third.release()
    wire = Wire()
    world.end.connection_made(wire)
    world.end.opened()
    world.opens.comes(None)
    assert len(one.heard) == 1 and world.gate.connections == 1
    world.end.connection_lost(None)
    assert world.closed == 1 and len(world.opens.asked) == 1 and world.gate.waiting == 0
    world.opens.comes(None, "refused")
    assert other.heard == [("failed", "connect", "refused")] and world.gate.connections == world.gate.waiting == 0
    first.release()
    second.release()
    assert world.pending == [0]


def test_one_more_than_may_wait_is_refused() -> None:
    world = World(1, Quota("backend/a", 1, 0))
    lease, holder = world.begin()
    assert holder.heard == [("failed", "limit", "backend/a: limits.maxPending")] and world.pending == [0]
    assert not lease.is_over


# --- one connection


def opened() -> tuple[Any, Any, Wire, list[Any]]:
    holder: Any = Holder()
    closed: list[Any] = []
    end: Any = RawEnd(holder, closed.append, OURSELVES)
    assert end.is_gone
    wire = Wire()
    end.connection_made(wire)
    assert not end.is_gone and wire.heard == ["pause"], "nobody reads yet"
    end.opened()
    return end, holder, wire, closed
