"""When changes are published: the leading edge at once, bursts together, never later than a second."""

from __future__ import annotations

import pytest

from controlplane.snapshot import RESOURCE_TYPE, Change, Coalescer


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def change(name: str, content: bytes | None = b"") -> Change:
    return ("shop/web", RESOURCE_TYPE, name, content)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_pending(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([])
    assert (coalescer.wait(), coalescer.take(), len(coalescer)) == (None, (), 0)


def test_first_change_after_quiet_is_published_at_once(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    assert coalescer.wait() == 0.0
    assert coalescer.take() == (change("a"),)
    assert coalescer.wait() is None


def test_what_follows_soon_waits_for_a_pause(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.004
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 0.006
    coalescer.add([change("c")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 0.010
    assert coalescer.wait() == pytest.approx(0.0)
    assert [name for _, _, name, _ in coalescer.take()] == ["b", "c"]


def test_pause_makes_the_next_change_leading(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.0101
    coalescer.add([change("b")])
    assert coalescer.wait() == 0.0


def test_unending_changes_are_published_after_a_second(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.005
    started = clock.now
    coalescer.add([change("b0")])
    for number in range(1, 1000):
        clock.now += 0.005
        coalescer.add([change(f"b{number}")])
        if coalescer.wait() == 0.0:
            break
    assert clock.now - started == pytest.approx(1.0, abs=0.006)


def test_leading_edge_not_yet_taken_joins_the_burst(clock: Clock) -> None:
    """A caller that was late to publish gets one batch, still bounded by the second."""
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    clock.now += 0.003
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 5.0
    assert coalescer.wait() == 0.0


def test_last_content_of_a_resource_wins(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a", b"1"), change("b", b"1"), change("a", b"2")])
    coalescer.add([change("b", None)])
    assert coalescer.take() == (change("a", b"2"), change("b", None))


def unfinished(change: Change) -> bool:
    return change[3] == b"unfinished"


def test_what_is_unfinished_waits_for_what_completes_it(clock: Clock) -> None:
    coalescer = Coalescer(clock, is_unfinished=unfinished)
    coalescer.add([change("route", b"unfinished")])
    assert coalescer.wait() == pytest.approx(0.050)
    clock.now += 0.020
    coalescer.add([change("backend"), change("route", b"whole")])
    assert coalescer.wait() == pytest.approx(0.010)  # as any change that follows soon
    clock.now += 0.010
    assert {name: content for _, _, name, content in coalescer.take()} == {"route": b"whole", "backend": b""}


def test_what_stays_unfinished_is_published_in_the_end_and_holds_the_next_anew(clock: Clock) -> None:
    coalescer = Coalescer(clock, is_unfinished=unfinished)
    coalescer.add([change("a", b"unfinished")])
    for name in "bcd":
        clock.now += 0.011
        coalescer.add([change(name, b"unfinished")])
    assert coalescer.wait() == pytest.approx(0.050 - 0.033)
    clock.now += 0.017
    assert coalescer.wait() == pytest.approx(0.0, abs=1e-6)
    assert len(coalescer.take()) == 4
    clock.now += 1
    coalescer.add([change("e")])
    assert coalescer.wait() == 0.0
    coalescer.take()
    clock.now += 1
    coalescer.add([change("f", b"unfinished")])
    assert coalescer.wait() == pytest.approx(0.050)


def test_a_removal_ends_the_wait(clock: Clock) -> None:
    coalescer = Coalescer(clock, is_unfinished=unfinished)
    coalescer.add([change("a", b"unfinished")])
    clock.now += 0.020
    coalescer.add([change("a", None)])
    assert coalescer.wait() == pytest.approx(0.010)
