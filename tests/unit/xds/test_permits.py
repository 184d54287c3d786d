"""Permits to send: bytes under way are bounded, the line is kept, the slow hold up nobody while there is room."""

from __future__ import annotations

import random

from controlplane.xds.permits import Permit, Permits
from tests.harness.seeds import times


class Line:
    """Permits of streams that are known by name."""

    def __init__(self, most: int = 100, most_slow: int = 50) -> None:
        self.permits = Permits(most, most_slow)
        self.woken: list[str] = []

    def ask(self, name: str, size: int, ticket: int = 0, *, slow: bool = False) -> Permit:
        return self.permits.ask(ticket or self.permits.ticket(), size, lambda: self.woken.append(name), slow=slow)


def test_granted_at_once_while_there_is_room() -> None:
    line = Line()
    first, second = line.ask("a", 60), line.ask("b", 40)
    assert (first.granted, second.granted, line.woken) == (True, True, [])
    assert line.permits.under_way == 100


def test_the_next_one_is_woken_when_a_permit_ends() -> None:
    line = Line()
    first, second = line.ask("a", 60), line.ask("b", 41)
    assert not second.granted
    line.permits.end(first)
    assert (second.granted, line.woken, line.permits.under_way) == (True, ["b"], 41)


def test_tickets_count_from_one() -> None:
    """A stream that has none yet has the number nought."""
    permits = Permits()
    assert [permits.ticket() for _ in range(3)] == [1, 2, 3]


def test_who_began_first_goes_on_first() -> None:
    line = Line()
    early, late = line.permits.ticket(), line.permits.ticket()
    busy = line.ask("busy", 100)
    line.ask("late", 100, late)
    line.ask("early", 100, early)
    line.permits.end(busy)
    assert line.woken == ["early"]


def test_of_two_with_one_ticket_the_first_to_ask_goes_first() -> None:
    line = Line()
    busy, ticket = line.ask("busy", 100), line.permits.ticket()
    first = line.ask("first", 100, ticket)
    line.ask("second", 100, ticket)
    line.permits.end(busy)
    assert line.woken == ["first"]
    line.permits.end(first)
    assert line.woken == ["first", "second"]


def test_a_big_message_is_not_overtaken_by_small_ones() -> None:
    line = Line()
    busy = line.ask("busy", 60)
    line.ask("big", 90)
    assert not line.ask("small", 10).granted
    line.permits.end(busy)
    assert line.woken == ["big", "small"]


def test_a_message_bigger_than_the_account_goes_alone() -> None:
    line = Line()
    huge = line.ask("huge", 1000)
    assert huge.granted
    assert not line.ask("small", 1).granted
    line.permits.end(huge)
    assert line.woken == ["small"]


def test_a_slow_permit_makes_room() -> None:
    line = Line()
    slow = line.ask("slow", 50)
    line.ask("other", 60)
    line.permits.delay(slow)
    line.permits.delay(slow)
    assert (line.woken, line.permits.under_way) == (["other"], 110)
    assert not line.ask("slow as well", 10, slow=True).granted
    line.permits.end(slow)
    assert line.woken == ["other", "slow as well"]


def test_a_slow_permit_stays_when_the_slow_have_no_room() -> None:
    line = Line()
    first, second = line.ask("first", 50), line.ask("second", 50)
    line.ask("other", 100)
    line.permits.delay(first)
    line.permits.delay(second)
    assert (line.woken, line.permits.under_way, second.slow) == ([], 100, False)


def test_a_permit_that_waits_may_be_given_up() -> None:
    line = Line()
    busy, gone = line.ask("busy", 100), line.ask("gone", 100)
    line.ask("next", 100)
    line.permits.end(gone)
    line.permits.end(gone)
    line.permits.end(busy)
    assert line.woken == ["next"]


def test_the_line_moves_when_its_first_gives_up() -> None:
    line = Line()
    line.ask("busy", 60)
    first = line.ask("first", 100)
    line.ask("second", 40)
    line.permits.end(first)
    assert line.woken == ["second"]


def test_no_order_of_events_exceeds_the_bound_or_forgets_anybody(dice: random.Random) -> None:
    line = Line()
    open_permits: list[Permit] = []
    for number in range(times(3000)):
        match dice.randrange(3):
            case 0:
                open_permits.append(line.ask(str(number), dice.randint(1, 50), slow=dice.random() < 0.2))
            case 1 if open_permits:
                line.permits.end(open_permits.pop(dice.randrange(len(open_permits))))
            case 2 if open_permits:
                line.permits.delay(dice.choice(open_permits))
        granted = [permit for permit in open_permits if permit.granted]
        assert line.permits.under_way == sum(permit.size for permit in granted) <= 150
        for slow in (False, True):
            assert any(permit.slow is slow for permit in granted) or all(
                permit.slow is not slow for permit in open_permits
            )
    while open_permits:
        granted = [permit for permit in open_permits if permit.granted]
        assert granted
        line.permits.end(granted[0])
        open_permits.remove(granted[0])
    assert line.permits.under_way == 0
