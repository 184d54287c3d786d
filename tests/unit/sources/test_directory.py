"""`controlplane.sources.directory` on a real folder with real file-system events.

Waits are for events, never for a time to pass, except where the settling time itself is the subject.
"""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from controlplane.facts import Fact
from controlplane.sources import directory, file_state, inotify, tree, watch
from gatewright import files
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem
from tests.harness.patience import PATIENCE
from tests.harness.waiting import cancelled


def decode(text: str) -> file_state.Decoded:
    """One line `name value` is one object; a line without a value is an error."""
    objects, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        name, _, value = line.partition(" ")
        if value:
            objects.append(file_state.Object(ObjectKey("Toy", "default", name), value, value))
        elif name and name != "---":
            problems.append(Problem("", number, "", "", "has no value"))
    return file_state.Decoded(tuple(objects), tuple(problems), (), bool(problems))


async def _nothing() -> None:
    """For whoever wants to know of each idle moment."""


class Seen:
    """A sink that remembers what it was told and can be waited on."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.told: list[tuple[str, str | None]] = []
        self.batches = 0
        self.idles: list[set[str]] = []
        """The objects at each moment at which the source was idle."""
        self.on_idle = _nothing
        self._news = asyncio.Event()

    async def take(self, changes: Sequence[Fact]) -> None:
        self.batches += 1
        for change in changes:
            self.told.append((change.key.name, change.model))
            if change.model is None:
                self.objects.pop(change.key.name, None)
            else:
                self.objects[change.key.name] = change.model
        self._news.set()

    async def idle(self) -> None:
        self.idles.append(set(self.objects))
        await self.on_idle()
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def running(
    root: Path, decoding: file_state.Decode = decode, sink: Seen | None = None
) -> AsyncIterator[tuple[directory.Directory, Seen]]:
    seen = sink or Seen()
    source = directory.Directory(root, tree.Tree(decoding, lambda model, generation: model))
    task = asyncio.create_task(source.run(seen))
    try:
        async with asyncio.timeout(PATIENCE):
            await source.synced.wait()
        yield source, seen
    finally:
        await cancelled(task)


async def test_reads_what_is_there_and_ignores_what_is_not_configuration(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.yaml").write_text("a 1\n")
    (tmp_path / "deep" / "b.yml").write_text("b 1\n")
    (tmp_path / "deep" / "er" / "c.json").write_text("c 1\n")
    (tmp_path / "README.md").write_text("no 1\n")
    (tmp_path / ".hidden.yaml").write_text("no 1\n")
    (tmp_path / ".git" / "d.yaml").write_text("no 1\n")
    (tmp_path / "a.yaml~").write_text("no 1\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    async with running(tmp_path) as (_, seen):
        assert seen.objects == {"a": "1", "b": "1", "c": "1"}


async def test_an_edit_arrives_and_a_new_folder_is_watched(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        (tmp_path / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"})
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "b.yaml").write_text("b 1\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "1"})
        (tmp_path / "new" / "b.yaml").write_text("b 2\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "2"})


async def test_an_edit_arrives_where_the_system_reports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_root: str) -> inotify.Inotify:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(watch, "Inotify", absent)
    monkeypatch.setattr(watch, "LOOK_AGAIN", 0.01)
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        (tmp_path / "a.yaml").write_text("a 2\nb 1\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "1"})


async def test_the_way_editors_save_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vim: the old file becomes a backup, a new one is written under its name; others rename a new file over it."""
    for pause in ("LOSS_DELAY", "GONE"):
        monkeypatch.setattr(directory, pause, PATIENCE)  # a busy machine may take its time between the two
    file = tmp_path / "a.yaml"
    file.write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        seen.told.clear()
        file.rename(tmp_path / "a.yaml~")
        await asyncio.sleep(0.01)
        file.write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"})
        (tmp_path / ".a.yaml.swp").write_text("a 3\n")
        (tmp_path / ".a.yaml.swp").rename(file)
        await seen.until(lambda: seen.objects == {"a": "3"})
        assert seen.told == [("a", "2"), ("a", "3")]


async def test_files_that_are_removed_together_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route that went a moment after its backend would be served without it meanwhile."""
    monkeypatch.setattr(directory, "TOGETHER", 0.5)  # a busy machine takes its time to tell of the second one
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text(f"{name} 1\n")
    async with running(tmp_path) as (source, seen):
        seen.batches = 0
        (tmp_path / "a.yaml").unlink()
        while not source.pending_losses:
            await asyncio.sleep(0)
        (tmp_path / "b.yaml").unlink()
        await seen.until(lambda: seen.objects == {"c": "1"})
        assert seen.batches == 1


async def test_a_half_written_file_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "LOSS_DELAY", PATIENCE)  # a busy machine may take its time between the parts
    file = tmp_path / "a.yaml"
    file.write_text("a 1\n---\nb 1\n")
    async with running(tmp_path) as (source, seen):
        seen.told.clear()
        for part in ("", "a 2", "a 2\n---\n"):
            file.write_text(part)
            await asyncio.sleep(0.01)
        file.write_text("a 2\n---\nb 2\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "2"})
        assert ("a", None) not in seen.told
        assert ("b", None) not in seen.told
        assert source.problems() == []


async def test_a_deletion_that_stands_counts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n---\nb 1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "c.yaml").write_text("c 1\n")
    async with running(tmp_path) as (_, seen):
        (tmp_path / "a.yaml").write_text("a 1\n")
        await seen.until(lambda: seen.objects == {"a": "1", "c": "1"})
        (tmp_path / "folder").rename(tmp_path / ".folder")
        await seen.until(lambda: seen.objects == {"a": "1"})
        (tmp_path / "a.yaml").unlink()
        await seen.until(lambda: seen.objects == {})


async def test_an_error_keeps_the_last_good_state_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a 1\n")
    async with running(tmp_path) as (source, seen):
        file.write_text("a 1\n---\nbroken\n")
        await seen.until(lambda: bool(source.problems()))
        assert [str(problem) for problem in source.problems()] == ["a.yaml:3: has no value"]
        assert seen.objects == {"a": "1"}
        file.write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"})
        await seen.until(lambda: source.problems() == [])


async def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a 1\nb \xff\n")
    (tmp_path / "b.yaml").write_text("c 1\n")
    (tmp_path / "c.yaml").write_bytes(b"\n\n\xff")
    (tmp_path / "d.yaml").write_bytes(b"\xff")
    async with running(tmp_path) as (source, seen):
        assert seen.objects == {"c": "1"}
        assert [str(problem) for problem in source.problems()] == [
            f"{place}: is not UTF-8 text; save the file as UTF-8" for place in ("a.yaml:2", "c.yaml:3", "d.yaml:1")
        ]


async def test_a_kubernetes_volume_is_swapped_as_one(tmp_path: Path) -> None:
    """A ConfigMap volume: files are links into `..data`, itself a link that is replaced by a rename."""
    for generation in ("1", "2"):
        (tmp_path / f"..{generation}").mkdir()
        (tmp_path / f"..{generation}" / "a.yaml").write_text(f"a {generation}\n")
        (tmp_path / f"..{generation}" / "b.yaml").write_text(f"b {generation}\n")
    (tmp_path / "..data").symlink_to("..1")
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    async with running(tmp_path) as (_, seen):
        assert seen.objects == {"a": "1", "b": "1"}
        seen.told.clear()
        (tmp_path / "..data_tmp").symlink_to("..2")
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "2"})
        assert seen.told == [("a", "2"), ("b", "2")]


async def test_a_folder_that_disappears_keeps_its_state_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "RESCAN", 0.05)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.yaml").write_text("a 1\n")
    async with running(root) as (source, seen):
        root.rename(tmp_path / "away")
        await seen.until(lambda: bool(source.problems()))
        assert "cannot be listed" in str(source.problems()[0])
        assert seen.objects == {"a": "1"}
        root.mkdir()
        (root / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"} and not source.problems())


async def test_the_safety_net_holds_also_while_files_change_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "RESCAN", 0.5)
    root, outside = tmp_path / "root", tmp_path / "outside.yaml"
    root.mkdir()
    outside.write_text("linked 1")
    (root / "link.yaml").symlink_to(outside)
    async with running(root) as (source, seen):
        await asyncio.wait_for(source.synced.wait(), PATIENCE)

        async def edit() -> None:
            for number in range(1_000_000):
                (root / "busy.yaml").write_text(f"busy {number}")
                await asyncio.sleep(0.02)

        editing = asyncio.create_task(edit())
        outside.write_text("linked 2")  # nothing tells of it
        await seen.until(lambda: seen.objects["linked"] == "2")
        editing.cancel()


async def test_deletions_that_follow_each_other_do_not_keep_others_from_being_published(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.yaml").write_text(f"old{number} x")
    async with running(tmp_path) as (source, seen):
        await asyncio.wait_for(source.synced.wait(), PATIENCE)
        seen.idles.clear()
        (tmp_path / "new.yaml").write_text("new x")
        for number in range(40):
            (tmp_path / f"{number}.yaml").unlink()
            await asyncio.sleep(directory.LOSS_DELAY / 2)  # so a loss is always about to stand
        await seen.until(lambda: seen.objects.keys() == {"new"})
        held = [objects for objects in seen.idles if "new" in objects]
        assert len(held) > 2 and max(map(len, held)) > 20  # published long before the last loss stands


async def test_many_files_never_hold_the_loop(tmp_path: Path) -> None:
    """Each decode takes real time here; the gaps that another task sees stay near a slice."""

    def slow(text: str) -> file_state.Decoded:
        end = time.thread_time() + 0.0005
        while time.thread_time() < end:
            pass
        return decode(text)

    for number in range(200):
        (tmp_path / f"{number}.yaml").write_text(f"n{number} 1\n")
    seen = Seen()
    source = directory.Directory(tmp_path, tree.Tree(slow, lambda model, generation: model))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(source.run(seen)), asyncio.create_task(other())]
    async with asyncio.timeout(PATIENCE):
        await source.synced.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(seen.objects) == 200
    assert turns >= 15  # 100 ms of work in slices of 4 ms
    assert seen.batches >= 4


async def test_a_file_that_cannot_be_read_keeps_its_state_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    (tmp_path / "b.yaml").write_text("b 1\n")
    is_locked = False

    read = files.read_with_status

    def reading(path: str) -> object:
        if is_locked and path.endswith("a.yaml"):
            raise PermissionError(13, "Permission denied", path)
        return read(path)

    monkeypatch.setattr(files, "read_with_status", reading)
    async with running(tmp_path) as (source, seen):
        is_locked = True
        (tmp_path / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: bool(source.problems()))
        assert [str(each) for each in source.problems()] == [
            "a.yaml: cannot be read: Permission denied; its last state stays"
        ]
        assert seen.objects == {"a": "1", "b": "1"}
        is_locked = False
        (tmp_path / "a.yaml").write_text("a 3\n")
        await seen.until(lambda: seen.objects == {"a": "3", "b": "1"} and not source.problems())


def too_large(path: Path) -> None:
    path.touch()
    os.truncate(path, (64 << 20) + 1)


UNREADABLE: dict[Callable[[Path], None], str] = {
    os.mkfifo: "it is a named pipe, and no regular file",
    lambda path: path.symlink_to("/dev/zero"): "it is a device, and no regular file",
    too_large: "it has 67108865 bytes; the limit is 67108864",
}


@pytest.mark.parametrize("make", UNREADABLE, ids=["pipe", "device", "too-large"])
async def test_what_cannot_be_a_file_of_configuration_stops_no_other(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    """It is found by an event, and by a look at the whole folder; without it nothing of it is left."""
    (tmp_path / "a.yaml").write_text("a 1\n")
    make(tmp_path / "at-start.yaml")
    async with running(tmp_path) as (source, seen):
        make(tmp_path / "later.yaml")
        (tmp_path / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"} and len(source.problems()) == 2)
        message = f"cannot be read: {UNREADABLE[make]}; its last state stays"
        assert list(map(str, source.problems())) == [f"{name}.yaml: {message}" for name in ("at-start", "later")]
        (tmp_path / "at-start.yaml").unlink()
        (tmp_path / "later.yaml").unlink()
        (tmp_path / "later.yaml").write_text("b 1\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "1"} and not source.problems())


async def test_what_was_never_readable_and_goes_unnoticed_is_found_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "RESCAN", 0.01)
    monkeypatch.setattr(directory.Directory, "_sort", lambda *_: None)  # no event is reported
    os.mkfifo(tmp_path / "a.yaml")
    async with running(tmp_path) as (source, seen):
        assert source.problems()
        (tmp_path / "a.yaml").unlink()
        await seen.until(lambda: not source.problems())


@pytest.mark.parametrize(("count", "batches"), [(0, 0), (1, 1), (50, 1), (51, 2), (100, 2)])
async def test_many_changes_are_told_in_batches(tmp_path: Path, count: int, batches: int) -> None:
    """What the sink makes of them takes time as well: it begins before all is read."""
    for number in range(count):
        (tmp_path / f"{number}.yaml").write_text(f"o{number} 1\n")
    async with running(tmp_path) as (_, seen):
        assert (len(seen.objects), seen.batches) == (count, batches)


async def test_what_comes_back_before_it_is_believed_to_be_gone_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "LOSS_DELAY", PATIENCE)
    file = tmp_path / "a.yaml"
    file.write_text("a 1\n")
    async with running(tmp_path) as (source, seen):
        seen.told.clear()
        file.unlink()
        while not source.pending_losses:
            await asyncio.sleep(0)
        file.write_text("a 1\n")
        while source.pending_losses:
            await asyncio.sleep(0)
        (tmp_path / "b.yaml").write_text("b 1\n")
        await seen.until(lambda: "b" in seen.objects)
        assert seen.told == [("b", "1")]


@pytest.mark.parametrize(
    ("path", "dirty", "must_rescan"),
    [
        ("a.yaml", {"a.yaml"}, False),
        ("below/b.json", {"below/b.json"}, False),
        ("below", set(), True),  # a folder
        ("gone", set(), True),  # one whose files are known
        ("notes.txt", set(), False),
        (".git/a.yaml", set(), False),
        (".hidden", set(), False),
        ("..data", set(), True),
        ("..data/a.yaml", set(), True),
        (".", set(), True),
        ("..", set(), True),
    ],
)
async def test_what_an_event_asks_for(tmp_path: Path, path: str, dirty: set[str], must_rescan: bool) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".hidden").mkdir()
    async with running(tmp_path) as (source, _):
        for known in ("gone/c.yaml", "other.yaml"):
            source._signatures[known] = source._signatures.get("a", None)  # type: ignore[assignment]
        assert not source.is_busy
        source._note([f"{tmp_path}/{path}"])
        assert (source._dirty, source._must_rescan) == (dirty, must_rescan)
        assert source._wake.is_set() == source.is_busy == (bool(dirty) or must_rescan)


async def test_what_is_wrong_with_the_folder_comes_first(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\nbad\n")
    async with running(tmp_path) as (source, seen):
        source.problems().clear()
        assert [str(each) for each in source.problems()] == ["a.yaml:2: has no value"]
        source._root = f"{tmp_path}/absent"
        source._must_rescan = True
        await source._work(seen)
        assert [str(each) for each in source.problems()] == [
            f"{tmp_path}/absent: cannot be listed (No such file or directory); its last state stays",
            "a.yaml:2: has no value",
        ]


async def test_each_loss_has_to_stand_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that went once and came back is believed no sooner to be gone again."""
    file = tmp_path / "a.yaml"
    file.write_text("a 1\n")
    async with running(tmp_path) as (source, seen):
        file.unlink()
        await seen.until(lambda: not seen.objects)
        file.write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"})
        monkeypatch.setattr(directory, "LOSS_DELAY", PATIENCE)
        file.unlink()
        async with asyncio.timeout(PATIENCE):
            while not source.pending_losses and seen.objects:
                await asyncio.sleep(0)
        assert seen.objects == {"a": "2"}
