"""HTTP/2 peers on real sockets, built on our codec and as thin as that allows: a server that echoes, and a client.

    async with echo_server(Settings()) as server:       # server.port
    async with connect(port, Settings()) as client:
        answer = await client.request(b"GET", b"/")

External tools (h2spec, nghttp, h2load, nghttpd, gRPC) talk to them, to judge the codec alone: the product has carriers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import NO_ERROR
from dataplane.http.h2.events import (
    Content,
    Drained,
    Event,
    Failed,
    Interim,
    OversizedRequest,
    Request,
    RequestHead,
    Reset,
    Response,
    ResponseHead,
    Trailers,
)
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream


class _Peer(asyncio.Protocol):
    """Carries one connection: what every carrier does, and nothing of its own."""

    transport: asyncio.Transport

    def __init__(self, settings: Settings, server: bool) -> None:
        self.codec = Connection(settings, server, time.monotonic)
        self.failures: list[Failed] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # by shape: uvloop's is no subclass
        self.write()

    def data_received(self, data: bytes) -> None:
        self.handle(self.codec.receive(data))
        while self.codec.has_more:
            self.handle(self.codec.receive(b""))
        self.write()

    def pause_writing(self) -> None:
        self.codec.pause_writing()

    def resume_writing(self) -> None:
        self.handle(self.codec.resume_writing())
        self.write()

    def handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Failed):
                self.failures.append(event)
            else:
                self.on(event)

    def on(self, event: Event) -> None:
        raise NotImplementedError

    def write(self) -> None:
        data = self.codec.take()
        if data and not self.transport.is_closing():
            self.transport.write(data)
        if self.codec.failed:
            self.transport.close()


@dataclass(slots=True)
class Taken:
    """A request as the server took it."""

    head: RequestHead
    content: bytearray = field(default_factory=bytearray)
    trailers: bytes = b""


class EchoServer(_Peer):
    """Answers each request with its own content, `/bytes/N` with so many; trailers with the same trailers.

    A call of gRPC, known by its content type, gets the status that it waits for.
    """

    def __init__(self, settings: Settings, taken: list[Taken], peers: list[EchoServer]) -> None:
        super().__init__(settings, server=True)
        self.taken = taken
        peers.append(self)

    def on(self, event: Event) -> None:
        if isinstance(event, Request):
            event.stream.owner = Taken(event.head)
            if event.end:
                self.answer(event.stream)
        elif isinstance(event, Content):
            event.stream.owner.content += event.data
            self.codec.acknowledge(event.stream, len(event.data))
            if event.end:
                self.answer(event.stream)
        elif isinstance(event, Trailers):
            event.stream.owner.trailers = event.block
            self.answer(event.stream)
        elif isinstance(event, OversizedRequest):
            self.codec.send_response(event.stream, 431, b"\r\ncontent-length: 0\r\n", True)
            self.codec.reset(event.stream, NO_ERROR)

    def answer(self, stream: Stream) -> None:
        taken: Taken = stream.owner
        self.taken.append(taken)
        path = taken.head.path
        content = b"x" * int(path[7:]) if path.startswith(b"/bytes/") else bytes(taken.content) or b"hello"
        block, trailers = b"\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n" % len(content), taken.trailers
        if b"\r\ncontent-type: application/grpc\r\n" in taken.head.block:
            block, trailers = b"\r\ncontent-type: application/grpc\r\n", b"\r\ngrpc-status: 0\r\n"
        self.codec.send_response(stream, 200, block, False)
        self.codec.send_content(stream, content, not trailers)
        if trailers:
            self.codec.send_trailers(stream, trailers)


@dataclass(slots=True)
class Server:
    port: int
    taken: list[Taken]
    """Requests, in the order in which they were whole."""
    peers: list[EchoServer]
    """Connections, in the order in which they came."""


@asynccontextmanager
async def echo_server(settings: Settings) -> AsyncIterator[Server]:
    """An `EchoServer` on a port of loopback."""
    found = Server(0, [], [])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: EchoServer(settings, found.taken, found.peers), "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for peer in found.peers:
            peer.transport.abort()
        await server.wait_closed()


@dataclass(slots=True)
class Answer:
    """A response as the client got it."""

    done: asyncio.Future[None]
    head: ResponseHead | None = None
    interims: list[int] = field(default_factory=list)
    content: bytearray = field(default_factory=bytearray)
    trailers: bytes = b""


class Client(_Peer):
    """Sends requests over one connection; made by `connect`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, server=False)
        self.drained: dict[Stream, asyncio.Event] = {}

    def on(self, event: Event) -> None:
        if isinstance(event, Drained):
            self.drained.setdefault(event.stream, asyncio.Event()).set()
        elif isinstance(event, Response | Interim | Content | Trailers | Reset):
            self.note(event, event.stream.owner)

    def note(self, event: Response | Interim | Content | Trailers | Reset, answer: Answer) -> None:
        ends = False
        if isinstance(event, Response):
            answer.head, ends = event.head, event.end
        elif isinstance(event, Interim):
            answer.interims.append(event.head.status)
        elif isinstance(event, Content):
            answer.content += event.data
            self.codec.acknowledge(event.stream, len(event.data))
            ends = event.end
        elif isinstance(event, Trailers):
            answer.trailers, ends = event.block, True
        elif not answer.done.done():
            answer.done.set_exception(ConnectionResetError(repr(event)))
        if ends and not answer.done.done():
            answer.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        for stream in [*self.codec.streams.values()]:
            if not stream.owner.done.done():
                stream.owner.done.set_exception(error or ConnectionResetError("closed"))

    def begin(self, method: bytes, path: bytes, block: bytes = b"\r\n", content: bytes = b"") -> Answer:
        """Send a request; its answer is there when `done` is."""
        codec = self.codec
        stream = codec.send_request(method, b"http", b"127.0.0.1", path, block, not content)
        answer = stream.owner = Answer(asyncio.get_running_loop().create_future())
        if content:
            codec.send_content(stream, content, True)
        self.write()
        return answer

    async def request(self, method: bytes, path: bytes, block: bytes = b"\r\n", content: bytes = b"") -> Answer:
        """Send a request and wait for its answer."""
        answer = self.begin(method, path, block, content)
        await answer.done
        return answer


@asynccontextmanager
async def connect(port: int, settings: Settings) -> AsyncIterator[Client]:
    """A `Client` on a new connection to loopback."""
    _, client = await asyncio.get_running_loop().create_connection(lambda: Client(settings), "127.0.0.1", port)
    try:
        yield client
    finally:
        client.transport.abort()
