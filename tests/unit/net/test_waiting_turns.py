"""Work that waits for the next turn of the loop: in order, by shares of computing, and never lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.net.accounts import MOST, Accounts
from dataplane.net.turns import CROWD, LARGE, SHARE, Turns


class Loop:
    """Turns of a loop by hand, and its thread's CPU time."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.now = 0.0
        self.number = [0]
        self.accounts = Accounts(lambda: 0.0)
        self.turns = Turns(self.calls.append, lambda: self.now, self.accounts, self.number)

    def turn(self) -> None:
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()


class Peer:
    """Has some pieces of work, each of which takes a while."""

    def __init__(self, loop: Loop, name: str, pieces: int, seconds: float, done: list[str], pays: str = "") -> None:
        self.loop, self.name, self.pieces, self.seconds, self.done = loop, name, pieces, seconds, done
        self.pays = pays
        self.is_cut = False
        loop.turns.add(self)

    def next_turn(self) -> None:
        self.loop.number[0] = hash(self.name)
        self.loop.now += self.seconds
        self.done.append(self.name)
        self.pieces -= 1
        if self.pieces:
            self.loop.turns.add(self)
        self.is_cut = self.loop.turns.overspends(self.pays, 0) or self.is_cut


def test_nothing_runs_before_the_next_turn() -> None:
    loop, done = Loop(), list[str]()
    Peer(loop, "a", 1, 0.0, done)
    assert done == [] and len(loop.calls) == 1
    loop.turn()
    assert done == ["a"] and loop.calls == [] and len(loop.turns) == 0


def test_many_that_wait_get_one_share_of_a_turn_together() -> None:
    loop, done = Loop(), list[str]()
    for number in range(100):
        Peer(loop, str(number), 1, SHARE / 4, done)
    loop.turn()
    assert len(done) == 4 and len(loop.calls) == 1
    loop.turn()
    assert done == [str(number) for number in range(8)]


def test_one_that_has_much_does_not_go_before_the_others() -> None:
    loop, done = Loop(), list[str]()
    Peer(loop, "much", 10, SHARE, done)
    Peer(loop, "little", 1, SHARE, done)
    while loop.calls:
        loop.turn()
    assert done[:2] == ["much", "little"] and done.count("much") == 10


def test_a_bug_with_one_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def next_turn(self) -> None:
            raise RuntimeError("planted")

    loop, done = Loop(), list[str]()
    loop.turns.add(Broken())
    Peer(loop, "a", 1, 0.0, done)
    loop.turn()
    assert done == ["a"]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["planted"]


class TestSharesOfATurn:
    def test_nobody_is_held_up_where_nobody_began(self) -> None:
        loop = Loop()
        loop.now += 1
        assert not loop.turns.is_spent() and loop.calls == []

    def test_it_is_one_for_all_and_ends_with_the_turn(self) -> None:
        loop = Loop()
        loop.turns.begin()
        loop.now += SHARE / 2
        loop.turns.begin()  # another connection, of the same turn
        assert not loop.turns.is_spent()
        loop.now += SHARE / 2
        assert loop.turns.is_spent()
        loop.turn()
        assert not loop.turns.is_spent()
        loop.turns.begin()
        assert not loop.turns.is_spent()

    def test_who_waited_uses_it_up_for_those_whose_bytes_come(self) -> None:
        loop = Loop()
        Peer(loop, "much", 10, SHARE, [])
        loop.turn()
        assert loop.turns.is_spent()

    def test_it_ends_with_the_turn_in_which_the_last_who_waited_was_served(self) -> None:
        loop = Loop()
        Peer(loop, "a", 1, 0.0, [])
        loop.turn()
        loop.now += SHARE
        assert not loop.turns.is_spent() and loop.turns.begin()
        assert not loop.turns.is_spent() and not loop.turns.begin()

    def test_large_reads_wait_where_others_have_used_it_up_and_small_ones_never(self) -> None:
        loop = Loop()
        assert not loop.turns.is_late_for(LARGE + 1)
        loop.now += SHARE  # reading these
        assert loop.turns.is_late_for(LARGE + 1) and not loop.turns.is_late_for(LARGE)
        loop.turn()
        assert not loop.turns.is_late_for(LARGE + 1)

    def test_others_who_got_bytes_are_answered_before_the_next_piece(self) -> None:
        loop, done = Loop(), list[str]()
        Peer(loop, "much", 3, SHARE, done)
        loop.turn()
        loop.number[0] = 7
        loop.turn()
        assert done == ["much"]
        loop.number[0] = 8
        loop.turn()
        assert done == ["much"] * 2  # it leaves the turn to them once
        loop.turn()
        assert done == ["much"] * 3  # nobody else got any

    def test_who_leaves_a_turn_to_others_leaves_them_no_second_share(self) -> None:
        loop = Loop()
        Peer(loop, "much", 3, SHARE, [])
        loop.turn()
        loop.turns.compute("192.0.2.1")
        loop.number[0] = 7
        loop.turn()
        assert not loop.turns.has_time() and loop.turns.is_full()
        loop.turn()
        assert len(loop.turns) == 1

    def test_short_pieces_do_not_wait_for_others(self) -> None:
        loop, done = Loop(), list[str]()
        Peer(loop, "little", 1, 0.0, done)
        loop.number[0] = 7
        loop.turn()
        assert done == ["little"]

    def test_the_more_wait_the_less_one_may_do(self) -> None:
        loop = Loop()
        assert loop.turns.share(256) == 256
        Peer(loop, "a", 1, 0.0, [])
        assert loop.turns.share(256) == 128
        for number in range(1000):
            Peer(loop, str(number), 1, 0.0, [])
        assert loop.turns.share(256) == 256 // (CROWD + 1) and loop.turns.share(1) == 1


class TestWorkOfUnknownLength:
    def test_all_of_a_turn_has_one_share_whoever_it_is_of(self) -> None:
        loop = Loop()
        assert loop.turns.has_time()
        loop.now += SHARE
        loop.turns.has_gone_on("192.0.2.1")
        assert not loop.turns.has_time() and loop.turns.is_full() and loop.turns.is_full("192.0.2.1")
        loop.turn()
        assert loop.turns.has_time() and not loop.turns.is_full()

    def test_what_is_short_fills_no_turn(self) -> None:
        loop = Loop()
        for _ in range(3):
            assert loop.turns.has_time()
            loop.now += SHARE / 4
            loop.turns.has_gone_on("192.0.2.1")
        assert not loop.turns.is_costly

    def test_who_waited_last_leaves_no_second_share_of_its_turn(self) -> None:
        loop = Loop()
        Peer(loop, "a", 1, SHARE, [])
        loop.turn()
        assert len(loop.turns) == 0 and not loop.turns.has_time()
        loop.turn()
        assert loop.turns.has_time() and not loop.turns.is_spent()

    def test_a_network_of_ipv6_is_one_client(self) -> None:
        loop, done = Loop(), list[str]()
        for number in range(3):
            _Of(loop, f"2001:db8::{number}", number, done)
        _Of(loop, "2001:db8:0:1::1", 0, done)
        loop.turn()
        loop.turn()
        assert done == ["2001:db8::00", "2001:db8:0:1::10"]


class TestWhatIsOwed:
    TURNS = int(MOST / SHARE) + 2

    def turns(self, loop: Loop, number: int) -> None:
        for _ in range(number):
            loop.turn()

    def test_who_uses_up_its_share_while_others_wait_is_cut(self) -> None:
        loop = Loop()
        hostile = Peer(loop, "hostile", 10_000, SHARE, [], "198.51.100.1")
        other = Peer(loop, "other", 10_000, 0.0, [], "192.0.2.1")
        self.turns(loop, self.TURNS * 2)
        assert hostile.is_cut and not other.is_cut

    def test_it_is_cut_where_another_one_got_bytes_meanwhile(self) -> None:
        loop = Loop()
        hostile = Peer(loop, "hostile", 10_000, SHARE, [], "198.51.100.1")
        for _ in range(self.TURNS * 2):  # in every other one those others are answered
            loop.turn()
            loop.number[0] = 7
        assert hostile.is_cut

    def test_alone_it_may_go_on(self) -> None:
        loop = Loop()
        alone = Peer(loop, "alone", 10_000, SHARE, [], "198.51.100.1")
        self.turns(loop, self.TURNS * 2)
        assert not alone.is_cut and len(loop.accounts) == 0

    def test_what_passes_between_turns_is_nobodys(self) -> None:
        loop = Loop()
        peers = [Peer(loop, name, 10_000, 0.0, [], f"192.0.2.{number}") for number, name in enumerate("ab")]
        for _ in range(self.TURNS):
            loop.turn()
            loop.now += SHARE
        assert not any(peer.is_cut for peer in peers) and len(loop.accounts) == 0

    def test_who_has_no_address_owes_nothing(self) -> None:
        loop = Loop()
        local = Peer(loop, "local", 10_000, SHARE, [])
        Peer(loop, "other", 10_000, 0.0, [], "192.0.2.1")
        self.turns(loop, self.TURNS * 2)
        assert not local.is_cut and len(loop.accounts) == 0

    def test_a_piece_is_charged_to_the_one_that_did_it(self) -> None:
        loop = Loop()
        hostile = Peer(loop, "hostile", 10_000, SHARE / 2, [], "198.51.100.1")
        cheap = Peer(loop, "cheap", 10_000, 0.0, [], "192.0.2.1")
        self.turns(loop, 3 * self.TURNS)
        assert hostile.is_cut and not cheap.is_cut and len(loop.accounts) == 1


class TestLongComputing:
    """Who made a turn long begins nothing more in it; others do."""

    def test_a_turn_is_full_for_whom_it_was_filled_by(self) -> None:
        loop = Loop()
        first = loop.turns.compute("a", "e")
        assert not loop.turns.is_full("a"), "nothing was computed yet"
        loop.now += SHARE
        assert loop.turns.compute("b") == first, "the same turn"
        assert [loop.turns.is_full(name) for name in "abex"] == [True, True, True, False]
        assert loop.turns.is_full(), "for what is nobody's"
        loop.turn()
        assert not loop.turns.is_costly and not loop.turns.is_full("a") and loop.turns.compute() != first

    def test_a_turn_without_long_computing_is_never_full(self) -> None:
        loop = Loop()
        loop.turns.begin()
        loop.now += SHARE
        assert loop.turns.is_spent() and not loop.turns.is_full() and not loop.turns.is_full("a")

    def test_what_waits_does_not_begin_in_a_full_turn(self) -> None:
        loop, done = Loop(), list[str]()
        loop.turns.compute("a")
        loop.now += SHARE
        Peer(loop, "b", 1, 0.0, done)
        loop.calls.reverse()  # what waits is called first
        loop.turn()
        assert done == []
        loop.turn()
        assert done == ["b"]

    def test_a_turn_in_which_what_waited_computed_stays_full_to_its_end(self) -> None:
        loop, done = Loop(), list[str]()

        class Computing(Peer):
            def next_turn(self) -> None:
                self.loop.turns.compute(self.name)
                super().next_turn()

        for pieces in (1, 2):
            Computing(loop, "a", pieces, SHARE, done)
            loop.turn()
            assert loop.turns.is_full("a") and loop.turns.is_spent()
            while loop.calls:
                loop.turn()
            assert not loop.turns.is_full() and not loop.turns.is_spent()
        assert done == ["a", "a", "a"]

    def test_who_filled_one_turn_is_free_in_the_next(self) -> None:
        loop = Loop()
        loop.turns.compute("a")
        loop.turn()
        loop.turns.compute("b")
        loop.now += SHARE
        assert loop.turns.is_full("b") and not loop.turns.is_full("a")

    def test_long_computing_behind_those_who_wait_keeps_them_for_one_turn(self) -> None:
        loop, done = Loop(), list[str]()
        Peer(loop, "a", 2, 0.0, done)
        loop.turn()
        loop.turns.compute("x")  # in the same turn, behind them
        loop.now += SHARE
        for expected in (["a"], ["a", "a"]):
            loop.turn()
            assert done == expected

    def test_long_computing_in_every_turn_keeps_nobody_waiting_for_ever(self) -> None:
        """As where clients send so much that each turn is filled by what has just come."""
        loop, done = Loop(), list[str]()
        Peer(loop, "a", 3, 0.0, done)
        for _ in range(6):
            loop.turn()
            loop.turns.compute("x")
            loop.now += SHARE
        assert done == ["a"] * 3

    def test_each_turn_has_its_number_and_its_share(self) -> None:
        loop, seen = Loop(), list[tuple[int, bool]]()

        class Asks(Peer):
            def next_turn(self) -> None:
                before = self.loop.turns.is_spent()
                super().next_turn()
                seen.append((self.loop.turns.number, before or not self.loop.turns.is_spent()))

        Asks(loop, "a", 3, SHARE, [])
        for _ in range(3):
            loop.turn()
        assert len({number for number, _ in seen}) == 3 and not any(is_wrong for _, is_wrong in seen)


class TestWhoseTurnItIs:
    """Peers take turns, however many connections each has."""

    def test_many_connections_of_one_peer_take_one_place(self) -> None:
        loop, done = Loop(), list[str]()
        waiting = [_Of(loop, "a", number, done) for number in range(3)] + [_Of(loop, "b", 0, done)]
        assert len(loop.turns) == len(waiting)
        loop.turn()
        loop.turn()
        assert done == ["a0", "b0"]
        loop.turn()
        loop.turn()
        assert done == ["a0", "b0", "a1", "a2"] and len(loop.turns) == 0

    def test_who_comes_new_is_served_before_those_who_were(self) -> None:
        loop, done = Loop(), list[str]()
        for number in range(3):
            _Of(loop, "a", number, done)
        loop.turn()
        _Of(loop, "a", 3, done)
        _Of(loop, "b", 0, done)
        for _ in range(4):
            loop.turn()
        assert done == ["a0", "b0", "a1", "a2", "a3"]

    def test_whom_a_turn_did_not_reach_comes_before_who_is_new(self) -> None:
        loop, done = Loop(), list[str]()
        for name in "abc":
            _Of(loop, name, 0, done)
        loop.turn()
        _Of(loop, "d", 0, done)
        _Of(loop, "a", 1, done)
        while len(loop.turns):
            loop.turn()
        assert done == ["a0", "b0", "c0", "d0", "a1"]


class _Of:
    """A connection of a peer, whose one piece of work is as long as a share."""

    def __init__(self, loop: Loop, source: str, number: int, done: list[str]) -> None:
        self.loop, self.name, self.done = loop, f"{source}{number}", done
        loop.turns.add(self, source)

    def next_turn(self) -> None:
        self.loop.now += SHARE
        self.done.append(self.name)
