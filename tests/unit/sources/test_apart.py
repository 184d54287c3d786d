"""Files that wait for pieces decoded apart: one after the other, and how long the process stays, by a moved clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.sources.apart import Apart
from tests.fakes.moved_loop import moved


class Decoder:
    """Decodes in capitals. `gone`: when its process was ended."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.seen: list[str] = []
        self.gone: list[float] = []

    def decode(self, piece: str) -> str:
        self.seen.append(piece)
        if piece == "bug":
            raise ValueError(piece)
        return piece.upper()

    def rest(self) -> None:
        self.gone.append(self.loop.time())


class World:
    def __init__(self) -> None:
        self.decoder = Decoder()
        self.learned: list[tuple[str, str, str]] = []
        self.ready: list[str] = []
        self.start = self.decoder.loop.time()
        some: Any = self
        decoder: Any = self.decoder
        self.apart = Apart(some, decoder, self.ready.append)

    def learn(self, file: str, piece: str, found: str) -> None:
        self.learned.append((file, piece, found))

    def ends(self) -> list[float]:
        """Seconds from the beginning."""
        return [round(each - self.start, 3) for each in self.decoder.gone]

    async def settled(self) -> None:
        while self.apart:
            await asyncio.sleep(0)


@moved
async def test_a_file_is_ready_when_all_its_pieces_are_known() -> None:
    world = World()
    assert not world.apart
    world.apart.decode("a", ["x", "y"])
    world.apart.decode("a", ["z"])  # it is read again when these are known
    world.apart.decode("b", ["z"])
    assert world.apart and repr(world.apart) == "<Apart 2 files>"
    await world.settled()
    assert world.learned == [("a", "x", "X"), ("a", "y", "Y"), ("b", "z", "Z")]
    assert world.ready == ["a", "b"]
    await world.apart.close()


@moved
async def test_the_process_stays_for_half_a_minute_after_the_last_piece() -> None:
    world = World()
    world.apart.decode("a", ["x"])
    await world.settled()
    await asyncio.sleep(29)
    assert world.ends() == []
    world.apart.decode("a", ["y"])
    await world.settled()
    await asyncio.sleep(29.9)
    assert world.ends() == []
    await asyncio.sleep(0.2)
    assert world.ends() == [59.0]
    await asyncio.sleep(100)
    assert world.ends() == [59.0]
    await world.apart.close()
    assert len(world.ends()) == 2, "the end of it is the end of the process"
    await asyncio.sleep(100)
    assert len(world.ends()) == 2


@moved
async def test_what_is_not_done_is_left_undone_at_the_end() -> None:
    world = World()
    for file in ("a", "b"):
        world.apart.decode(file, [file])
    await asyncio.sleep(0)
    await world.apart.close()
    assert (world.ready, bool(world.apart)) == ([], False)
    assert len(world.ends()) == 1


@pytest.mark.parametrize("file", ["a", "b"])
@moved
async def test_a_bug_in_one_piece_leaves_the_other_files_alone(file: str) -> None:
    noise: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context["exception"]))
    world = World()
    world.apart.decode(file, ["bug"])
    world.apart.decode("c", ["x"])
    await world.settled()
    assert (world.ready, world.learned) == (["c"], [("c", "x", "X")])
    await world.apart.close()
