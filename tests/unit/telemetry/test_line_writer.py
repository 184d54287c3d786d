"""The thread that writes log lines: what is lost is counted, and what goes wrong is told when it begins and ends."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dataplane.telemetry import lines
from dataplane.telemetry.lines import ATOMIC, QUIET, SLOW, LineWriter, Unwritten, file_writer
from tests.harness.patience import PATIENCE
from tests.harness.waiting import wait_until

FULL = "No space left on device"


pytestmark = pytest.mark.leaves("a writer in trouble waits for its end, which some of these never see")


class Log:
    """A writer, and what it said. `fails` is raised by the next writes; `time` is what its clock shows."""

    def __init__(self, limit: int = 1000) -> None:
        self.time = 100.0
        self.fails: OSError | None = None
        self.written: list[bytes] = []
        self.lost: list[int] = []
        self.told: list[tuple[str, int]] = []
        self.news = threading.Event()
        self.may_write = threading.Event()
        self.may_write.set()
        self.writer = LineWriter(self._write, limit, self.lost.append, self._changed, lambda: self.time)

    def _write(self, data: bytes) -> None:
        self.may_write.wait(PATIENCE)
        if self.fails is not None:
            raise self.fails
        self.written.append(data)

    def _changed(self, why: str, missed: int) -> None:
        self.told.append((why, missed))
        if not why:
            self.news.set()

    def put(self, *rows: bytes) -> None:
        for data in rows:
            self.writer.put(data)
        assert self.writer.drain(PATIENCE)


def test_what_waits_has_a_limit_and_what_comes_above_it_is_counted() -> None:
    log = Log(limit=10)
    log.may_write.clear()
    for data, is_full in ((b"aaaa\n", False), (b"bbbb\n", False), (b"c\n", True), (b"d\ne\n", True), (b"f\n", True)):
        log.writer.put(data)
        assert log.writer.is_full is is_full
    assert log.lost == [2, 1] and log.told == [(SLOW, 0)]
    assert not log.writer.drain(0.0)
    log.may_write.set()
    assert log.writer.drain(PATIENCE) and not log.writer.is_full
    assert log.written == [b"aaaa\n", b"bbbb\n", b"c\n"]


def test_the_thread_is_there_only_while_there_is_something_to_write() -> None:
    others = threading.active_count()
    log = Log()
    assert threading.active_count() == others
    for rows in ((b"a\n",), (b"b\n", b"c\n")):
        log.may_write.clear()
        for data in rows:
            log.writer.put(data)
        assert threading.active_count() == others + 1
        log.may_write.set()
        log.put()
        wait_until(lambda: threading.active_count() == others, "its thread has ended")
    assert log.written == [b"a\n", b"b\n", b"c\n"]


def test_where_nothing_was_written_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.put(b"a\n")
    monkeypatch.setattr(threading.Thread, "start", lambda self: pytest.fail("a thread with nothing to do"))
    assert log.writer.drain(0.0)


def test_its_end_is_told_once_when_nothing_was_lost_for_a_while() -> None:
    log = Log()
    log.writer.refuse(3)
    log.time += QUIET - 0.25
    log.put(b"a\n")
    log.writer.refuse(1)
    log.time += QUIET - 0.25
    log.put(b"b\n")
    assert log.told == [(SLOW, 0)]
    log.time += 0.25
    log.put(b"c\n", b"d\n")
    assert log.told == [(SLOW, 0), ("", 4)]
    log.writer.refuse(2)
    log.time += QUIET
    log.put(b"e\n")
    assert log.told == [(SLOW, 0), ("", 4), (SLOW, 0), ("", 2)]
    assert log.lost == [3, 1, 2] and b"".join(log.written) == b"a\nb\nc\nd\ne\n"


def test_its_end_is_told_also_when_there_is_nothing_more_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "QUIET", 0.001)
    log = Log()
    log.writer.refuse(1)
    log.put(b"a\n")
    log.time += 1.0
    assert log.news.wait(PATIENCE)
    assert log.told == [(SLOW, 0), ("", 1)]
    log.put(b"b\n")
    assert log.written == [b"a\n", b"b\n"]


def test_a_writer_that_is_closed_says_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "QUIET", 0.001)
    others = threading.active_count()
    log = Log()
    log.fails = OSError(errno.ENOSPC, FULL)
    log.writer.put(b"a\n")
    assert log.writer.close(PATIENCE)
    wait_until(lambda: threading.active_count() == others, "its thread has ended")
    assert log.told == [(FULL, 0)]


def test_what_cannot_be_written_is_lost_until_something_is_written_again() -> None:
    log = Log()
    log.fails = OSError(errno.ENOSPC, FULL)
    log.put(b"a\nb\n")
    log.time += 10 * QUIET
    log.put(b"c\n")
    assert log.lost == [2, 1] and log.told == [(FULL, 0)]
    log.fails = None
    log.put(b"d\n")
    assert log.told == [(FULL, 0)]
    log.time += QUIET
    log.put(b"e\n")
    assert log.told == [(FULL, 0), ("", 3)] and log.written == [b"d\n", b"e\n"]


@pytest.mark.parametrize(
    ("error", "lost", "why"),
    [
        (Unwritten(OSError(errno.ENOSPC, FULL), 1), 1, FULL),
        (OSError("odd"), 3, "odd"),
    ],
)
def test_the_cause_is_told_and_only_what_was_not_written_counts(error: OSError, lost: int, why: str) -> None:
    log = Log()
    log.fails = error
    log.put(b"a\nb\nc\n")
    assert log.lost == [lost] and log.told == [(why, 0)]


class Descriptor:
    """A descriptor that takes so many bytes of each write, and then fails."""

    def __init__(self, *takes: int) -> None:
        self.takes = list(takes)
        self.got: list[bytes] = []

    def write(self, _descriptor: int, data: bytes) -> int:
        if not self.takes:
            raise OSError(errno.ENOSPC, FULL)
        size = min(self.takes.pop(0), len(data))
        self.got.append(data[:size])
        return size


@pytest.mark.parametrize(
    ("takes", "lost", "then"),
    [
        ((), 3, b"next\n"),
        ((4,), 2, b"next\n"),
        ((6,), 2, b"\nnext\n"),
        ((1, 2), 3, b"\nnext\n"),
        ((4, 4), 1, b"next\n"),
        ((11,), 1, b"\nnext\n"),
    ],
)
def test_a_line_that_was_torn_is_ended_before_the_next(
    monkeypatch: pytest.MonkeyPatch, writer: Callable[[bytes], None], takes: tuple[int, ...], lost: int, then: bytes
) -> None:
    descriptor = Descriptor(*takes)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", descriptor.write)
        with pytest.raises(Unwritten, match=FULL) as failed:
            writer(b"aaa\nbbb\nccc\n")
        assert failed.value.lines == lost
        descriptor.takes = [100, 100]
        writer(b"next\n")
        writer(b"more\n")
    assert descriptor.got[len(takes) :] == [then, b"more\n"]


def test_the_end_of_a_torn_line_is_no_line_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, writer: Callable[[bytes], None]
) -> None:
    descriptor = Descriptor(2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", descriptor.write)
        for lost in (1, 2):  # the second time nothing at all is taken
            with pytest.raises(Unwritten) as failed:
                writer(b"aaa\n" * lost)
            assert failed.value.lines == lost
        descriptor.takes = [100]
        writer(b"bbb\n")
    assert descriptor.got == [b"aa", b"\nbbb\n"]


@pytest.fixture
def writer(tmp_path: Path) -> Callable[[bytes], None]:
    with (tmp_path / "log").open("wb") as file:
        return file_writer(file.fileno())


def test_a_file_gets_everything_at_once_and_a_pipe_in_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b"x" * 1023 + b"\n"
    reading, writing = os.pipe()
    with (tmp_path / "log").open("wb") as file:
        to_file, to_pipe = file_writer(file.fileno()), file_writer(writing)
    descriptor = Descriptor(*[1 << 20] * 6)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", descriptor.write)
        to_file(line * 5)
        to_pipe(line * 4)  # just so much as cannot mix
        to_pipe(line * 5 + b"y\n")
        to_pipe(b"z" * ATOMIC + b"\n" + line)  # a line that is longer
    os.close(reading)
    os.close(writing)
    assert descriptor.got == [line * 5, line * 4, line * 4, line + b"y\n", b"z" * ATOMIC + b"\n", line]
