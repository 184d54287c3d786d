"""One process of a server: small programs of the shell that read, write, complain and do not want to end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dataplane.link.commands import Command
from dataplane.stdio import process as module
from dataplane.stdio.lines import EDGE, Cut
from dataplane.stdio.process import ServerProcess, Unread
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

pytestmark = pytest.mark.process


class Running:
    def __init__(self, script: str, max_line: int) -> None:
        self.reported: list[tuple[bool, int]] = []
        command = Command("d1", "own", "/bin/sh", ("-c", script), {"MINE": "a b"}, max_line=max_line)
        self.process = ServerProcess(command, lambda begins, pid: self.reported.append((begins, pid)))

    async def says(self) -> bytes | Cut | None:
        async with asyncio.timeout(PATIENCE):
            return await self.process.line()

    async def ends(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.process.end()


@asynccontextmanager
async def running(script: str, max_line: int = 1_000_000) -> AsyncIterator[Running]:
    made = Running(script, max_line)
    assert not made.process.is_alive and made.process.pid == 0
    await made.process.start()
    try:
        yield made
    finally:
        if made.process.is_alive:
            made.process.kill()
        await made.ends()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_lines_go_in_and_come_out_and_the_end_of_its_input_ends_it() -> None:
    async with running('echo "$MINE"; exec cat') as made:
        assert made.process.is_alive and made.reported == [(True, made.process.pid)]
        assert await made.says() == b"a b"
        made.process.send(b'{"id": 1}')
        made.process.send(b'{"id": 2}')
        assert [await made.says(), await made.says()] == [b'{"id": 1}', b'{"id": 2}']
        ending = made.process.end()
        assert not made.process.is_alive and made.process.end() is ending
        await made.ends()
        assert await made.says() is None
        assert made.reported[1:] == [(False, made.process.pid)] and not is_there(made.process.pid)
        with pytest.raises(Unread):
            made.process.send(b"{}")


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done", b"asked"),
        ("trap '' TERM; echo ready; while :; do sleep 0.05; done", None),
    ],
    ids=["a word", "a signal that nobody can ignore"],
)
async def test_one_that_does_not_end_is_asked_and_then_killed(
    script: str, last: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSING_SECONDS", 0.05)
    monkeypatch.setattr(module, "TERM_SECONDS", PATIENCE if last else 0.2)
    async with running(script) as made:
        assert await made.says() == b"ready"
        await made.ends()
        assert await made.says() == last and not is_there(made.process.pid)


async def test_what_it_started_ends_with_it() -> None:
    async with running("sleep 1000 & echo $!; cat") as made:
        child = int(await made.says())
        assert is_there(child)
        await made.ends()
        await until(lambda: not is_there(child), "the end of what it started")


async def test_one_that_reads_nothing_is_sent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNREAD", 10_000)
    async with running("sleep 1000") as made:
        made.process.send(b"x" * 200_000)  # more than a pipe takes
        with pytest.raises(Unread):
            made.process.send(b"{}")


async def test_of_a_line_that_is_too_long_the_ends_are_read_and_what_comes_behind_it() -> None:
    async with running("printf a; head -c 50000 /dev/zero | tr '\\0' x; echo z; echo next; cat", 5000) as made:
        assert await made.says() == Cut(b"a" + b"x" * (EDGE - 1), b"x" * (EDGE - 1) + b"z")
        assert await made.says() == b"next"


async def test_one_that_ends_before_it_has_read_all_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """What was written to it and not read is lost with it: nobody asks asyncio for that, and it does not complain."""
    async with running("echo ready; sleep 0.2") as made:
        assert await made.says() == b"ready"
        made.process.send(b"x" * 1_000_000)
        assert await made.says() is None
    gc.collect()
    assert caplog.messages == []


async def test_its_complaints_are_in_the_log_in_measure(caplog: pytest.LogCaptureFixture) -> None:
    lines = f'i=0; while [ $i -lt {module.LOG_LINES + 3} ]; do t="$t line-$i\n"; i=$((i+1)); done'
    with caplog.at_level(logging.INFO, "dataplane.stdio"):
        async with running(f"{lines}; printf '%s' \"$t\" >&2; printf 'a\\001b' >&2") as made:
            await until(lambda: "a b" in caplog.text, lambda: caplog.text)
            pid = made.process.pid
    said = [each.getMessage() for each in caplog.records]
    assert said[0] == "server says:  line-0" and f"server says:  line-{module.LOG_LINES - 1}" in said
    assert f"server says:  line-{module.LOG_LINES}" not in said and "server says: (3 lines more)" in said
    assert said[-1] == "server says: a b"
    assert caplog.records[0].__dict__["fields"] == {"server": "own", "pid": pid}


async def test_a_long_complaint_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "dataplane.stdio"):
        async with running("(head -c 5000 /dev/zero | tr '\\0' x; echo) >&2; exec cat"):
            await until(lambda: "server says" in caplog.text, "a line")
    (line,) = caplog.messages
    assert line == "server says: " + "x" * module.MAX_LOG_LINE


async def test_a_command_that_is_not_there() -> None:
    made = ServerProcess(Command("d1", "own", "/nonexistent/server"), lambda *_: None)
    with pytest.raises(FileNotFoundError):
        await made.start()
    await made.end()
    made.kill()


async def test_a_variable_may_have_the_value_of_another_one_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_PROXY", "its value")
    command = Command("d1", "own", "/bin/sh", ("-c", 'echo "$MINE"'), variables={"MINE": "OF_THE_PROXY"})
    made = ServerProcess(command, lambda *_: None)
    await made.start()
    async with asyncio.timeout(PATIENCE):
        assert await made.line() == b"its value"
        await made.end()
    monkeypatch.delenv("OF_THE_PROXY")
    with pytest.raises(ValueError, match=r"^variable OF_THE_PROXY is not set$"):
        await ServerProcess(command, lambda *_: None).start()
