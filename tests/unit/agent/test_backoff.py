"""Pauses between tries."""

from __future__ import annotations

from dataplane.agent.backoff import Backoff


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
