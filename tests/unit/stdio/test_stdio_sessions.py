"""Sessions with servers that are processes: how many there are, when they end, and what happens where they fail."""

from __future__ import annotations

import asyncio

import pytest

from dataplane.link.commands import Command
from dataplane.mcp import dialogue, messages
from dataplane.stdio import sessions as module
from dataplane.stdio.lines import Cut
from dataplane.stdio.pauses import FIRST_PAUSE, LONGEST_PAUSE, MOST_CAUSES, Cause, Pauses
from dataplane.stdio.sessions import Session, Sessions, Unavailable
from tests.fakes.memory_servers import MemoryServers
from tests.fakes.moved_loop import moved

OWN, OTHER = Command("d1", "own", "/own"), Command("d2", "other", "/other")
SPARE = Command("d3", "spare", "/spare", keeps_one=True)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> MemoryServers:
    made = MemoryServers()
    monkeypatch.setattr(module, "ServerProcess", made.make)
    return made


def sessions_of(servers: MemoryServers, *commands: Command) -> Sessions:
    made = Sessions(servers.report, servers.full)
    made.take({each.digest: each for each in commands or (OWN, OTHER, SPARE)})
    return made


async def settled(sessions: Sessions, command: Command = OWN, client: bytes = b"") -> Session:
    session = await sessions.begin(command, client=client)
    sessions.has_begun(session)
    return session


async def turns() -> None:
    await asyncio.sleep(0.01)


class Ear:
    """Listens, and takes whatever comes."""

    is_behind = False

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def hear(self, text: bytes, last: bool) -> None:
        self.heard.append(text)

    def leave(self) -> None:
        self.heard.append(b"(over)")


def use(session: Session) -> Ear:
    """A request that is not answered: the session is not idle."""
    ear = Ear()
    session.dialogue.ask(messages.read(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}'), ear)
    return ear


@moved
async def test_a_session_is_of_its_server_and_lives_as_long_as_its_process(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    session, others = await settled(sessions), await settled(sessions, OTHER)
    assert sessions.of("d1", session.id) is session and sessions.of("d2", others.id) is others
    assert session.id != others.id and len(session.id) == 32
    assert [sessions.of("d2", session.id), sessions.of("d1", ""), sessions.of("", session.id)] == [None] * 3
    servers.made[0].is_alive = False
    assert sessions.of("d1", session.id) is None
    await sessions.close()


@moved
async def test_what_is_deleted_ends_with_its_process_and_for_whoever_listens(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    session, stays = await settled(sessions), await settled(sessions)
    ear = use(session)
    sessions.end(session)
    sessions.end(session)
    assert session.is_over and ear.heard == [b"(over)"] and sessions.of("d1", session.id) is None
    await turns()
    assert servers.reported == [(True, 1), (True, 2), (False, 1)] and servers.alive == [2]
    assert not stays.is_over
    await sessions.close()


@moved
async def test_a_table_without_a_command_ends_its_sessions_alone(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    gone, stays = await settled(sessions), await settled(sessions, OTHER)
    await settled(sessions, SPARE)
    await turns()
    assert servers.alive == [1, 2, 3, 4], "one more of those that keep one"
    sessions.take({"d2": OTHER})
    await turns()
    assert gone.is_over and not stays.is_over and servers.alive == [2]
    await sessions.close()
    assert stays.is_over and servers.alive == []


@moved
async def test_only_so_many_begin_at_a_time(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    begun = [await sessions.begin(OWN) for _ in range(module.STARTING)]
    waiting = [asyncio.create_task(sessions.begin(OWN)) for _ in range(3)]
    await turns()
    assert len(servers.made) == module.STARTING and not any(each.done() for each in waiting)
    assert not (await settled(sessions, OTHER)).is_over, "those of another server do not wait"
    sessions.has_begun(begun[0])
    sessions.has_begun(begun[0])
    await turns()
    assert [each.done() for each in waiting] == [True, False, False], "settled once is a place once"
    sessions.end(begun[0])
    await turns()
    assert [each.done() for each in waiting] == [True, False, False], "its place was given already"
    sessions.end(begun[1])
    sessions.end(begun[2])
    await turns()
    assert all(each.done() for each in waiting)
    await sessions.close()


@moved
async def test_what_cannot_be_started_takes_no_place(servers: MemoryServers, caplog: pytest.LogCaptureFixture) -> None:
    sessions = sessions_of(servers)
    servers.refuse["own"] = FileNotFoundError(2, "No such file or directory")
    for _ in range(2 * module.STARTING):
        with pytest.raises(Unavailable, match="it cannot be started: /own: No such file or directory"):
            await sessions.begin(OWN)
    servers.refuse["own"] = ValueError("embedded null byte")
    with pytest.raises(Unavailable, match="it cannot be started: /own: "):
        await sessions.begin(OWN)
    assert not (await settled(sessions, OTHER)).is_over
    await sessions.close()
    assert caplog.text.count("server cannot be started: /own: No such file or directory") == 2 * module.STARTING


@moved
async def test_whoever_is_not_used_for_half_an_hour_ends(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    idle, used, busy = [await settled(sessions) for _ in range(3)]
    use(busy)
    await asyncio.sleep(module.IDLE - 1)
    assert sessions.of("d1", used.id) is used
    sessions.sweep()
    assert not (idle.is_over or used.is_over or busy.is_over)
    await asyncio.sleep(2)
    sessions.sweep()
    assert [idle.is_over, used.is_over, busy.is_over] == [True, False, False]
    await asyncio.sleep(module.IDLE)
    sessions.sweep()
    assert [used.is_over, busy.is_over] == [True, False]
    await sessions.close()


async def dying(sessions: Sessions, servers: MemoryServers, after: float = 0.0, hello: bytes = b"") -> None:
    """A session whose process ends `after` seconds."""
    session = await sessions.begin(OWN, hello)
    await asyncio.sleep(after)
    servers.made[-1].dies()
    await asyncio.sleep(0.0001)
    assert session.is_over


@moved
async def test_a_start_that_fails_is_tried_again_with_growing_pauses(
    servers: MemoryServers, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = sessions_of(servers)
    for pause in (0.25, 0.5, 1, 2, 4, 8, 16, 30, 30):
        await dying(sessions, servers)
        assert f"pause={pause:g}s" in fields_of(caplog)
        if pause > module.LONGEST_WAIT:
            with pytest.raises(Unavailable, match=r"its processes end at once; the next may be started in \d+\.\d s"):
                await sessions.begin(OWN)
            await asyncio.sleep(pause)
    await dying(sessions, servers, after=module.STABLE)
    assert "pause" not in fields_of(caplog)
    await dying(sessions, servers, after=module.STABLE - 0.1)
    assert "pause=0.25s" in fields_of(caplog), "all is forgiven"
    await sessions.close()


@moved
async def test_who_begins_during_a_pause_waits_for_it(servers: MemoryServers) -> None:
    sessions, clock = sessions_of(servers), asyncio.get_running_loop().time
    for _ in range(3):
        await dying(sessions, servers)
    began = clock()
    waiting = [asyncio.create_task(sessions.begin(OWN)) for _ in range(2 * module.STARTING)]
    assert not (await settled(sessions, OTHER)).is_over and clock() - began < 0.1, "other servers do not wait"
    left = asyncio.create_task(sessions.begin(OWN))
    await turns()
    left.cancel()
    made = len(servers.made)
    await asyncio.sleep(0.9)
    assert len(servers.made) == made, "nobody starts before"
    await asyncio.sleep(0.2)
    assert [each.done() for each in waiting].count(True) == module.STARTING, "no place was kept by who waits or left"
    for each in list(servers.alive)[1:]:
        servers.made[each - 1].dies()
    await asyncio.sleep(0.1)
    failed = [type(each.exception()) for each in waiting]
    assert failed.count(Unavailable) == module.STARTING, "it fails again, and the pause is too long for them now"
    await sessions.close()


@moved
async def test_what_one_client_says_at_the_beginning_is_not_held_against_others(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    for _ in range(6):
        await dying(sessions, servers, hello=b"bad")
        await asyncio.sleep(LONGEST_PAUSE)
    await dying(sessions, servers, hello=b"bad")
    began = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable):
        await sessions.begin(OWN, b"bad")
    assert not (await sessions.begin(OWN, b"good")).is_over and asyncio.get_running_loop().time() == began
    await sessions.close()


@moved
async def test_one_that_ends_by_what_it_was_asked_has_not_failed_to_start(
    servers: MemoryServers, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = sessions_of(servers)
    began = asyncio.get_running_loop().time()
    for _ in range(8):
        session = await settled(sessions)
        sessions.asked(session)
        servers.made[-1].dies()
        while not session.is_over:
            await asyncio.sleep(0)
        assert "pause" not in fields_of(caplog)
    assert asyncio.get_running_loop().time() == began
    await sessions.close()


@moved
async def test_one_that_answers_initialize_and_ends_unasked_has_failed_to_start(
    servers: MemoryServers, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = sessions_of(servers)
    for pause in ("0.25s", "0.5s"):
        session = await settled(sessions)
        servers.made[-1].dies()
        while not session.is_over:
            await asyncio.sleep(0)
        assert f"pause={pause}" in fields_of(caplog)
    await sessions.close()


def test_of_many_causes_those_are_remembered_that_failed_last() -> None:
    made = Pauses(lambda: 0.0)
    causes = [Cause("d1", str(each).encode()) for each in range(MOST_CAUSES + 1)]
    assert {made.failed(each) for each in causes} == {FIRST_PAUSE}
    assert [made.left(causes[each]) for each in (0, 1, -1)] == [0.0, FIRST_PAUSE, FIRST_PAUSE]
    made.succeeded(causes[-1])
    assert made.left(causes[-1]) == 0.0


def test_failures_of_starts_that_were_under_way_together_are_one() -> None:
    now = [0.0]
    made, cause = Pauses(lambda: now[0]), Cause("d1")
    assert [made.failed(cause) for _ in range(4)] == [FIRST_PAUSE] * 4
    seen = []
    for _ in range(2000):
        now[0] += LONGEST_PAUSE
        seen.append(made.failed(cause))
    assert seen[:2] == [2 * FIRST_PAUSE, 4 * FIRST_PAUSE] and seen[-1] == LONGEST_PAUSE


def fields_of(caplog: pytest.LogCaptureFixture) -> str:
    """Of the last line."""
    assert caplog.records[-1].message == "server ended unexpectedly"
    return " ".join(f"{name}={value}" for name, value in caplog.records[-1].__dict__["fields"].items())


@moved
async def test_one_that_was_deleted_has_not_failed(servers: MemoryServers, caplog: pytest.LogCaptureFixture) -> None:
    sessions = sessions_of(servers)
    sessions.end(await settled(sessions))
    await turns()
    assert not (await settled(sessions)).is_over
    await sessions.close()
    assert caplog.text == ""


@moved
async def test_of_many_sessions_of_one_server_the_one_idle_longest_makes_place(
    servers: MemoryServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 3)
    sessions = sessions_of(servers)
    others = await settled(sessions, OTHER)
    await asyncio.sleep(1)
    busy, first, second = [await settled(sessions) for _ in range(3)]
    use(busy)
    await asyncio.sleep(1)
    assert sessions.of("d1", first.id) is first
    await settled(sessions)
    assert [each.is_over for each in (others, busy, first, second)] == [False, False, False, True]
    await sessions.close()


@moved
async def test_who_begins_many_sessions_ends_its_own_and_not_those_of_others(
    servers: MemoryServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 4)
    sessions = sessions_of(servers)
    live = await settled(sessions, client=b"192.0.2.1")
    await asyncio.sleep(1)
    many = [await settled(sessions, client=b"192.0.2.9") for _ in range(40)]
    assert not live.is_over and [each.is_over for each in many] == [True] * 37 + [False] * 3
    assert servers.times_full == 37
    await sessions.close()


@moved
async def test_where_all_are_used_there_is_no_place(servers: MemoryServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 2)
    sessions = sessions_of(servers)
    for _ in range(2):
        use(await settled(sessions))
    with pytest.raises(Unavailable, match="there are as many processes as there may be, and all are used"):
        await sessions.begin(OWN)
    assert not (await settled(sessions, OTHER)).is_over
    assert servers.times_full == 1
    await sessions.close()


@moved
async def test_of_all_processes_any_makes_place(servers: MemoryServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    sessions = sessions_of(servers)
    others = await settled(sessions, OTHER)
    await asyncio.sleep(1)
    first = await settled(sessions)
    await settled(sessions)
    assert others.is_over and not first.is_over
    await sessions.close()


@moved
async def test_one_that_was_started_ahead_is_taken(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    first = await settled(sessions, SPARE)
    await turns()
    second = await sessions.begin(SPARE)
    assert [first.process.pid, second.process.pid] == [1, 2] and len(servers.made) == 2
    await turns()
    assert len(servers.made) == 2, "not before the session has settled"
    sessions.has_begun(second)
    await turns()
    assert servers.alive == [1, 2, 3]
    servers.made[2].is_alive = False
    third = await settled(sessions, SPARE)
    assert third.process.pid == 4, "one that ended meanwhile is no use"
    await turns()
    await settled(sessions)
    await turns()
    assert len(servers.made) == 6, "others keep none"
    await sessions.close()
    assert servers.alive == []


@moved
async def test_one_started_ahead_for_a_command_that_went_meanwhile_ends(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    session = await sessions.begin(SPARE)
    sessions.has_begun(session)
    sessions.take({})
    await turns()
    assert len(servers.made) == 2 and servers.alive == []
    await sessions.close()


@pytest.mark.parametrize("said", [b"what", Cut(b"what", b"what")], ids=["noise", "lines that are too long"])
@moved
async def test_a_server_that_speaks_nonsense_is_ended_and_named(
    said: bytes | Cut, servers: MemoryServers, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = sessions_of(servers)
    session = await settled(sessions)
    for _ in range(dialogue.MAX_NOISE + 1):
        servers.made[0].writes(said)
    await turns()
    assert session.is_over and servers.alive == []
    await sessions.close()
    assert "server writes what are no messages and is ended" in caplog.text
    is_long = "server wrote a line of more than 4194304 bytes (mcp.maxAnswerSize), which is left out" in caplog.text
    assert is_long is isinstance(said, Cut)


@moved
async def test_whom_nobody_hears_is_not_read_until_somebody_does(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    session, server = await settled(sessions), servers.made[0]
    for number in range(dialogue.MAX_UNHEARD + 10):
        server.says(method="notifications/message", params={"data": number})
    await turns()
    assert server.unread == 10
    ear = use(session)
    session.may_read.set()
    await turns()
    assert server.unread == 0 and len(ear.heard) == dialogue.MAX_UNHEARD + 10
    await sessions.close()


@moved
async def test_at_the_end_all_are_waited_for_or_killed(servers: MemoryServers) -> None:
    sessions = sessions_of(servers)
    for _ in range(2):
        await settled(sessions)
    sessions.kill()
    assert [each.was_killed for each in servers.made] == [True, True]
    await sessions.close()
    assert servers.reported[2:] == [(False, 1), (False, 2)]
    sessions.kill()
