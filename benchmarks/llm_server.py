"""A cheap LLM provider for the benchmarks: `python -m benchmarks.llm_server PORT`. One process of Python on uvloop.

A body with `"stream"` true is answered with a stream of TOKENS chunks, one every PACE seconds (every REST of a model
whose name has `slow`), each in a write of its own, and with the usage at its end; another one with a whole completion.
`/counts` as `backend.c` has it. It trusts its input: requests with `content-length`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import uvloop

TOKENS: Final = 1000
PACE: Final = 0.002
REST: Final = 1.0

_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_WHOLE: Final = (
    b'{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,'
    b'"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":'
    b'"Three documents have these words; the newest of them is of yesterday.","refusal":null,"annotations":[]},'
    b'"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":219,"completion_tokens":16,'
    b'"total_tokens":235,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":'
    b'{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},'
    b'"service_tier":"default","system_fingerprint":"fp_06737a9306"}'
)
_STREAM: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
_CHUNK: Final = (
    b'data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,'
    b'"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_06737a9306",'
    b'"choices":[{"index":0,"delta":{%b},"logprobs":null,"finish_reason":%b}]}\n\n'
)
_TOKEN: Final = _CHUNK % (b'"content":" word"', b"null")
_LAST: Final = _CHUNK % (b"", b'"stop"')
_USAGE: Final = (
    b'data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,'
    b'"model":"gpt-4o-mini-2024-07-18","choices":[],"usage":{"prompt_tokens":219,"completion_tokens":1000,'
    b'"total_tokens":1219}}\n\ndata: [DONE]\n\n'
)


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_TOKEN_PIECE: Final = _piece(_TOKEN)
_END: Final = _piece(_LAST) + _piece(_USAGE) + b"0\r\n\r\n"


class Counts:
    def __init__(self) -> None:
        self.requests = self.events = 0


class Pacer:
    """All streams of one pace on one timer, so that it is the same work however many there are."""

    def __init__(self, counts: Counts, pace: float) -> None:
        self._counts, self._pace = counts, pace
        self._left: dict[Any, int] = {}

    def begin(self, transport: Any) -> None:
        if not self._left:
            asyncio.get_running_loop().call_later(self._pace, self._tick)
        self._left[transport] = TOKENS

    def forget(self, transport: Any) -> None:
        self._left.pop(transport, None)

    def _tick(self) -> None:
        for transport, left in list(self._left.items()):
            if left:
                transport.write(_TOKEN_PIECE)
                self._counts.events += 1
                self._left[transport] = left - 1
            else:
                transport.write(_END)
                del self._left[transport]
        if self._left:
            asyncio.get_running_loop().call_later(self._pace, self._tick)


class Provider(asyncio.Protocol):
    """A connection."""

    def __init__(self, counts: Counts, quick: Pacer, slow: Pacer) -> None:
        self._counts, self._quick, self._slow = counts, quick, slow
        self._buffer = b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._quick.forget(self.transport)
        self._slow.forget(self.transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"\r\ncontent-length:")
            length = 0 if at < 0 else int(head[at + 17 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"get /counts"):
            found = b"%d %d" % (self._counts.requests, self._counts.events)
            self.transport.write(_HEAD % (len(found), found))
            return
        self._counts.requests += 1
        if b'"stream": true' not in body and b'"stream":true' not in body:
            self.transport.write(_HEAD % (len(_WHOLE), _WHOLE))
            return
        self.transport.write(_STREAM)
        (self._slow if b"slow" in body else self._quick).begin(self.transport)


async def main(port: int) -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    quick, slow = Pacer(counts, PACE), Pacer(counts, REST)
    server = await loop.create_server(lambda: Provider(counts, quick, slow), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
