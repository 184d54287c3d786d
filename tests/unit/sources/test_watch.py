"""Events of a folder as groups of paths: what is told, what belongs together, and when there is no more of inotify."""

from __future__ import annotations

import os
import queue
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.sources import inotify, scan, watch
from tests.harness.patience import PATIENCE


class Watched:
    """A folder, and the groups that were told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.groups: queue.Queue[frozenset[str]] = queue.Queue()
        self.watch = watch.Watch(str(folder), self._told)
        self._parts: set[str] = set()
        self.watch.start()

    def _told(self, paths: frozenset[str], is_whole: bool) -> None:
        self._parts |= paths
        if is_whole:
            self.groups.put(frozenset(self._parts))
            self._parts.clear()

    def told(self, *names: str) -> None:
        """Waits until all of these were told."""
        missing = {str(self.folder / name) for name in names}
        while missing:
            missing -= self.groups.get(timeout=PATIENCE)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    (tmp_path / "below").mkdir()
    made = Watched(tmp_path)
    yield made
    made.watch.stop()
    made.watch._thread.join(PATIENCE)
    assert not made.watch._thread.is_alive()


def test_files_that_come_change_move_and_go_are_told(watched: Watched) -> None:
    file = watched.folder / "a.yaml"
    file.write_text("a")
    watched.told("a.yaml")
    file.write_text("b")
    watched.told("a.yaml")
    file.rename(watched.folder / "b.yaml")
    watched.told("a.yaml", "b.yaml")
    (watched.folder / "b.yaml").unlink()
    watched.told("b.yaml")
    (watched.folder / "c.yaml").symlink_to("b.yaml")
    watched.told("c.yaml")


def test_folders_below_are_watched_those_that_come_later_too(watched: Watched) -> None:
    (watched.folder / "below" / "a.yaml").write_text("a")
    watched.told("below/a.yaml")
    (watched.folder / "new" / "deep").mkdir(parents=True)
    watched.told("new")
    (watched.folder / "new").rename(watched.folder / "moved")
    watched.told("moved")
    (watched.folder / "moved" / "deep" / "a.yaml").write_text("a")
    watched.told("moved/deep/a.yaml")


def test_a_folder_behind_a_link_is_watched_and_a_circle_ends(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "root")
    made = Watched(tmp_path / "root")
    (tmp_path / "elsewhere" / "a.yaml").write_text("a")
    made.told("link/a.yaml")
    made.watch.stop()


def test_a_folder_with_several_names_goes_by_the_one_that_a_scan_gives_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file.yaml").write_text("1")
    (tmp_path / "c").symlink_to("b")
    made = inotify.Inotify(str(tmp_path))

    def edited() -> set[str]:
        made.read(0)
        (tmp_path / "b" / "file.yaml").write_text("2")
        return {os.path.relpath(event.path, tmp_path) for event in made.read(PATIENCE)}

    assert edited() == scan.scan(str(tmp_path)).keys() == {"b/file.yaml"}
    (tmp_path / "d").symlink_to("b")
    assert edited() == scan.scan(str(tmp_path)).keys() == {"b/file.yaml"}
    (tmp_path / "a").symlink_to("b")
    assert edited() == scan.scan(str(tmp_path)).keys() == {"a/file.yaml"}
    made.close()
    made = inotify.Inotify(str(tmp_path))
    assert edited() == {"a/file.yaml"}
    made.close()


def test_a_file_that_is_being_written_is_told_when_it_is_closed(watched: Watched) -> None:
    with (watched.folder / "a.yaml").open("w") as file:
        file.write("half")
        file.flush()
        (watched.folder / "b.yaml").write_text("whole")
    group = watched.groups.get(timeout=PATIENCE)
    assert group == {str(watched.folder / name) for name in ("a.yaml", "b.yaml")}


def test_a_root_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        watch.Watch(str(tmp_path / "absent"), lambda _paths, _is_whole: None)


def test_without_inotify_the_folder_is_looked_at_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_root: str) -> inotify.Inotify:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(watch, "Inotify", none_left)
    monkeypatch.setattr(watch, "LOOK_AGAIN", 0.001)
    made = Watched(tmp_path)
    made.told(".")
    made.watch.stop()


OVERFLOW = struct.pack("iIII", -1, 0x4000, 0, 0)  # IN_Q_OVERFLOW


def test_lost_events_ask_for_a_look_at_everything(tmp_path: Path) -> None:
    made = inotify.Inotify(str(tmp_path))
    assert list(made._events(OVERFLOW)) == [inotify.Event(str(tmp_path), False)]
    made.close()


def test_a_folder_whose_coming_was_lost_is_watched(tmp_path: Path) -> None:
    made = inotify.Inotify(str(tmp_path))
    (tmp_path / "new" / "deep").mkdir(parents=True)
    os.read(made._inotify.fileno(), 65536)  # lost
    list(made._events(OVERFLOW))
    file = tmp_path / "new" / "deep" / "a.yaml"
    file.write_text("a")
    assert str(file) in {event.path for event in made.read(PATIENCE)}
    made.close()


def test_a_link_in_a_circle_is_left_out_and_the_rest_is_watched(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "below").mkdir()
    made = inotify.Inotify(str(tmp_path))
    (tmp_path / "below" / "a.yaml").write_text("a")
    assert str(tmp_path / "below" / "a.yaml") in {event.path for event in made.read(PATIENCE)}
    made.close()


def test_folders_that_are_deeper_than_the_stack_are_watched(tmp_path: Path) -> None:
    """As deep as a path can name. What is below that is left out."""
    levels = sys.getrecursionlimit()
    descriptor = os.open(tmp_path, os.O_PATH)
    for _ in range(2 * levels):
        os.mkdir("deep", dir_fd=descriptor)
        above, descriptor = descriptor, os.open("deep", os.O_PATH, dir_fd=descriptor)
        os.close(above)
    os.close(descriptor)
    (tmp_path / "beside").mkdir()
    try:
        watching = inotify.Inotify(str(tmp_path))
        try:
            (tmp_path / "beside" / "a.yaml").write_text("")
            assert str(tmp_path / "beside" / "a.yaml") in [event.path for event in watching.read(PATIENCE)]
            folder = str(tmp_path) + "/deep" * (levels - 300)
            Path(folder, "a.yaml").write_text("")
            assert folder + "/a.yaml" in [event.path for event in watching.read(PATIENCE)]
        finally:
            watching.close()
    finally:
        subprocess.run(["rm", "-r", tmp_path / "deep"], check=True)  # pytest cannot
