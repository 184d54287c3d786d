"""How the agent keeps its workers: scripted ones that hang, lag, die or talk nonsense, and a clock that is moved."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from dataplane.agent.resources import XDS, Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.workers import Pace, Workers
from dataplane.link import last_served, messages
from dataplane.link.last_served import LastServed
from dataplane.link.messages import RESOURCE, Message, Record
from dataplane.settings import Drain, SessionKey, WorkerSettings
from dataplane.telemetry.metrics import Metrics
from tests.fakes.memory_agent import descriptors
from tests.fakes.memory_workers import ScriptedWorker, ScriptedWorkers, obedient, silent
from tests.fakes.moved_loop import moved

PACE = Pace(
    heartbeat=2.0,
    patience=20.0,
    start=60.0,
    state=30.0,
    grace=5.0,
    restart_first=0.1,
    restart_most=10.0,
    steady=30.0,
    dump=5.0,
)
"""Of a proxy that nobody has told another."""
SETTINGS = WorkerSettings("", "test", 2, "text", "off", {}, Drain(0.0, 1.0), SessionKey(bytes(32)))


class Room:
    """Made by `kept`."""

    def __init__(self, launch: ScriptedWorkers, workers: Workers, metrics: Metrics, resources: Resources) -> None:
        self.launch, self.workers, self.metrics, self.resources = launch, workers, metrics, resources

    @property
    def born(self) -> list[ScriptedWorker]:
        return self.launch.born

    def restarts(self, cause: str) -> int:
        return int(self.metrics.slots[self.metrics.counter("workers_restarted_total", cause)])


@asynccontextmanager
async def kept(*manners: Callable[[ScriptedWorker, Message], None], pace: Pace = PACE) -> AsyncIterator[Room]:
    """Two places, kept alive until the block ends; then no descriptor is left."""
    before, launch = descriptors(), ScriptedWorkers(*manners)
    metrics, resources = Metrics.in_memory(), Resources()
    workers = Workers(SETTINGS, launch, resources, Sockets(2, 0), metrics, pace)
    running = asyncio.create_task(workers.run())
    await asyncio.sleep(0.001)
    try:
        yield Room(launch, workers, metrics, resources)
    finally:
        await workers.drain(0.0, 1.0)
        running.cancel()
        await asyncio.wait({running})
        workers.close()
    assert descriptors() == before


def test_a_proxy_has_this_pace() -> None:
    assert Pace() == PACE


@moved
async def test_a_state_is_committed_when_all_have_prepared_it() -> None:
    waiting: list[ScriptedWorker] = []

    def slow(worker: ScriptedWorker, message: Message) -> None:
        if isinstance(message, messages.StateEnd):
            waiting.append(worker)
        else:
            obedient(worker, message)

    async with kept(obedient, slow) as room:
        applying = asyncio.create_task(room.workers.apply([]))
        await asyncio.sleep(20)  # it answers pings: it is at work
        assert not applying.done() and room.workers.pending() == ["worker 1"] and room.workers.serving() == 1
        kinds = [type(message) for message in room.born[0].heard[:4]]
        assert kinds == [messages.Hello, messages.Common, messages.StateEnd, messages.Ping]
        waiting[0].say(messages.Prepared(1, {"route/a": "no"}, ()))
        verdict = await applying
        assert verdict.refused == {"route/a": "no"} and verdict.binds == ()
        await asyncio.sleep(0.1)
        assert all(messages.Commit(1) in life.heard for life in room.born)


@moved
async def test_a_worker_without_a_sign_of_life_is_left_behind_and_later_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    async with kept(obedient, obedient, obedient) as room:
        await room.workers.apply([])
        room.born[1].answer = silent
        began = loop.time()
        applying = asyncio.create_task(room.workers.apply([]))
        await asyncio.sleep(PACE.grace + 0.1)
        assert messages.Commit(2) in room.born[0].heard  # the others have it
        assert "worker has not prepared the new state and is not waited for" in caplog.text
        verdict = await applying  # its successor is there
        assert verdict.refused == {} and PACE.patience < loop.time() - began < PACE.patience + 3 * PACE.heartbeat
        assert room.born[1].is_killed and room.restarts("signal") == 1 and len(room.born) == 3


@moved
async def test_a_worker_that_was_left_behind_and_caught_up_is_waited_for_again() -> None:
    def at_work(worker: ScriptedWorker, message: Message) -> None:
        if not isinstance(message, messages.StateEnd):
            obedient(worker, message)

    async with kept() as room:
        first, second = room.born
        await room.workers.apply([])
        second.answer = silent
        applying = asyncio.create_task(room.workers.apply([]))
        await asyncio.sleep(PACE.grace + 0.1)
        assert messages.Commit(2) in first.heard and not applying.done()
        second.answer = at_work
        second.say(messages.Prepared(2, {}, ()))
        assert (await applying).refused == {}
        applying = asyncio.create_task(room.workers.apply([]))
        await asyncio.sleep(2 * PACE.grace)
        assert messages.Commit(3) not in first.heard
        second.say(messages.Prepared(3, {}, ()))
        await applying
        await asyncio.sleep(0.1)
        assert messages.Commit(3) in first.heard and len(room.born) == 2


@moved
async def test_a_worker_that_never_prepares_is_told_of_in_the_verdict(caplog: pytest.LogCaptureFixture) -> None:
    def lazy(worker: ScriptedWorker, message: Message) -> None:
        if not isinstance(message, messages.StateEnd):
            obedient(worker, message)

    loop = asyncio.get_running_loop()
    async with kept(obedient, lazy) as room:
        began = loop.time()
        verdict = await room.workers.apply([])
        assert verdict.refused == {"": "workers 1 do not serve this state: they hang or end again and again"}
        assert PACE.state <= loop.time() - began <= 2 * PACE.state + PACE.grace
        assert "workers [1] have not carried out a command" in caplog.text
        assert not room.born[1].is_killed  # it answers: it may get there


@moved
async def test_a_worker_that_never_says_anything_has_longer_for_its_first_word() -> None:
    async with kept(silent, obedient) as room:
        await asyncio.sleep(PACE.start - 1)
        assert not room.born[0].is_killed
        await asyncio.sleep(1 + 2 * PACE.heartbeat)
        assert room.born[0].is_killed and room.restarts("signal") == 1


@moved
async def test_the_pause_before_the_next_life_doubles_up_to_its_bound() -> None:
    """The first death costs no pause."""
    births: list[float] = []

    def dying(worker: ScriptedWorker, message: Message) -> None:
        if isinstance(message, messages.Common):
            births.append(asyncio.get_running_loop().time())
            worker.end(3)

    async with kept(dying, obedient, dying, pace=Pace(restart_first=1.0, restart_most=8.0)):
        await asyncio.sleep(33)
    pauses = [after - before for before, after in itertools.pairwise(births)]
    assert pauses == pytest.approx([0, 1, 2, 4, 8, 8, 8], abs=0.1)


@moved
async def test_deaths_of_long_ago_are_forgotten() -> None:
    async with kept() as room:
        for _ in range(2):
            room.born[-1].end(1)
            await asyncio.sleep(1)
        assert max(slot.deaths for slot in room.workers.slots) == 2
        await asyncio.sleep(PACE.steady + 2 * PACE.heartbeat)
        assert [slot.deaths for slot in room.workers.slots] == [0, 0]


@moved
async def test_how_a_worker_ended_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with kept() as room:
        for status, told in ((0, "exit code 0"), (3, "exit code 3"), (-signal.SIGSEGV, "signal 11")):
            room.born[-1].end(status)
            await asyncio.sleep(1)
            assert caplog.messages[-1] == f"worker ended and is replaced: {told}"
        assert (room.restarts("exit"), room.restarts("signal"), room.restarts("start")) == (2, 1, 0)


@moved
async def test_an_agent_that_was_stopped_does_not_blame_its_workers() -> None:
    async with kept() as room:
        await asyncio.sleep(PACE.heartbeat * 1.5)
        for life in room.workers.slots:
            assert life.life is not None
        loop = asyncio.get_running_loop()
        loop.move(10 * PACE.patience)  # type: ignore[attr-defined]  # nobody ran meanwhile
        await asyncio.sleep(3 * PACE.heartbeat)
        assert [life.is_killed for life in room.born] == [False, False]


@moved
async def test_a_new_worker_is_told_the_last_good_state_and_then_what_is_refused() -> None:
    good, bad = Record(RESOURCE, "route/a", b"good"), Record(RESOURCE, "route/a", b"bad")

    def refusing(worker: ScriptedWorker, message: Message) -> None:
        if isinstance(message, messages.StateEnd) and message.number == 2:
            worker.say(messages.Prepared(2, {"route/a": "no"}, ()))
        else:
            obedient(worker, message)

    async with kept(refusing) as room:
        for record in (good, bad):
            verdict = await room.workers.apply(room.resources.update(XDS, [record]))
            room.resources.judge(verdict.refused)
        room.born[0].end(1)
        await asyncio.sleep(1)
        told = [m for m in room.born[2].heard if isinstance(m, (messages.Changes, messages.StateEnd))]
        assert told == [
            messages.Changes((good,)),
            messages.StateEnd(0),
            messages.Changes((bad,)),
            messages.StateEnd(2),
        ]
        assert room.workers.pending() == []


@moved
async def test_what_a_worker_says_of_itself_or_not() -> None:
    loop = asyncio.get_running_loop()
    async with kept() as room:
        assert await room.workers.dump(1) == {"pid": room.born[1].pid}
        room.born[1].answer = silent
        began = loop.time()
        with pytest.raises(TimeoutError):
            await room.workers.dump(1)
        assert loop.time() - began == pytest.approx(PACE.dump)
        room.born[1].say(messages.DumpAnswer(2, {}))  # nobody waits for it any more
        for index in (-1, 2):
            with pytest.raises(LookupError, match="this proxy has 2, counted from 0"):
                await room.workers.dump(index)


@moved
async def test_binds_that_nobody_closes_hold_up_a_change_for_a_while() -> None:
    def deaf(worker: ScriptedWorker, message: Message) -> None:
        if not isinstance(message, messages.CloseBind):
            obedient(worker, message)

    loop = asyncio.get_running_loop()
    async with kept(deaf) as room:
        for life in room.born:
            life.say(messages.BindOpened("bind/a"))
        await asyncio.sleep(0.1)
        assert room.workers.without("bind/a") == [] and room.workers.without("bind/b") == [0, 1]
        began = loop.time()
        await room.workers.close_binds(["bind/a"])
        assert loop.time() - began == pytest.approx(PACE.state)
        room.born[0].say(messages.BindClosed("bind/a"))
        await asyncio.sleep(0.1)
        assert room.workers.without("bind/a") == [0]


@moved
async def test_a_drain_ends_whatever_is_waited_for() -> None:
    async with kept(silent) as room:
        applying = asyncio.create_task(room.workers.apply([]))
        await asyncio.sleep(1)
        await room.workers.drain(0.0, 1.0)  # nobody obeys: they are killed
        verdict = await applying
        assert verdict.refused == {} and all(life.is_killed for life in room.born)
        await asyncio.sleep(60)
        assert len(room.born) == 2  # nobody is born any more


@moved
async def test_the_log_names_whom_a_worker_served_when_it_hung(caplog: pytest.LogCaptureFixture) -> None:
    async with kept(obedient, obedient, obedient) as room:
        await asyncio.sleep(PACE.heartbeat * 2)
        served = LastServed.of(room.workers.slots[1].region)
        served.now[0] = served.enter("client", "HTTP/2", "192.0.2.66", "bind/8080")
        room.born[1].answer = silent
        await asyncio.sleep(PACE.patience + 3 * PACE.heartbeat)
        assert room.born[1].is_killed and not room.born[0].is_killed
        (record,) = [each for each in caplog.records if "and is killed" in each.getMessage()]
        assert record.__dict__["fields"]["served"] == "client HTTP/2 192.0.2.66 bind=bind/8080"
        assert last_served.read(room.workers.slots[1].region) == "", "its successor has served nobody"


@moved
async def test_a_silent_worker_whose_loop_turns_is_not_killed() -> None:
    async with kept(obedient, obedient, obedient) as room:
        await asyncio.sleep(PACE.heartbeat * 2)
        slots = room.workers.slots[1].region.section("slots").cast("Q")
        room.born[1].answer = silent
        for _ in range(10):  # each turn of its loop is long
            await asyncio.sleep(PACE.patience / 2)
            slots[0] += 1
        assert not room.born[1].is_killed
        await asyncio.sleep(PACE.patience + 3 * PACE.heartbeat)
        assert room.born[1].is_killed, "then it hangs"
