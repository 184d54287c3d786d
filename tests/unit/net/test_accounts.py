"""What client addresses owe for CPU time: by pieces, down with time, remembered for few."""

from __future__ import annotations

from dataplane.net.accounts import ADDRESSES, ALLOWANCE, BYTES, MOST, REQUEST, Accounts


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_moves_enough_owes_nothing_however_long() -> None:
    accounts = Accounts(Clock())
    assert not any(accounts.charge("192.0.2.1", 0.005, int(0.005 * BYTES)) for _ in range(100_000))
    assert not any(accounts.charge("192.0.2.1", 0.004, REQUEST) for _ in range(100_000))
    assert len(accounts) == 0


def test_who_moves_too_little_is_cut_after_200_shares_of_a_turn() -> None:
    accounts = Accounts(Clock())
    answers = [accounts.charge("192.0.2.1", 0.005, 0) for _ in range(202)]
    assert answers[:199] == [False] * 199 and answers[-1] is True


def test_a_debt_goes_down_with_time() -> None:
    clock = Clock()
    accounts = Accounts(clock)
    assert not accounts.charge("192.0.2.1", MOST - 0.01, 0)
    clock.now += 0.05 / ALLOWANCE
    assert not accounts.charge("192.0.2.1", 0.05, 0)
    assert accounts.charge("192.0.2.1", 0.05, 0)


def test_overspending_by_the_allowance_is_never_cut() -> None:
    clock = Clock()
    accounts = Accounts(clock)
    for _ in range(10_000):
        clock.now += 1.0
        assert not accounts.charge("192.0.2.1", ALLOWANCE, 0)


def test_connections_of_one_address_owe_together_and_others_owe_nothing() -> None:
    accounts = Accounts(Clock())
    assert not accounts.charge("2001:db8:1:2::1", MOST, 0)
    assert accounts.charge("2001:db8:1:2:ffff::9", 0.01, 0), "one network of 64 bits is one client"
    assert not accounts.charge("2001:db8:1:3::1", 0.01, 0)
    assert not accounts.charge("2001:db8:1:2::2", 0.01, BYTES), "it paid for what it did"


def test_so_many_are_remembered_and_no_more() -> None:
    clock = Clock()
    accounts = Accounts(clock)
    accounts.charge("198.51.100.1", MOST, 0)
    for number in range(3 * ADDRESSES):
        accounts.charge(f"10.0.{number >> 8}.{number & 255}", 0.001, 0)
        assert len(accounts) <= ADDRESSES
    assert accounts.charge("198.51.100.1", 0.001, 0), "who owes most is not forgotten for those who owe little"
    clock.now += MOST / ALLOWANCE + 1
    for number in range(ADDRESSES):
        accounts.charge(f"10.9.{number >> 8}.{number & 255}", 0.001, 0)
    assert len(accounts) <= ADDRESSES
    assert not accounts.charge("198.51.100.1", MOST, 0), "its debt was over long ago"


def test_what_it_moved_pays_for_a_part() -> None:
    accounts = Accounts(Clock())
    assert not accounts.charge("192.0.2.1", MOST + 0.5, BYTES // 2)
    assert accounts.charge("192.0.2.1", 0.001, 0)


def test_a_debt_that_is_over_takes_no_place() -> None:
    clock = Clock()
    accounts = Accounts(clock)
    for number in range(ADDRESSES):
        accounts.charge(f"10.0.{number >> 8}.{number & 255}", 0.001, 0)
    assert len(accounts) == ADDRESSES
    clock.now += 60.0
    accounts.charge("198.51.100.1", 0.001, 0)
    assert len(accounts) == 1


def test_half_of_those_who_owe_are_forgotten_at_a_time_and_those_who_owe_least() -> None:
    accounts = Accounts(Clock())
    addresses = [f"10.0.{number >> 8}.{number & 255}" for number in range(ADDRESSES)]
    for place, address in enumerate(addresses):
        accounts.charge(address, MOST - 0.1 if place % 2 else 0.05, 0)
    accounts.charge("198.51.100.1", 0.001, 0)
    assert len(accounts) == ADDRESSES // 2 + 1
    assert [accounts.charge(address, 0.2, 0) for address in addresses[:4]] == [False, True, False, True]
