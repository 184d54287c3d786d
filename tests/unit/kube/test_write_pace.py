"""How many requests are under way: more while answers are quick, fewer while they wait."""

from __future__ import annotations

import itertools

from controlplane.kube.writing.pace import Pace


def answered(pace: Pace, *took: float, now: float = 0.0) -> int:
    for each in took:
        pace.answered(each, now)
    return pace.width


def test_answers_that_do_not_wait_widen_it_up_to_the_most() -> None:
    pace = Pace(1, 8)
    assert pace.width == 1
    seen = [answered(pace, 0.005) for _ in range(100)]
    assert seen[0] == 2 and seen[-1] == 8 and all(one <= other for one, other in itertools.pairwise(seen))


def test_a_far_api_server_is_asked_as_much_as_a_near_one() -> None:
    assert answered(Pace(1, 8), *[0.2] * 100) == 8


def test_answers_that_wait_narrow_it_down_to_the_least() -> None:
    pace = Pace(2, 8)
    assert answered(pace, *[0.005] * 100) == 8
    assert answered(pace, *[0.050] * 100) == 2


def test_it_rests_where_half_a_request_to_one_waits() -> None:
    """An API server that works on one request at a time: more of them only wait."""
    pace, widths = Pace(1, 8), []
    for _ in range(200):
        widths.append(answered(pace, 0.005 * max(1, pace.width)))
    assert set(widths[50:]) <= {1, 2}


def test_one_that_answers_four_at_a_time_has_four_or_five() -> None:
    pace, widths = Pace(1, 8), []
    for _ in range(500):
        widths.append(answered(pace, 0.005 * max(4, pace.width) / 4))
    assert set(widths[100:]) <= {4, 5}


def test_the_quickest_answer_is_forgotten_after_a_while() -> None:
    """The API server is elsewhere now: what was quick once is not to be had any more."""
    pace = Pace(1, 8)
    assert answered(pace, 0.001, now=0.0) == 2
    assert answered(pace, *[0.010] * 50, now=29.0) == 1
    assert answered(pace, *[0.010] * 50, now=31.0) == 1  # it counts for half a minute more
    assert answered(pace, *[0.010] * 50, now=61.0) == 8


def test_the_quickest_answer_need_not_be_the_first() -> None:
    pace = Pace(1, 8)
    assert answered(pace, 0.010, *[0.001] * 100) == 8
    assert answered(pace, *[0.010] * 100) == 1


def test_a_round_of_answers_that_waited_takes_one_away() -> None:
    pace = Pace(1, 8)
    assert answered(pace, *[0.001] * 100) == 8
    assert answered(pace, *[0.100] * 7) == 7
    assert answered(pace, 0.100) == 6


def test_while_half_of_one_to_one_waits_nothing_changes() -> None:
    """Of two that are under way: a half, three fifths, and one."""
    for took in (4.0, 3.0 / 0.7, 6.0):
        pace = Pace(1, 8)
        assert answered(pace, 3.0) == 2
        assert answered(pace, *[took] * 100) == 2
        assert answered(pace, 3.0, 3.0) == 2  # it takes three of them for one more
        assert answered(pace, 3.0) == 3


def test_an_answer_in_no_time_waited_for_nobody() -> None:
    assert answered(Pace(1, 8), 0.0, 0.0) == 2
