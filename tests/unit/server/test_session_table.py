"""UDP sessions: who is found, who goes for another one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.server.raw.session_table import KEPT, SessionTable


class Timed:
    def __init__(self, last: float) -> None:
        self.last = last


def table(most: int, *names: str) -> SessionTable[str, Timed]:
    made: SessionTable[str, Timed] = SessionTable(most)
    for moment, name in enumerate(names):
        made.add(name, Timed(float(moment)))
    return made


def test_the_one_that_was_never_there_goes_first() -> None:
    sessions = table(3, "a", "b", "c")
    sessions.answered("a")
    assert not sessions.has_room()
    assert sessions.goes(100.0) is sessions.find("b")


def test_of_those_that_of_the_client_that_sent_longest_ago() -> None:
    sessions = table(2, "a", "b")
    a, b = sessions.find("a"), sessions.find("b")
    assert sessions.goes(1.0) is a
    sessions.find("a")  # it sends again
    assert sessions.goes(1.0) is b


def test_one_that_passes_both_ways_is_kept_for_a_while() -> None:
    sessions = table(1, "a")
    sessions.answered("a")
    assert sessions.goes(KEPT - 0.1) is None
    assert sessions.goes(KEPT) is sessions.find("a")


def test_silent_ones_are_found_in_both_groups() -> None:
    sessions = table(9, "a", "b", "c")
    sessions.answered("b")
    assert {session.last for session in sessions.silent(11.0, 10.0)} == {0.0, 1.0}
    sessions.remove("b")
    sessions.remove("nobody")
    assert len(sessions) == 2


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
            if not sessions.has_room():
                goes = sessions.goes(float(now))
                if goes is None:
                    continue
                gone = next(each for each, session in known.items() if session is goes)
                sessions.remove(gone)
                del known[gone]
            known[key] = Timed(float(now))
            sessions.add(key, known[key])
        assert len(sessions) == len(known) <= 5
        assert set(sessions) == set(known.values())
