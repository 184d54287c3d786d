"""Pools that all clients share: what one of them may have, what others still get, who is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.link.loads import HELD, Loads
from dataplane.link.pools import LITTLE, MUCH, RESERVE, BodyMemory, Places, Shares
from dataplane.telemetry.shortages import Shortages

ONE, OTHER, THIRD = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def filled(room: BodyMemory, address: str, size: int = 1) -> int:
    """What an address gets of a room when it takes all that it can have."""
    taken = 0
    while room.take(size, address):
        taken += size
    return taken


def test_one_address_leaves_a_quarter_and_others_share_what_is_left_in_the_same_way() -> None:
    room = BodyMemory(1024)
    assert [filled(room, each) for each in (ONE, OTHER, THIRD)] == [768, 192, 48]
    assert filled(room, ONE) == 0 and room.used == 1008


def test_a_thousand_hostile_addresses_leave_something_for_one_more() -> None:
    room = BodyMemory(1 << 28)
    for number in range(1000):
        assert room.take(65_536, f"10.0.{number >> 8}.{number & 255}")
    assert filled(room, ONE, 65_536) > 1 << 20


def test_what_was_freed_can_be_taken_again_by_anybody() -> None:
    room = BodyMemory(100)
    assert room.take(75, ONE) and not room.take(1, ONE) and room.take(18, OTHER)
    room.free(75, ONE)
    assert room.used == 18 and room.take(61, ONE) and not room.take(1, ONE)
    room.free(61, ONE)
    room.free(18, OTHER)
    assert room.used == 0 and len(room.shares) == 0, "who holds nothing is forgotten"


def test_addresses_of_one_ipv6_network_are_one() -> None:
    room = BodyMemory(100)
    assert room.take(75, "2001:db8::1") and not room.take(1, "2001:db8::2:3")
    assert room.take(18, "2001:db8:0:1::1")


def test_a_limit_of_the_whole_proxy_takes_the_place_of_the_worker_s_own() -> None:
    loads = Loads.local()
    room = BodyMemory(1000, loads, lambda: 40)
    assert not room.take(31, ONE) and room.take(30, ONE) and loads.total(HELD) == 30


def test_whoever_is_refused_is_named_with_whoever_holds_most() -> None:
    said: list[tuple[str, str | bytes, int, str | bytes, int]] = []
    shares = Shares("pool", lambda name, key, held, fullest: said.append((name, key, held, *fullest())))
    shares.add(ONE, 70)
    shares.add(OTHER, 5)
    assert not shares.fits(OTHER, 26, 25) and shares.fits(OTHER, 10, 25)
    assert said == [("pool", OTHER, 5, ONE, 70)]


def test_who_holds_most_is_not_looked_for_by_each_refusal() -> None:
    """A pool may have very many holders, and who is refused may ask again at once."""
    recorder: Any = SimpleNamespace(limited=lambda pool: None)
    asked: list[int] = []
    shortages = Shortages(recorder, lambda: 100.0)

    def fullest() -> tuple[str, int]:
        asked.append(1)
        return ONE, 70

    for _ in range(5):
        shortages.filled("pool", OTHER, 5, fullest)
    assert len(asked) == 1


@pytest.mark.parametrize("keys", [(ONE,), (ONE, b"identity"), (b"identity",)])
def test_places_are_shared_by_address_and_by_identity(keys: tuple[str | bytes, ...]) -> None:
    places = Places(8, Shares("places"))
    taken = 0
    while places.fits(*keys):
        places.hold(*keys)
        taken += 1
    assert taken == 6 and places.fits(OTHER) and not places.fits(OTHER, *keys)
    places.free(*keys)
    assert places.fits(*keys) and places.taken == 5


def test_the_end_of_much_is_told_once() -> None:
    told: list[int] = []
    room = BodyMemory(1 << 28)
    room.emptied = lambda: told.append(room.used)
    for _ in range(2):
        for number in range(10):
            assert room.take(MUCH // 8, f"10.0.0.{number}")
        for number in range(10):
            room.free(MUCH // 8, f"10.0.0.{number}")
    assert told == [MUCH // 4] * 2, "when less than a quarter is left"
    assert room.take(MUCH, ONE)
    room.free(MUCH, ONE)
    assert len(told) == 2, "what was little is not worth it"


class TestKeep:
    """Bytes that are here already."""

    def test_who_has_little_finds_room_in_the_reserve_until_that_is_used_up(self) -> None:
        room = BodyMemory(0)
        kept = [room.keep(LITTLE, f"10.0.{number >> 8}.{number & 255}") for number in range(300)]
        assert kept == [True] * (RESERVE // LITTLE) + [False] * (300 - RESERVE // LITTLE)
        assert room.used == RESERVE, "addresses without end have no more"

    def test_who_has_more_has_his_share(self) -> None:
        room = BodyMemory(8 * LITTLE)
        assert room.keep(6 * LITTLE, ONE) and not room.keep(1, ONE) and room.keep(LITTLE, OTHER)
        assert not room.keep(LITTLE + 1, OTHER)
