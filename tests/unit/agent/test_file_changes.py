"""The ways in which a standalone file may change: each is followed, whether the system reports it or not."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from dataplane.agent import file_source, folder_watch
from dataplane.agent.file_source import FileSource
from dataplane.agent.folder_watch import LOOK_AGAIN
from dataplane.agent.reader import LocalReader
from dataplane.telemetry.metrics import Metrics
from tests.fakes.moved_loop import moved
from tests.unit.agent.test_file_source import GUARDED, Applied, bind, text


def refused() -> NoReturn:
    raise OSError(errno.EMFILE, "no more of it")


@pytest.fixture(params=["reported", "looked for"])
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds of the loop within which a change has to be applied: less than a look, where it is reported."""
    if request.param == "reported":
        return LOOK_AGAIN / 2
    monkeypatch.setattr(folder_watch, "_opened", refused)
    return LOOK_AGAIN * 1.5


@asynccontextmanager
async def following(file: Path, first: str) -> AsyncIterator[Applied]:
    file.write_text(first)
    applied = Applied()
    reader = LocalReader()
    source = FileSource(file, file_source.read(file, (), reader), applied, Metrics.in_memory(), (), reader)
    task = asyncio.create_task(source.run())
    try:
        await asyncio.sleep(LOOK_AGAIN * 1.1)  # it has looked, and waits
        assert len(applied.states) == 1
        yield applied
    finally:
        task.cancel()
        await asyncio.wait({task})


Change = Callable[[Path], Awaitable[None]]


async def written(file: Path) -> None:
    file.write_text(text(2))


async def replaced(file: Path) -> None:
    draft = file.with_name("draft")
    draft.write_text(text(2))
    draft.rename(file)


async def gone_and_back(file: Path) -> None:
    file.unlink()
    await asyncio.sleep(2.3 * LOOK_AGAIN)
    file.write_text(text(2))


async def moved_away_and_back(file: Path) -> None:
    file.rename(file.with_name("away"))
    await asyncio.sleep(0.01)
    file.with_name("away").write_text(text(2))
    file.with_name("away").rename(file)


async def written_in_two_steps(file: Path) -> None:
    whole = text(2)
    with file.open("w") as half:
        half.write(whole[:20])
        half.flush()
        await asyncio.sleep(0.02)
        half.write(whole[20:])


async def made_unreadable_and_good_again(file: Path) -> None:
    file.write_bytes(b"\xff")
    await asyncio.sleep(2.3 * LOOK_AGAIN)
    file.write_text(text(2))


async def replaced_with_its_folder(file: Path) -> None:
    folder = file.parent
    folder.rename(folder.with_name("old"))
    await asyncio.sleep(2.3 * LOOK_AGAIN)
    folder.mkdir()
    file.write_text(text(2))
    await asyncio.sleep(LOOK_AGAIN)  # a folder that was not there cannot be watched: the next look finds it


CHANGES: tuple[Change, ...] = (
    written,
    replaced,
    gone_and_back,
    moved_away_and_back,
    written_in_two_steps,
    made_unreadable_and_good_again,
    replaced_with_its_folder,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_followed(tmp_path: Path, patience: float, change: Change) -> None:
    (tmp_path / "folder").mkdir()

    @moved
    async def run() -> None:
        file = tmp_path / "folder" / "c.yaml"
        async with following(file, text(1)) as applied:
            await change(file)
            await asyncio.sleep(patience)
            assert applied.states == [bind(1), bind(2)]
            change_again = file.with_name("again")
            change_again.write_text(text(3))
            change_again.rename(file)
            await asyncio.sleep(patience)
            assert applied.states == [bind(1), bind(2), bind(3)]

    run()


def test_a_config_map_is_followed(tmp_path: Path, patience: float) -> None:
    """kubelet writes a new folder, swaps the link `..data`, and removes the old folder."""

    @moved
    async def run() -> None:
        for number in (1, 2, 3):
            (tmp_path / f"..{number}").mkdir()
        (tmp_path / "..data").symlink_to("..1")
        (tmp_path / "c.yaml").symlink_to("..data/c.yaml")
        async with following(tmp_path / "c.yaml", text(1)) as applied:
            for number in (2, 3):
                (tmp_path / f"..{number}" / "c.yaml").write_text(text(number))
                (tmp_path / "..new").symlink_to(f"..{number}")
                os.replace(tmp_path / "..new", tmp_path / "..data")
                (tmp_path / f"..{number - 1}" / "c.yaml").unlink()
                (tmp_path / f"..{number - 1}").rmdir()
                await asyncio.sleep(patience)
                assert applied.states[-1] == bind(number)
            assert len(applied.states) == 3

    run()


def test_the_target_of_a_link_is_looked_at_each_second(tmp_path: Path, patience: float) -> None:
    """It is in a folder that nobody watches."""

    @moved
    async def run() -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "c.yaml").symlink_to(tmp_path / "real" / "c.yaml")
        async with following(tmp_path / "folder" / "c.yaml", text(1)) as applied:
            (tmp_path / "real" / "c.yaml").write_text(text(2))
            await asyncio.sleep(LOOK_AGAIN * 1.5)
            assert applied.states == [bind(1), bind(2)]

    run()


def test_secrets_in_folders_that_come_and_go_are_followed(tmp_path: Path, patience: float) -> None:
    @moved
    async def run() -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        for folder in (one, two):
            folder.mkdir()
            (folder / "key").write_text("first")
        async with following(tmp_path / "c.yaml", GUARDED.format(port=1, path="one/key")) as applied:

            async def applies(count: int) -> None:
                await asyncio.sleep(patience)
                assert len(applied.states) == count

            (one / "key").write_text("second")
            await applies(2)
            (two / "key").write_text("second")
            await applies(2)
            (tmp_path / "c.yaml").write_text(GUARDED.format(port=1, path="two/key"))
            await applies(3)
            (two / "key").write_text("third")
            await applies(4)
            (one / "key").write_text("third")
            await applies(4)

    run()


@moved
async def test_a_file_is_read_again_only_when_it_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    async with following(file, text(1)) as applied:
        for _ in range(20):
            (tmp_path / "neighbour").write_text("x")
            await asyncio.sleep(0.3)
        file.touch()
        await asyncio.sleep(LOOK_AGAIN)
        assert applied.states == [bind(1)]
