"""UDP sessions: who is found, who goes for another one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.link.pools import Key
from dataplane.server.raw.session_table import KEPT, SessionTable

ONE = "192.0.2.1"


class Timed:
    def __init__(self, last: float, source: Key) -> None:
        self.last, self.source = last, source


def table(most: int, *names: str) -> SessionTable[str, Timed]:
    made: SessionTable[str, Timed] = SessionTable(most)
    for moment, name in enumerate(names):
        made.add(name, Timed(float(moment), f"of {name}"))
    return made


NEWCOMER = "192.0.2.9"


def test_the_one_that_was_never_there_goes_first() -> None:
    sessions = table(3, "a", "b", "c")
    sessions.answered("a")
    assert not sessions.has_capacity(NEWCOMER)
    assert sessions.goes(100.0, NEWCOMER) is sessions.find("b")


def test_of_those_that_of_the_client_that_sent_longest_ago() -> None:
    sessions = table(2, "a", "b")
    a, b = sessions.find("a"), sessions.find("b")
    assert sessions.goes(1.0, NEWCOMER) is a
    sessions.find("a")  # it sends again
    assert sessions.goes(1.0, NEWCOMER) is b


def test_one_that_passes_both_ways_is_kept_for_a_while() -> None:
    sessions = table(1, "a")
    sessions.answered("a")
    assert sessions.goes(KEPT - 0.1, NEWCOMER) is None
    assert sessions.goes(KEPT, NEWCOMER) is sessions.find("a")


def test_silent_ones_are_found_in_both_groups() -> None:
    sessions = table(9, "a", "b", "c")
    sessions.answered("b")
    assert {session.last for session in sessions.silent(11.0, 10.0)} == {0.0, 1.0}
    sessions.remove("b")
    sessions.remove("nobody")
    assert len(sessions) == 2


def test_a_client_with_its_share_makes_place_by_its_own_and_others_find_some() -> None:
    sessions: SessionTable[int, Timed] = SessionTable(16)
    for number in range(16):
        if sessions.has_capacity(ONE):
            sessions.add(number, Timed(float(number), ONE))
    assert len(sessions) == 12 and sessions.has_capacity(NEWCOMER)
    sessions.add(99, Timed(0.0, NEWCOMER))
    assert sessions.goes(100.0, ONE) is sessions.find(0), "the oldest of its own, not the newcomer's that is older"
    for number in range(12):
        sessions.answered(number)
    assert sessions.goes(9.0, ONE) is None, "all of its own are in use: it gets no more"


def test_who_has_none_gets_the_last_place() -> None:
    sessions = table(3, "a", "b")
    assert not sessions.has_capacity("of a") and sessions.has_capacity(NEWCOMER)


def test_whoever_finds_no_place_is_named() -> None:
    said: list[tuple[str, Key, int, Key, int]] = []
    sessions: SessionTable[int, Timed] = SessionTable(
        4, lambda pool, key, held, fullest: said.append((pool, key, held, *fullest()))
    )
    for number in range(4):
        if sessions.has_capacity(ONE):
            sessions.add(number, Timed(0.0, ONE))
    assert said == [("udpSessions", ONE, 3, ONE, 3)]


@given(st.lists(st.tuples(st.sampled_from("fanr"), st.integers(0, 20)), max_size=200))
def test_there_are_never_more_than_allowed(steps: list[tuple[str, int]]) -> None:
    sessions: SessionTable[int, Timed] = SessionTable(5)
    known: dict[int, Timed] = {}
    for now, (step, key) in enumerate(steps):
        if step == "a":
            sessions.answered(key)
        elif step == "r":
            sessions.remove(key)
            known.pop(key, None)
        elif step == "f" or key in known:
            assert sessions.find(key) is known.get(key)
        else:
            source = f"192.0.2.{key % 4}"
            if not sessions.has_capacity(source):
                goes = sessions.goes(float(now), source)
                if goes is None:
                    continue
                gone = next(each for each, session in known.items() if session is goes)
                sessions.remove(gone)
                del known[gone]
            known[key] = Timed(float(now), source)
            sessions.add(key, known[key])
        assert len(sessions) == len(known) <= 5
        assert set(sessions) == set(known.values())
