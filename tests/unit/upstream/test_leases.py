"""Leases: which connection a request gets, what is counted meanwhile, and what is sent again after a loss."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.carriers import REFUSED, UNSENT
from dataplane.http.messages import Peer
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import MAX_RESENT, Leases
from dataplane.upstream.limits import Quota
from dataplane.upstream.race import DELAY
from dataplane.upstream.settings import OURSELVES, PLAIN_TCP, Client, Tls, Transport
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes.leases import Holder, Opening, Up

CLIENT = Peer("198.51.100.7", local=b"10.0.0.1:80", port=4711)
FOR_CLIENT = Client("198.51.100.7", 4711, b"10.0.0.1:80")
FROM_PROXY = Transport(PLAIN_TCP._replace(proxy_version=2), None, "")
OVER_TLS = Transport(PLAIN_TCP, Tls(), "origin.test")


class Watching:
    """In place of the state of backend rules."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.events = SimpleNamespace(
            endpoint_failed=lambda *said: self.heard.append(("failed", *said)),
            backend_limited=lambda *said: self.heard.append(("limited", *said)),
        )
        self.made: list[Any] = []
        self.taken: list[Any] = []

    def of(self, key: str, rules: Any) -> Any:
        self.made.append((key, rules))
        return SimpleNamespace()

    def gate(self, quota: Quota, _: Any) -> Any:
        self.made.append(quota)
        return SimpleNamespace(take=lambda *said: self.taken.append(said))


class World:
    def __init__(self, draws: Iterable[float] = ()) -> None:
        self.opens, self.rules, self.stale = Opening(), Watching(), 0
        self.names: dict[bytes, Any] = {}
        self.ready: list[Any] = []
        resolver = SimpleNamespace(endpoints=self._endpoints)
        left = iter(draws)
        opens: Any = self.opens
        rules: Any = self.rules
        self.leases: Any = Leases({}, opens, resolver, lambda: next(left), self._count, rule_states=rules)
        self.endpoint: Any = Endpoint("192.0.2.1", 80)

    def _count(self) -> None:
        self.stale += 1

    def _endpoints(self, host: bytes, port: int, ready: Any) -> Any:
        assert port == 80
        self.ready.append(ready)
        return self.names.get(host)

    def take(self, holder: Any, version: int = 0, transport: Transport | None = None) -> Any:
        self.leases.take(holder, (self.endpoint,), plan(version, transport))
        return holder


def plan(version: int = 0, transport: Transport | None = None, **more: Any) -> Any:
    fields = {"key": "backend/a", "rule_state": None, "host": b"origin.test", "port": 80, **more}
    return SimpleNamespace(version=version, transport=transport, **fields)


def wants(version: bytes = b"HTTP/1.1", length: int = 0, is_grpc: bool = False, scheme: bytes = b"http") -> Any:
    holder: Any = Holder()
    holder.version, holder.length, holder.is_grpc, holder.scheme = version, length, is_grpc, scheme
    return holder


@pytest.mark.parametrize("transport", [None, OVER_TLS])
def test_the_other_family_is_tried_beside_the_first_one(transport: Transport | None) -> None:
    world = World([0.0, 0.0])
    first, second = Endpoint("2001:db8::1", 80), Endpoint("192.0.2.1", 80)
    holder = wants()
    world.leases.take(holder, (first, second), plan(0, transport))
    world.opens.passes(DELAY)
    pools: list[Any] = [each if transport is None else each.pool(transport) for each in (first, second)]
    assert [pool for _, pool, _ in world.opens.asked] == pools
    up, late = Up(), Up()
    world.opens.asked.reverse()
    world.opens.comes(up)
    assert holder.heard == [("ready", up)] and holder.endpoint is second and (first.pending, second.pending) == (0, 1)
    world.opens.comes(late)
    assert late.heard == ["park"] and len(holder.heard) == 1


@pytest.mark.parametrize(("spoken", "how"), [(0, "open"), (HTTP2, "open"), (HTTP1, "connect")])
def test_a_server_that_could_choose_is_asked_once(spoken: int, how: str) -> None:
    world = World()
    holder = wants(b"HTTP/2")  # plain text to us
    world.endpoint.pool(OVER_TLS).spoken = spoken
    world.take(holder, 0, OVER_TLS)
    assert [each[0] for each in world.opens.asked] == [how]
    assert world.opens.either == ([] if how == "connect" else [not spoken])


def test_connections_of_another_transport_are_another_pool() -> None:
    world = World()
    plain, other = Up(), Up()
    world.endpoint.idle.append(plain)
    world.endpoint.pool(OVER_TLS).idle.append(other)
    holders = world.take(wants(), 0, OVER_TLS), world.take(wants())
    assert [holder.up for holder in holders] == [other, plain]
    assert [holder.heard for holder in holders] == [[("ready", other)], [("ready", plain)]]
    assert world.opens.asked == [] and world.opens.belonging == []


def test_connections_with_a_header_of_a_client_are_for_it_alone() -> None:
    world = World()
    holder, own = wants(), wants()
    holder.client = CLIENT
    world.take(holder, 0, FROM_PROXY)
    world.take(own, 0, FROM_PROXY)
    of_client, of_us = world.opens.belonging
    assert of_client.transport is not None and of_us.transport is not None
    assert of_client.transport.client == FOR_CLIENT and of_us.transport.client == OURSELVES
    assert [pool for _, pool, _ in world.opens.asked] == [of_client, of_us]


# --- losses


LOST = {"cause": "reset", "stale": True, "repeatable": True}


def lost(world: World, holder: Any, transport: Transport | None = None, **said: Any) -> bool:
    return bool(world.leases.lost(holder, plan(0, transport), **{**LOST, **said}))


@pytest.mark.parametrize(
    ("method", "said", "expected"),
    [
        (b"GET", {}, True),
        (b"PUT", {}, True),
        (b"POST", {}, False),
        (b"POST", {"cause": UNSENT}, True),
        (b"POST", {"cause": REFUSED}, True),
        (b"POST", {"is_idempotent": True}, True),
        (b"GET", {"stale": False}, False),
        (b"GET", {"repeatable": False}, False),
        (b"POST", {"cause": UNSENT, "stale": False}, False),
        (b"POST", {"cause": UNSENT, "repeatable": False}, False),
    ],
)
def test_what_is_sent_again(method: bytes, said: dict[str, Any], expected: bool) -> None:
    world = World()
    holder: Any = Holder(world.endpoint, method)
    holder.up = Up()
    assert lost(world, holder, **said) is expected
    assert holder.up is None and world.stale == holder.attempt == world.endpoint.pending == int(expected)
    assert holder.leased is expected
    if expected:
        up = Up()
        world.endpoint.idle.append(Up())  # it may be just as stale
        world.opens.comes(up)
        assert holder.heard == [("again", up)] and holder.up is up


@pytest.mark.parametrize("tries", [0, 3])
def test_it_is_sent_again_twice_beside_the_tries_of_policies(tries: int) -> None:
    world = World()
    holder: Any = Holder(world.endpoint)
    holder.attempt = tries
    assert [lost(world, holder, tries=tries) for _ in range(3)] == [True, True, False]
    assert world.stale == MAX_RESENT == 2 and holder.attempt == tries + 2
    assert world.endpoint.pending == 0
