"""What workers ask of the socket, as bytes, and what the processes of servers get and say, in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dataplane import local_http
from dataplane.http.sse import EventReader
from dataplane.link.commands import Command
from dataplane.local_http import Connection
from dataplane.mcp import dialogue, hearing
from dataplane.stdio import sessions as module
from dataplane.stdio.service import Service
from dataplane.stdio.sessions import Sessions
from tests.fakes.memory_servers import MemoryServer, MemoryServers
from tests.fakes.moved_loop import moved

OWN, OTHER = Command("d1", "own", "/own"), Command("d2", "other", "/other")


class Worker:
    """One connection of a worker: what it writes, and the answers. It stands for the transport, too."""

    def __init__(self, made: Service) -> None:
        self.received = b""
        self.is_cut = False
        self._open: set[Connection] = set()
        self.connection = Connection(made.serve, self._open)
        self.connection.connection_made(self)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        self.received += data

    def is_closing(self) -> bool:
        return self.is_cut

    def abort(self) -> None:
        if not self.is_cut:
            self.is_cut = True
            self.connection.connection_lost(None)

    async def send(self, method: str, body: Any = b"", session: str = "", server: str = "d1") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} /{server} HTTP/1.1\r\nHost: stdio\r\nContent-Length: {len(data)}\r\n"
        head += f"Mcp-Session-Id: {session}\r\n" if session else ""
        self.received = b""
        self.connection.data_received(head.encode() + b"\r\n" + data)
        await turns()

    @property
    def status(self) -> int:
        return int(self.received.split(b" ", 2)[1]) if self.received else 0

    @property
    def head(self) -> bytes:
        return self.received.partition(b"\r\n\r\n")[0].lower()

    @property
    def body(self) -> bytes:
        """Of a whole answer."""
        head, _, body = self.received.partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head
        return body

    @property
    def said(self) -> list[Any]:
        """Messages of a stream of events."""
        assert b"content-type: text/event-stream\r\n" in self.received and b"transfer-encoding: chunked" in self.head
        return [json.loads(event.data) for event in EventReader().feed(content_of(self.received))]

    @property
    def has_ended(self) -> bool:
        return self.received.endswith(b"0\r\n\r\n")


def content_of(answer: bytes) -> bytes:
    """Of chunks, as far as they have come."""
    rest, content = answer.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        content += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return content


async def turns() -> None:
    await asyncio.sleep(0.01)


class World:
    def __init__(self, servers: MemoryServers) -> None:
        self.servers = servers
        self.sessions = Sessions(servers.report, servers.full)
        self.sessions.take({"d1": OWN, "d2": OTHER})
        self.service = Service(self.sessions)

    def worker(self) -> Worker:
        return Worker(self.service)

    async def opened(self) -> tuple[Worker, str, MemoryServer]:
        """A session: a worker, the session's id, its process."""
        worker = self.worker()
        await worker.send("POST", INITIALIZE)
        server = self.servers.made[-1]
        server.says(id=0, result={"protocolVersion": "2025-11-25"})
        await turns()
        assert worker.status == 200
        (line,) = (each for each in worker.head.split(b"\r\n") if each.startswith(b"mcp-session-id: "))
        return worker, line.partition(b" ")[2].decode(), server


INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
NOTICE = {"method": "notifications/message", "params": {"data": 1}}


def call(number: int = 1, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": fields}


@asynccontextmanager
async def world_of(servers: MemoryServers) -> AsyncIterator[World]:
    world = World(servers)
    try:
        yield world
    finally:
        await world.sessions.close()


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> MemoryServers:
    made = MemoryServers()
    monkeypatch.setattr(module, "ServerProcess", made.make)
    return made


@moved
async def test_sessions_that_began_make_place_for_others_to_begin(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        for _ in range(2 * module.STARTING):
            await world.opened()
        assert len(servers.alive) == 2 * module.STARTING


REFUSED = {
    # server, session, method, body, status, text
    "no such server": ("d9", "", "POST", INITIALIZE, 404, b"no such server"),
    "no such session": ("d1", "s", "POST", call(), 404, b"session not found"),
    "no session": ("d1", "", "POST", call(), 400, b"header Mcp-Session-Id is required"),
    "a notice named initialize": ("d1", "", "POST", {"jsonrpc": "2.0", "method": "initialize"}, 400, b"header Mcp-"),
    "a stream without a session": ("d1", "", "GET", b"", 404, b"session not found"),
    "no message": ("d1", "", "POST", b"{", 400, b""),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
@moved
async def test_what_begins_no_session(row: tuple[str, str, str, Any, int, bytes], servers: MemoryServers) -> None:
    name, session, method, body, status, text = row
    async with world_of(servers) as world:
        worker = world.worker()
        await worker.send(method, body, session, name)
        assert worker.status == status and worker.body.startswith(text) and not servers.made
        await worker.send("POST", INITIALIZE)
        assert len(servers.made) == 1, "the connection goes on"


@pytest.mark.parametrize("end", ["refuses", "dies", "is not waited for"])
@moved
async def test_where_initialize_gets_no_result_there_is_no_session(end: str, servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker = world.worker()
        await worker.send("POST", INITIALIZE)
        (server,) = servers.made
        if end == "refuses":
            server.says(id=0, error={"code": -32602, "message": "which version?"})
            await turns()
            assert worker.status == 200 and json.loads(worker.body)["error"]["message"] == "which version?"
        elif end == "dies":
            server.dies()
            await turns()
            assert worker.status == 502 and worker.body == b"the server ended before it answered"
        else:
            worker.abort()
        await turns()
        assert servers.alive == []
        if end != "dies":
            for _ in range(module.STARTING):
                await world.opened()


@moved
async def test_a_withdrawn_request_has_an_end_without_an_answer(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        await worker.send("POST", call(), session)
        server.says(**NOTICE)
        await turns()
        other = world.worker()
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await other.send("POST", gone, session)
        assert other.status == 202 and server.heard[-1] == gone
        assert worker.has_ended and len(worker.said) == 1 and not worker.is_cut
        kept = world.sessions.of("d1", session)
        assert kept is not None and kept.dialogue.is_idle


@moved
async def test_another_notice_withdraws_nothing(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        await worker.send("POST", call(), session)
        other = world.worker()
        await other.send("POST", {"jsonrpc": "2.0", "method": "notifications/x", "params": {"requestId": 1}}, session)
        server.says(id=1, result={})
        await turns()
        assert other.status == 202 and json.loads(worker.body) == result()


@moved
async def test_a_message_that_is_none_and_an_id_in_use_are_refused(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        for body, code in ((b"[", -32700), (b"[]", -32600)):
            await worker.send("POST", body, session)
            assert worker.status == 400 and json.loads(worker.body)["error"]["code"] == code
        assert b"content-type: application/json" in worker.head
        await worker.send("POST", call(), session)
        other = world.worker()
        await other.send("POST", call(), session)
        assert other.status == 400 and json.loads(other.body)["id"] == 1
        server.says(id=1, result={})
        await turns()
        assert json.loads(worker.body) == result()


@moved
async def test_who_does_not_keep_up_gets_no_more(servers: MemoryServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "MAX_WAITING", 1)
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        server.is_deaf = True
        for body in (READY, call()):
            await worker.send("POST", body, session)
            assert (worker.status, worker.body) == (503, b"the server does not keep up")
        server.is_deaf = False
        await worker.send("POST", call(), session)
        other = world.worker()
        await other.send("POST", call(2), session)
        assert worker.status == 0 and other.status == 503


@moved
async def test_a_server_waits_for_a_worker_that_takes_no_more(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        await worker.send("GET", b"", session)
        server.says(**NOTICE)
        await turns()
        worker.connection.pause_writing()
        for _ in range(hearing.MAX_BEHIND + 20):
            server.says(**NOTICE)
        await turns()
        assert server.unread == 20 and len(worker.said) <= 3
        worker.connection.resume_writing()
        await turns()
        assert server.unread == 0 and len(worker.said) == hearing.MAX_BEHIND + 21


@moved
async def test_it_waits_for_few_large_messages_too(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        await worker.send("GET", b"", session)
        worker.connection.pause_writing()
        for _ in range(20):
            server.says(method="notifications/message", params={"data": "x" * (hearing.MAX_BEHIND_BYTES // 4)})
        await turns()
        assert 13 <= server.unread <= 16
        worker.connection.resume_writing()
        await turns()
        assert server.unread == 0 and len(worker.said) == 20


@moved
async def test_a_worker_that_leaves_is_not_waited_for(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        await worker.send("POST", call(), session)
        worker.abort()
        await turns()
        kept = world.sessions.of("d1", session)
        assert kept is not None and kept.dialogue.is_idle and servers.alive == [1], "the session stays"
        server.says(id=1, result={})
        other = world.worker()
        await other.send("POST", call(2), session)
        server.says(id=2, result={})
        await turns()
        assert json.loads(other.body) == result(2)


# --- requests as bytes

POST = b"POST /d1 HTTP/1.1\r\n"


@moved
async def test_a_request_may_come_in_pieces_and_with_the_next(servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker, session, server = await world.opened()
        body = json.dumps(call()).encode()
        head = POST + b"MCP-session-ID:%b\r\ncontent-length:  %d \r\n\r\n" % (session.encode(), len(body))
        worker.received = b""
        for byte in head + body:
            worker.connection.data_received(bytes((byte,)))
        notice = json.dumps(READY).encode()
        second = POST + b"mcp-session-id: %b\r\ncontent-length: %d\r\n\r\n" % (session.encode(), len(notice))
        worker.connection.data_received(second + notice)
        await turns()
        assert server.heard[1:] == [call()], "one after the other"
        server.says(id=1, result={})
        await turns()
        assert server.heard[1:] == [call(), READY]
        assert worker.received.startswith(b"HTTP/1.1 200 OK\r\n") and b"HTTP/1.1 202 Accepted\r\n" in worker.received


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"POST /d1\r\n\r\n",
        POST + b"transfer-encoding: chunked\r\n\r\n",
        POST + b"content-length: -1\r\n\r\n",
        POST + b"content-length: x\r\n\r\n",
        POST + b"content-length: %d\r\n\r\n" % (local_http.MAX_BODY + 1),
        POST + b"x: " + b"a" * local_http.MAX_HEAD,
    ],
)
@moved
async def test_what_no_worker_of_ours_writes_is_cut_off(data: bytes, servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker = world.worker()
        worker.connection.data_received(data)
        assert worker.is_cut and worker.received == b""
        worker.connection.data_received(b"GET /d1 HTTP/1.1\r\n\r\n")
        await turns()
        assert worker.received == b""


@pytest.mark.parametrize(
    "data",
    [POST + b"x: " + b"a" * (local_http.MAX_HEAD - 100), POST + b"content-length: %d\r\n\r\n" % local_http.MAX_BODY],
)
@moved
async def test_what_is_as_large_as_it_may_be_is_waited_for(data: bytes, servers: MemoryServers) -> None:
    async with world_of(servers) as world:
        worker = world.worker()
        worker.connection.data_received(data)
        await turns()
        assert not worker.is_cut and worker.received == b""
