"""Real workers that swap as one: one that is stopped, one that dies between preparing and the commit."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from dataplane.agent.process import WorkerProcess, by_command
from dataplane.agent.resources import XDS
from dataplane.agent.workers import Pace, Workers
from dataplane.link.messages import RESOURCE, Record
from gatewright.wire.v1.resource_pb2 import Resource
from tests.fakes import control_plane
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_worker_lives import REAL, restarts, workers

LONG = 2 * PATIENCE
CHANGE = [
    Record(RESOURCE, key, resource.SerializeToString())
    for key, resource in control_plane.gateway(8080, 9000).items()
    if isinstance(resource, Resource)
]


def lives(room: Workers) -> list[WorkerProcess]:
    found = [slot.life for slot in room.slots if slot.life is not None]
    assert len(found) == len(room.slots)
    return found


async def states(room: Workers) -> list[int]:
    """Which state each worker serves."""
    return [(await room.dump(slot.index))["state"] for slot in room.slots]


async def test_workers_commit_by_themselves_while_the_agent_hears_nothing() -> None:
    async with workers(by_command(REAL), Pace(), count=2) as (room, _), asyncio.timeout(LONG):
        await room.apply([])
        applying = asyncio.create_task(room.apply(CHANGE))
        await asyncio.sleep(0)  # it is sent
        end = time.monotonic() + PATIENCE
        while room._commits.read() < 2 and time.monotonic() < end:
            time.sleep(0.001)  # the loop of the agent stands still
        assert room._commits.read() == 2 and not applying.done()
        assert (await applying).refused == {}


async def test_a_stopped_worker_holds_the_others_once_for_a_bounded_time_and_catches_up() -> None:
    async with (
        workers(by_command(REAL), Pace(grace=0.5, patience=LONG, state=LONG), count=2) as (room, _),
        asyncio.timeout(LONG),
    ):
        await room.apply([])
        first, second = lives(room)
        os.kill(second.pid, signal.SIGSTOP)
        applying = asyncio.create_task(room.apply(CHANGE))
        await until(lambda: first.prepared == 2)
        assert (await room.dump(0))["state"] == 1 or second.is_late  # prepared, and held for the other's sake
        await until(lambda: second.is_late, "the end of the patience with a stopped worker")
        while (await room.dump(0))["state"] != 2:
            await asyncio.sleep(0.02)
        assert not applying.done()  # no ACK before all serve it
        os.kill(second.pid, signal.SIGCONT)
        verdict = await applying
        assert verdict.refused == {} and not second.is_late
        await room.apply([])
        assert await states(room) == [3, 3]


async def test_a_worker_that_is_known_to_be_late_holds_nobody_again() -> None:
    pace = Pace(grace=LONG, patience=LONG, state=0.3)
    async with workers(by_command(REAL), pace, count=2) as (room, _), asyncio.timeout(LONG):
        await until(lambda: all(slot.life is not None for slot in room.slots))
        room._pace = Pace(grace=0.2, patience=LONG, state=LONG)
        await room.apply([])
        room._pace = pace
        first, second = lives(room)
        os.kill(second.pid, signal.SIGSTOP)
        second.is_late = True
        began = time.monotonic()
        verdict = await room.apply([])
        assert first.prepared == 2 and time.monotonic() - began < LONG / 2
        assert "workers 1 do not serve this state" in verdict.refused[""]
        os.kill(second.pid, signal.SIGCONT)
        await until(lambda: not second.is_late, "its catching up")


async def test_a_worker_that_dies_between_preparing_and_the_commit_is_replaced_and_serves() -> None:
    pace = Pace(grace=LONG, patience=LONG, state=LONG)
    async with workers(by_command(REAL), pace, count=2) as (room, metrics), asyncio.timeout(LONG):
        await room.apply([])
        first, second = lives(room)
        os.kill(second.pid, signal.SIGSTOP)
        applying = asyncio.create_task(room.apply(room._resources.update(XDS, CHANGE)))
        await until(lambda: first.prepared == 2)
        os.kill(first.pid, signal.SIGKILL)
        await until(lambda: restarts(metrics, "signal") == 1)
        await until(lambda: room.slots[0].life is not None and room.slots[0].life.prepared == 2, "its successor")
        assert not applying.done()
        os.kill(second.pid, signal.SIGCONT)
        assert (await applying).refused == {}
        await until(lambda: all(life.accepts for life in lives(room)))
        while await states(room) != [2, 2]:
            await asyncio.sleep(0.02)


async def test_the_death_of_the_worker_that_all_wait_for_lets_the_others_swap() -> None:
    pace = Pace(grace=LONG, patience=LONG, state=LONG)
    async with workers(by_command(REAL), pace, count=2) as (room, metrics), asyncio.timeout(LONG):
        await room.apply([])
        _, second = lives(room)
        os.kill(second.pid, signal.SIGSTOP)
        applying = asyncio.create_task(room.apply([]))
        await asyncio.sleep(0.1)
        os.kill(second.pid, signal.SIGKILL)
        assert (await applying).refused == {}
        assert restarts(metrics, "signal") == 1
        while await states(room) != [2, 2]:
            await asyncio.sleep(0.02)
