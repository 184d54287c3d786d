"""Lines that a thread writes: in order, never waited for, and a word on those that were lost."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from controlplane.cli.serving import lines
from tests.harness.patience import PATIENCE


class Terminal:
    """Takes lines, holds them up (`gate`), or fails."""

    def __init__(self) -> None:
        self.taken, self.is_broken = b"", False
        self.gate, self.is_asked = threading.Event(), threading.Event()
        self.gate.set()

    def write(self, data: bytes) -> None:
        self.is_asked.set()
        self.gate.wait()
        if self.is_broken:
            raise OSError(28, "No space left on device")
        self.taken += data


def test_lines_come_in_order() -> None:
    terminal = Terminal()
    writer = lines.Lines(terminal.write)
    for number in range(100):
        writer.put(b"%d\n" % number)
    writer.drain()
    assert terminal.taken == b"".join(b"%d\n" % number for number in range(100))


def test_what_could_not_be_written_is_counted_before_the_next_line_that_can() -> None:
    terminal = Terminal()
    writer = lines.Lines(terminal.write)
    terminal.is_broken = True
    writer.put(b"one\ntwo\n")
    writer.drain()
    terminal.is_broken = False
    writer.put(b"three\n")
    writer.put(b"four\n")
    writer.drain()
    assert terminal.taken == b"2 lines were lost before this one: they could not be written\nthree\nfour\n"


def test_each_loss_is_told_once() -> None:
    terminal = Terminal()
    writer = lines.Lines(terminal.write)
    for lost, kept in ((b"one\ntwo\nthree\n", b"four\n"), (b"five\n", b"six\n"), (b"", b"seven\n")):
        terminal.is_broken = True
        if lost:
            writer.put(lost)
        writer.drain(PATIENCE)
        terminal.is_broken = False
        writer.put(kept)
        writer.drain(PATIENCE)
    said = b"%d lines were lost before this one: they could not be written\n"
    assert terminal.taken == said % 3 + b"four\n" + said % 1 + b"six\nseven\n"


def test_a_mebibyte_may_wait() -> None:
    terminal = Terminal()
    writer = lines.Lines(terminal.write)
    terminal.gate.clear()
    writer.put(b"x" * (lines.LIMIT - 1) + b"\n")
    writer.put(b"a\n")
    writer.put(b"b\n")
    terminal.gate.set()
    writer.drain(PATIENCE)
    assert terminal.taken.endswith(b"x\na\n")
    assert lines.LIMIT == 1 << 20


def test_a_terminal_that_stands_still_is_waited_for_by_nobody() -> None:
    terminal = Terminal()
    writer = lines.Lines(terminal.write)
    terminal.gate.clear()
    half = b"x" * (lines.LIMIT // 2) + b"\n"
    writer.put(half)
    assert terminal.is_asked.wait(PATIENCE)
    for _ in range(4):
        writer.put(half)
    writer.drain(0.0)
    terminal.gate.set()
    writer.drain()
    writer.put(b"again\n")
    writer.drain()
    lost = b"3 lines were lost before this one: they could not be written\n"
    assert terminal.taken.count(lost) == 1 and terminal.taken.replace(lost, b"") == half * 2 + b"again\n"


def test_the_end_of_the_process_waits_a_second_for_its_last_lines_and_not_for_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {*threading.enumerate()}
    writer = lines.Lines(Terminal().write)
    (thread,) = {*threading.enumerate()} - known
    assert thread.daemon
    waited: list[float | None] = []

    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        waited.append(timeout)
        return True

    monkeypatch.setattr(threading.Event, "wait", wait)
    writer.drain()
    assert waited == [1.0]


def test_a_log_on_a_descriptor() -> None:
    reading, writing = os.pipe()
    handler = lines.Handler(writing)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.emit(logging.makeLogRecord({"levelname": "INFO", "msg": "caf\ud800"}))
    handler.flush()
    os.close(writing)
    with open(reading, "rb") as stream:
        assert stream.read() == b"INFO caf\\ud800\n"
