"""Pauses between tries."""

from __future__ import annotations

from dataplane.agent.backoff import Backoff, Gathering


def test_pauses_double_up_to_the_most_and_begin_anew() -> None:
    backoff = Backoff(0.01, 15.0, lambda: 1.0)
    assert [backoff.next() for _ in range(4)] == [0.01, 0.02, 0.04, 0.08]
    assert [backoff.next() for _ in range(20)][-1] == 15.0
    backoff.reset()
    assert backoff.next() == 0.01


def test_pauses_are_spread_by_up_to_half() -> None:
    assert Backoff(1.0, 15.0, lambda: 0.0).next() == 0.5


def test_ten_thousand_failures_are_no_overflow() -> None:
    backoff = Backoff(0.01, 15.0, lambda: 1.0, tries=10_000)
    assert backoff.next() == 15.0


def test_news_that_go_on_are_gathered_for_longer_until_there_was_a_pause() -> None:
    gathering, now, seen = Gathering(1.0, 8.0, lambda: 1.0), 1000.0, []
    for _ in range(6):
        seen.append(gathering.seconds(now))
        now += seen[-1] + 0.5  # the next ones come soon
    assert seen == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert gathering.seconds(now + 7.4) == 8.0
    assert gathering.seconds(now + 7.4 + 16.1) == 1.0
