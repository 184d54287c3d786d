"""Hostile clients and servers of MCP and A2A, as rows (`streams.Row`)."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Final

import dataplane.backends.mcp.serving  # noqa: F401  # workers have it before a table has MCP servers
from tests.hostile.streams import (
    CLIENT,
    COMMAS,
    ENDPOINT,
    H1,
    KEYS,
    MIB,
    NESTED,
    Row,
    Source,
    again,
    numbered,
    only,
    request,
    sized,
)
from tests.hostile.world import EVIL_PORT

_FILE: Final = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: polite
      hostnames: [polite.test]
      backends: [{host: 127.0.0.1:9000}]
    - name: hostile
      hostnames: [a]
      policies: {%s}
      backends: [{%s}]
"""
_RULES: Final = (
    "mcp: {authorization: {action: Deny, policy: {matchExpressions: ["
    '\'mcp.tool.name == "x" || mcp.resource.name == "y" || mcp.tool.arguments.path == "z"\']}}}'
)
_ONE: Final = "mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: %d}}]}"
_TWO: Final = (
    "mcp: {failureMode: FailOpen, targets: [{name: one, static: {host: 127.0.0.1, port: %d}},"
    " {name: two, static: {host: 127.0.0.1, port: 9001}}]}"
)
MCP: Final = _FILE % ("", _ONE % 9001)
JUDGED: Final = _FILE % (_RULES, _ONE % 9001)
SEVERAL: Final = _FILE % (_RULES, _TWO % 9001)
EVIL: Final = _FILE % ("", _ONE % EVIL_PORT)
EVIL_JUDGED: Final = _FILE % (_RULES, _ONE % EVIL_PORT)
EVIL_SEVERAL: Final = _FILE % ("", _TWO % EVIL_PORT)
A2A: Final = _FILE % ("", "a2a: {host: 127.0.0.1, port: 9001}")
A2A_JUDGED: Final = _FILE % (
    "authorization: {action: Deny, policy: {matchExpressions: ['a2a.method == \"tasks/cancel\"']}}",
    "a2a: {host: 127.0.0.1, port: 9001}",
)
EVIL_A2A: Final = _FILE % ("", f"a2a: {{host: 127.0.0.1, port: {EVIL_PORT}}}")

# --- messages

_TAKES: Final = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
_META: Final = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'


def mcp(method: bytes, params: bytes = b"", name: bytes = b"", lines: bytes = b"", extra: bytes = b"") -> bytes:
    """A request of the revision without sessions: it needs none that was given before."""
    lines += b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %b\r\n" % method
    if name:
        lines += b"Mcp-Name: %b\r\n" % name
    parts = b",".join(each for each in (_META, params) if each)
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{%b}%b}' % (method, parts, extra)
    return request(method=b"POST", lines=_TAKES + lines, body=body)


def posted(body: bytes, lines: bytes = b"") -> bytes:
    return request(method=b"POST", lines=_TAKES + lines, body=body)


def call(arguments: bytes, name: bytes = b"add") -> bytes:
    return mcp(b"tools/call", b'"name":"%b","arguments":%b' % (name, arguments), name)


SMALL: Final = call(b'{"path":"/a"}')
LIST: Final = mcp(b"tools/list")
MANY: Final = b",".join(b'"k%d":1' % number for number in range(170_000))
NAMES: Final = b"{" + b",".join(b'"k%d":1' % number for number in range(5_500)) + b"}"
TWICE: Final = b'{"jsonrpc":"2.0","id":1,' + b'"method":"ping",' * 100_000 + b'"params":{}}'
IDS: Final = b'{"jsonrpc":"2.0",' + b'"id":1,' * 250_000 + b'"method":"ping"}'
BATCH: Final = b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 48_000) + b"]"
HELLO: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}'
)
DOTS: Final = b"file:///" + b"a/../" * 380_000
CODES: Final = b"file:///" + b"%2e%2e/" * 270_000
LONG: Final = b"tools/call" + b" " * 1_900_000


def stream(event: bytes) -> Source:
    """An answer of events without end."""
    return after(b"", event)


def after(first: bytes, event: bytes) -> Source:
    """The same, with another event at its beginning."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + first
    many = event * max(1, MIB // len(event))
    return lambda: chain((head,), repeat(many))


def json(body: bytes) -> Source:
    return only(sized(body).replace(b"\r\n\r\n", b"\r\nContent-Type: application/json\r\n\r\n", 1))


def result(value: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"result":%b}' % value


TOOLS: Final = b'{"tools":[' + b",".join(b'{"name":"t%d","inputSchema":{}}' % n for n in range(10_000)) + b"]}"
TINY: Final = b'{"tools":[' + b",".join([b'{"name":"t"}'] * 300_000) + b"]}"
NOTE: Final = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}\n\n'
ASKING: Final = b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'
UPDATED: Final = b'data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}\n\n'
DOTTED: Final = b"file:///" + b"a/../" * 1600
URIS: Final = b",".join(b'"one+%b%d"' % (DOTTED, number) for number in range(220))
ASKS: Final = b'"notifications":{"resourceSubscriptions":[%b]}'
LISTEN: Final = mcp(b"subscriptions/listen", ASKS % b'"a:b"')
LISTEN_OF_ONE: Final = mcp(b"subscriptions/listen", ASKS % b'"one+a:b"')
HEARD: Final = b'data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":%b}\n\n' % (
    b'{"notifications":{"resourceSubscriptions":["a:b"]}}'
)
CARD: Final = b'{"url":"http://x/","skills":[' + b",".join([b'{"id":"s"}'] * 20_000) + b"]}"
STATE: Final = (
    b'data: {"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"t","status":{"state":"working"}}}\n\n'
)


def a2a(params: bytes) -> bytes:
    body = b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":%b}' % params
    return request(method=b"POST", lines=b"Content-Type: application/json\r\n", body=body)


def over_grpc(method: bytes, message: bytes) -> bytes:
    """A call of gRPC, one message."""
    body = b"\0" + len(message).to_bytes(4, "big") + message
    lines = b"Content-Type: application/grpc\r\nTE: trailers\r\n"
    return request(b"/lf.a2a.v1.A2AService/" + method, method=b"POST", lines=lines, body=body)


def counted(number: int, value: bytes) -> bytes:
    """A field of protobuf with a length."""
    size, length = len(value), b""
    while size > 0x7F:
        size, length = size >> 7, length + bytes([size & 0x7F | 0x80])
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def frames(message: bytes) -> Source:
    """An answer of messages of gRPC without end."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\n\r\n"
    many = (b"\0" + len(message).to_bytes(4, "big") + message) * max(1, MIB // (len(message) + 5))
    return lambda: chain((head,), repeat(many))


WELL_KNOWN: Final = b"/.well-known/agent-card.json"
ENTRIES: Final = counted(2, counted(6, counted(1, counted(2, b"\x08\x01" * 200)) * 4000))
PARTS: Final = counted(2, counted(5, b"") * 4000)
TASK: Final = counted(1, counted(3, b"\x08\x02" * 4000))

SENT: Final = a2a(b'{"message":{"messageId":"m","role":"user","parts":[]}}')

ROWS: Final = (
    # --- clients of MCP
    Row("MCP calls, pipelined", CLIENT, H1, again(SMALL), MCP),
    Row("MCP calls for rules, pipelined", CLIENT, H1, again(SMALL), JUDGED),
    Row("MCP calls of two servers, pipelined", CLIENT, H1, again(call(b"{}", b"one_add")), SEVERAL),
    Row("MCP calls over 32 connections", CLIENT, H1, again(SMALL), JUDGED, connections=32),
    Row("MCP calls whose answers nobody reads", CLIENT, H1, again(SMALL), JUDGED, manner={"reads": 0}),
    Row("an MCP message, a byte in each read", CLIENT, H1, only(SMALL), JUDGED, manner={"piece": 1, "pieces": 32}),
    Row("MCP messages of 2 MB", CLIENT, H1, again(call(b'"' + b"a" * 1_900_000 + b'"')), JUDGED),
    Row("MCP params with 170,000 keys", CLIENT, H1, again(mcp(b"tools/call", MANY, b"add")), JUDGED),
    Row("MCP params with 170,000 keys for a list of two", CLIENT, H1, again(mcp(b"tools/list", MANY)), SEVERAL),
    Row("MCP envelopes with 170,000 keys", CLIENT, H1, again(mcp(b"ping", extra=b"," + MANY)), JUDGED),
    Row("MCP envelopes with 100,000 methods", CLIENT, H1, again(posted(TWICE)), JUDGED),
    Row("MCP envelopes with 250,000 ids", CLIENT, H1, again(posted(IDS)), JUDGED),
    Row("MCP arguments of 64 KB that rules read", CLIENT, H1, again(call(NAMES)), JUDGED),
    Row("MCP arguments of 2 MB that rules would read", CLIENT, H1, again(call(KEYS[:1_800_000] + b"}")), JUDGED),
    Row("MCP arguments, a million levels deep", CLIENT, H1, again(call(NESTED)), JUDGED),
    Row("MCP messages, a million levels deep", CLIENT, H1, again(posted(NESTED)), JUDGED),
    Row("MCP messages with 190,000 elements", CLIENT, H1, again(posted(COMMAS)), JUDGED),
    Row("MCP batches of 48,000", CLIENT, H1, again(posted(BATCH)), JUDGED),
    Row("MCP messages that are not UTF-8", CLIENT, H1, again(posted(b'{"a":"' + b"\xff" * 1_900_000)), JUDGED),
    Row(
        "MCP references of 2 MB in dot segments",
        CLIENT,
        H1,
        again(mcp(b"completion/complete", b'"ref":{"type":"ref/resource","uri":"%b"}' % DOTS)),
        JUDGED,
    ),
    Row(
        "MCP references of 2 MB in percent codes",
        CLIENT,
        H1,
        again(mcp(b"completion/complete", b'"ref":{"type":"ref/resource","uri":"%b"}' % CODES)),
        JUDGED,
    ),
    Row(
        "MCP methods of 2 MB",
        CLIENT,
        H1,
        again(posted(b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % LONG, b"MCP-Protocol-Version: 2026-07-28\r\n")),
        JUDGED,
    ),
    Row("MCP sessions, begun without end", CLIENT, H1, again(posted(HELLO)), MCP),
    Row("MCP sessions of two servers, begun without end", CLIENT, H1, again(posted(HELLO)), SEVERAL),
    Row(
        "MCP session ids of 8 KB that are none",
        CLIENT,
        H1,
        numbered(lambda n: posted(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"Mcp-Session-Id: %08000d\r\n" % n)),
        MCP,
    ),
    Row(
        "MCP subscriptions to 220 resources of 8 KB",
        CLIENT,
        H1,
        again(mcp(b"subscriptions/listen", ASKS % URIS)),
        SEVERAL,
    ),
    Row(
        "MCP subscriptions to 220 resources of 8 KB, on 32 connections",
        CLIENT,
        H1,
        again(mcp(b"subscriptions/listen", ASKS % URIS)),
        SEVERAL,
        connections=32,
    ),
    Row(
        "MCP subscriptions to 190,000 resources",
        CLIENT,
        H1,
        again(mcp(b"subscriptions/listen", ASKS % b",".join([b'"a:b"'] * 190_000))),
        JUDGED,
    ),
    # --- servers of MCP
    Row("MCP notices without end for rules", ENDPOINT, H1, stream(UPDATED), EVIL_JUDGED, asks=SMALL),
    Row("MCP notices of a subscription without end", ENDPOINT, H1, after(HEARD, UPDATED), EVIL_JUDGED, asks=LISTEN),
    Row("MCP acknowledgements without end", ENDPOINT, H1, stream(HEARD), EVIL_SEVERAL, asks=LISTEN_OF_ONE),
    Row("MCP subscriptions without acknowledgement", ENDPOINT, H1, stream(b":\n\n"), EVIL_JUDGED, asks=LISTEN),
    Row("MCP comments without end", ENDPOINT, H1, stream(b":\n\n"), EVIL, asks=SMALL, connections=32),
    Row("MCP comments without end for rules", ENDPOINT, H1, stream(b":\n\n"), EVIL_JUDGED, asks=SMALL, connections=32),
    Row(
        "MCP comments of one of two servers without end",
        ENDPOINT,
        H1,
        stream(b":\n\n"),
        EVIL_SEVERAL,
        asks=call(b"{}", b"one_add"),
        connections=32,
    ),
    Row(
        "MCP comments without end in place of a list",
        ENDPOINT,
        H1,
        stream(b":\n\n"),
        EVIL_SEVERAL,
        asks=LIST,
        connections=32,
    ),
    Row("MCP events without end", ENDPOINT, H1, stream(NOTE), EVIL, asks=SMALL),
    Row("MCP events without end for rules", ENDPOINT, H1, stream(NOTE), EVIL_JUDGED, asks=SMALL),
    Row(
        "MCP events of one of two servers without end",
        ENDPOINT,
        H1,
        stream(ASKING),
        EVIL_SEVERAL,
        asks=call(b"{}", b"one_add"),
    ),
    Row("MCP events without end in place of a list", ENDPOINT, H1, stream(NOTE), EVIL_SEVERAL, asks=LIST),
    Row("MCP events of an id alone without end", ENDPOINT, H1, stream(b"id: 1\ndata:\n\n"), EVIL_SEVERAL, asks=LIST),
    Row("lines of events without end", ENDPOINT, H1, stream(b"retry: 1\n"), EVIL_SEVERAL, asks=LIST),
    Row("an MCP event without end", ENDPOINT, H1, stream(b"data: " + b"a" * 1000), EVIL_SEVERAL, asks=LIST),
    Row("an MCP event of lines without end", ENDPOINT, H1, stream(b"data: a\n"), EVIL_SEVERAL, asks=LIST),
    Row(
        "MCP events, a byte in each read",
        ENDPOINT,
        H1,
        stream(NOTE),
        EVIL_SEVERAL,
        asks=LIST,
        manner={"piece": 1, "pieces": 32},
    ),
    Row("10,000 MCP tools for rules", ENDPOINT, H1, json(result(TOOLS)), EVIL_JUDGED, asks=LIST * 4),
    Row("10,000 MCP tools of one of two servers", ENDPOINT, H1, json(result(TOOLS)), EVIL_SEVERAL, asks=LIST * 4),
    Row("300,000 MCP tools of one name", ENDPOINT, H1, json(result(TINY)), EVIL_JUDGED, asks=LIST * 4),
    Row("MCP results with 170,000 keys", ENDPOINT, H1, json(result(b"{%b}" % MANY)), EVIL_SEVERAL, asks=LIST * 4),
    Row("MCP results, a million levels deep", ENDPOINT, H1, json(result(NESTED)), EVIL_SEVERAL, asks=LIST * 4),
    Row("MCP results without end", ENDPOINT, H1, again(b"1", b"HTTP/1.1 200 OK\r\n\r\n"), EVIL_SEVERAL, asks=LIST * 4),
    # --- A2A
    Row("A2A messages, pipelined", CLIENT, H1, again(SENT), A2A),
    Row("A2A messages for rules, pipelined", CLIENT, H1, again(SENT), A2A_JUDGED),
    Row("A2A params with 170,000 keys", CLIENT, H1, again(a2a(b"{%b}" % MANY)), A2A_JUDGED),
    Row("A2A params with 4,000 keys", CLIENT, H1, again(a2a(NAMES[:46_000] + b'0":1}')), A2A_JUDGED),
    Row("A2A params, a million levels deep", CLIENT, H1, again(a2a(NESTED)), A2A_JUDGED),
    Row("A2A texts of 2 MB", CLIENT, H1, again(a2a(b'{"a":"' + rb"\u0041" * 300_000 + b'"}')), A2A_JUDGED),
    Row(
        "A2A metadata of gRPC with a million fields", CLIENT, H1, again(over_grpc(b"SendMessage", ENTRIES)), A2A_JUDGED
    ),
    Row("A2A messages of gRPC with 4,000 parts", CLIENT, H1, again(over_grpc(b"SendMessage", PARTS)), A2A_JUDGED),
    Row(
        "A2A messages of gRPC with 4,000 parts, on 32 connections",
        CLIENT,
        H1,
        again(over_grpc(b"SendMessage", PARTS)),
        A2A_JUDGED,
        connections=32,
    ),
    Row("A2A messages of gRPC without end", ENDPOINT, H1, frames(TASK), EVIL_A2A, asks=SENT),
    Row("A2A messages of gRPC, empty, without end", ENDPOINT, H1, frames(b""), EVIL_A2A, asks=SENT),
    Row("A2A messages whose answers nobody reads", CLIENT, H1, again(SENT), A2A_JUDGED, manner={"reads": 0}),
    Row("A2A messages over 32 connections", CLIENT, H1, again(SENT), A2A_JUDGED, connections=32),
    Row("A2A cards, a million levels deep", ENDPOINT, H1, json(NESTED), EVIL_A2A, asks=request(WELL_KNOWN) * 8),
    Row("A2A states without end", ENDPOINT, H1, stream(STATE), EVIL_A2A, asks=SENT),
    Row("A2A events of lines without end", ENDPOINT, H1, stream(b"data: a\n"), EVIL_A2A, asks=SENT),
    Row("A2A results of 190,000 elements", ENDPOINT, H1, json(result(COMMAS)), EVIL_A2A, asks=SENT * 4),
    Row(
        "A2A cards of 200 KB",
        ENDPOINT,
        H1,
        json(CARD),
        EVIL_A2A,
        asks=request(b"/.well-known/agent-card.json") * 8,
    ),
)
