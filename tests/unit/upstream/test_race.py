"""Happy Eyeballs: an IP family that does not work delays nobody for long (RFC 8305)."""

from __future__ import annotations

from functools import partial

import pytest

from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.race import DELAY, of_other_family
from dataplane.upstream.versions import BY_REQUEST, HTTP2
from tests.carriers.run import Names
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import text_of

V6, V4, OTHER_V4 = "2001:db8::1", "192.0.2.1", "192.0.2.2"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
BOTH_VERSIONS = pytest.mark.parametrize("spoken", [BY_REQUEST, HTTP2])


class World:
    """A proxy whose connections to endpoints come when the test says so."""

    def __init__(self, *addresses: str, policies: str = "{}", spoken: int = BY_REQUEST) -> None:
        self.proxy = MemoryProxy(
            text_of(f"policies: {policies}\nbackends: [{{host: 'origin.test:80'}}]"), spoken=spoken
        )
        self.proxy.context.resolver = Names({"origin.test": addresses})
        self.connector = self.proxy.connector
        self.connector.hold = True
        self.far: list[Endpoint2] = []
        self.connector.on_share = lambda upstream: self.far.append(Endpoint2(upstream))
        self.client = self.proxy.connect()
        self.client.send(GET)

    @property
    def tried(self) -> list[str]:
        return [endpoint.address for endpoint, _ in self.connector.waiting]

    def connects(self, address: str, cause: str = "") -> None:
        """The connection to this address comes, or fails."""
        ((endpoint, done),) = [each for each in self.connector.waiting if each[0].address == address]
        self.connector.waiting.remove((endpoint, done))
        if isinstance(done, partial):  # of HTTP/2
            done(None, cause)
            return
        if cause:
            done(None, cause)
            return
        self.connector.endpoints.add(endpoint)
        self.connector.count.upstream_opened("opened")
        done(self.connector.opened(endpoint), "")

    def pending(self) -> dict[str, int]:
        found = self.proxy.context.resolver.endpoints(b"origin.test", 80, lambda: None)
        return {each.address: each.pending for each in found or ()}

    def idle(self) -> dict[str, int]:
        found = self.proxy.context.resolver.endpoints(b"origin.test", 80, lambda: None)
        return {each.address: len(each.idle) for each in found or ()}


def test_the_second_family_is_tried_beside_the_first_after_a_quarter_of_a_second() -> None:
    world = World(V6, V4)
    assert world.tried == [V6]
    world.connector.advance(DELAY - 0.01)
    assert world.tried == [V6]
    world.connector.advance(0.01)
    assert world.tried == [V6, V4]
    world.connects(V4)
    assert world.pending() == {V6: 0, V4: 1}
    assert world.proxy.upstream.received.startswith(b"GET / ")
    world.connects(V6)
    assert world.idle() == {V6: 1, V4: 0}, "kept for later requests"
    world.connector.upstreams[0].answer(OK)
    assert world.client.received.startswith(b"HTTP/1.1 200") and world.pending() == {V6: 0, V4: 0}
    assert f"endpoint={V4}:80" in world.proxy.log_lines()[-1]


@BOTH_VERSIONS
def test_the_first_one_wins_when_it_is_there_in_time(spoken: int) -> None:
    world = World(V6, V4, spoken=spoken)
    world.connects(V6)
    world.connector.advance(1)
    assert world.tried == [] and world.pending() == {V6: 1, V4: 0}
    if spoken == HTTP2:
        world.far[0].answer(world.far[0].requests[0], 200, b"ok")
    else:
        world.proxy.upstream.answer(OK)
    assert world.client.received.startswith(b"HTTP/1.1 200")


def test_the_first_one_may_still_win_when_both_are_tried() -> None:
    world = World(V6, V4)
    world.connector.advance(DELAY)
    world.connects(V6)
    world.connects(V4)
    assert world.pending() == {V6: 1, V4: 0} and world.idle() == {V6: 0, V4: 1}


def test_after_a_failure_the_other_family_is_tried_at_once_and_preferred_from_then_on() -> None:
    world = World(V6, V4)
    world.connects(V6, "no route")
    assert world.tried == [V4]
    world.connector.advance(1)
    assert world.tried == [V4]
    world.connects(V4)
    first, second = world.proxy.context.resolver.endpoints(b"origin.test", 80, lambda: None) or ()
    assert (first.health, second.health) == (pytest.approx(0.7), 1.0)


def test_both_fail() -> None:
    world = World(V6, V4)
    world.connector.advance(DELAY)
    world.connects(V4, "refused by v4")
    assert world.client.received == b""
    world.connects(V6, "refused by v6")
    assert world.client.received.startswith(b"HTTP/1.1 503") and world.pending() == {V6: 0, V4: 0}
    assert "refused by v4; refused by v6" in world.proxy.log_lines()[-1]


def test_both_fail_one_after_the_other() -> None:
    world = World(V6, V4)
    world.connects(V6, "refused by v6")
    world.connects(V4, "refused by v4")
    assert world.client.received.startswith(b"HTTP/1.1 503") and world.pending() == {V6: 0, V4: 0}
    assert "refused by v6; refused by v4" in world.proxy.log_lines()[-1]


def test_a_client_that_leaves_begins_no_second_one_and_what_comes_is_kept() -> None:
    world = World(V6, V4)
    world.client.lose()
    world.connector.advance(DELAY)
    assert world.tried == [V6]
    world.connects(V6)
    assert world.idle() == {V6: 1, V4: 0} and world.pending() == {V6: 0, V4: 0}


@BOTH_VERSIONS
def test_a_retry_goes_to_neither_of_the_two_that_were_tried(spoken: int) -> None:
    world = World(V6, V4, OTHER_V4, policies="{retry: {attempts: 1, backoff: 1ms}}", spoken=spoken)
    world.connects(V6, "no route")
    world.connects(V4)
    world.proxy.upstream.lose(ConnectionResetError())
    world.proxy.advance(1)
    assert world.tried == [OTHER_V4]


@BOTH_VERSIONS
def test_endpoints_of_one_family_are_not_raced(spoken: int) -> None:
    world = World(V4, OTHER_V4, spoken=spoken)
    world.connector.advance(1)
    assert world.tried == [V4]


# HTTP/2: the first connection to an endpoint, which all who wait for a stream share.


def shared(world: World) -> dict[str, int]:
    """Connections of HTTP/2 by address."""
    found = world.proxy.context.resolver.endpoints(b"origin.test", 80, lambda: None)
    return {each.address: len(each.shared.connections) if each.shared else 0 for each in found or ()}


def test_of_http2_the_second_family_is_tried_after_a_quarter_of_a_second_and_may_win() -> None:
    world = World(V6, V4, spoken=HTTP2)
    assert world.tried == [V6]
    world.connector.advance(DELAY - 0.01)
    assert world.tried == [V6]
    world.connector.advance(0.01)
    assert world.tried == [V6, V4]
    world.connects(V4)
    assert world.pending() == {V6: 0, V4: 1}
    (request,) = world.far[0].requests
    world.connects(V6)
    assert shared(world) == {V6: 1, V4: 1}, "both are kept"
    assert [len(far.requests) for far in world.far] == [1, 0], "the request is sent once"
    world.far[0].answer(request, 200, b"ok")
    assert world.client.received.startswith(b"HTTP/1.1 200") and world.pending() == {V6: 0, V4: 0}
    assert f"endpoint={V4}:80" in world.proxy.log_lines()[-1]


def test_of_http2_a_failure_begins_the_other_at_once_and_two_of_them_are_one_answer() -> None:
    world = World(V6, V4, spoken=HTTP2)
    world.connects(V6, "no route")
    assert world.tried == [V4] and world.client.received == b""
    world.connects(V4, "refused by v4")
    assert world.client.received.startswith(b"HTTP/1.1 503") and world.pending() == {V6: 0, V4: 0}
    assert "no route; refused by v4" in world.proxy.log_lines()[-1]
    world.connector.advance(20)
    assert world.tried == []


def test_of_http2_all_who_wait_share_the_connections_and_a_client_that_leaves_takes_none() -> None:
    world = World(V6, V4, spoken=HTTP2)
    others = [world.proxy.connect() for _ in range(3)]
    for each in others:
        each.send(GET)
    others[0].lose()
    assert sorted(world.tried) == [V4, V6], "each request began with the one that had fewer, and opened none of its own"
    world.connector.advance(DELAY)
    assert sorted(world.tried) == [V4, V6]
    world.connects(V4)
    assert len(world.far[0].requests) == 3 and world.pending() == {V6: 0, V4: 3}
    world.connects(V6)
    assert world.far[1].requests == []
    later = world.proxy.connect()
    later.send(GET)
    assert world.tried == [], "there are connections now: nobody races"


def test_of_http2_nobody_races_where_connections_are_counted() -> None:
    world = World(V6, V4, policies="{limits: {maxConnections: 4}}", spoken=HTTP2)
    world.connector.advance(1)
    assert world.tried == [V6]


def test_of_other_family() -> None:
    v6, v4, socket = Endpoint(V6, 80), Endpoint(V4, 80), Endpoint("", 0, "/run/a.sock")
    assert of_other_family(v6, (v6, v4)) is v4 and of_other_family(v4, (v4, v6)) is v6
    assert of_other_family(v6, (v6,)) is None and of_other_family(v4, ()) is None
    assert of_other_family(socket, (socket, v6)) is None and of_other_family(None, (v6, v4)) is None
