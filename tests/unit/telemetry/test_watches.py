"""A worker's look at itself: late timers are counted, running out of files is one line."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from itertools import pairwise

import pytest

from dataplane.telemetry import watches
from dataplane.telemetry.metric import COUNT, SUM
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.watches import FILES_STEPS, Watches


class Timer:
    """A loop's timers, fired by the test."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.pauses: list[float] = []
        self.cancelled = False

    def call_later(self, seconds: float, function: Callable[[], None]) -> Timer:
        self.pauses.append(seconds)
        self.waiting.append(function)
        return self

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self, times: int = 1) -> None:
        for _ in range(times):
            self.waiting.pop()()


class Traffic:
    """What `Watches` publishes: how often, and whether there is traffic, which the test decides."""

    def __init__(self, has_traffic: bool) -> None:
        self.has_traffic = has_traffic
        self.published = 0

    def __call__(self) -> bool:
        self.published += 1
        return self.has_traffic


@pytest.mark.parametrize(("has_traffic", "pause", "files_every"), [(True, 0.1, 10), (False, 0.5, 2)])
def test_the_loop_is_looked_at_more_often_while_there_is_traffic_and_the_files_each_second(
    monkeypatch: pytest.MonkeyPatch, has_traffic: bool, pause: float, files_every: int
) -> None:
    timer, metrics, traffic = Timer(), Metrics.in_memory(), Traffic(has_traffic)
    looks: list[int] = []

    def look() -> bool:
        looks.append(traffic.published)
        return len(looks) != 2

    monkeypatch.setattr(watches, "is_out_of_files", look)
    Watches(timer.call_later, metrics, traffic)
    gauge, found = metrics.gauge("workers_out_of_files"), []
    while len(looks) < 4:
        timer.fire()
        found.append(metrics.slots[gauge])
    assert set(timer.pauses[1:]) == {pause}
    assert {after - before for before, after in pairwise(looks)} == {files_every}
    assert found == [0] * (looks[0] - 1) + [1] * files_every + [0] * files_every + [1] * files_every + [1]


def test_the_first_look_is_soon_and_the_pace_follows_the_traffic() -> None:
    timer, traffic = Timer(), Traffic(False)
    Watches(timer.call_later, Metrics.in_memory(), traffic)
    for has_traffic in (False, True, True, False):
        traffic.has_traffic = has_traffic
        timer.fire()
    assert timer.pauses == [0.1, 0.5, 0.1, 0.1, 0.5]


@pytest.mark.parametrize(
    ("number", "is_out"), [(errno.EMFILE, True), (errno.ENFILE, True), (errno.EBADF, False), (0, False)]
)
def test_what_running_out_of_files_is(monkeypatch: pytest.MonkeyPatch, number: int, is_out: bool) -> None:
    real = os.dup

    def dup(fd: int) -> int:
        if number:
            raise OSError(number, "no")
        return real(fd)

    monkeypatch.setattr(os, "dup", dup)
    assert watches.is_out_of_files() is is_out


def test_a_timer_that_fires_early_is_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(watches.time, "monotonic", lambda: now)
    timer, metrics = Timer(), Metrics.in_memory()
    Watches(timer.call_later, metrics, Traffic(True))
    now += 0.05
    timer.fire()
    base = metrics.histogram("event_loop_lag_seconds")
    assert metrics.slots[base] == metrics.slots[base + COUNT] == 1 and metrics.slots[base + SUM] == 0


def test_every_look_is_counted_and_the_next_one_armed() -> None:
    timer, metrics = Timer(), Metrics.in_memory()
    made = Watches(timer.call_later, metrics, Traffic(True))
    timer.fire(3)
    assert metrics.slots[metrics.histogram("event_loop_lag_seconds") + COUNT] == 3
    assert len(timer.waiting) == 1
    made.stop()
    assert timer.cancelled


def test_a_late_timer_is_a_long_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(watches.time, "monotonic", lambda: now)
    timer, metrics = Timer(), Metrics.in_memory()
    Watches(timer.call_later, metrics, Traffic(True))
    now += watches.STEP + 0.3
    timer.fire()
    assert metrics.slots[metrics.histogram("event_loop_lag_seconds") + metrics.BUCKETS.index(0.5)] == 1


def test_running_out_of_files_is_said_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    timer = Timer()
    Watches(timer.call_later, Metrics.in_memory(), Traffic(True))

    def no_more(_fd: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", no_more)
        timer.fire(FILES_STEPS * 5)
    timer.fire(FILES_STEPS * 5)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "ulimit" in caplog.text
