"""What a watch makes of events: which belong together, how long it waits for more, and what it asks of each system.

The clock is moved by hand; the numbers of the kernel's events are those of inotify(7).
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.sources import inotify, watch
from controlplane.sources.inotify import Event
from tests.harness.patience import PATIENCE

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF = 0x100, 0x200, 0x400, 0x800
IN_Q_OVERFLOW, IN_IGNORED, IN_ONLYDIR, IN_ISDIR = 0x4000, 0x8000, 0x0100_0000, 0x4000_0000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Reads:
    """Answers each read with what comes next: the seconds that pass, and the events then."""

    def __init__(self, clock: Clock, *answers: tuple[float, list[Event]]) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.asked: list[float | None] = []
        self.calls: list[str] = []

    def read(self, seconds: float | None) -> list[Event]:
        self.asked.append(None if seconds is None else round(seconds, 6))
        passed, events = self.answers.pop(0)
        self.clock.now += passed
        return events

    def wake(self) -> None:
        self.calls.append("wake")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watch, "time", made)
    return made


A, B, HALF = Event("/a", False), Event("/b", False), Event("/a", True)


@pytest.mark.parametrize(
    ("answers", "parts", "asked"),
    [
        ([(5, [])], [], [None]),  # woken
        # Half a millisecond in which nothing happens ends it.
        ([(5, [A]), (0.0005, [])], ["/a", "whole"], [None, 0.0005]),
        ([(5, [A, B]), (0.0005, [A]), (0.0005, [])], ["/a /b", "/a", "whole"], [None, 0.0005, 0.0005]),
        # While it is written, longer, and nothing is reported.
        ([(5, [HALF]), (0.01, [A]), (0.0005, [])], ["/a", "whole"], [None, 0.02, 0.0005]),
        (
            [(5, [A]), (0.0001, [HALF]), (0.01, [A, B]), (0.0005, [])],
            ["/a", "/a /b", "whole"],
            [None, 0.0005, 0.0199, 0.0005],
        ),
        ([(5, [HALF]), (0.01, [B]), (0.01, [B])], ["/a /b whole"], [None, 0.02, 0.01]),  # 20 ms at most
        ([(5, [HALF]), (0.02, [])], ["/a whole"], [None, 0.02]),
        ([(5, [A]), (0.0197, [B]), (0.0003, [])], ["/a", "/b", "whole"], [None, 0.0005, 0.0003]),
        ([(5, [A]), (0.5, [B])], ["/a", "/b whole"], [None, 0.0005]),
    ],
)
def test_a_group_is_told_in_parts_and_ends(
    answers: list[tuple[float, list[Event]]], parts: list[str], asked: list[Any], clock: Clock
) -> None:
    reads = Reads(clock, *answers)
    found = [
        " ".join([*sorted(paths), *["whole"] * is_whole])
        for paths, is_whole in watch.Reported(reads).group(threading.Event())  # type: ignore[arg-type]
    ]
    assert found == parts
    assert reads.asked == asked
    assert reads.answers == []


class Scripted:
    """Events for a watch: groups one after the other, then it blocks until it is woken."""

    def __init__(self, *groups: frozenset[str]) -> None:
        self.groups = list(groups)
        self.woken = threading.Event()
        self.calls: list[str] = []

    def group(self, stopping: threading.Event) -> Iterator[watch.Part]:
        if self.groups:
            yield from [(self.groups.pop(0), False), (frozenset(), True)]
        else:
            self.woken.wait(PATIENCE)
            yield frozenset({"/late"}), True

    def wake(self) -> None:
        self.calls.append("wake")
        self.woken.set()

    def close(self) -> None:
        self.calls.append("close")


def test_groups_are_told_but_what_comes_after_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(frozenset({"/a"}), frozenset({"/b"}))
    monkeypatch.setattr(watch, "_events", lambda root: scripted)
    told: list[watch.Part] = []
    both = threading.Event()

    def tell(paths: frozenset[str], is_whole: bool) -> None:
        told.append((paths, is_whole))
        if len(told) == 4:
            both.set()

    made = watch.Watch("/gw", tell)
    assert made._thread.daemon
    made.start()
    assert both.wait(PATIENCE)
    made.stop()
    assert not made._thread.is_alive()
    assert told == [({"/a"}, False), (set(), True), ({"/b"}, False), (set(), True)]
    assert scripted.calls == ["wake", "close"]


# inotify itself.


def packed(watch_number: int, mask: int, name: str = "") -> bytes:
    """An event as the kernel writes it: the name padded with zeros."""
    padded = name.encode() + b"\0" * (16 - len(name) % 16) if name else b""
    return struct.pack("iIII", watch_number, mask, 0, len(padded)) + padded


@pytest.fixture
def watched(tmp_path: Path) -> inotify.Inotify:
    made = inotify.Inotify(str(tmp_path))
    yield made  # type: ignore[misc]
    made.close()


def test_a_watch_whose_system_fails_says_that_its_last_group_is_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Scripted):
        def group(self, stopping: threading.Event) -> Iterator[watch.Part]:
            yield frozenset({"/a"}), False
            raise OSError(errno.EIO, "the disk is on fire")

    scripted = Failing()
    monkeypatch.setattr(watch, "_events", lambda root: scripted)
    told: list[watch.Part] = []
    made = watch.Watch("/gw", lambda paths, is_whole: told.append((paths, is_whole)))
    made.start()
    made._thread.join(PATIENCE)
    made.stop()
    assert told == [({"/a"}, False), (set(), True)]
    assert "the disk is on fire" in caplog.text


def test_closing_gives_both_descriptors_back(tmp_path: Path) -> None:
    made = inotify.Inotify(str(tmp_path))
    numbers = (made._inotify.fileno(), made._waker)
    for number in numbers:
        assert os.get_inheritable(number) is False
        assert os.get_blocking(number) is False
    made.close()
    for number in numbers:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


def test_a_folder_that_comes_and_cannot_be_watched_stops_nobody(
    watched: inotify.Inotify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    (number,) = watched._paths

    def refuses(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(watched._inotify, "add_watch", refuses)
    data = packed(number, IN_CREATE | IN_ISDIR, "new") + packed(number, IN_MOVED_TO | IN_ISDIR, "gone")
    assert [os.path.basename(event.path) for event in watched._events(data)] == ["new", "gone"]


def test_a_system_without_inotify_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "eventfd")
    with pytest.raises(OSError, match="this system has no inotify") as raised:
        inotify.Inotify(str(tmp_path))
    assert raised.value.errno == errno.ENOSYS


def test_folders_come_in_the_order_of_a_scan_hidden_ones_last() -> None:
    names = ["/r/.b/x", "/r/a/b", "/r/a", "/r/.a", "/r/b"]
    assert sorted(names, key=inotify.scan_order) == ["/r/a", "/r/a/b", "/r/b", "/r/.a", "/r/.b/x"]
