"""What a watch of folders reports: at once what the system reports, each second that it is time to look."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from pathlib import Path
from typing import NoReturn

import pytest

from dataplane.agent import folder_watch
from dataplane.agent.folder_watch import LONGEST, LOOK_AGAIN, QUIET, FolderWatch, watching
from tests.fakes.moved_loop import moved


def no_inotify(monkeypatch: pytest.MonkeyPatch, number: int = errno.EMFILE) -> list[int]:
    """There is none; answers the tries to get it."""
    tries: list[int] = []

    def refused() -> NoReturn:
        tries.append(number)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folder_watch, "_opened", refused)
    return tries


async def waited(watch: FolderWatch) -> float:
    """Seconds of the loop that one wait takes."""
    loop = asyncio.get_running_loop()
    before = loop.time()
    await watch.wait()
    return round(loop.time() - before, 6)


@moved
async def test_a_wait_ends_after_a_second_when_nothing_happens(tmp_path: Path) -> None:
    with watching() as watch:
        assert watch.watch({tmp_path})
        assert [await waited(watch) for _ in range(3)] == [LOOK_AGAIN] * 3


def written(folder: Path) -> None:
    (folder / "a").write_text("x")


def renamed(folder: Path) -> None:
    (folder / "b").rename(folder / "a")


def linked(folder: Path) -> None:
    (folder / "l").symlink_to("b")


def swapped(folder: Path) -> None:
    """As kubelet does it."""
    (folder / "..tmp").symlink_to("new")
    os.replace(folder / "..tmp", folder / "..data")


def removed(folder: Path) -> None:
    (folder / "b").unlink()


def made_readable(folder: Path) -> None:
    (folder / "b").chmod(0o600)


def removed_itself(folder: Path) -> None:
    (folder / "b").unlink()
    (folder / "..data").unlink()
    folder.rmdir()


def moved_itself(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


CHANGES = (written, renamed, linked, swapped, removed, made_readable, removed_itself, moved_itself)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_happens_in_a_folder_ends_a_wait_at_once(tmp_path: Path, change: object) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b").write_text("")
    (folder / "..data").symlink_to("old")

    @moved
    async def run() -> None:
        with watching() as watch:
            watch.watch({folder})
            assert callable(change)
            change(folder)
            assert await waited(watch) == QUIET
            watch.watch({folder})
            assert await waited(watch) == LOOK_AGAIN

    run()


@moved
async def test_a_file_that_is_open_is_reported_when_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with watching() as watch, (tmp_path / "a").open("w") as file:
        watch.watch({tmp_path})
        file.write("half")
        file.flush()
        assert await waited(watch) == LOOK_AGAIN
        file.close()
        assert await waited(watch) == QUIET


@moved
async def test_a_folder_that_is_never_quiet_is_waited_for_so_long_only(tmp_path: Path) -> None:
    async def scribble() -> None:
        while True:
            (tmp_path / "a").write_text("x")
            await asyncio.sleep(QUIET / 2)

    with watching() as watch:
        watch.watch({tmp_path})
        writing = asyncio.create_task(scribble())
        await asyncio.sleep(0)
        assert [await waited(watch) for _ in range(2)] == [LONGEST, LONGEST]
        writing.cancel()
        await asyncio.wait({writing})


@moved
async def test_events_that_follow_each_other_are_one(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    with watching() as watch:
        watch.watch({tmp_path})
        (tmp_path / "a").write_text("1")
        loop.call_later(QUIET - 0.001, (tmp_path / "a").write_text, "2")
        assert await waited(watch) == 3 * QUIET  # the second pause is twice the first
        assert await waited(watch) == LOOK_AGAIN


@moved
async def test_folders_come_and_go(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    with watching() as watch:
        assert watch.watch({one, two})
        assert not watch.watch({one, two})
        two.mkdir()
        assert watch.watch({one, two})
        written(two)
        assert await waited(watch) == QUIET
        assert not watch.watch({one})
        written(two)
        assert await waited(watch) == LOOK_AGAIN
        one.rename(tmp_path / "three")
        one.mkdir()
        assert await waited(watch) == QUIET
        assert watch.watch({one})
        written(one)
        assert await waited(watch) == QUIET
        written(tmp_path / "three")
        assert await waited(watch) == LOOK_AGAIN


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSYS, errno.ENOSPC])
def test_without_inotify_a_wait_takes_a_second_until_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    caplog.set_level(logging.INFO)

    @moved
    async def run() -> None:
        with watching() as watch:
            with monkeypatch.context() as patched:
                tries = no_inotify(patched, number)
                for count in (1, 2, 3):
                    assert not watch.watch({tmp_path})
                    written(tmp_path)
                    assert await waited(watch) == LOOK_AGAIN
                    assert len(tries) == count
            assert watch.watch({tmp_path})
            written(tmp_path)
            assert await waited(watch) == QUIET

    run()
    assert [record.message for record in caplog.records] == [
        f"cannot watch {tmp_path} ({os.strerror(number)}); it is looked at each second"
    ]


@moved
async def test_a_system_without_the_library_is_one_without_inotify(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched, watching() as watch:
        patched.setattr(folder_watch, "inotify_simple", None)
        assert not watch.watch({tmp_path})
        assert await waited(watch) == LOOK_AGAIN


@moved
async def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with watching() as watch:
        watch.watch({tmp_path})
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before
