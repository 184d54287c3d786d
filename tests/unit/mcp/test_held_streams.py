"""Streams of MCP servers of the older transport, as the worker that holds them has them: what ends them, what is heard
of them, how many there may be, and what becomes of a message that is posted. No sockets but those of other workers."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.answers import Opened, TargetFailed
from dataplane.backends.mcp.calls import HELLO_SECONDS
from dataplane.backends.mcp.legacy import holder, peers, requests, server_streams
from dataplane.backends.mcp.legacy.holder import Holder
from dataplane.backends.mcp.legacy.reached import Near
from dataplane.backends.mcp.legacy.server_streams import ServerStream
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.http.sse import EventReader
from dataplane.mcp import dialogue, messages
from dataplane.mcp.messages import Malformed
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import IDLE, UpstreamSession
from tests.fakes.own_tasks import OwnTasks

QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'
STREAM = b"content-type: text/event-stream\r\n"


def event(data: bytes, kind: bytes = b"message") -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind, data)


class Call:
    """A request to a server, as far as it is asked: `answers` and `says` are the server's."""

    def __init__(self, request: CallRequest, plan: Any, seconds: float) -> None:
        self.request, self.plan, self.seconds = request, plan, seconds
        self.endpoint: Any = None
        self.is_given_up = False
        self._head: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()
        self._parts = asyncio.Queue[bytes | CallFailed]()

    def answers(self, status: int, lines: bytes = STREAM) -> None:
        self._head.set_result(CallAnswer(status, Head(b"\r\n" + lines), b""))

    def fails(self, text: str = "it broke", cause: str = "lost") -> None:
        self._head.set_exception(CallFailed(cause, text))

    def says(self, data: bytes | CallFailed) -> None:
        self._parts.put_nowait(data)

    async def head(self) -> CallAnswer:
        return await self._head

    async def receive(self) -> bytes:
        part = await self._parts.get()
        if isinstance(part, CallFailed):
            raise part
        return part

    def cancel(self) -> None:
        self.is_given_up = True
        self._parts.put_nowait(CallFailed("lost", "given up"))


KEYS = ("192.0.2.1",)
"""Whose shares streams draw on."""


class World(OwnTasks):
    """A worker with its clock, and the calls that it makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: str = "") -> None:
        super().__init__()
        self.now = 100.0
        self.sleepers: list[tuple[float, Any]] = []
        self.asked: list[Call] = []
        self.ended: set[bytes] = set()
        upstream = SimpleNamespace(clock=lambda: self.now, wake_at=lambda at, whom: self.sleepers.append((at, whom)))
        self.kept: Any = SimpleNamespace(memory=SimpleNamespace(has_ended=self.ended.__contains__))
        self.context: Any = SimpleNamespace(
            clock=lambda: self.now,
            calls=upstream,
            make_future=asyncio.get_running_loop().create_future,
            spawn=self.work,
            of_kind={MCP: self.kept}.__getitem__,
        )
        self.holder = self.context.of_kind(MCP).holder = Holder(self.context, folder, peers.serve)
        self.target: Any = SimpleNamespace(name="one", path=b"/sse", backend="b", is_stdio=False)
        x = SimpleNamespace(context=self.context, work=self.work)
        plan = SimpleNamespace(stateless=False, max_answer=100)
        session = SimpleNamespace(number=b"\x07")
        self.visit: Any = SimpleNamespace(
            x=x, plan=plan, session=session, is_modern=False, passing=b"x-client: 1\r\n", keys=KEYS
        )
        self.server: Any = SimpleNamespace(transport=None, authority=b"server:1", request_timeout=None)
        self.pinned: list[str] = []
        monkeypatch.setattr(calls, "call", self._call)
        monkeypatch.setattr(calls, "plan_of", self._plan_of)
        monkeypatch.setattr(calls, "authority", lambda x, plan: b"")

    def _plan_of(self, x: object, target: object, pinned: str = "") -> Any:
        self.pinned.append(pinned)
        return self.server

    def _call(self, x: object, plan: Any, request: CallRequest, seconds: float = calls.FOR_EVER) -> Call:
        self.asked.append(Call(request, plan, seconds))
        return self.asked[-1]

    def stream(self, number: bytes = b"", target: str = "one") -> ServerStream:
        """One that is held; nobody reads it."""
        call: Any = Call(CallRequest(b"GET", b"/sse"), None, 0)
        of: Any = SimpleNamespace(name=target, path=b"/sse")
        made = ServerStream(self.holder, call, of, ("http", "server:1"), number, KEYS)
        self.holder.hold(made)
        return made


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = World(monkeypatch)
    yield made
    await made.ends()


# --- a stream is opened


async def test_a_stream_is_asked_for_and_held_when_it_names_its_endpoint(world: World) -> None:
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    (call,) = world.asked
    assert (call.request.method, call.request.target, call.request.body) == (b"GET", b"/sse", b"")
    assert call.request.headers == b"x-client: 1\r\naccept: text/event-stream\r\ncache-control: no-store\r\n"
    assert call.seconds == HELLO_SECONDS
    call.answers(200, b"content-type: Text/Event-Stream ; charset=utf-8\r\n")
    await world.turn()
    (at, deadline) = world.sleepers[-1]
    assert at == 100 + HELLO_SECONDS and not opening.done()
    call.says(event(b"/messages", b"endpoint"))
    stream = await opening
    assert isinstance(stream, ServerStream) and stream.endpoint == b"/messages"
    assert (len(stream.id), stream.why, stream.is_over) == (32, "", False)
    assert world.holder.of(stream.id) is world.holder.of_session(b"\x07", "one") is stream
    deadline.wake(at)
    assert not stream.is_over and not call.is_given_up, "it has named its endpoint"


@pytest.mark.parametrize(
    ("session", "stateless", "number"),
    [
        (None, False, b""),
        (SimpleNamespace(number=b"\x07"), True, b""),
        (SimpleNamespace(number=b"\x07"), False, b"\x07"),
    ],
)
async def test_a_stream_is_that_of_the_session_if_there_is_one(
    world: World, session: Any, stateless: bool, number: bytes
) -> None:
    world.visit.session, world.visit.plan.stateless = session, stateless
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    world.asked[0].answers(200)
    world.asked[0].says(event(b"/messages", b"endpoint"))
    stream = await opening
    assert isinstance(stream, ServerStream) and stream.of == (number, "one")


async def test_a_server_that_names_no_endpoint_in_time_fails(world: World) -> None:
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    world.asked[0].answers(200)
    await world.turn()
    world.sleepers[-1][1].wake(200)
    with pytest.raises(TargetFailed, match=r"^one: its stream named no endpoint within 15 s$"):
        await opening
    assert world.asked[0].is_given_up


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (lambda call: call.answers(200, b"content-type: text/html\r\n"), "its answer to GET is no stream of events"),
        (lambda call: call.answers(200, b""), "its answer to GET is no stream of events"),
        (lambda call: call.fails("no route"), "no route"),
        (lambda call: (call.answers(200), call.says(b"")), "its stream ended"),
        (lambda call: (call.answers(200), call.says(CallFailed("lost", "it broke"))), "it broke"),
        (lambda call: (call.answers(200), call.says(event(b"//other/x", b"endpoint"))), "names another origin"),
        (
            lambda call: (call.answers(200), call.says(event(b"/a", b"endpoint") + event(b"/b", b"endpoint"))),
            "it names a second endpoint",
        ),
    ],
)
async def test_what_keeps_a_stream_from_being_opened(world: World, does: Callable[[Call], None], why: str) -> None:
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    does(world.asked[0])
    with pytest.raises(TargetFailed, match=rf"^one: .*{why}$"):
        await opening
    assert world.asked[0].is_given_up and not world.holder._streams


async def test_an_answer_that_is_no_success_is_for_the_client(world: World) -> None:
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    world.asked[0].answers(401, b"www-authenticate: Bearer\r\n")
    found = await opening
    assert isinstance(found, Opened) and (found.answer.status, found.target) == (401, "one")
    assert found.call is world.asked[0] and not world.asked[0].is_given_up


async def test_who_gives_up_waiting_leaves_no_stream(world: World) -> None:
    for is_answered in (False, True):
        opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
        await world.turn()
        if is_answered:
            world.asked[-1].answers(200)
            await world.turn()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await world.turn()
        assert world.asked[-1].is_given_up and not world.holder._streams


@pytest.mark.parametrize(
    ("transport", "authority", "rewritten", "origin"),
    [
        (None, b"server:1", b"", ("http", "server:1")),
        (SimpleNamespace(tls=None), b"server:1", b"", ("http", "server:1")),
        (SimpleNamespace(tls=object()), b"server:1", b"", ("https", "server:1")),
        (None, b"server:1", b"seen", ("http", "seen")),
        (None, b"", b"", ("http", "localhost")),
    ],
)
async def test_the_origin_of_a_stream_is_as_the_server_sees_it(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    transport: Any,
    authority: bytes,
    rewritten: bytes,
    origin: tuple[str, str],
) -> None:
    world.server.transport, world.server.authority = transport, authority
    monkeypatch.setattr(calls, "authority", lambda x, plan: rewritten)
    opening = asyncio.ensure_future(server_streams.opened(world.visit, world.target))
    await world.turn()
    assert world.asked[0].request.authority == rewritten
    world.asked[0].answers(200)
    world.asked[0].says(event(f"{origin[0]}://{origin[1]}/here".encode(), b"endpoint"))
    stream = await opening
    assert isinstance(stream, ServerStream) and stream.endpoint == b"/here"


# --- what it says


async def test_of_a_stream_messages_are_heard_and_nothing_else(world: World) -> None:
    stream = world.stream()
    hearing = stream.open()
    listening = world.work(stream.listen(100))
    call: Any = stream.call
    call.says(event(b"/e", b"endpoint") + event(NOTE, b"other") + event(b"") + b"data: " + NOTE + b"\n\n" + event(NOTE))
    await world.turn()
    assert [text for text, _ in hearing._said] == [NOTE, NOTE] and stream.endpoint == b"/e"
    call.says(b"")
    await listening
    assert (stream.is_over, stream.why) == (True, "its stream ended")


async def test_a_server_waits_while_nobody_takes_what_it_says(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "MAX_UNHEARD", 2)
    stream = world.stream()
    world.work(stream.listen(100))
    call: Any = stream.call
    call.says(event(NOTE) * 3)
    call.says(event(NOTE))
    await world.turn()
    assert len(stream.dialogue._unheard) == 2
    stream.room.set()
    await world.turn()
    assert len(stream.dialogue._unheard) == 2, "nobody took anything"
    hearing = stream.open()
    await world.turn()
    assert len(hearing._said) == 4


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (event(b"noise") * 3, "it says what are no messages, or answers what was not asked"),
        (b"data: " + b"x" * 100, "an event has more than 100 bytes"),
    ],
)
async def test_a_stream_that_says_no_messages_ends(
    world: World, monkeypatch: pytest.MonkeyPatch, said: bytes, why: str
) -> None:
    monkeypatch.setattr(dialogue, "MAX_NOISE", 2)
    stream = world.stream()
    listening = world.work(stream.listen(100))
    call: Any = stream.call
    call.says(said)
    await listening
    assert stream.is_over and why in stream.why and call.is_given_up


async def test_a_stream_ends_once_and_everybody_knows(world: World, caplog: pytest.LogCaptureFixture) -> None:
    stream = world.stream(b"\x07")
    hearing = stream.ask(messages.read(QUESTION))
    waiting = world.work(stream.room.wait())
    await world.turn()
    with caplog.at_level(logging.DEBUG, "dataplane.mcp"):
        stream.end("first")
        stream.end("second")
    assert caplog.messages == ["stream of MCP server one ended: first"]
    assert stream.why == "first" and await hearing.next() is None
    await world.turn()
    assert waiting.done() and world.holder.of(stream.id) is world.holder.of_session(b"\x07", "one") is None


async def test_each_use_of_a_stream_is_one(world: World) -> None:
    stream = world.stream()
    near = Near(stream)
    hearing = stream.open()
    uses: tuple[Callable[[], Any], ...] = (
        stream.touch,
        stream.open,
        lambda: stream.ask(messages.read(QUESTION)),
        lambda: stream.note(messages.read(NOTE)),
        lambda: stream.leave(hearing),
    )
    for use in uses:
        waiting = world.work(stream.room.wait())
        await world.turn()
        world.now += 1
        use()
        await world.turn()
        assert waiting.done() and stream.used == world.now
    await near.end()
    assert (stream.is_over, stream.why) == (True, "its session was ended")


async def test_a_note_withdraws_a_request_only_when_it_says_so(world: World) -> None:
    stream = world.stream()
    hearing = stream.ask(messages.read(QUESTION))
    for method in ("notifications/progress", "notifications/cancelled"):
        assert not hearing._is_over
        stream.note(messages.read(messages.notification(method, messages.raw({"requestId": 1}))))
    assert hearing._is_over


# --- those that are held


async def test_a_session_has_its_newest_stream(world: World) -> None:
    first, second = world.stream(b"\x07"), world.stream(b"\x07")
    assert world.holder.of_session(b"\x07", "one") is second
    first.end("")
    assert world.holder.of_session(b"\x07", "one") is second
    second.end("")
    assert world.holder.of_session(b"\x07", "one") is None


async def test_the_end_of_a_session_ends_its_streams_alone(world: World) -> None:
    streams = [world.stream(b"\x07"), world.stream(b"\x07", "two"), world.stream(b"\x08"), world.stream(b"")]
    world.holder.end_session(b"")
    assert not any(each.is_over for each in streams), "those without a session are not one session"
    world.holder.end_session(b"\x07")
    assert [each.is_over for each in streams] == [True, True, False, False]
    assert streams[0].why == "its session was ended"


async def test_what_nobody_uses_is_ended_and_looked_for_as_long_as_there_is_something(world: World) -> None:
    at_the_limit, later = world.stream(), world.stream(b"\x08")
    busy, over = world.stream(), world.stream(b"\x09")
    busy.open()
    later.used += 1
    over.used += 2
    world.ended.add(b"\x09")
    assert [at for at, _ in world.sleepers] == [100 + holder.SWEEP], "one look for all of them"
    world.now = 100 + IDLE
    world.holder.wake(world.now)
    assert [each.is_over for each in (at_the_limit, later, busy, over)] == [False, False, False, True]
    world.now += 0.5
    world.holder.wake(world.now)
    assert [each.is_over for each in (at_the_limit, later, busy)] == [True, False, False]
    assert at_the_limit.why == "nobody used it, or its session was ended"
    assert [at for at, _ in world.sleepers[1:]] == [100 + IDLE + holder.SWEEP, 100.5 + IDLE + holder.SWEEP]
    later.end("")
    busy.end("")
    world.holder.wake(world.now)
    assert len(world.sleepers) == 3, "there is nothing to look for"
    world.stream()
    assert len(world.sleepers) == 4


async def test_a_client_has_place_for_its_share_and_what_it_used_longest_ago_makes_some(world: World) -> None:
    world.holder._places.most = 5
    world.holder._places.hold("192.0.2.2")
    streams = []
    for used in (2, 1, 3):
        assert world.holder.has_place(KEYS)
        streams.append(world.stream())
        streams[-1].used = used
    assert world.holder.has_place(KEYS)
    assert [each.is_over for each in streams] == [False, True, False]
    assert streams[1].why == "it made place for another one"
    streams.append(world.stream())
    for each in streams:
        each.dialogue.open(each.open())
    assert not world.holder.has_place(KEYS)
    with pytest.raises(TargetFailed, match="there are as many streams as there may be, and all are used"):
        await server_streams.opened(world.visit, world.target)
    assert not world.asked


async def test_streams_that_are_opened_at_once_take_no_more_than_a_share(world: World) -> None:
    world.holder._places.most = 4
    for _ in range(2):
        used = world.stream()
        used.dialogue.open(used.open())
    opening = [asyncio.ensure_future(server_streams.opened(world.visit, world.target)) for _ in range(3)]
    await world.turn()
    for call in world.asked:
        call.answers(200)
    await world.turn()
    assert len(world.asked) == 3 and world.holder._places.taken == 3
    for each in opening:
        each.cancel()
    await asyncio.gather(*opening, return_exceptions=True)


async def test_clients_have_their_place_beside_servers(world: World) -> None:
    one, two = (SimpleNamespace(id=each, keys=KEYS) for each in "ab")
    held: Any = world.holder
    held._client_places.most = 3
    held.hold_client(one)
    assert held.has_place_for_client(KEYS)
    held.hold_client(two)
    assert not held.has_place_for_client(KEYS) and held.has_place(KEYS)
    held.forget_client(one)
    held.forget_client(one)
    assert held.client("a") is None and held.client("b") is two and held.has_place_for_client(KEYS)


# --- other workers


@pytest.mark.parametrize("name", ["", "0" * 15, "0" * 17, "0" * 15 + "g", "0" * 15 + "A", "g" * 16, "../../etc/passw"])
async def test_what_is_no_name_is_no_worker(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert World(monkeypatch, str(tmp_path)).holder.peer(name) is None


async def test_other_workers_are_those_whose_sockets_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [f"{number:016x}" for number in (3, 1, 2)]
    assert World(monkeypatch).holder.peer(names[0]) is None and World(monkeypatch).holder.peers() == []
    here = World(monkeypatch, str(tmp_path / "none")).holder
    assert here.peers() == []
    here = World(monkeypatch, str(tmp_path)).holder
    for name in (*names, here.name, "other"):
        (tmp_path / f"mcp-{name}").touch()
    found = here.peers()
    assert [each.key for each in found] == [f"worker/{name}" for name in sorted(names)]
    assert found[0] is here.peer(names[1]), "connections to it are kept"
    here.forget_peer(names[1])
    here.forget_peer(names[1])
    assert here.peer(names[1]) is not found[0] and all(each.closed for each in found[0].endpoints)


async def test_a_worker_listens_when_it_holds_something_and_gives_all_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "sockets"
    world = World(monkeypatch, str(folder))
    assert (world.holder.sockets, folder.exists()) == (0, False)
    await asyncio.gather(world.holder.listening(), world.holder.listening())
    await world.holder.listening()
    assert len(world.tasks) == 1 and world.holder.sockets == 1
    path = folder / f"mcp-{world.holder.name}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600
    other = World(monkeypatch, str(folder))
    await other.holder.listening()
    assert len(other.holder.peers()) == len(world.holder.peers()) == 1
    (folder / f"mcp-{other.holder.name}").unlink()
    other.holder.close()
    peer = other.holder.peer(world.holder.name)
    assert peer is not None and [each.label for each in peer.endpoints] == [f"unix:{path}"]
    reader, writer = await asyncio.open_unix_connection(path)
    stream = world.stream(b"\x07")
    writer.write(b"GET /sessions/07/one HTTP/1.1\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    assert world.holder.sockets == 2
    kept = world.holder.peer("0" * 16)
    assert kept is not None
    world.holder.close()
    assert (stream.is_over, stream.why) == (True, "the worker ends") and not path.exists()
    assert all(each.closed for each in kept.endpoints)
    assert b"no such session" not in await reader.read()
    with pytest.raises(OSError), socket.socket(socket.AF_UNIX) as late:
        late.connect(str(path))
    writer.close()
    await world.turn()
    assert world.holder._server is not None and not world.holder._server.is_serving()


@pytest.mark.parametrize("kind", ["open to others", "a file", "a link"])
async def test_streams_are_held_by_one_worker_alone_where_its_folder_is_not_safe(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "sockets"
    if kind == "a file":
        folder.touch()
    else:
        (tmp_path / "real").mkdir(mode=0o700)
        if kind == "a link":
            folder.symlink_to(tmp_path / "real")
        else:
            (tmp_path / "real").rename(folder)
            folder.chmod(0o710)
    world = World(monkeypatch, str(folder))
    await asyncio.wait_for(world.holder.listening(), None)
    await world.holder.listening()
    assert len(world.tasks) == 1 and world.holder.sockets == 0
    (line,) = caplog.messages
    assert "streams of MCP sessions are held by this worker alone: no socket at" in line and str(folder) in line
    assert not [each for each in os.listdir(tmp_path / "real" if kind == "a link" else tmp_path) if "mcp-" in each]
    world.holder.close()


async def test_a_worker_without_others_listens_nowhere(world: World) -> None:
    await world.holder.listening()
    assert not world.tasks and world.holder.sockets == 0
    world.holder.close()


# --- requests


class Sent:
    """A request that waits for its answer on a stream that is there."""

    def __init__(self, world: World, body: bytes = QUESTION, seconds: float = 30.0, method: bytes = b"POST") -> None:
        self.world = world
        self.stream = world.stream(b"\x07")
        self.stream.endpoint = b"/messages"
        known = UpstreamSession("one", f"{world.holder.name}/{self.stream.id}", "10.0.0.1:80")
        self.asking = asyncio.ensure_future(requests.asked(world.visit, world.target, known, method, body, seconds))

    @property
    def call(self) -> Call:
        return self.world.asked[-1]


async def test_a_request_is_posted_where_the_stream_says_within_its_time(world: World) -> None:
    sent = Sent(world)
    await world.turn()
    request = sent.call.request
    assert (request.method, request.target, request.body) == (b"POST", b"/messages", QUESTION)
    assert request.headers == (
        b"x-client: 1\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    )
    assert sent.call.seconds == 30 and world.pinned == ["10.0.0.1:80"]
    (at, late) = world.sleepers[-1]
    assert at == 130
    sent.call.answers(299)
    await world.turn()
    assert not sent.asking.done()
    sent.stream.dialogue.say(ANSWER)
    opened = await sent.asking
    assert (opened.answer.status, opened.answer.head.get(b"content-type")) == (200, b"application/json")
    late.wake(at)
    assert opened.answer.body == b""
    assert (await opened.call.receive(), await opened.call.receive()) == (ANSWER, b"")
    assert opened.call.endpoint is None and not sent.call.is_given_up
    opened.call.cancel()
    assert sent.call.is_given_up and sent.stream.dialogue.is_idle and not sent.stream.is_over


async def test_more_than_an_answer_is_a_stream(world: World) -> None:
    for seconds in (calls.FOR_EVER, 30.0):
        sent = Sent(world, seconds=seconds)
        world.tasks.append(sent.asking)
        await world.turn()
    _, (at, late) = world.sleepers
    assert at == 130, "one that is waited for without end has no deadline"
    sent.call.answers(202)
    sent.stream.dialogue.say(messages.request("roots/list", "q"))
    opened = await sent.asking
    assert opened.answer.head.get(b"content-type") == b"text/event-stream"
    late.wake(at)
    sent.stream.dialogue.say(ANSWER)
    said = [await opened.call.receive() for _ in range(3)]
    assert [each.data for each in EventReader().feed(b"".join(said))] == [messages.request("roots/list", "q"), ANSWER]
    assert said[2] == b""


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_request_that_is_withdrawn_ends_without_an_answer(world: World, has_begun: bool) -> None:
    sent = Sent(world)
    await world.turn()
    sent.call.answers(202)
    if has_begun:
        sent.stream.dialogue.say(messages.request("roots/list", "q"))
        await world.turn()
    sent.stream.note(messages.read(messages.notification("notifications/cancelled", messages.raw({"requestId": 1}))))
    opened = await sent.asking
    said = [await opened.call.receive() for _ in range(3)]
    assert [bool(each) for each in said] == [has_begun, False, False]


async def test_of_a_request_that_is_over_nothing_is_used_later(world: World) -> None:
    sent = Sent(world)
    await world.turn()
    sent.stream.dialogue.say(messages.request("roots/list", "q"))
    opened = await sent.asking
    opened.call.cancel()
    world.now += 50
    world.sleepers[-1][1].wake(world.now)
    assert sent.stream.used == 100


async def test_what_is_not_answered_in_time_fails(world: World) -> None:
    sent = Sent(world, seconds=2.5)
    await world.turn()
    world.sleepers[-1][1].wake(200)
    with pytest.raises(CallFailed, match=r"^it gave no answer within 2.5 s$"):
        await sent.asking
    assert sent.call.is_given_up and sent.stream.dialogue.is_idle


@pytest.mark.parametrize(("status", "is_over"), [(300, False), (404, True), (500, False)])
async def test_a_post_that_is_refused_is_the_answer(world: World, status: int, is_over: bool) -> None:
    """404: the server knows the session no more, so its stream is worth nothing."""
    sent = Sent(world)
    await world.turn()
    sent.call.answers(status, b"")
    opened = await sent.asking
    assert (opened.answer.status, opened.call, opened.target) == (status, sent.call, "one")
    assert not sent.call.is_given_up and sent.stream.is_over is is_over and sent.stream.dialogue.is_idle


async def test_a_post_that_breaks_off_fails(world: World) -> None:
    sent = Sent(world)
    await world.turn()
    sent.call.fails("it broke")
    with pytest.raises(CallFailed, match=r"^it broke$"):
        await sent.asking
    assert sent.stream.dialogue.is_idle and not sent.stream.is_over


async def test_who_gives_up_a_request_is_waited_for_by_nobody(world: World) -> None:
    sent = Sent(world)
    await world.turn()
    sent.asking.cancel()
    await asyncio.gather(sent.asking, return_exceptions=True)
    assert sent.call.is_given_up and sent.stream.dialogue.is_idle
    sent.call.fails("too late")
    await world.turn()


async def test_what_wants_no_answer_is_answered_by_the_post(world: World) -> None:
    for status in (202, 404):
        sent = Sent(world, NOTE)
        world.now += 1
        await world.turn()
        assert (sent.call.request.target, sent.call.request.body) == (b"/messages", NOTE)
        assert sent.call.seconds == 30 and sent.stream.used == world.now
        sent.call.answers(status, b"")
        opened = await sent.asking
        assert (opened.answer.status, opened.call) == (status, sent.call)
        assert sent.stream.is_over is (status == 404)


async def test_what_is_said_beside_answers_is_a_stream_of_its_own(world: World) -> None:
    sent = Sent(world, b"", method=b"GET")
    opened = await sent.asking
    assert opened.answer.head.get(b"content-type") == b"text/event-stream" and not world.asked
    assert (opened.answer.status, opened.answer.body) == (200, b"")
    sent.stream.dialogue.say(NOTE)
    assert EventReader().feed(await opened.call.receive())[0].data == NOTE
    sent.stream.end("it left")
    with pytest.raises(CallFailed, match="it left"):
        await opened.call.receive()
    opened.call.cancel()


async def test_a_session_is_ended_with_its_stream(world: World) -> None:
    sent = Sent(world, b"", method=b"DELETE")
    assert (await sent.asking).answer.status == 200 and sent.stream.is_over and not world.asked


@pytest.mark.parametrize("name", ["here", "0" * 16])
async def test_a_stream_that_is_not_there_is_unknown(world: World, name: str) -> None:
    name = world.holder.name if name == "here" else name
    known = UpstreamSession("one", f"{name}/{'0' * 32}")
    opened = await requests.asked(world.visit, world.target, known, b"POST", QUESTION, 1.0)
    assert (opened.answer.status, opened.answer.head.get(b"content-length")) == (404, b"0")
    assert opened.answer.body == b""
    opened.call.cancel()
    assert await opened.call.receive() == b""


async def test_more_requests_than_a_server_may_have_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(world)
    await world.turn()
    monkeypatch.setattr(dialogue, "MAX_WAITING", 1)
    known = UpstreamSession("one", f"{world.holder.name}/{sent.stream.id}")
    with pytest.raises(TargetFailed, match=r"^one: it has too many requests to answer$"):
        await requests.asked(world.visit, world.target, known, b"POST", QUESTION.replace(b"1,", b"2,"), 1.0)
    with pytest.raises(Malformed, match="not answered yet"):
        await requests.asked(world.visit, world.target, known, b"POST", QUESTION, 1.0)
    sent.asking.cancel()
    await asyncio.gather(sent.asking, return_exceptions=True)


# --- initialize


class Hello:
    """`initialize`, as far as the server has named its endpoint."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asking = asyncio.ensure_future(
            requests.asked(world.visit, world.target, UpstreamSession("one"), b"POST", QUESTION, 15.0)
        )

    async def begins(self) -> Hello:
        await self.world.turn()
        self.world.asked[0].answers(200)
        self.world.asked[0].endpoint = SimpleNamespace(label="10.0.0.9:80")
        self.world.asked[0].says(event(b"/messages", b"endpoint"))
        await self.world.turn()
        assert self.world.asked[1].request.target == b"/messages"
        return self

    @property
    def stream(self) -> Call:
        return self.world.asked[0]


async def test_a_session_begins_with_a_stream_of_its_own(world: World) -> None:
    hello = await Hello(world).begins()
    assert world.pinned == ["", "10.0.0.9:80"], "the message goes to whoever has the stream"
    world.asked[1].answers(202)
    hello.stream.says(event(ANSWER))
    opened = await hello.asking
    (held,) = world.holder._streams.values()
    assert opened.answer.head.get(b"mcp-session-id") == f"{world.holder.name}/{held.id}".encode()
    assert opened.call.endpoint is hello.stream.endpoint
    assert await opened.call.receive() == ANSWER
    opened.call.cancel()
    opened.call.cancel()
    assert not held.is_over


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_session_that_is_refused_has_no_stream(world: World, is_read: bool) -> None:
    hello = await Hello(world).begins()
    world.asked[1].answers(202)
    hello.stream.says(event(ERROR if is_read else ANSWER))
    opened = await hello.asking
    (held,) = world.holder._streams.values()
    if is_read:
        assert await opened.call.receive() == ERROR
    assert not held.is_over
    opened.call.cancel()
    assert (held.is_over, held.why) == (True, "it refused initialize") and hello.stream.is_given_up


async def test_a_session_that_is_not_answered_has_no_stream(world: World) -> None:
    hello = await Hello(world).begins()
    (held,) = world.holder._streams.values()
    world.sleepers[-1][1].wake(200)
    with pytest.raises(CallFailed, match=r"^it gave no answer within 15 s$"):
        await hello.asking
    assert (held.is_over, held.why) == (True, "it refused initialize")
    assert hello.stream.is_given_up and world.asked[1].is_given_up


async def test_a_server_that_has_no_stream_answers_initialize_itself(world: World) -> None:
    hello = Hello(world)
    await world.turn()
    hello.stream.answers(405, b"")
    opened = await hello.asking
    assert (opened.answer.status, opened.call) == (405, hello.stream) and len(world.asked) == 1
