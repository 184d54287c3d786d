"""The source of a standalone file and its reader: when it may rest, and what happens when it is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dataplane.agent import file_source
from dataplane.agent.file_reading import Place, ReaderLost, Reading
from dataplane.agent.file_source import PUT_OFF, FileSource
from dataplane.agent.folder_watch import LOOK_AGAIN
from dataplane.agent.reader import LocalReader
from dataplane.telemetry.metrics import Metrics
from tests.fakes.moved_loop import moved
from tests.unit.agent.test_file_source import Applied, bind, text


class Unsteady(LocalReader):
    """A reader that is lost at will, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        self.asked = self.rested = 0

    def interpret(self, text: str, file: Path, log_modules: Collection[str]) -> Reading:
        self._count()
        return super().interpret(text, file, log_modules)

    def refusals(self, text: str, file: Path, refused: Sequence[tuple[Place, str]]) -> Sequence[str]:
        self._count()
        return super().refusals(text, file, refused)

    def rest(self) -> None:
        self.rested += 1

    def _count(self) -> None:
        self.asked += 1
        if self.is_lost:
            raise ReaderLost("the process that reads it ended (signal 9)")


@asynccontextmanager
async def following(file: Path, reader: Unsteady) -> AsyncIterator[Applied]:
    file.write_text(text(1))
    applied = Applied()
    source = FileSource(file, file_source.read(file, (), reader), applied, Metrics.in_memory(), (), reader)
    task = asyncio.create_task(source.run())
    try:
        await asyncio.sleep(LOOK_AGAIN * 1.1)
        yield applied
    finally:
        task.cancel()
        await asyncio.wait({task})


@moved
async def test_a_file_that_a_reader_was_lost_with_is_put_off_and_another_one_is_not(tmp_path: Path) -> None:
    file, reader = tmp_path / "c.yaml", Unsteady()
    async with following(file, reader) as applied:
        reader.is_lost, reader.asked = True, 0
        file.write_text(text(2))
        await asyncio.sleep(PUT_OFF / 2)
        assert reader.asked == 1
        file.write_text(text(3))
        await asyncio.sleep(PUT_OFF / 2)
        assert reader.asked == 2
        reader.is_lost = False
        await asyncio.sleep(PUT_OFF / 4)
        assert (reader.asked, applied.states) == (2, [bind(1)])
        await asyncio.sleep(PUT_OFF / 2)
        assert (reader.asked, applied.states) == (3, [bind(1), bind(3)])


def test_a_lost_reader_is_told_once_each_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @moved
    async def run() -> None:
        file, reader = tmp_path / "c.yaml", Unsteady()
        async with following(file, reader) as applied:
            for port in (2, 3):
                reader.is_lost = True
                file.write_text(text(port))
                await asyncio.sleep(3 * PUT_OFF)
                reader.is_lost = False
                await asyncio.sleep(PUT_OFF)
                assert applied.states[-1] == bind(port)

    run()
    told = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    why = "cannot be read, the last good configuration stays: the process that reads it ended (signal 9)"
    assert told == [f"{tmp_path}/c.yaml: {why}"] * 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_is_refused_is_told_by_its_key_when_the_reader_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_lost: bool
) -> None:
    class LostThen(Unsteady):
        def refusals(self, text: str, file: Path, refused: Sequence[tuple[Place, str]]) -> Sequence[str]:
            self.is_lost = is_lost
            return super().refusals(text, file, refused)

    @moved
    async def run() -> None:
        file = tmp_path / "c.yaml"
        async with following(file, LostThen()) as applied:
            applied.refuse = {"bind/default/standalone/2": "port 2 is in use", "": "workers hang"}
            file.write_text(text(2))
            await asyncio.sleep(LOOK_AGAIN)

    run()
    refused = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    first = ": bind/default/standalone/2" if is_lost else ":2: binds[0]"
    assert refused == [
        f"{tmp_path}/c.yaml{first}: port 2 is in use",
        f"{tmp_path}/c.yaml: state: workers hang",
    ]
