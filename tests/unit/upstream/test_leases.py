"""Leases: which connection a request gets, what is counted meanwhile, and what is sent again after a loss."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.carriers import REFUSED, UNSENT
from dataplane.http.messages import Peer
from dataplane.upstream.connecting import leave_endpoint, not_connected
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import MAX_RESENT, Leases, answered, release, uncount
from dataplane.upstream.limits import Quota
from dataplane.upstream.race import DELAY
from dataplane.upstream.settings import OURSELVES, PLAIN_TCP, Client, Tls, Transport
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes.leases import Holder, Many, Opening, Up

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


def test_the_last_used_connection_is_lent_else_one_is_opened() -> None:
    world = World()
    old, last = Up(), Up()
    world.endpoint.idle += [old, last]
    holders = [world.take(wants()) for _ in range(3)]
    assert [holder.heard for holder in holders] == [[("ready", last)], [("ready", old)], []]
    assert [holder.up for holder in holders] == [last, old, None]
    assert all(holder.leased and holder.endpoint is world.endpoint for holder in holders)
    assert world.endpoint.pending == 3 and [each[:2] for each in world.opens.asked] == [("connect", world.endpoint)]
    up = Up()
    world.opens.comes(up)
    assert holders[2].heard == [("ready", up)] and holders[2].up is up


def test_a_connection_that_cannot_be_opened_is_said_to_who_waits_for_it() -> None:
    world = World()
    holder = world.take(wants())
    world.opens.comes(None, "refused")
    assert holder.heard == [("connect", "refused", True)] and world.endpoint.pending == 0


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


@pytest.mark.parametrize(
    ("holder", "configured", "how"),
    [
        (wants(), 0, "connect"),
        (wants(), HTTP1, "connect"),
        (wants(), HTTP2, "open"),
        (wants(b"HTTP/2"), 0, "open"),  # the client's
        (wants(b"HTTP/2"), HTTP1, "connect"),
        (wants(b"HTTP/2", scheme=b"https"), 0, "connect"),  # of which nothing follows for plain text
        (wants(length=5), 0, "connect"),
        (wants(length=5, is_grpc=True), 0, "open"),
        (wants(length=-1, is_grpc=True), 0, "open"),
        (wants(length=-1, is_grpc=True), HTTP1, "connect"),
        (wants(length=0, is_grpc=True), 0, "connect"),  # a content type of nothing
        (wants(b"HTTP/2", 5, True, b"https"), 0, "open"),
    ],
)
def test_the_version_in_plain_text(holder: Any, configured: int, how: str) -> None:
    world = World()
    world.take(holder, configured)
    assert [each[0] for each in world.opens.asked] == [how]
    many, up = Many(), Up()
    world.opens.comes(many if how == "open" else up)
    assert holder.heard == [("ready", holder.up)]


@pytest.mark.parametrize(
    ("holder", "configured", "spoken", "how", "either"),
    [
        (wants(), 0, 0, "connect", None),
        (wants(), HTTP2, 0, "open", False),
        (wants(b"HTTP/2"), 0, 0, "connect", None),
        (wants(b"HTTP/2", 5, True), 0, 0, "open", False),
        (wants(b"HTTP/2", 5, True), 0, HTTP1, "open", False),  # gRPC needs it
        (wants(b"HTTP/2"), HTTP1, HTTP2, "connect", None),
    ],
)
def test_the_version_over_tls(holder: Any, configured: int, spoken: int, how: str, either: bool | None) -> None:
    world = World()
    holder.scheme = b"https"
    pool = world.endpoint.pool(OVER_TLS)
    pool.spoken = spoken
    world.take(holder, configured, OVER_TLS)
    assert [each[:2] for each in world.opens.asked] == [(how, pool)]
    assert world.opens.either == ([] if either is None else [either])


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


def test_a_limited_backend_is_asked_at_its_gate() -> None:
    world = World()
    quota = Quota("backend/a", 1)
    transport = Transport(PLAIN_TCP, None, "", quota)
    holder = world.take(wants(), 0, transport)
    pool = world.endpoint.pool(transport)
    assert world.rules.made == [quota]
    assert world.rules.taken == [(holder, pool, (world.endpoint,), HTTP1)] and world.opens.asked == []
    pool.gate = SimpleNamespace(take=lambda *said: world.rules.taken.append(said))
    world.take(wants(b"HTTP/2"), 0, transport)
    assert world.rules.made == [quota] and world.rules.taken[1][3] == HTTP2


# --- which endpoint


@pytest.mark.parametrize(
    ("tried", "expected"),
    [((), 0), ((0,), 1), ((1,), 0), ((0, 1), 2), ((2, 0, 1), 0), ((0, 1, 2), 0), ((1, 2, 0), 1)],
)
def test_a_request_that_is_tried_again_goes_elsewhere(tried: tuple[int, ...], expected: int) -> None:
    """Where all were tried, to another one than the last."""
    world = World([0.0] * 4)
    endpoints = [Endpoint(f"192.0.2.{number}", 80) for number in range(3)]
    holder = wants().tries(*(endpoints[number] for number in tried))
    world.leases.take(holder, endpoints, plan())
    assert holder.endpoint is endpoints[expected]
    assert holder.retries.tried == [endpoints[number] for number in (*tried, expected)]


def test_the_only_endpoint_is_tried_again() -> None:
    world = World()
    holder = wants().tries(world.endpoint)
    world.take(holder)
    assert holder.endpoint is world.endpoint and holder.retries.tried == [world.endpoint] * 2


@pytest.mark.parametrize(("tried", "others"), [(None, True), ((), True), ((0,), True), ((0, 1), False)])
def test_where_there_is_no_connection_it_is_said_whether_others_are_left(
    tried: tuple[int, ...] | None, others: bool
) -> None:
    endpoints = [Endpoint(f"192.0.2.{number}", 80) for number in range(2)]
    holder: Any = Holder(endpoints[0])
    if tried is not None:
        holder.tries(*(endpoints[number] for number in tried))
    not_connected(holder, "refused", endpoints)
    assert holder.heard == [("connect", "refused", others)] and endpoints[0].pending == 0 and not holder.leased


def test_a_connection_that_comes_too_late_is_kept_for_others() -> None:
    world = World()
    holder = world.take(wants())
    release(holder)
    up = Up()
    world.opens.comes(up)
    assert up.heard == ["park"] and holder.heard == [] and world.endpoint.pending == 0
    other = world.take(wants())
    release(other)
    world.opens.comes(None, "refused")
    assert other.heard == []


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


@pytest.mark.parametrize("transport", [None, OVER_TLS])
def test_a_stream_that_was_lost_is_another_stream(transport: Transport | None) -> None:
    world = World()
    pool: Any = world.endpoint if transport is None else world.endpoint.pool(transport)
    holder: Any = Holder(world.endpoint)
    many = Many()
    world.opens.share(pool).connections.append(many)
    holder.up = SimpleNamespace(is_shared=True)
    assert lost(world, holder, transport)
    assert holder.heard == [("again", holder.up)] and holder.up.connection is many and world.opens.asked == []


def test_a_connection_for_one_client_is_opened_again_for_it() -> None:
    world = World()
    holder: Any = Holder(world.endpoint)
    holder.client = CLIENT
    assert lost(world, holder, FROM_PROXY)
    ((how, pool, _),) = world.opens.asked
    assert how == "connect" and pool.transport == FROM_PROXY.of(CLIENT) and world.opens.belonging == [pool]


def test_what_is_sent_again_to_a_limited_backend_asks_at_its_gate() -> None:
    world = World()
    transport = Transport(PLAIN_TCP, None, "", Quota("backend/a", 1))
    pool = world.endpoint.pool(transport)
    pool.gate = SimpleNamespace(take=lambda *said: world.rules.taken.append(said))
    holder: Any = Holder(world.endpoint)
    assert lost(world, holder, transport)
    assert world.rules.taken == [(holder, pool, (), HTTP1)] and world.opens.asked == []


# --- what an endpoint is judged by


@pytest.mark.parametrize(
    ("before", "status", "after"),
    [
        (1.0, 200, 1.0),
        (1.0, 499, 1.0),
        (1.0, 500, 0.7),
        (1.0, 503, 0.7),
        (0.5, 200, 0.65),
        (0.5, 499, 0.65),
        (0.5, 500, 0.35),
    ],
)
def test_answers_say_whether_an_endpoint_is_well(before: float, status: int, after: float) -> None:
    endpoint = Endpoint("192.0.2.1", 80)
    endpoint.health = before
    head: Any = SimpleNamespace(status=status)
    answered(plan(), endpoint, head)
    assert endpoint.health == pytest.approx(after)


def test_the_state_of_rules_judges_in_the_place_of_all() -> None:
    endpoint, said = Endpoint("192.0.2.1", 80), list[Any]()
    state = SimpleNamespace(answered=lambda *each: said.append(each), failed=lambda *each: said.append(each))
    head: Any = SimpleNamespace(status=500)
    exchange: Any = object()
    answered(plan(rule_state=state), endpoint, head, exchange)
    world = World()
    world.leases.failed(plan(rule_state=state), endpoint)
    assert said == [(endpoint, head, exchange, None), (endpoint,)] and endpoint.health == 1.0
    assert world.rules.heard == [("failed", "backend/a", "192.0.2.1:80")]


def test_a_try_that_brought_nothing_is_held_against_its_endpoint() -> None:
    world = World()
    world.leases.failed(plan(), None)
    assert world.rules.heard == []
    world.leases.failed(plan(), world.endpoint)
    assert world.rules.heard == [("failed", "backend/a", "192.0.2.1:80")] and world.endpoint.health == pytest.approx(
        0.7
    )


def test_the_state_of_rules_of_a_plan_is_made_once() -> None:
    world = World()
    made = plan()
    rules: Any = object()
    state = world.leases.rule_state(made, rules)
    assert made.rule_state is state is world.leases.rule_state(made, rules)
    assert world.rules.made == [("backend/a", rules)]


# --- what is counted


class Tally:
    def __init__(self, admits: bool) -> None:
        self.admits, self.heard = admits, list[Any]()

    def admit(self) -> bool:
        self.heard.append("admit")
        return self.admits

    def ended(self, was_retried: bool) -> None:
        self.heard.append(was_retried)


@pytest.mark.parametrize("admits", [True, False])
def test_a_request_is_counted_once_or_refused(admits: bool) -> None:
    world, tally = World(), Tally(admits)
    holder: Any = Holder()
    state: Any = SimpleNamespace(tally=tally)
    assert world.leases.admits(holder, plan(), state) is admits
    if not admits:
        assert holder.heard == [("limit", "backend/a: limits.maxRequests", False)] and holder.counted is None
        assert world.rules.heard == [("limited", "backend/a", "maxRequests")]
        return
    assert world.leases.admits(holder, plan(), state) and tally.heard == ["admit"] and holder.counted is tally
    uncount(holder, True)
    uncount(holder)
    assert tally.heard == ["admit", True] and holder.counted is None


def test_without_a_limit_nothing_is_counted() -> None:
    world = World()
    holder: Any = Holder()
    state: Any = SimpleNamespace(tally=None)
    assert world.leases.admits(holder, plan(), state) and holder.counted is None
    uncount(holder)


def test_what_is_over_is_settled_once_and_its_connection_is_given_up() -> None:
    endpoint = Endpoint("192.0.2.1", 80)
    holder: Any = Holder(endpoint)
    up = holder.up = Up()
    leave_endpoint(holder)
    release(holder)
    release(holder)
    assert endpoint.pending == 0 and not holder.leased and holder.lease == 2
    assert up.heard == ["reset"] and holder.up is None


# --- names


def test_a_name_that_is_not_known_yet_begins_again_when_it_is() -> None:
    world, begun = World(), list[Any]()
    holder: Any = Holder()
    kind = SimpleNamespace(begin=lambda *said: begun.append(said))
    made = plan()
    assert world.leases.resolved(holder, made, kind) == () and holder.heard == []
    world.ready[0]()
    assert begun == [(holder, made, world.leases)]
    holder.lease += 1  # nobody waits for it any more
    world.ready[0]()
    assert len(begun) == 1


def test_what_a_name_resolves_to() -> None:
    world = World()
    holder: Any = Holder()
    world.names[b"origin.test"] = [world.endpoint]
    assert world.leases.resolved(holder, plan(), None) == [world.endpoint] and holder.heard == []
    world.names[b"origin.test"] = ()
    assert world.leases.resolved(holder, plan(), None) == ()
    assert holder.heard == [("dns", "origin.test:80 cannot be resolved", False)]


def test_who_left_is_said_where_connections_are_for_one_client() -> None:
    world = World()
    world.leases.client_left(CLIENT)
    assert world.opens.left == []
    world.opens.of_clients[FOR_CLIENT] = []
    world.leases.client_left(CLIENT)
    assert world.opens.left == [CLIENT]
