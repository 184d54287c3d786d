"""Streams of MCP servers of the older transport, as the worker that holds them has them: what ends them, what is heard
of them, how many there may be, and what becomes of a message that is posted. No sockets but those of other workers."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.legacy import peers, requests, server_streams
from dataplane.backends.mcp.legacy.holder import Holder
from dataplane.backends.mcp.legacy.server_streams import ServerStream
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.mcp import dialogue
from dataplane.mcp.messages import Malformed
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import UpstreamSession
from tests.fakes.own_tasks import OwnTasks

QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
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


# --- those that are held


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
