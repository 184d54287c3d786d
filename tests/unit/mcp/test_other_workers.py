"""Streams of MCP servers that one worker holds for all: what others are given of them, how many are connected to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.legacy import holder, mail, peers, requests
from dataplane.backends.mcp.legacy.client_streams import ClientStream
from dataplane.backends.mcp.legacy.holder import Holder
from dataplane.backends.mcp.legacy.mail import Busy, Mail
from dataplane.backends.mcp.legacy.peers import Peers
from dataplane.backends.mcp.legacy.reached import LAST, Far, Gone
from dataplane.backends.mcp.legacy.server_streams import ServerStream
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.http.sse import EventReader
from dataplane.local_http import Request
from dataplane.mcp import dialogue, messages
from dataplane.mcp.messages import Malformed
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import UpstreamSession


class Out:
    """What another worker is answered."""

    def __init__(self) -> None:
        self.given = b""
        self.how = "goes on"

    def begin(self, lines: bytes) -> None:
        assert self.how == "goes on"

    async def give(self, data: bytes) -> None:
        self.given += data

    def end(self) -> None:
        self.how = "ended"

    def abort(self) -> None:
        self.how = "broken off"

    @property
    def events(self) -> list[tuple[bytes, bytes]]:
        return [(each.type, each.data) for each in EventReader().feed(self.given)]


class World:
    """A worker that holds one stream of a server."""

    def __init__(self, folder: str = "") -> None:
        calls = SimpleNamespace(clock=lambda: 0.0, wake_at=lambda moment, whom: None)
        make_future = asyncio.get_running_loop().create_future
        context: Any = SimpleNamespace(clock=calls.clock, calls=calls, make_future=make_future)
        self.holder = Holder(context, folder, peers.serve)
        call: Any = SimpleNamespace(endpoint=None, cancel=lambda: None)
        target: Any = SimpleNamespace(name="one", path=b"/sse")
        self.stream = ServerStream(self.holder, call, target, ("http", "a"), b"", ("192.0.2.1",))
        self.holder.hold(self.stream)
        self.out = Out()

    def asked(self, method: bytes, body: bytes = b"") -> asyncio.Task[None]:
        """By another worker."""
        request = Request(method, f"/servers/{self.stream.id}".encode(), {}, body)
        out: Any = self.out
        return asyncio.ensure_future(Peers(self.holder).serve(request, out))


QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


async def test_another_worker_is_given_what_is_said_until_the_answer() -> None:
    world = World()
    asked = world.asked(b"POST", QUESTION)
    await asyncio.sleep(0)
    world.stream.dialogue.say(ANSWER)
    await asked
    assert (world.out.events, world.out.how) == ([(LAST, ANSWER)], "ended")


async def test_connections_are_kept_to_a_bounded_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each life of a worker has a name of its own."""
    monkeypatch.setattr(holder, "PEERS", 2)
    here = World(str(tmp_path)).holder
    one, two, three = (here.peer(f"{number:016x}") for number in range(3))
    assert one is not None and two is not None and three is not None
    assert here.peer(f"{1:016x}") is two and here.peer(f"{2:016x}") is three
    assert [endpoint.closed for plan in (one, two, three) for endpoint in plan.endpoints] == [True, False, False]


# Both sides: one worker asks, the other one answers, without sockets between them.


class Asked:
    """`chain.calls.Call` of the one that asks, `local_http.Connection` of the one that answers."""

    def __init__(self, other: Holder, request: CallRequest) -> None:
        self.is_given_up = False
        """As whoever began a call has to do with it, however it went."""
        self._answer: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()
        self._parts = asyncio.Queue[bytes | None]()
        out: Any = self
        served = Peers(other).serve(Request(request.method, request.target, {}, request.body), out)
        self._serving = asyncio.ensure_future(served)

    async def head(self) -> CallAnswer:
        return await self._answer

    async def receive(self) -> bytes:
        part = await self._parts.get()
        if part is None:
            raise CallFailed("lost", "it broke off")
        return part

    def cancel(self) -> None:
        self.is_given_up = True
        self._serving.cancel()
        self._parts.put_nowait(None)

    def whole(self, status: int, body: bytes = b"", _content_type: bytes = b"", lines: bytes = b"") -> None:
        self._answer.set_result(CallAnswer(status, Head(b"\r\n" + lines + b"\r\n"), body))
        self._parts.put_nowait(body)

    def begin(self, lines: bytes = b"") -> None:
        self._answer.set_result(CallAnswer(200, Head(b"\r\n" + lines + b"\r\n"), b""))

    async def give(self, data: bytes) -> None:
        self._parts.put_nowait(data)

    def end(self) -> None:
        self._parts.put_nowait(b"")

    def abort(self) -> None:
        self._parts.put_nowait(None)


class Two(World):
    """A worker that holds streams, and another one that asks for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(str(folder))
        self.calls: list[Asked] = []
        self.sent: list[tuple[CallRequest, float]] = []
        monkeypatch.setattr(calls, "call", self._call)
        self.here = World(str(folder)).holder
        self.kept: Any = SimpleNamespace(holder=self.here)
        self.x: Any = SimpleNamespace(context=SimpleNamespace(of_kind={MCP: self.kept}.__getitem__))
        plan = self.here.peer(self.holder.name)
        assert plan is not None
        self.far = Far(self.x, plan, self.stream.id)
        self.given: list[bytes] = []
        out: Any = SimpleNamespace(give=self.given.append, ready=lambda: asyncio.sleep(0))
        self.client = ClientStream(self.holder, out, ("192.0.2.1",))
        self.holder.hold_client(self.client)

    def _call(self, _x: object, plan: Any, request: CallRequest, seconds: float) -> Asked:
        assert plan.key == f"worker/{self.holder.name}"
        self.sent.append((request, seconds))
        self.calls.append(Asked(self.holder, request))
        return self.calls[-1]

    async def mail(self) -> Mail:
        return await mail.opened(self.x, self.holder.name, self.client.id)

    async def ends(self) -> None:
        """Nothing is left of what was asked."""
        await asyncio.sleep(0)
        assert all(each.is_given_up for each in self.calls)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Two]:
    made = Two(monkeypatch, tmp_path)
    yield made
    for each in made.calls:
        each.cancel()
    await asyncio.sleep(0)


async def test_of_a_message_another_worker_gets_the_envelope_alone(world: Two) -> None:
    """And is not waited for without end, but for what a client is given, which may be slow."""
    secret = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"secret","_meta":{"progressToken":"t"}}}'
    envelope = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}'
    note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"secret"}}'
    withdrawn = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    answer = b'{"jsonrpc":"2.0","id":"q","result":{"secret":1}}'
    (await world.far.ask(messages.read(secret))).leave()
    (await world.far.listen()).leave()
    await world.far.note(messages.read(note))
    await world.far.note(messages.read(answer))
    mailed = await world.mail()
    await mailed.begin_session("s")
    await mailed.client_is_ready()
    await mailed.give(ANSWER)
    await world.far.end()
    servers, clients = f"/servers/{world.stream.id}".encode(), f"/clients/{world.client.id}".encode()
    assert [(each.method, each.target, each.body, seconds) for each, seconds in world.sent] == [
        (b"POST", servers, envelope, 10.0),
        (b"GET", servers, b"", 10.0),
        (b"POST", servers, withdrawn, 10.0),
        (b"POST", servers, b'{"jsonrpc":"2.0","id":"q","result":{}}', 10.0),
        (b"GET", clients, b"", 10.0),
        (b"PUT", clients + b"/session", b"s", 10.0),
        (b"PUT", clients + b"/ready", b"", 10.0),
        (b"POST", clients, ANSWER, calls.FOR_EVER),
        (b"DELETE", servers, b"", 10.0),
    ]
    assert {(each.authority, each.headers) for each, _ in world.sent} == {(b"", b"")}
    mailed.leave()


class Refusing:
    """A call to another worker that goes wrong."""

    def __init__(self, found: CallAnswer | CallFailed | None) -> None:
        self.found = found
        self.is_given_up = False

    async def head(self) -> CallAnswer:
        if self.found is None:
            await asyncio.Event().wait()
        if isinstance(self.found, CallFailed):
            raise self.found
        assert self.found is not None
        return self.found

    def cancel(self) -> None:
        self.is_given_up = True


@pytest.mark.parametrize(
    ("found", "raised"),
    [
        (CallFailed("connect", "no such file"), Gone),
        (CallFailed("timeout", "late"), CallFailed),
        (CallAnswer(300, Head(b"\r\n"), b""), Malformed),
        (CallAnswer(404, Head(b"\r\n"), b""), Gone),
        (CallAnswer(503, Head(b"\r\n"), b""), CallFailed),
        (CallAnswer(299, Head(b"\r\n"), b""), None),
    ],
)
async def test_what_goes_wrong_between_workers(
    world: Two, monkeypatch: pytest.MonkeyPatch, found: Any, raised: type[Exception] | None
) -> None:
    call = Refusing(found)
    monkeypatch.setattr(calls, "call", lambda *_: call)
    if raised is None:
        assert await world.far.note(messages.read(NOTE)) == b""
        return
    with pytest.raises(raised):
        await world.far.note(messages.read(NOTE))
    assert call.is_given_up is isinstance(found, CallAnswer)


async def test_a_request_is_served_by_the_stream_of_another_worker(world: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is by one of its own."""
    target: Any = SimpleNamespace(name="one")
    known = UpstreamSession("one", f"{world.holder.name}/{world.stream.id}")
    for where in (world.here, world.holder):
        world.x.context.of_kind(MCP).holder = where
        visit: Any = SimpleNamespace(x=world.x, session=SimpleNamespace(number=b"\x07"), is_modern=False)
        opened = await requests.asked(visit, target, known, b"GET", b"", 1.0)
        world.stream.dialogue.say(NOTE)
        assert EventReader().feed(await opened.call.receive())[0].data == NOTE
        opened.call.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.stream.dialogue.is_idle
    world.stream.of = b"\x07", "one"
    world.holder.hold(world.stream)
    assert await requests.found(visit, target) == UpstreamSession("one", known.session_id)
    await requests.end_session(visit)
    assert world.stream.is_over and len(world.calls) == 1


async def test_a_stream_that_another_worker_loses_is_a_failure(world: Two) -> None:
    heard = await world.far.listen()
    world.stream.dialogue.say(NOTE)
    assert await heard.next() == (NOTE, False)
    world.stream.end("it left")
    with pytest.raises(CallFailed):
        await heard.next()
    with pytest.raises(Gone):
        await world.far.ask(messages.read(QUESTION))
    with pytest.raises(Gone):
        await world.far.end()


async def test_the_end_of_a_session_ends_the_stream_at_another_worker(world: Two) -> None:
    await world.far.end()
    assert world.stream.is_over and world.holder.of(world.stream.id) is None
    await world.ends()


async def test_what_another_worker_refuses_is_refused(world: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.far.ask(messages.read(QUESTION))
    with pytest.raises(Malformed, match="is not answered yet"):
        await world.far.ask(messages.read(QUESTION))
    monkeypatch.setattr(dialogue, "MAX_WAITING", 1)
    with pytest.raises(CallFailed, match="too many requests"):
        await world.far.ask(messages.read(QUESTION.replace(b"1,", b"2,")))
    assert [each.is_given_up for each in world.calls] == [False, True, True]


async def test_an_answer_larger_than_the_bound_is_a_failure(world: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.backends.mcp.legacy.reached.LARGEST_ANSWER", 1000)
    heard = await world.far.ask(messages.read(QUESTION))
    world.stream.dialogue.say(ANSWER.replace(b"{}", b'{"x":"%b"}' % (b"a" * 1000)))
    with pytest.raises(CallFailed, match="more than 1000 bytes"):
        await heard.next()


async def test_a_message_comes_to_a_client_of_another_worker(world: Two) -> None:
    far = await world.mail()
    assert (far.session, world.client.at_work) == ("", 1)
    await far.begin_session("a session")
    assert (world.client.session, world.client.is_ready) == ("a session", False)
    await far.client_is_ready()
    assert world.client.is_ready
    await far.give(ANSWER)
    assert EventReader().feed(b"".join(world.given))[0].data == ANSWER
    other = await world.mail()
    assert (other.session, world.client.at_work) == ("a session", 2)
    for each in (far, other):
        each.leave()
    await asyncio.sleep(0)
    await world.ends()
    assert world.client.at_work == 0


@pytest.mark.parametrize("is_near", [True, False], ids=["of this worker", "of another one"])
async def test_a_client_may_have_so_many_messages_at_work(
    world: Two, is_near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataplane.backends.mcp.legacy.client_streams.MAX_WAITING", 2)
    if is_near:
        world.x.context.of_kind(MCP).holder = world.holder
    one, _ = await world.mail(), await world.mail()
    with pytest.raises(Busy):
        await world.mail()
    answer = await Asked(world.holder, CallRequest(b"GET", f"/clients/{world.client.id}".encode())).head()
    assert (answer.status, answer.body) == (503, b"busy")
    assert is_near or world.calls[-1].is_given_up
    one.leave()
    one.leave()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.client.at_work == 1
    await world.mail()
    with pytest.raises(Busy):
        await world.mail()


async def test_a_session_is_looked_for_at_all_workers_and_ended_at_all(
    world: Two, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that is gone is forgotten; its socket may be there for a while."""
    world.stream.of = b"\x07", "one"
    world.holder.hold(world.stream)
    gone = "0" * 16
    for name in (gone, world.here.name, world.holder.name):
        (tmp_path / f"mcp-{name}").touch()
    plan = world.here.peer(gone)

    class Lost:
        async def head(self) -> CallAnswer:
            raise CallFailed("connect", "no such file")

        def cancel(self) -> None:
            pass

    def call(x: object, peer: Any, request: CallRequest, seconds: float) -> Any:
        return Lost() if peer.key == f"worker/{gone}" else world._call(x, peer, request, seconds)

    monkeypatch.setattr(calls, "call", call)
    visit: Any = SimpleNamespace(x=world.x, session=SimpleNamespace(number=b"\x07"))
    for name, is_there in (("one", True), ("two", False)):
        target: Any = SimpleNamespace(name=name)
        found = await requests.found(visit, target)
        assert (found is not None) is is_there
        if found is not None:
            assert (found.target, found.session_id) == ("one", f"{world.holder.name}/{world.stream.id}")
    assert world.here.peer(gone) is not plan
    await requests.end_session(visit)
    assert world.stream.is_over
    await world.ends()
