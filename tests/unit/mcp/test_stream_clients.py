"""Clients of the older transport: what is given on their stream, and what comes of the messages that they post."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import following
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.legacy import client_streams
from dataplane.backends.mcp.legacy.client_posts import StreamAnswer
from dataplane.backends.mcp.legacy.client_streams import ClientStream
from dataplane.backends.mcp.legacy.mail import NearMail
from dataplane.backends.mcp.legacy.reached import Gone
from dataplane.credentials.sealing import Sealer
from dataplane.http.sse import EventReader
from dataplane.mcp import messages, sessions
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import Session, UpstreamSession
from tests.fakes.own_tasks import OwnTasks

NOTE = b'{"jsonrpc":"2.0","method":"notifications/message"}'
REQUEST = messages.read(messages.request("tools/list", 1))


class Out:
    """`contract.Answer`, as far as it is used here."""

    is_paused = True

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.plan: Any = SimpleNamespace(max_answer=1000)
        self.has_begun = False
        self.is_given_up = False
        self.ready_count = 0
        self.x: Any = SimpleNamespace(reason="", detail="")

    def head(self, status: int, lines: bytes) -> None:
        self.has_begun = True
        self.did.append((status, lines))

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        self.has_begun = True
        self.did.append((status, lines, body))

    def give(self, data: bytes) -> None:
        self.did.append(data)

    def give_up(self) -> None:
        self.is_given_up = True

    def hold(self, size: int) -> bool:
        return True

    async def ready(self) -> None:
        self.ready_count += 1

    @property
    def given(self) -> bytes:
        return b"".join(each for each in self.did if isinstance(each, bytes))

    @property
    def events(self) -> list[tuple[bytes, bytes]]:
        return [
            (each.type, each.data) for each in EventReader().feed(b"".join(x for x in self.did if type(x) is bytes))
        ]


class Mail:
    """`mail.Mail`: what goes to the client."""

    session = "s"

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.has_left = False
        self.is_over = asyncio.Event()
        self.is_gone = False

    async def give(self, text: bytes) -> None:
        if self.is_gone:
            raise Gone
        self.did.append(text)

    async def begin_session(self, text: str) -> None:
        self.did.append(("session", text))

    async def client_is_ready(self) -> None:
        self.did.append("ready")

    async def gone(self) -> bool:
        await self.is_over.wait()
        return self.is_gone

    def leave(self) -> None:
        self.has_left = True
        self.is_over.set()


def outlet(message: messages.Message = REQUEST, most: int = 1000) -> tuple[StreamAnswer, Mail, Out]:
    mail, out = Mail(), Out()
    visit: Any = SimpleNamespace(x=out.x, plan=SimpleNamespace(max_answer=most))
    real: Any = out
    to: Any = mail
    return StreamAnswer(visit, real, to, message), mail, out


# --- what is answered to a message that was posted


JSON, STREAM = b"content-type: application/json\r\n", b"content-type: Text/Event-Stream ; charset=utf-8\r\n"


async def given(made: StreamAnswer, mail: Mail) -> list[Any]:
    await made.flush()
    return [json.loads(each) if isinstance(each, bytes) else each for each in mail.did]


def error(code: int, text: str) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": text}}


@pytest.mark.parametrize(("size", "is_passed"), [(100, True), (101, False)])
async def test_an_answer_has_a_bounded_size(size: int, is_passed: bool) -> None:
    made, mail, _ = outlet(most=100)
    made.head(200, JSON, -1, b"x" * 50)
    made.give(b"x" * (size - 50))
    made.end()
    await made.flush()
    assert not made._parts and (mail.did == [b"x" * size]) is is_passed
    if not is_passed:
        assert await given(made, mail) == [error(-32603, "MCP server answered with status 200")]


async def test_what_is_more_than_the_bound_is_not_kept() -> None:
    made, _, _ = outlet(most=10)
    made.head(200, JSON)
    for _ in range(5):
        made.give(b"x" * 6)
    assert made._parts == [b"x" * 6] * 2
    made.head(200, STREAM)
    with pytest.raises(TargetFailed, match="more than 10 bytes"):
        made.give(b"data: " + b"x" * 11)


# --- the stream


class World(OwnTasks):
    """A worker and a client's GET."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.sleepers: list[tuple[float, Any]] = []
        self.clients: dict[str, ClientStream] = {}
        self.has_place = True
        self.ended: list[bytes] = []
        upstream = SimpleNamespace(clock=lambda: self.now, wake_at=lambda at, whom: self.sleepers.append((at, whom)))
        self.holder: Any = SimpleNamespace(
            name="0" * 16,
            calls=upstream,
            make_future=asyncio.get_running_loop().create_future,
            has_place_for_client=lambda keys: self.has_place,
            hold_client=lambda stream: self.clients.__setitem__(stream.id, stream),
            forget_client=lambda stream: self.clients.pop(stream.id, None),
            listening=lambda: asyncio.sleep(0),
        )
        self.sealer = Sealer(bytes(32))
        memory = SimpleNamespace(end=self.ended.append)
        self.kept = SimpleNamespace(holder=self.holder, sealer=self.sealer, memory=memory)
        context = SimpleNamespace(
            of_kind={MCP: self.kept}.__getitem__,
            calls=upstream,
            clock=lambda: self.now,
            make_future=self.holder.make_future,
            spawn=self.work,
        )
        self.out = Out()
        self.entered = 0
        self.described: list[str] = []
        x = SimpleNamespace(context=context, work=self.work, asked_target=b"/sse?a=1")
        self.plan = SimpleNamespace(stateless=False, targets=(), max_answer=1000)
        self.visit: Any = SimpleNamespace(
            keys=("192.0.2.1",),
            x=x,
            out=self.out,
            owner=b"owner",
            now=1001.0,
            plan=self.plan,
            describe=self.described.append,
            enter=self._enter,
            session=None,
        )

    def _enter(self) -> None:
        self.entered += 1

    def session(self) -> str:
        made = Session(b"8 bytes.", 1000, b"{}", [UpstreamSession("one", "id")])
        return sessions.sealed(made, self.sealer, b"owner")


@pytest.fixture
async def world() -> Any:
    made = World()
    yield made
    await made.ends()


async def test_messages_at_work_are_bounded_and_counted_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_streams, "MAX_WAITING", 2)
    out: Any = world.out
    stream = ClientStream(world.holder, out, ("192.0.2.1",))
    first, _ = NearMail(stream), NearMail(stream)
    assert stream.is_busy
    first.leave()
    first.leave()
    assert (stream.is_busy, stream.at_work) == (False, 1)
    await first.begin_session("s")
    await first.client_is_ready()
    assert (stream.session, stream.is_ready) == ("s", True)
    await first.give(NOTE)
    assert world.out.events == [(b"message", NOTE)] and world.out.ready_count == 1
    stream.end()
    with pytest.raises(Gone):
        await first.give(NOTE)


# --- what servers say beside answers


async def test_a_server_is_asked_again_after_pauses_that_grow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = TargetFailed("one", "x")
    heard: list[tuple[Any, float]] = [("ended", 1.0), (failed, 0), ("later", 9.0), (failed, 0), *[("ended", 0.1)] * 6]

    async def hear(*_: object) -> str:
        if not heard:
            return following.NONE
        found, lasted = heard.pop(0)
        world.now += lasted
        if isinstance(found, Exception):
            raise found
        return str(found)

    monkeypatch.setattr(following, "once", hear)
    target: Any = SimpleNamespace(name="one")
    heeding = world.work(client_streams.heed(world.visit, target))
    pauses = []
    while True:
        await world.turn()
        if heeding.done():
            break
        at, alarm = world.sleepers[-1]
        pauses.append(round(at - world.now, 3))
        world.now = at
        alarm.wake(at)
    assert pauses == [1.0, 2.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0], "what lasted makes the next one short"
