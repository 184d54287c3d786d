"""Instructions per request of the proxy in memory, for two trees: what a change of the request path costs.

`python -m benchmarks.instructions [--tree PATH] [--requests N] [SCENARIO ...]` counts with valgrind (cachegrind,
without a cache): on a busy machine the same as on a quiet one, to a tenth of a per cent in each run. Counted is the
difference of two run lengths, so that starting up is not in it. `--tree` is another checkout to compare with; its own
memory proxy runs there, so that both ends of each connection are the tree's own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
WARM = 300
"""Requests of the shorter run."""
WARM_LARGE, LARGE_AT_MOST = 2, 8
"""The same of large requests, and by how many the runs differ at most."""

GET = b"GET /catalog/items?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: load/1.0\r\nAccept: */*\r\n\r\n"
POST = (
    b"POST /catalog/items HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: load/1.0\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 64\r\n\r\n" + b"b" * 64
)
ANSWER = b"HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n" + b"a" * 64
CHUNKS = b"HTTP/1.1 200 OK\r\nServer: origin\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + b"a" * 64 + b"\r\n0\r\n\r\n"
OWN = b"000000000000"
"""Stands for the number of a request, in heads of which each is another in `varied` and all are alike in `same`."""
VARIED_GET = (
    b"GET /catalog/items?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: load/1.0\r\nAccept: */*\r\n"
    b"Accept-Encoding: gzip, br\r\nAccept-Language: en\r\n"
    b"X-Request-Id: 7f3e1c2a-9b1d-4e57-8a0f-" + OWN + b"\r\n"
    b"traceparent: 00-0af7651916cd43dd8448" + OWN + b"-b7ad6b7169203331-01\r\n\r\n"
)
VARIED_ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n"
    b'ETag: "' + OWN + b'"\r\nX-Served: ' + OWN + b"\r\n\r\n" + b"a" * 64
)
PLAIN = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      backends:
      - host: 127.0.0.1:9000
"""
POLICY = "policies: {headerModifiers: {response: {set: [{name: x-page, value: '1'}]}}}"
MODIFIES = PLAIN.replace("      backends:", f"      {POLICY}\n      backends:")

_COLLECTOR = "{host: '127.0.0.1:4317'%s}"


def _telemetry(policies: str) -> str:
    """The plain route below frontend policies."""
    return f"\nfrontendPolicies: {{{policies}}}\n" + PLAIN.lstrip("\n")


TRACED = _telemetry(f"tracing: {_COLLECTOR % ', randomSampling: %s'}")
NO_LOG = _telemetry("accessLog: {filter: 'false'}")
OTLP_LOG = _telemetry(f"accessLog: {{otlp: {_COLLECTOR % ''}}}")
LABELS = _telemetry("metrics: {attributes: {add: [{name: tenant, expression: 'request.headers[\"user-agent\"]'}]}}")

_FAR = """
backends:
- name: far
  host: 127.0.0.1:9000
  policies: {http: {version: HTTP%d}}
""" + PLAIN.replace("- host: 127.0.0.1:9000", "- backend: far")
TO_HTTP1, TO_HTTP2 = _FAR % 1, _FAR % 2

SESSION = b"SESSION"
"""Stands for the id that the answer to MCP_HELLO has."""
MCP = PLAIN.replace("- host: 127.0.0.1:9000", "- mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9000}}]}")
MCP_RULE = MCP.replace(
    "      backends:",
    """      policies: {mcp: {authorization: {policy: {matchExpressions: ['mcp.tool.name == "find"']}}}}
      backends:""",
)
MCP_SEVERAL = MCP.replace("[{name: one", "[{name: two, static: {host: 127.0.0.2, port: 9000}}, {name: one")
"""Calls go to the target whose connection is opened last."""


def _mcp_request(content: bytes, lines: bytes = b"") -> bytes:
    return (
        b"POST /mcp HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: load/1.0\r\nContent-Type: application/json\r\n"
        b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        b"%bContent-Length: %d\r\n\r\n%b" % (lines, len(content), content)
    )


def _mcp_answer(result: bytes, lines: bytes = b"") -> bytes:
    content = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result
    head = b"HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: application/json\r\n"
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (head, lines, len(content), content)


MCP_HELLO = _mcp_request(
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"load","version":"1"}}}'
)
MCP_HELLO_ANSWER = _mcp_answer(
    b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"origin","version":"1"}}',
    b"Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\n",
)


def _mcp_call(tool: bytes) -> bytes:
    return _mcp_request(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":{"query":"report"}}}' % tool,
        b"Mcp-Session-Id: " + SESSION + b"\r\n",
    )


_ITEM = b'{"id":%d,"name":"item","text":"' + b"t" * 1950 + b'","tags":["a","b"]}'


def _items(size: int) -> bytes:
    """A list in JSON of about so many bytes, of what is usual."""
    return b"[" + b",".join(_ITEM % number for number in range(size // 2000)) + b"]"


def _posted(path: bytes, content: bytes, kind: bytes) -> bytes:
    lines = b"Host: shop.example\r\nTE: trailers\r\nContent-Type: %b\r\nContent-Length: %d" % (kind, len(content))
    return b"POST %b HTTP/1.1\r\n%b\r\n\r\n%b" % (path, lines, content)


def _field_of(number: int, value: bytes) -> bytes:
    """A field of protobuf with a length."""
    size, length = len(value), b""
    while size > 0x7F:
        size, length = size >> 7, length + bytes([size & 0x7F | 0x80])
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def _grpc_of(message: bytes) -> bytes:
    content = b"\0" + len(message).to_bytes(4, "big") + message
    return _posted(b"/lf.a2a.v1.A2AService/SendMessage", content, b"application/grpc")


JSON_READ = PLAIN.replace(
    "      backends:",
    """      policies:
        authorization: {policy: {matchExpressions: ['json(request.body).items.size() > 1']}}
      backends:""",
)
JSON_LARGE = _posted(b"/catalog", b'{"items":%b}' % _items(2_000_000), b"application/json")
MCP_LARGE = _mcp_request(
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"items":%b}}}'
    % _items(1_000_000),
    b"Mcp-Session-Id: " + SESSION + b"\r\n",
)
A2A_RULE = PLAIN.replace(
    "      backends:",
    """      policies: {authorization: {action: Deny, policy: {matchExpressions: ['a2a.method == "tasks/cancel"']}}}
      backends:""",
).replace("- host: 127.0.0.1:9000", "- a2a: {host: 127.0.0.1, port: 9000}")
A2A_PART = _field_of(5, _field_of(1, b"t" * 500))
A2A_LARGE = _grpc_of(_field_of(2, _field_of(1, b"m") + A2A_PART * 2000))
GRPC_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nContent-Length: 5\r\n\r\n" + bytes(5)

A2A_CALL = _posted(
    b"/", b'{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"parts":[]}}}', b"application/json"
)
A2A_EVENT = (
    b'data: {"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update","taskId":"t","contextId":"c",'
    b'"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"' + b"t" * 500 + b'"}]}}}\n\n'
)
LLM = PLAIN.replace(
    "- host: 127.0.0.1:9000",
    "- ai: {provider: {host: 127.0.0.1, port: 9000, custom: {formats: [{type: Messages}]}}}",
)
LLM_CALL = _posted(
    b"/v1/chat/completions",
    b'{"model":"m","stream":true,"messages":[{"role":"user","content":"report"}]}',
    b"application/json",
)


def _streamed(events: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return head % len(events) + events


def _llm_event(kind: bytes, fields: bytes) -> bytes:
    return b'event: %b\ndata: {"type":"%b",%b}\n\n' % (kind, kind, fields)


LLM_STREAM = _streamed(
    _llm_event(b"message_start", b'"message":{"id":"m1","model":"m","usage":{"input_tokens":3}}')
    + _llm_event(b"content_block_start", b'"index":0,"content_block":{"type":"text","text":""}')
    + _llm_event(b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"word "}') * 2000
    + _llm_event(b"content_block_stop", b'"index":0')
    + _llm_event(b"message_delta", b'"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2000}')
    + _llm_event(b"message_stop", b'"x":0')
)

MCP_CALLED = _mcp_answer(b'{"content":[{"type":"text","text":"three documents"}],"isError":false}')

AT_ONCE = 5
"""Requests of HTTP/2 that come in one piece, each on a stream of its own."""
_FIRST = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\1\0" + b"\0\0\4\x08\0\0\0\0\0\x7f\xff\0\0"
"""256 streams, and a window of the connection for all that is answered."""
MESSAGE = b"\0\0\0\0\x40" + b"m" * 64


Frames = Callable[[int], bytes]
"""What is sent on a stream of this number."""


def _field(name: bytes, value: bytes) -> bytes:
    """RFC 7541 6.2.2: a literal without indexing, with a name of its own."""
    return b"\0%c%b%c%b" % (len(name), name, len(value), value)


def _fields(*pairs: tuple[bytes, bytes]) -> bytes:
    return b"".join(_field(*pair) for pair in pairs)


_ASKED = ((b":scheme", b"http"), (b":authority", b"shop.example"), (b":path", b"/catalog/items?page=2"))
_AGENT = (b"user-agent", b"load/1.0")
H2_GET = _fields((b":method", b"GET"), *_ASKED, _AGENT, (b"accept", b"*/*"))
H2_CALL = _fields(
    *((b":method", b"POST"), *_ASKED, _AGENT), *((b"content-type", b"application/grpc"), (b"te", b"trailers"))
)
H2_ANSWER = _fields(
    *((b":status", b"200"), (b"server", b"origin")), *((b"content-type", b"text/plain"), (b"content-length", b"64"))
)
H2_CALLED = _fields((b":status", b"200"), (b"content-type", b"application/grpc"))
H2_STATUS = _fields((b"grpc-status", b"0"))


def _frame(kind: int, flags: int, payload: bytes) -> tuple[bytes, bytes]:
    """What stands before the number of its stream, and behind it."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)), payload


def _numbered(*frames: tuple[bytes, bytes]) -> Frames:
    """Frames of one stream, for any number: made cheaply, for it is counted too."""
    pieces = [frames[0][0]]
    for (_, payload), following in zip(frames, [*frames[1:], (b"", b"")], strict=True):
        pieces.append(payload + following[0])
    return lambda number: number.to_bytes(4, "big").join(pieces)


h2_get = _numbered(_frame(1, 5, H2_GET))
h2_call = _numbered(_frame(1, 4, H2_CALL), _frame(0, 1, MESSAGE))
h2_answer = _numbered(_frame(1, 4, H2_ANSWER), _frame(0, 1, b"a" * 64))
h2_called = _numbered(_frame(1, 4, H2_CALLED), _frame(0, 0, MESSAGE), _frame(1, 5, H2_STATUS))

SCENARIOS: dict[str, tuple[str, bytes | Frames, bytes | Frames, bool]] = {
    # name: configuration, request, response (of HTTP/1, or frames), whether `headerModifiers` is a step that waits
    "get": (PLAIN, GET, ANSWER, False),
    "varied": (PLAIN, VARIED_GET, VARIED_ANSWER, False),
    "same": (PLAIN, VARIED_GET, VARIED_ANSWER, False),
    "post": (PLAIN, POST, ANSWER, False),
    "chunks": (PLAIN, GET, CHUNKS, False),
    "response step": (MODIFIES, GET, ANSWER, False),
    "waits": (MODIFIES, GET, ANSWER, True),
    "no log": (NO_LOG, GET, ANSWER, False),
    "otlp log": (OTLP_LOG, GET, ANSWER, False),
    "labels": (LABELS, GET, ANSWER, False),
    "unsampled": (TRACED % "'0.000000001'", GET, ANSWER, False),
    "traced": (TRACED % "'true'", GET, ANSWER, False),
    "2 to 1": (TO_HTTP1, h2_get, ANSWER, False),
    "1 to 2": (TO_HTTP2, GET, h2_answer, False),
    "2 to 2": (TO_HTTP2, h2_get, h2_answer, False),
    "grpc": (TO_HTTP2, h2_call, h2_called, False),
    "mcp": (MCP, _mcp_call(b"find"), MCP_CALLED, False),
    "mcp rule": (MCP_RULE, _mcp_call(b"find"), MCP_CALLED, False),
    "json large": (JSON_READ, JSON_LARGE, ANSWER, False),
    "mcp large": (MCP_RULE, MCP_LARGE, MCP_CALLED, False),
    "a2a large": (A2A_RULE, A2A_LARGE, GRPC_ANSWER, False),
    "a2a answer": (A2A_RULE, A2A_CALL, _streamed(A2A_EVENT * 1500), False),
    "llm stream": (LLM, LLM_CALL, LLM_STREAM, False),
    "mcp several": (MCP_SEVERAL, _mcp_call(b"one_find"), MCP_CALLED, False),
}
LARGE = ("json large", "mcp large", "a2a large", "a2a answer", "llm stream")
"""Requests of one or two megabytes, which policies read, and such answers."""
READ = 65_536
"""Bytes of an answer that are read at a time."""


def run(name: str, requests: int) -> None:
    """In the process that is counted: send `requests` requests over one connection."""
    from dataplane.filters.registry import ROWS
    from dataplane.net.writes import Writes
    from tests.fakes.memory_proxy import MemoryProxy

    configuration, request, response, waits = SCENARIOS[name]
    turn: list[Callable[[], None]] = []
    rows = _waiting_rows() if waits else ROWS
    proxy = MemoryProxy(configuration, rows, writes=Writes(turn.append))
    client = proxy.connect()

    def end_turn() -> None:
        while turn:
            calls, turn[:] = turn[:], ()
            for call in calls:
                call()

    if not isinstance(request, bytes):
        client.send(_FIRST + _SETTINGS)
        end_turn()
    elif SESSION in request:
        client.send(MCP_HELLO)
        end_turn()
        for upstream in proxy.connector.upstreams:
            upstream.answer(MCP_HELLO_ANSWER)
        end_turn()
        found = re.search(rb"mcp-session-id: (\S+)", client.take())
        request = request.replace(SESSION, found[1] if found else b"")
    at_once = 1 if isinstance(request, bytes) else AT_ONCE
    for first in range(0, requests, at_once):
        numbers = range(2 * first + 1, 2 * (first + at_once), 2)
        own = b"%012x" % first if name == "varied" else OWN
        client.send(_said(request, numbers, own))
        end_turn()
        if isinstance(response, bytes):
            for upstream in (each for each in proxy.connector.upstreams if each.received):
                answer = _said(response, numbers, own)
                upstream.answer(answer[:READ])
                for at in range(READ, len(answer), READ):
                    end_turn()
                    upstream.send(answer[at : at + READ])
        else:
            upstream = proxy.upstream
            if not first:
                upstream.answer(_SETTINGS)
                end_turn()
            upstream.answer(_said(response, numbers, own))
        end_turn()
        _look_at(name, client.received, request)
        for each in (client, *proxy.connector.upstreams):
            each.received = b""
            each.writes.clear()
        if not first // at_once % 64:
            proxy.context.access_log.close()
            proxy.lines.clear()
            _encode(getattr(proxy, "exported", []))  # a tree to compare with may be older than telemetry


def _encode(records: list[Any]) -> None:
    """What exporters do of the work, but for the sending. (Any: records of traces or logs.)"""
    if not records:
        return
    from dataplane.export.otlp import Traces
    from dataplane.export.otlp_logs import Logs

    spans = [each for each in records if hasattr(each, "spans")]
    lines = [each for each in records if not hasattr(each, "spans")]
    for signal, of in ((Traces(), spans), (Logs(), lines)):
        if of:
            signal.encode(of)
    records.clear()


def _said(what: bytes | Frames, numbers: range, own: bytes) -> bytes:
    """A message of HTTP/1, or frames on these streams."""
    return what.replace(OWN, own) if isinstance(what, bytes) else b"".join([what(number) for number in numbers])


def _look_at(name: str, answer: bytes, request: bytes | Frames) -> None:
    """Whether it was an answer of 200, or as many contents as there were requests."""
    if isinstance(request, bytes):
        holds = answer.startswith(b"HTTP/1.1 200")
    else:
        holds = answer.count(MESSAGE if request is h2_call else b"a" * 64) == AT_ONCE
    if not holds:
        raise SystemExit(f"{name}: no answer: {answer!r}")


def _waiting_rows() -> Any:
    from dataplane.chain.filter import STEP, Env, Filter, Row

    class Turn:
        """Awaitable: gives up one turn of the loop."""

        def __await__(self) -> Any:
            yield None

    async def wait(_: Any) -> None:
        await Turn()

    def build(_: Any, __: Env) -> Filter:
        hook: Callable[[Any], Awaitable[None]] = wait
        return Filter("waits", request=hook)

    return (Row("header_modifiers", build, STEP, "benchmark: waits, and does nothing"),)


def count(tree: Path, name: str, requests: int) -> int:
    """Instructions of one run in `tree`."""
    code = f"import runpy, sys; sys.path.insert(0, '.'); m = runpy.run_path({str(Path(__file__).resolve())!r})"
    command = [
        *("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
        *(sys.executable, "-c", f"{code}; m['run']({name!r}, {requests})"),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    match = re.search(r"I\s+refs:\s+([0-9,]+)", done.stderr)
    if done.returncode or match is None:
        raise SystemExit(f"{name} in {tree}: {done.stderr[-2000:]}")
    return int(match[1].replace(",", ""))


def per_request(tree: Path, name: str, requests: int) -> float:
    """Instructions of one request."""
    warm = WARM
    if name in LARGE:
        warm, requests = WARM_LARGE, min(requests, LARGE_AT_MOST)
    return (count(tree, name, warm + requests) - count(tree, name, warm)) / requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--tree", type=Path, help="another checkout, to compare with")
    parser.add_argument("--requests", type=int, default=1000, help="requests by which the two runs differ")
    options = parser.parse_args()
    for name in options.scenarios or SCENARIOS:
        here = per_request(HERE, name, options.requests)
        if options.tree is None:
            print(f"{name:14} {here:9.0f}", flush=True)
            continue
        there = per_request(options.tree.resolve(), name, options.requests)
        print(f"{name:14} {here:9.0f}  there {there:9.0f}  ratio {here / there:.3f}", flush=True)


if __name__ == "__main__":
    main()
