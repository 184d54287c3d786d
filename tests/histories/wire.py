"""The network between proxies and controllers: a delta stream whose messages a test holds back, passes on or loses.

Both ends are the product's (`agent/xds_client` and `xds/server`); this stands in for gRPC. What is sent waits in a
queue of its direction; a direction that is held passes messages on only as told. A cut loses what is under way, as a
broken connection does: a state loses its end, an ACK is never heard of.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, NoReturn

import grpc

from gatewright.wire.external import discovery_pb2

DOWN, UP = "down", "up"
WINDOW = 2
"""Responses that a server may be ahead of a proxy that does not read."""

Request = discovery_pb2.DeltaDiscoveryRequest


class Direction:
    """One way of one stream. `room` messages may wait before a sender has to."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._sent: deque[bytes] = deque()
        self._arrived: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._is_held = self._is_ended = False

    async def send(self, message: bytes) -> None:
        while len(self._sent) + len(self._arrived) >= self._room and not self._is_ended:
            await self._next_news()
        if not self._is_ended:
            self._sent.append(message)
            self._move()

    async def receive(self) -> bytes | None:
        """None: there is nothing more."""
        while not self._arrived:
            if self._is_ended:
                return None
            await self._next_news()
        message = self._arrived.popleft()
        self._tell()
        return message

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        self._is_held = False
        self._move()

    def pass_on(self, count: int) -> None:
        for _ in range(min(count, len(self._sent))):
            self._arrived.append(self._sent.popleft())
        self._tell()

    def end(self) -> None:
        """What arrived can still be read; what is under way is lost."""
        self._sent.clear()
        self._is_ended = True
        self._tell()

    def _move(self) -> None:
        if not self._is_held:
            self.pass_on(len(self._sent))

    def _tell(self) -> None:
        self._news.set()

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()


class Stream:
    """One call, with its two ends. `knows_claims`: else the server is one that came before them."""

    def __init__(self, knows_claims: bool = True) -> None:
        self.ways = {DOWN: Direction(WINDOW), UP: Direction(100)}
        self.knows_claims = knows_claims
        self.is_cut = False
        self.status = grpc.StatusCode.OK

    def cut(self) -> None:
        self.is_cut = True
        self.status = grpc.StatusCode.UNAVAILABLE
        for way in self.ways.values():
            way.end()

    def end(self, status: grpc.StatusCode) -> None:
        """The server has said all that it will."""
        if not self.is_cut:
            self.status = status
            for way in self.ways.values():
                way.end()


class Aborted(Exception):
    """The server ended the call."""


class ServerEnd:
    """`xds.session.DeltaCall`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> Any:
        data = await self._stream.ways[UP].receive()
        if data is None:
            return grpc.aio.EOF
        if self._stream.knows_claims:
            return data
        request = Request.FromString(data)
        request.node.metadata.fields.pop("gatewright.state", None)
        return request.SerializeToString()

    async def write(self, response: bytes) -> None:
        await self._stream.ways[DOWN].send(response)

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        self._stream.end(code)
        raise Aborted(details)

    def peer(self) -> str:
        return "unix:"

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def auth_context(self) -> dict[str, list[bytes]]:
        return {}


class ClientEnd:
    """What `agent/xds_client` asks of a call."""

    def __init__(self, stream: Stream | None) -> None:
        """None: nobody is there."""
        self._stream = stream

    async def read(self) -> Any:
        data = None if self._stream is None else await self._stream.ways[DOWN].receive()
        if data is not None:
            return data
        self._raise_if_cut()
        return grpc.aio.EOF

    async def write(self, request: Any) -> None:
        self._raise_if_cut()
        assert self._stream is not None
        await self._stream.ways[UP].send(request.SerializeToString())

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE if self._stream is None else self._stream.status

    async def details(self) -> str:
        return "cut by the test"

    def _raise_if_cut(self) -> None:
        if self._stream is None or self._stream.is_cut:
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "cut by the test"
            )


class Channel:
    """`grpc.aio.Channel`, as far as the client uses it. Closing it ends its call."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def stream_stream(self, *_: Any, **__: Any) -> Any:
        return lambda: ClientEnd(self._stream)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.cut()
