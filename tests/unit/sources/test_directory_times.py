"""When the folder is looked at, and when what is read counts: real files, with events and a time of the test's own."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane import turns
from controlplane.facts import Fact
from controlplane.sources import directory, file_state, scan, watch
from tests.fakes.memory_agent import descriptors
from tests.fakes.moved_loop import START, moved
from tests.harness.seeds import rolls, times
from tests.unit.sources.test_directory import Seen, decode, running


class Watches:
    """Stands in for `watch.Watch`: made by the subject, told of events by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[Watching] = []
        self.looks: list[float] = []
        look = scan.scan

        def looking(root: str) -> dict[str, scan.Signature]:
            self.looks.append(0.0)
            return look(root)

        monkeypatch.setattr(scan, "scan", looking)
        monkeypatch.setattr(watch, "Watch", self.make)

    def make(self, root: str, told: Callable[[frozenset[str], bool], None]) -> Watching:
        self.made.append(Watching(root, told))
        return self.made[-1]

    def tell(self, *paths: Path, whole: bool = True) -> None:
        self.made[-1].told(frozenset(map(str, paths)), whole)


class Watching:
    def __init__(self, root: str, told: Callable[[frozenset[str], bool], None]) -> None:
        self.root, self.told = root, told
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Watches:
    return Watches(monkeypatch)


def now() -> float:
    """Since the beginning of the test."""
    return round(asyncio.get_running_loop().time() - START, 3)


@moved
async def test_the_whole_folder_is_looked_at_every_ten_seconds(tmp_path: Path, watches: Watches) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        for looks in (1, 2, 3):
            assert (len(watches.looks), seen.objects) == (looks, {"a": str(looks)})
            (tmp_path / "a.yaml").write_text(f"a {looks + 1}\n---\n" + "\n" * looks)  # nobody tells of it
            await asyncio.sleep(9.5)
            watches.tell(tmp_path / "other.txt", tmp_path / "b.yaml")
            await asyncio.sleep(0.25)
            assert len(watches.looks) == looks
            await asyncio.sleep(0.25)
            await seen.until(lambda: seen.objects == {"a": str(looks + 1)})  # noqa: B023
        assert [each.calls for each in watches.made] == [["start"]]
    assert [each.calls for each in watches.made] == [["start", "stop"]]


@moved
async def test_a_folder_that_was_replaced_is_watched_anew(tmp_path: Path, watches: Watches) -> None:
    root = tmp_path / "root"
    async with running(root):
        assert watches.made == []
        root.mkdir()
        await asyncio.sleep(10.1)
        assert [(each.root, each.calls) for each in watches.made] == [(str(root), ["start"])]
        root.rename(tmp_path / "away")
        await asyncio.sleep(10)
        assert [each.calls for each in watches.made] == [["start"]], "its state stays, and it may come back"
        root.mkdir()
        await asyncio.sleep(10)
        assert [each.calls for each in watches.made] == [["start", "stop"], ["start"]]
    assert watches.made[1].calls == ["start", "stop"]


@moved
async def test_a_loss_has_to_stand_for_sixty_milliseconds(tmp_path: Path, watches: Watches) -> None:
    """50 until it counts, and 10 for what is lost together with it."""
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(f"{name} 1\n")
    async with running(tmp_path) as (_, seen):
        seen.batches = 0
        for name, pause in (("a", 0.009), ("b", 0.003), ("c", 0.047)):
            (tmp_path / f"{name}.yaml").write_text("")
            watches.tell(tmp_path / f"{name}.yaml")
            await asyncio.sleep(pause)
        assert set(seen.objects) == {"a", "b", "c"}
        await asyncio.sleep(0.002)
        assert (seen.batches, set(seen.objects)) == (1, {"c"}), "b went within 10 ms of a, c did not"
        await asyncio.sleep(0.012)
        assert (seen.batches, set(seen.objects)) == (2, set())


@moved
async def test_a_file_that_is_gone_counts_after_fifteen_milliseconds(tmp_path: Path, watches: Watches) -> None:
    """5 until it counts, and 10 for what is removed together with it."""
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(f"{name} 1\n")
    async with running(tmp_path) as (_, seen):
        seen.batches = 0
        for name, pause in (("a", 0.009), ("b", 0.005)):
            (tmp_path / f"{name}.yaml").unlink()
            watches.tell(tmp_path / f"{name}.yaml")
            await asyncio.sleep(pause)
        assert set(seen.objects) == {"a", "b", "c"}
        await asyncio.sleep(0.002)
        assert (seen.batches, set(seen.objects)) == (1, {"c"})


@moved
async def test_a_file_that_is_gone_while_others_are_written_may_come_back_for_sixty_milliseconds(
    tmp_path: Path, watches: Watches
) -> None:
    """As where a tool takes files away and writes others that have the same objects."""
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        (tmp_path / "a.yaml").unlink()
        watches.tell(tmp_path / "a.yaml")
        while now() < 0.056:
            await asyncio.sleep(0.004)
            watches.tell(tmp_path / "other.txt", whole=False)
        assert set(seen.objects) == {"a"}
        await asyncio.sleep(0.005)
        assert set(seen.objects) == set()


@moved
async def test_a_file_that_comes_back_empty_is_being_written(tmp_path: Path, watches: Watches) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path) as (_, seen):
        (tmp_path / "a.yaml").unlink()
        watches.tell(tmp_path / "a.yaml")
        await asyncio.sleep(0.010)
        (tmp_path / "a.yaml").write_text("")
        watches.tell(tmp_path / "a.yaml")
        await asyncio.sleep(0.049)
        assert set(seen.objects) == {"a"}
        await asyncio.sleep(0.002)
        assert set(seen.objects) == set()


@moved
async def test_losses_that_follow_each_other_hold_others_up_for_150_milliseconds(
    tmp_path: Path, watches: Watches
) -> None:
    for number in range(6):
        (tmp_path / f"{number}.yaml").write_text(f"old{number} 1\n")
    async with running(tmp_path) as (_, seen):
        idle: list[tuple[float, int]] = []

        async def note() -> None:
            idle.append((now(), len(seen.objects)))

        seen.on_idle = note
        (tmp_path / "new.yaml").write_text("new 1\n")
        watches.tell(tmp_path / "new.yaml")
        for number in range(6):
            (tmp_path / f"{number}.yaml").write_text("")
            watches.tell(tmp_path / f"{number}.yaml")
            await asyncio.sleep(0.04)
        await asyncio.sleep(0.1)
    assert idle == [(0.16, 4), (0.26, 1)]


async def test_at_its_end_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    async with running(tmp_path):
        pass  # the threads that scan are started
    before, name = descriptors(), f"watch {tmp_path}"
    async with running(tmp_path) as (source, _):
        assert [thread.name for thread in threading.enumerate()].count(name) == 1
        (tmp_path / "a.yaml").unlink()
        source._note([str(tmp_path / "a.yaml")])
        while not source.pending_losses:
            await asyncio.sleep(0)
        timers = [*source.pending_losses.values()]
    assert timers and all(timer.cancelled() for timer in timers)
    assert name not in [thread.name for thread in threading.enumerate()] and descriptors() == before
    assert directory.RESCAN == 10.0


@moved
async def test_what_is_told_of_several_files_at_once_is_published_once(tmp_path: Path, watches: Watches) -> None:
    async with running(tmp_path) as (_, seen):
        idle: list[dict[str, str]] = []

        async def note() -> None:
            idle.append(dict(seen.objects))

        seen.on_idle = note
        for name in "ab":
            (tmp_path / f"{name}.yaml").write_text(f"{name} 1\n")
        watches.tell(tmp_path / "a.yaml", tmp_path / "b.yaml")
        await asyncio.sleep(1)
        assert idle == [{"a": "1", "b": "1"}]


@moved
async def test_a_part_of_a_group_is_read_at_once_and_published_with_the_whole(tmp_path: Path, watches: Watches) -> None:
    async with running(tmp_path) as (_, seen):
        idle = idles(seen)
        (tmp_path / "a.yaml").write_text("a 1\n")
        watches.tell(tmp_path / "a.yaml", whole=False)
        await asyncio.sleep(0.005)
        assert (seen.objects, idle) == ({"a": "1"}, [])
        (tmp_path / "b.yaml").write_text("b 1\n")
        watches.tell(tmp_path / "b.yaml", whole=False)
        await asyncio.sleep(0.005)
        watches.tell()
        await asyncio.sleep(0.001)
        assert idle == [{"a": "1", "b": "1"}]
        watches.tell()  # of files that are not ours
        await asyncio.sleep(1)
        assert len(idle) == 1


@pytest.mark.parametrize("slow", ["a piece of a file", "a file", "the sink"])
async def test_others_get_their_turns_when_a_slice_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Whoever is slow takes exactly a slice each time: then nothing more is done before the others' turns."""
    spent, rests = 0.0, []

    def work() -> None:
        nonlocal spent
        spent += turns.SLICE

    def decoding(text: str) -> file_state.Decoded:
        if slow != "the sink":
            work()
        return decode(text)

    class Slow(Seen):
        async def take(self, changes: Sequence[Fact]) -> None:
            if slow == "the sink":
                work()
            await super().take(changes)

    async def rest() -> None:
        rests.append(spent)

    monkeypatch.setattr(directory, "time", SimpleNamespace(monotonic=lambda: spent))
    monkeypatch.setattr(turns, "rest", rest)
    monkeypatch.setattr(directory, "BATCH", 1)
    pieces = [f"{name} 1\n" for name in "abc"]
    for number, text in enumerate(["---\n".join(pieces)] if slow == "a piece of a file" else pieces):
        (tmp_path / f"{number}.yaml").write_text(text)
    async with running(tmp_path, decoding, Slow()) as (_, seen):
        assert set(seen.objects) == {"a", "b", "c"}
    assert rests == [turns.SLICE, turns.SLICE + turns.SLICE, turns.SLICE + turns.SLICE + turns.SLICE]


def idles(seen: Any) -> list[dict[str, str]]:
    """What the sink knew each time that the source called it a good moment to publish."""
    found: list[dict[str, str]] = []

    async def note() -> None:
        found.append(dict(seen.objects))

    seen.on_idle = note
    return found


async def rest(dice: random.Random) -> None:
    """A moment of any length: none, some turns of the loop, or as long as reading a file takes and longer."""
    for _ in range(dice.choice((0, 0, 1, 2, 3, 5, 8))):
        await asyncio.sleep(0)
    if dice.random() < 0.3:
        await asyncio.sleep(dice.choice((0.0001, 0.001, 0.005)))


@moved
async def test_groups_are_published_whole_all_of_them_and_in_order(tmp_path: Path, watches: Watches) -> None:
    """However the parts of groups fall between the steps of reading and publishing."""
    for round_ in range(times(40)):
        dice, folder = rolls("groups of files", round_), tmp_path / str(round_)
        folder.mkdir()
        async with running(folder) as (_, seen):
            idle: list[set[str]] = []

            async def publish() -> None:
                idle.append(set(seen.objects))  # noqa: B023 - ends with this round
                await rest(dice)  # noqa: B023

            seen.on_idle = publish
            wholes: list[set[str]] = [set()]
            for group in range(dice.randrange(1, 8)):
                names = [f"{group}-{number}" for number in range(dice.randrange(4))]
                for name in names:
                    (folder / f"{name}.yaml").write_text(f"{name} 1\n")
                    if dice.random() < 0.8:
                        watches.tell(folder / f"{name}.yaml", whole=False)
                        await rest(dice)
                watches.tell(*(folder / f"{name}.yaml" for name in names))
                wholes.append(wholes[-1] | set(names))
                await rest(dice)
            await asyncio.sleep(0.5)
            assert set(seen.objects) == wholes[-1]
            assert idle == [] or idle[-1] == wholes[-1]
            assert all(published in wholes for published in idle), (round_, idle)
            assert len(idle) >= (len(wholes[-1]) > 0)
