"""Streams of MCP servers that one worker holds for all: what others are given of them, how many are connected to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp.legacy import holder
from dataplane.backends.mcp.legacy.holder import Holder
from dataplane.backends.mcp.legacy.peers import Peers
from dataplane.backends.mcp.legacy.reached import LAST
from dataplane.backends.mcp.legacy.server_streams import ServerStream
from dataplane.http.sse import EventReader
from dataplane.local_http import Request


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
        self.holder = Holder(context, folder)
        call: Any = SimpleNamespace(endpoint=None, cancel=lambda: None)
        target: Any = SimpleNamespace(name="one", path=b"/sse")
        self.stream = ServerStream(self.holder, call, target, ("http", "a"), b"")
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


async def test_what_will_not_be_answered_is_broken_off() -> None:
    """An end would say that the server had answered nothing."""
    world = World()
    asked = world.asked(b"POST", QUESTION)
    await asyncio.sleep(0)
    world.stream.end("it left")
    await asked
    assert (world.out.events, world.out.how) == ([], "broken off")


async def test_what_is_said_beside_answers_goes_to_whoever_listens() -> None:
    world = World()
    listening = world.asked(b"GET")
    await asyncio.sleep(0)
    world.stream.dialogue.say(NOTE)
    world.stream.end("it left")
    await listening
    assert (world.out.events, world.out.how) == ([(b"message", NOTE)], "broken off")


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
