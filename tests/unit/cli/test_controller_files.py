"""What the controller says when it has no file descriptors left: one line, and one when there are some again."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.cli.serving import files


class Timer:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def cancel(self) -> None:
        self._loop.later.clear()


class Loop:
    """The part of a loop that is used: timers that are run by hand."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[..., object], tuple[object, ...]]] = []
        self.passed_on: list[dict[str, Any]] = []

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        self.later.append((delay, callback, args))
        return Timer(self)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.passed_on.append(context)

    def step(self) -> float:
        delay, callback, args = self.later.pop(0)
        callback(*args)
        return delay


def heard(watch: files.FilesWatch, loop: Loop, **context: object) -> None:
    watch.heard(loop, context)  # type: ignore[arg-type]


def test_what_concerns_no_descriptors_is_handled_as_ever() -> None:
    loop, watch = Loop(), files.FilesWatch()
    contexts: list[dict[str, Any]] = [
        {"message": "x"},
        {"exception": ValueError(), "socket": 1},
        {"exception": OSError(errno.EPERM, "no"), "socket": 1},
        {"exception": OSError(errno.EMFILE, "too many")},  # not of a socket that listens
    ]
    for context in contexts:
        heard(watch, loop, **context)
    assert loop.passed_on == contexts and not loop.later


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("tries", [0, 3], ids=["as uvloop says it", "as asyncio says it"])
def test_one_line_until_there_are_some_again(
    number: int, tries: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    loop, watch = Loop(), files.FilesWatch()
    watch.start(loop)  # type: ignore[arg-type]

    def none_left(descriptor: int) -> int:
        raise OSError(number if descriptor <= 2 else errno.EBADF, "no")

    def with_standard_streams_only(descriptor: int) -> int:
        if descriptor > 2:
            raise OSError(errno.EBADF, "bad file descriptor")
        return duplicate(descriptor)

    duplicate = os.dup
    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", with_standard_streams_only)
        assert loop.step() == 1.0, "it looks once a second"
        assert not caplog.records
        for _ in range(tries):
            heard(watch, loop, exception=OSError(number, "too many"), socket=1)
        patched.setattr(os, "dup", none_left)
        for _ in range(3):
            loop.step()
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert "raise the limit (ulimit -n)" in caplog.text
        patched.setattr(os, "dup", with_standard_streams_only)
        loop.step()
        loop.step()
        assert [record.message for record in caplog.records[1:]] == ["file descriptors are free again"]
        patched.setattr(os, "dup", none_left)
        loop.step()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "ERROR"]
    assert len(loop.later) == 1 and not loop.passed_on
    watch.stop()
    assert not loop.later


def test_asyncio_may_notice_it_before_anybody_looks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop, watch = Loop(), files.FilesWatch()
    heard(watch, loop, exception=OSError(errno.EMFILE, "too many"), socket=1)
    heard(watch, loop, exception=OSError(errno.EMFILE, "too many"), socket=1)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert len(loop.later) == 1, "it is looked for from now on"
    loop.step()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    watch.stop()


def test_another_error_of_a_look_is_not_a_lack(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def closed(_: int) -> int:
        raise OSError(errno.EBADF, "bad file descriptor")

    loop, watch = Loop(), files.FilesWatch()
    watch.stop()
    watch.start(loop)  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", closed)
        loop.step()
    assert not caplog.records and len(loop.later) == 1


async def test_a_loop_takes_it_as_its_handler() -> None:
    loop, watch = asyncio.get_running_loop(), files.FilesWatch()
    loop.set_exception_handler(watch.heard)
    assert loop.get_exception_handler() == watch.heard
    loop.set_exception_handler(None)
