"""A cheap MCP server for the benchmarks, on as many ports as it is given: `python -m benchmarks.mcp_server PORT...`.

One process of Python on uvloop, without the SDK: whatever it costs is on the core of the load. Each port is a server
with TOOLS tools. The tool `events` answers with EVENTS notices of progress on a stream, one every PACE seconds, each in
a write of its own; every other tool with one text as JSON. `GET` opens a stream on which nothing is said. `/counts` as
`backend.c` has it. It trusts its input: requests with `content-length`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from typing import Any, Final

import msgspec
import uvloop

TOOLS: Final = 50
EVENTS: Final = 1000
PACE: Final = 0.002

_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for, in the words of whoever asks."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "since": {"type": "string", "format": "date-time"},
    },
    "required": ["query"],
}
_LIST: Final = json.dumps(
    {
        "tools": [
            {
                "name": f"tool{number}",
                "title": f"Tool {number}",
                "description": "Looks for documents that have all of the words, newest first, and says where each is.",
                "inputSchema": _SCHEMA,
            }
            for number in range(TOOLS)
        ]
    }
).encode()
_HELLO: Final = json.dumps(
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "bench", "version": "1"},
    }
).encode()
_CALL: Final = (
    b'{"content":[{"type":"text","text":"three documents, the newest of them of yesterday"}],"isError":false}'
)
_STREAM: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_END: Final = b"0\r\n\r\n"


class _Name(msgspec.Struct):
    name: str = ""


class _Message(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")
    method: str = ""
    params: _Name = msgspec.field(default_factory=_Name)


_read = msgspec.json.Decoder(_Message).decode


class Counts:
    def __init__(self) -> None:
        self.requests = self.events = 0


class Pacer:
    """All streams of events on one timer, so that it is the same work however many there are."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._left: dict[Server, tuple[int, bytes]] = {}

    def begin(self, server: Server, request_id: bytes) -> None:
        if not self._left:
            asyncio.get_running_loop().call_later(PACE, self._tick)
        self._left[server] = EVENTS, request_id

    def forget(self, server: Server) -> None:
        self._left.pop(server, None)

    def _tick(self) -> None:
        for server, (left, request_id) in list(self._left.items()):
            if left:
                text = _NOTICE % (request_id, EVENTS - left)
                server.transport.write(b"%x\r\n%b\r\n" % (len(text), text))
                self._counts.events += 1
                self._left[server] = left - 1, request_id
            else:
                text = b"event: message\ndata: %b\n\n" % _answer(request_id, _CALL)
                server.transport.write(b"%x\r\n%b\r\n%b" % (len(text), text, _END))
                del self._left[server]
        if self._left:
            asyncio.get_running_loop().call_later(PACE, self._tick)


_NOTICE: Final = (
    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":'
    b'{"progressToken":%b,"progress":%d,"total":1000,"message":"looking through another folder"}}\n\n'
)


def _answer(request_id: bytes, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result)


class Server(asyncio.Protocol):
    """A connection."""

    def __init__(self, counts: Counts, pacer: Pacer) -> None:
        self._counts, self._pacer = counts, pacer
        self._buffer = b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._pacer.forget(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"\r\ncontent-length:")
            size = int(head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + size:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
            self._request(head, body)

    def _request(self, head: bytes, body: bytes) -> None:
        counts = self._counts
        if head.startswith(b"get /counts"):
            self._whole(b"%d %d" % (counts.requests, counts.events))
            return
        counts.requests += 1
        if head.startswith(b"get "):
            self.transport.write(_STREAM)
        elif head.startswith(b"delete "):
            self._whole(b"")
        else:
            self._message(_read(body))

    def _message(self, message: _Message) -> None:
        request_id = bytes(message.id)
        if message.method.startswith("notifications/"):
            self.transport.write(_ACCEPTED)
        elif message.method == "initialize":
            self._whole(_answer(request_id, _HELLO), b"mcp-session-id: %b\r\n" % uuid.uuid4().hex.encode())
        elif message.method == "tools/list":
            self._whole(_answer(request_id, _LIST))
        elif message.params.name == "events":
            self.transport.write(_STREAM)
            self._pacer.begin(self, request_id)
        else:
            self._whole(_answer(request_id, _CALL))

    def _whole(self, body: bytes, lines: bytes = b"") -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n" % (lines, len(body))
        self.transport.write(head + body)


async def serve(ports: list[int]) -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    pacer = Pacer(counts)
    servers = [await loop.create_server(lambda: Server(counts, pacer), "127.0.0.1", port) for port in ports]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    uvloop.run(serve([int(port) for port in sys.argv[1:]]))
