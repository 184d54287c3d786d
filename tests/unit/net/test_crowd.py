"""Whose connection goes when there must be room: the oldest idle one of the address that has most."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from dataplane.link.loads import CONNECTIONS, Loads
from dataplane.link.sources import source_of
from dataplane.net.crowd import BUSY, LOOKS, Crowd


@dataclass(eq=False)
class Guest:
    name: str
    idle_from: float = 0.0
    closed: list[str] = field(default_factory=list)

    def close_idle(self) -> None:
        self.closed.append(self.name)

    def __repr__(self) -> str:
        return self.name


def crowd(**addresses: list[float]) -> tuple[Crowd[Guest], dict[str, Guest]]:
    """Addresses by a letter, each with the moments since when its connections are idle."""
    made: Crowd[Guest] = Crowd(Loads.local())
    guests = {}
    for letter, moments in addresses.items():
        for number, moment in enumerate(moments):
            guest = guests[f"{letter}{number}"] = Guest(f"{letter}{number}", moment)
            made.add(guest, f"192.0.2.{ord(letter)}")
    return made, guests


@pytest.mark.parametrize(
    ("addresses", "goes"),
    [
        ({"a": [3.0], "b": [2.0, 4.0]}, "b0"),  # of who has most
        ({"a": [1.0], "b": [2.0, 4.0]}, "b0"),  # also where another one is older
        ({"a": [BUSY, 5.0, 4.0], "b": [1.0]}, "a2"),
        ({"a": [BUSY, BUSY], "b": [1.0]}, "b0"),  # none of theirs is idle: those with fewer
        ({"a": [5.0], "b": [1.0], "c": [3.0]}, "b0"),  # several have as many: the oldest of all these
        ({"a": [BUSY], "b": [BUSY]}, None),
        ({}, None),
    ],
)
def test_who_goes(addresses: dict[str, list[float]], goes: str | None) -> None:
    made, guests = crowd(**addresses)
    found = made.oldest_idle()
    assert (None if found is None else found.name) == goes
    assert len(made) == len(guests)


def test_of_one_address() -> None:
    made, guests = crowd(a=[2.0, 1.0, BUSY], b=[0.0])
    assert made.oldest_idle_of(guests["a2"]) is guests["a1"]
    made.discard(guests["a1"])
    assert made.oldest_idle_of(guests["a2"]) is guests["a0"]


def test_of_those_who_are_idle_as_long_the_first_that_came_goes() -> None:
    """Those who had a request meanwhile have not lost their place, as long as all are looked at."""
    made, guests = crowd(a=[BUSY] + [5.0] * (LOOKS - 1))
    assert made.oldest_idle() is guests["a1"] and made.oldest_idle_of(guests["a2"]) is guests["a1"]
    guests["a0"].idle_from = 5.0
    assert made.oldest_idle() is guests["a0"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
        ("not:an:address", "not:another", False),
    ],
)
def test_which_addresses_are_one(one: str, other: str, same: bool) -> None:
    assert (source_of(one) == source_of(other)) is same


def test_it_is_counted_for_all_workers() -> None:
    made, guests = crowd(a=[1.0, 2.0], b=[3.0])
    assert made.loads.total(CONNECTIONS) == 3
    assert [made.of_source(guests[name]) for name in ("a0", "b0")] == [2, 1]
    made.discard(guests["a0"])
    made.discard(guests["a0"])  # it is gone already
    assert made.loads.total(CONNECTIONS) == 2 and made.of_source(guests["a1"]) == 1
    assert guests["a0"] not in made and list(made) == [guests["a1"], guests["b0"]]


def test_in_a_large_crowd_those_behind_get_their_turn() -> None:
    """What is looked at is bounded, and still the one idle connection of many is found."""
    made, guests = crowd(a=[BUSY] * (3 * LOOKS))
    guests[f"a{3 * LOOKS - 1}"].idle_from = 7.0
    found = [made.oldest_idle() for _ in range(3)]
    assert found == [None, None, guests[f"a{3 * LOOKS - 1}"]]


def test_among_many_addresses_those_behind_get_their_turn() -> None:
    made: Crowd[Guest] = Crowd(Loads.local())
    guests = [Guest(str(number), BUSY) for number in range(3 * LOOKS)]
    for number, guest in enumerate(guests):
        made.add(guest, f"10.0.{number // 256}.{number % 256}")
    guests[-1].idle_from = 7.0
    assert [made.oldest_idle() for _ in range(3)] == [None, None, guests[-1]]


def test_any_history_leaves_what_a_plain_list_says() -> None:
    """Coming, going, being replaced and growing busy, against the rule in one line."""
    random = Random(7)
    made: Crowd[Guest] = Crowd(Loads.local())
    here: dict[Guest, str] = {}
    for step in range(3000):
        choice = random.random()
        if choice < 0.5 or not here:
            guest, address = Guest(str(step), float(step)), f"192.0.2.{random.randrange(12)}"
            here[guest] = address
            made.add(guest, address)
        elif choice < 0.8:
            guest = random.choice(list(here))
            del here[guest]
            made.discard(guest)
        elif choice < 0.9:
            guest = random.choice(list(here))
            successor = Guest(f"{guest.name}'", guest.idle_from)
            here[successor] = here.pop(guest)
            made.replace(guest, successor)
            assert guest not in made and made.here(successor) == list(here.values()).count(here[successor])
        else:
            random.choice(list(here)).idle_from = random.choice([BUSY, float(step)])
        assert len(made) == len(here) == made.loads.total(CONNECTIONS)
        if len(here) <= LOOKS:
            assert made.oldest_idle() in _by_rule(here)


def _by_rule(here: dict[Guest, str]) -> list[Guest | None]:
    sizes = {address: list(here.values()).count(address) for address in here.values()}
    for size in sorted(set(sizes.values()), reverse=True):
        idle = [guest for guest, address in here.items() if sizes[address] == size and guest.idle_from < BUSY]
        if idle:
            oldest = min(guest.idle_from for guest in idle)
            return [guest for guest in idle if guest.idle_from == oldest]
    return [None]
