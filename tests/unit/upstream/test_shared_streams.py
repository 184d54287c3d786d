"""Streams of HTTP/2 of one endpoint: who gets one, who waits, how many connections are opened, what ends waiting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from dataplane.net.turns import SHARE, Turns
from dataplane.upstream.connections import SPEAKS_HTTP1
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.race import DELAY
from dataplane.upstream.shared import EXPECTED, MAX_CONNECTIONS, SLICE, SharedConnections
from tests.fakes.leases import Holder, Many, Opening, Up

NAME = "192.0.2.1:80"
WAIT = 10.0
"""Seconds: as long as a connection may take to open where nobody says so."""


class World:
    def __init__(self, full: Any = None) -> None:
        self.opens = Opening()
        self.opens.full = full
        self.endpoint: Any = Endpoint("192.0.2.1", 80)
        self.shared: Any = self.opens.share(self.endpoint)

    def take(self, count: int = 1, again: bool = False, either: bool = False, peer: str | None = None) -> list[Holder]:
        holders = [Holder(self.endpoint) for _ in range(count)]
        for holder in holders:
            holder.peer = peer
            self.shared.take(holder, () if again else (self.endpoint,), either)
        return holders

    def connected(self, most: int = 100, streams: int = 0) -> Many:
        made = Many(most, streams)
        self.shared.connections.append(made)
        return made

    @property
    def opening(self) -> int:
        return len(self.opens.asked)


def test_streams_are_those_of_the_first_connection_that_has_room() -> None:
    world = World()
    full, free, idle = world.connected(1, 1), world.connected(2, 1), world.connected()
    (holder,) = world.take()
    assert holder.up.connection is free and (full.streams, free.streams, idle.streams) == (1, 2, 0)
    assert world.shared.idle == 1 and world.shared.streams == 3


def test_who_comes_behind_others_does_not_go_before_them() -> None:
    world = World()
    (first,) = world.take()
    world.connected(1)  # it has room, and nobody has said so yet
    (second,) = world.take()
    assert first.heard == second.heard == [] and not world.shared.has_capacity
    world.opens.comes(Many(0))
    assert len(first.heard) == 1 and second.heard == []


def test_a_connection_is_opened_for_every_hundred_who_wait() -> None:
    world = World()
    world.take(EXPECTED)
    assert world.opening == 1
    world.take()
    assert world.opening == 2
    world.take(EXPECTED * MAX_CONNECTIONS)
    assert world.opening == MAX_CONNECTIONS


def test_an_endpoint_that_takes_no_stream_at_all_is_not_connected_to_once_more() -> None:
    world = World()
    useless = world.connected(0)
    (holder,) = world.take()
    assert world.opening == 0
    useless.most = 1
    useless.on_capacity()
    assert holder.heard == []  # nobody listens to one that came by no opening
    useless.is_spent = True
    world.shared.open_more()
    assert world.opening == 1


@pytest.mark.parametrize(
    ("either", "expected"), [([False, False], False), ([False, True], True), ([True, False], True)]
)
def test_the_server_may_choose_where_one_of_those_who_wait_lets_it(either: list[bool], expected: bool) -> None:
    world = World()
    busy = world.connected(0)
    for each in either:
        world.take(either=each)
    assert world.opens.either == []
    busy.is_spent = True
    world.shared.open_more()
    assert world.opens.either == [expected]


# --- what cannot be opened


def test_many_are_failed_in_slices_in_their_order() -> None:
    """The worker does something else in between."""
    world = World()
    holders = world.take(2 * SLICE + 1)
    holders[SLICE].lease += 1
    for _ in range(world.opening):
        world.opens.comes(None, "refused")
    assert world.shared.waiting == 0
    for done in (SLICE, 2 * SLICE, 2 * SLICE + 1):
        wanted = [number < done and number != SLICE for number in range(len(holders))]  # that one has left
        assert [holder.heard != [] for holder in holders] == wanted
        due = [each for each in world.opens.timers if each[0] == world.opens.now]
        for each in due:
            world.opens.timers.remove(each)
            each[1]()
        assert len(due) == (done <= 2 * SLICE)


def test_they_wait_on_while_another_connection_is_opened_or_there() -> None:
    world = World()
    holders = world.take(EXPECTED + 1)
    world.opens.comes(None, "refused")
    assert all(holder.heard == [] for holder in holders)
    world.opens.comes(Many(1))
    assert [len(holder.heard) for holder in holders[:2]] == [1, 0]
    world.opens.comes(None, "refused")
    assert holders[1].heard == [], "a stream will end"
    world.shared.connections[0].is_spent = True
    world.shared.open_more()
    world.opens.comes(None, "refused")
    assert holders[1].heard == [("connect", "refused", True)]


def test_where_the_server_chose_http1_so_do_those_who_may() -> None:
    world = World()
    (strict,) = world.take()
    may, again, more, left = (world.take(again=again, either=True)[0] for again in (False, True, False, False))
    left.lease += 1
    up = Up()
    world.endpoint.idle.append(up)
    world.opens.comes(None, SPEAKS_HTTP1)
    assert strict.heard == [("connect", f"{NAME} does not speak HTTP/2 (ALPN)", True)]
    assert may.heard == [("ready", up)] and may.up is up and left.heard == []
    assert [each[0] for each in world.opens.asked] == ["connect", "connect"], "a request is sent again on a new one"
    for holder in (again, more):
        new = Up()
        world.opens.comes(new)
        assert holder.up is new
    assert again.heard[0][0] == "again" and more.heard[0][0] == "ready" and world.shared.waiting == 0


# --- bounds


class Late(World):
    """Whose loop is turned by hand; each look at its clock finds the share of a turn used up."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], None]] = []
        ticks = count(0.0, SHARE)
        self.opens.writes.turns = Turns(self.calls.append, lambda: next(ticks))

    def turn(self) -> None:
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()


def test_streams_are_lent_to_many_in_turns() -> None:
    world = Late()
    holders = world.take(EXPECTED)
    many, before = Many(), 0
    world.opens.comes(many)
    while before < EXPECTED:
        served = [bool(holder.heard) for holder in holders]
        assert served.count(True) == many.streams > before and served == sorted(served, reverse=True)
        assert world.opening == 0, "there are streams: no other connection is wanted"
        before = many.streams
        many.on_capacity()
        assert many.streams == before, "others' events do not make a turn longer"
        for _ in range(3):  # those who wait may leave one to others
            world.turn()
    assert not world.shared.waiting and world.opening == 0


def test_who_comes_while_others_are_served_waits_behind_them() -> None:
    world = Late()
    holders = world.take(3)
    world.opens.comes(Many())
    (last,) = world.take()
    assert world.opening == 0 and last.heard == [] and world.shared.waiting == 3
    while world.calls and not last.heard:
        world.turn()
    assert all(holder.heard for holder in holders) and last.heard


def test_the_server_chose_http1_for_many_in_turns() -> None:
    world = Late()
    holders = world.take(10)
    world.opens.comes(None, SPEAKS_HTTP1)
    heard = 0
    while heard < len(holders):
        before, heard = heard, sum(bool(holder.heard) for holder in holders)
        assert heard - before <= 1 and (world.calls or heard == len(holders))
        world.turn()


def test_many_who_have_waited_too_long_are_failed_in_slices() -> None:
    world = World()
    world.connected(0)
    holders = world.take(3 * SLICE)
    calls = list[int]()
    later = world.opens.later

    def counted(seconds: float, call: Any) -> None:
        calls.append(sum(holder.heard != [] for holder in holders))
        later(seconds, call)

    world.opens.later = counted  # type: ignore[method-assign]
    world.opens.passes(WAIT)
    assert calls == [SLICE, 2 * SLICE] and all(len(holder.heard) == 1 for holder in holders)


def test_what_has_lent_no_stream_for_so_long_is_closed() -> None:
    world = World()
    unseen, unused, used, late = (world.connected(streams=streams) for streams in (0, 0, 1, 0))
    unused.idle_since = used.idle_since = late.idle_since = 10.0
    late.late = True  # it broke off, and is gone by itself
    assert world.shared.close_unused(40.0, 30.0) == 0 and unseen.idle_since == 40.0
    assert world.shared.close_unused(40.1, 30.0) == 1
    assert world.shared.connections == [unseen, used, late]
    assert (unused.heard, unseen.heard, used.heard, late.heard) == (["close"], [], [], [])
    assert world.shared.close_unused(80.0, 30.0) == 1 and unseen.heard == ["close"]


# --- both families


class Race:
    """One that wants a stream of an endpoint of either family."""

    def __init__(self, full: Any = None) -> None:
        self.opens = Opening()
        self.opens.full = full
        self.first, self.second = Endpoint("2001:db8::1", 80), Endpoint("192.0.2.1", 80)
        self.holder: Any = Holder(self.first)
        self.shared: Any = self.opens.share(self.first)
        self._take(self.shared)

    def _take(self, shared: Any) -> None:
        shared.take(self.holder, (self.first, self.second))

    @property
    def tried(self) -> list[str]:
        return [pool.address for _, pool, _ in self.opens.asked]


def test_a_race_whose_holder_has_left_is_over() -> None:
    race = Race()
    race.holder.lease += 1
    race.opens.passes(DELAY)
    assert race.tried == ["2001:db8::1"]
    many = Many()
    race.opens.comes(many)
    assert many.streams == 0 and race.holder.heard == []


def test_no_race_begins_where_there_is_a_connection_or_nowhere_else_to_go() -> None:
    opens, first, second = Opening(), Endpoint("2001:db8::1", 80), Endpoint("192.0.2.1", 80)
    for endpoints, connections in (((first,), []), ((), []), ((first, second), [Many(1, 1)])):
        shared: Any = SharedConnections(first, opens)
        shared.connections += connections
        holder: Any = Holder(first)
        shared.take(holder, endpoints)
        assert shared.waiting == 1
    assert all(at == opens.now + WAIT for at, _ in opens.timers), "none of a race"
