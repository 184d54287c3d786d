"""A worker's look at itself: late timers are counted, running out of files is one line."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

import pytest

from dataplane.telemetry import watches
from dataplane.telemetry.metrics import COUNT, Metrics
from dataplane.telemetry.watches import FILES_EVERY, Watches


class Timer:
    """A loop's timers, fired by the test."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.cancelled = False

    def call_later(self, _seconds: float, function: Callable[[], None]) -> Timer:
        self.waiting.append(function)
        return self

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self, times: int = 1) -> None:
        for _ in range(times):
            self.waiting.pop()()


def test_every_look_is_counted_and_the_next_one_armed() -> None:
    timer, metrics = Timer(), Metrics.in_memory()
    made = Watches(timer.call_later, metrics)
    timer.fire(3)
    assert metrics.slots[metrics.histogram("event_loop_lag_seconds") + COUNT] == 3
    assert len(timer.waiting) == 1
    made.stop()
    assert timer.cancelled


def test_a_late_timer_is_a_long_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(watches.time, "monotonic", lambda: now)
    timer, metrics = Timer(), Metrics.in_memory()
    Watches(timer.call_later, metrics)
    now += watches.STEP + 0.3
    timer.fire()
    assert metrics.slots[metrics.histogram("event_loop_lag_seconds") + metrics.BUCKETS.index(0.5)] == 1


def test_running_out_of_files_is_said_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    timer = Timer()
    Watches(timer.call_later, Metrics.in_memory())

    def no_more(_fd: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", no_more)
        timer.fire(FILES_EVERY * 5)
    timer.fire(FILES_EVERY * 5)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "ulimit" in caplog.text
