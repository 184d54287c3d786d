"""What a worker remembers of sessions: which are used, which are over, what took the place of a server's; and the
goodbye that an idle one is owed."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dataplane.backends.mcp import farewell
from dataplane.backends.mcp.farewell import Farewell
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.credentials.sealing import Sealer
from dataplane.link.arranged import Arranged
from dataplane.link.ended import Ended
from dataplane.link.renewed import Renewed
from dataplane.link.used import Used
from dataplane.mcp import sessions, worker
from dataplane.mcp.plans import McpPlan, TargetPlan
from dataplane.mcp.sessions import IDLE, Session, UpstreamSession
from dataplane.mcp.worker import SWEEP, Memory, Shared

ONE, TWO, THREE = b"1" * 8, b"2" * 8, b"3" * 8


class World:
    """Workers that know the same."""

    def __init__(self, is_alone: bool = True) -> None:
        self.known = Shared.local()
        self.looks: list[float] = []
        self.memory, self.other = (
            Memory(self.known, lambda at, whom: self.looks.append(at), is_alone) for _ in range(2)
        )
        self.said: list[Any] = []

    def owes(self, number: bytes, now: float) -> None:
        """A session that is owed a goodbye."""
        self.memory.of(number, now).goodbye = lambda renewed: self.said.append((number, renewed("one")))


def test_a_session_is_at_work_between_its_requests_and_used_by_each() -> None:
    world = World()
    first = world.memory.enter(ONE, 100.0)
    assert world.memory.enter(ONE, 110.0) is first and first.at_work == 2
    assert world.known.used.last(ONE) == 110
    world.memory.leave(ONE, first, 120.0)
    assert (first.at_work, first.seen, world.known.used.last(ONE)) == (1, 120.0, 120)
    assert world.looks == [100.0 + SWEEP], "one look for all of them"
    world.memory.leave(ONE, first, 130.0)
    assert first.at_work == 0


def test_what_was_forgotten_meanwhile_is_left_alone() -> None:
    world = World()
    first = world.memory.enter(ONE, 100.0)
    del world.memory.remembered[ONE]
    again = world.memory.of(ONE, 110.0)
    world.memory.leave(ONE, first, 120.0)
    assert world.known.used.last(ONE) == 100 and again.seen == 110.0


def test_what_is_idle_is_ended_the_oldest_first() -> None:
    world = World()
    for number, now in ((ONE, 100.0), (TWO, 101.0), (THREE, 102.0)):
        world.known.used.add(number, now)
        world.owes(number, now)
    at_work = world.memory.enter(b"4" * 8, 103.0)
    world.looks.clear()
    world.memory.wake(100.0 + IDLE)
    assert len(world.memory) == 4 and not world.said and world.looks == [100.0 + IDLE + SWEEP]
    world.memory.wake(102.0 + IDLE)
    assert [number for number, _ in world.said] == [ONE, TWO] and len(world.memory) == 2
    assert world.memory.has_ended(ONE) and not world.memory.has_ended(THREE)
    world.memory.wake(110.0 + IDLE)
    assert [number for number, _ in world.said] == [ONE, TWO, THREE]
    assert at_work.seen == 110.0 + IDLE and world.known.used.last(b"4" * 8) == 110 + int(IDLE), "it is used"
    world.memory.leave(b"4" * 8, at_work, 110.0 + IDLE)
    count = len(world.looks)
    world.memory.wake(111.0 + 2 * IDLE)
    assert len(world.memory) == 0 and len(world.looks) == count, "there is nothing to look for"
    world.memory.enter(ONE, 5000.0)
    assert world.looks[-1] == 5000.0 + SWEEP


def test_of_what_is_at_work_others_have_their_turn() -> None:
    world = World()
    world.memory.enter(ONE, 100.0)
    world.known.used.add(TWO, 100.0)
    world.owes(TWO, 100.0)
    world.memory.wake(101.0 + IDLE)
    assert [number for number, _ in world.said] == [TWO] and len(world.memory) == 1


def test_sessions_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST", 2)
    world = World()
    for now, number in enumerate((ONE, TWO, ONE, THREE)):
        world.memory.of(number, now)
    assert list(world.memory.remembered) == [ONE, THREE], "the one that was seen longest ago goes"
    assert world.memory.of(ONE, 9.0).seen == 9.0


# --- what took the place of a server's session


def test_what_took_its_place_last_counts_for_all_workers() -> None:
    world = World()
    assert world.memory.renewed(ONE, "one") is None
    first, second = UpstreamSession("one", "a"), UpstreamSession("one", "b")
    world.memory.renew(ONE, first, 100.0)
    assert world.memory.renewed(ONE, "one") == world.other.renewed(ONE, "one") == first
    assert world.memory.renewed(ONE, "two") is world.memory.renewed(TWO, "one") is None
    world.other.renew(ONE, second, 100.000001)
    assert world.memory.renewed(ONE, "one") == second
    world.memory.of(ONE, 101.0).renewed["one"] = int(101e6), first
    assert world.memory.renewed(ONE, "one") == first, "this one's is newer"


def test_what_is_too_long_to_be_shared_its_worker_knows() -> None:
    world = World()
    long = UpstreamSession("one", "a" * 1024)
    world.memory.renew(ONE, long, 100.0)
    assert world.memory.renewed(ONE, "one") == long and world.other.renewed(ONE, "one") is None


def test_what_another_version_wrote_is_nothing() -> None:
    world = World()
    world.known.renewed.put(ONE, "one", int(100e6), b"\xc1")
    assert world.memory.renewed(ONE, "one") is None


def test_a_worker_takes_its_part_of_what_all_know() -> None:
    region: Any = SimpleNamespace(section=lambda name: (_ for _ in ()).throw(KeyError(name)))
    alone = Shared.of(region, 3)
    assert [type(each) for each in alone] == [Ended, Used, Renewed, Arranged]
    alone.ended.add(ONE)
    assert ONE in alone.ended and ONE not in Shared.local().ended


# --- ids that are remembered


SEALER = Sealer(bytes(32))


@pytest.mark.parametrize(
    ("hello", "target", "is_remembered"),
    [
        (b"x" * 100, "t", True),
        (b"x" * (2048 - 2 - 3), "two", True),
        (b"x" * (2048 - 2 - 2), "two", False),
    ],
)
def test_of_ids_those_are_remembered_that_say_little(hello: bytes, target: str, is_remembered: bool) -> None:
    made = Session(ONE, 1000, hello, [UpstreamSession(target, "id")])
    text = sessions.sealed(made, SEALER, b"o")
    memory = World().memory
    assert len(text) <= worker.SHORT
    assert (memory.opened(text, SEALER, b"o", 1001) is memory.opened(text, SEALER, b"o", 1001)) is is_remembered


def test_the_longest_id_that_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sessions.sealed(Session(ONE, 1000, b"{}", []), SEALER, b"o")
    for bound, is_remembered in ((len(text), True), (len(text) - 1, False)):
        monkeypatch.setattr(worker, "SHORT", bound)
        memory = World().memory
        assert (memory.opened(text, SEALER, b"o", 1001) is memory.opened(text, SEALER, b"o", 1001)) is is_remembered
    assert memory.opened("x", SEALER, b"o", 1001) is None


@pytest.mark.parametrize(
    ("now", "is_lasting"),
    [(700, True), (699, False), (1000, True), (1000 + 86_399, True), (1000 + 86_400, False)],
)
def test_ids_have_their_time(now: float, is_lasting: bool) -> None:
    """Clocks of replicas may differ by five minutes."""
    assert sessions.is_lasting(Session(ONE, 1000, b"", []), now) is is_lasting


def test_a_session_says_what_it_has() -> None:
    theirs = [UpstreamSession("one", "ab"), UpstreamSession("two")]
    made = Session(b"\x01\xff", 1000, b"{}", theirs)
    assert (made.label, made.size, made.of("two"), made.of("x")) == ("01ff", 2 + 3 + 2 + 3, theirs[1], None)


def test_cursors_are_of_one_list_and_one_owner() -> None:
    cursor = sessions.Cursor("tools/list", [("one", "c")])
    text = sessions.sealed_cursor(cursor, SEALER, b"o")
    assert text is not None and sessions.opened_cursor(text, SEALER, b"o", "tools/list") == cursor
    assert sessions.opened_cursor(text, SEALER, b"o", "prompts/list") is None
    assert sessions.opened_cursor(text, SEALER, b"p", "tools/list") is None
    assert sessions.opened_cursor(SEALER.seal(b"\xc1", b"mcp cursor\0o"), SEALER, b"o", "tools/list") is None
    assert sessions.opened_question(SEALER.seal(b"\xc1", b"mcp question\0o"), SEALER, b"o") is None
    assert sessions.opened_question(text, SEALER, b"o") is None, "it is no question"
    assert sessions.sealed_cursor(sessions.Cursor("x", [("one", "c" * 8192)]), SEALER, b"o") is None


LONGEST = 8192 // 4 * 3 - 28
"""Bytes of content of the longest text."""


def test_questions_and_cursors_are_as_long_as_a_text_may_be() -> None:
    for more in (0, 1):
        size = LONGEST - len(msgspec.msgpack.encode(sessions.Cursor("x", [("one", "c" * 3000)]))) + 3000 + more
        cursor = sessions.Cursor("x", [("one", "c" * size)])
        assert len(msgspec.msgpack.encode(cursor)) == LONGEST + more
        text = sessions.sealed_cursor(cursor, SEALER, b"o")
        assert (text is None) is bool(more)
        assert text is None or sessions.opened_cursor(text, SEALER, b"o", "x") == cursor
        question = sessions.Question(UpstreamSession("one", "s" * 3000), 7)
        size = LONGEST - len(msgspec.msgpack.encode(question)) + 3000 + more
        question = sessions.Question(UpstreamSession("one", "s" * size), 7)
        assert len(msgspec.msgpack.encode(question)) == LONGEST + more
        text = sessions.sealed_question(question, SEALER, b"o")
        assert (text is None) is bool(more)


def test_sessions_are_as_long_as_an_id_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    size = sessions.MAX_CONTENT - len(msgspec.msgpack.encode(Session(ONE, 1000, bytes(70_000), []))) + 70_000
    assert sessions.sealed(Session(ONE, 1000, bytes(size), []), SEALER, b"o")
    with pytest.raises(sessions.TooLong, match="a session of 262145 bytes"):
        sessions.sealed(Session(ONE, 1000, bytes(size + 1), []), SEALER, b"o")
    with pytest.raises(sessions.TooLong, match=r"^a session id of \d+ characters$"):
        sessions.sealed(Session(ONE, 1000, os.urandom(8000), []), SEALER, b"o")
    made = Session(ONE, 1000, b"{}", [])
    length = len(sessions.sealed(made, SEALER, b"o"))
    monkeypatch.setattr(sessions, "MAX_SEALED", length)
    assert sessions.sealed(made, SEALER, b"o")
    monkeypatch.setattr(sessions, "MAX_SEALED", length - 1)
    with pytest.raises(sessions.TooLong):
        sessions.sealed(made, SEALER, b"o")


# --- the goodbye


class Visit:
    """As far as a farewell looks at one."""

    def __init__(self, *theirs: UpstreamSession, passing: bytes = b"authorization: x\r\n") -> None:
        names = ("one", "two", "old")
        targets = tuple(TargetPlan(name, name, path=b"/mcp", is_sse=name == "old") for name in names)
        self.spawned: list[Any] = []
        context = SimpleNamespace(
            spawn=self.spawned.append, calls=SimpleNamespace(table=lambda: "the table", clock=lambda: 0.0)
        )
        self.x: Any = SimpleNamespace(context=context, policies=object(), authority=b"a", host_set=False)
        self.plan = McpPlan(targets)
        self.lasting = passing
        self.session = Session(ONE, 1000, b"{}", list(theirs))

    def farewell(self, before: Any = None) -> Farewell | None:
        visit: Any = self
        return farewell.of(visit, before)


def test_only_servers_with_a_session_are_owed_a_goodbye() -> None:
    one, gone = UpstreamSession("one", "s1"), UpstreamSession("gone", "s9")
    made = Visit(one, UpstreamSession("two"), UpstreamSession("old", "s3"), gone).farewell()
    assert made is not None and made.upstreams == [one, gone]
    assert Visit(UpstreamSession("two"), UpstreamSession("old", "s3")).farewell() is None
    assert Visit().farewell() is None


def test_of_the_last_request_what_a_server_needs_is_kept() -> None:
    lines = b"authorization: x\r\nuser-agent: c\r\nTraceparent: t\r\nx-tenant: a\r\nmcp-method: ping\r\nvia: b\r\n"
    made = Visit(UpstreamSession("one", "s1"), passing=lines).farewell()
    assert made is not None and made.passing == b"authorization: x\r\nx-tenant: a\r\n"
    assert (made.name_line, made.is_modern, made.session, made.table) == (b"", False, None, "the table")
    assert made.x is made and made.asking is None
    for size, is_kept in ((4096, True), (4097, False)):
        line = b"x: %b\r\n" % (b"a" * (size - 5))
        assert (Visit(UpstreamSession("one", "s1"), passing=line).farewell() is not None) is is_kept


async def test_each_server_is_said_goodbye_in_the_session_that_it_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[tuple[str, UpstreamSession]] = []

    async def end(self: Any, target: TargetPlan, known: UpstreamSession) -> None:
        assert self.visit is made
        ended.append((target.name, known))

    monkeypatch.setattr(Upstreams, "end", end)
    one, two, gone = (UpstreamSession(name, f"s-{name}") for name in ("one", "two", "gone"))
    visit = Visit(one, gone, two)
    made = visit.farewell()
    assert made is not None
    now = UpstreamSession("two", "new")
    made({"two": now}.get)
    (work,) = visit.spawned
    await work
    assert ended == [("one", one), ("two", now)], "of a server that is there no more nothing is left"
    made(lambda target: UpstreamSession(target))
    await visit.spawned[1]
    assert len(ended) == 2, "it has no session now"
