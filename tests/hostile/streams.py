"""The table of hostile streams: who sends what to a worker, as data. `test_hostile_streams` drives each.

A row is a peer that keeps all rules of its protocol, or breaks some, in the way that costs the worker most. The sources
give bytes without end where the peer would; `world` ends a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, cycle, repeat
from typing import Any, Final

from dataplane.http.h2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTING,
    SETTINGS,
    WINDOW_UPDATE,
)
from tests.fakes.h2_wire import OPENING, data, frame, headers, literal
from tests.hostile.peers import Hostile1, Hostile2, Peer
from tests.hostile.world import EVIL_PORT, HOSTILE_PEER, Wire, World

CLIENT, ENDPOINT = "client", "endpoint"
H1, H2 = "HTTP/1.1", "HTTP/2"

_FILE: Final = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: polite
      hostnames: [polite.test]
      backends: [{{host: 127.0.0.1:9000}}]
    - name: hostile
      hostnames: [a]
      matches: {matches}
      policies: {{{policies}http: {{version: {version}}}}}
      backends: [{{host: "127.0.0.1:{port}"}}]
"""


def _file(policies: str = "", version: str = "HTTP1", matches: str = "[{}]", port: int = 9001) -> str:
    return _FILE.format(policies=policies and policies + ", ", version=version, matches=matches, port=port)


PLAIN: Final = _file()
READS_BODY: Final = _file('authorization: {policy: {matchExpressions: ["size(request.body) >= 0"]}}')
READS_JSON: Final = _file('authorization: {policy: {matchExpressions: ["json(request.body) == 1"]}}')
READS_QUERY: Final = _file(
    "authorization: {policy: {matchExpressions: [\"request.pathAndQuery.query('none') == ''\","
    " \"request.pathAndQuery.addQuery('a', 'b') == ''\"]}}"
)
READS_HEADERS: Final = _file('authorization: {policy: {matchExpressions: ["request.headers.size() > 9999"]}}')
READS_COOKIE: Final = _file("transformation: {request: {set: [{name: x-c, value: \"request.headers.cookie('zz')\"}]}}")
PARTS: Final = 32
"""Conditions of one policy that each read the same text."""


def _parts(condition: str) -> str:
    conditions = ", ".join(f"\"{condition} != '{number}'\"" for number in range(PARTS))
    return _file(f"authorization: {{policy: {{matchExpressions: [{conditions}]}}}}")


COOKIE_PARTS: Final = _parts("request.headers.cookie('last')")
FORM_PARTS: Final = _parts("form.decode(request.headers['x-text'])['last']")
QUERY_PARTS: Final = _parts("request.headers['x-text'].query('last')")
JSON_PARTS: Final = _parts("string(json(request.headers['x-text'])[0])")
HEADER_PARTS: Final = _parts("request.headers.raw()['x-text'][0]")
SLOW_EXPRESSION: Final = _file(
    "authorization: {policy: {matchExpressions: [\"request.path.split('').all(c, c != 'none')\","
    " \"request.method == 'X'\"]}}"
)
SETS: Final = 16
"""Headers that one policy may set."""
_WALK: Final = "request.path.split('').all(c, c != 'none')"
"""15 ms or so for a target of 32 KB: less than an evaluation may take."""
_WALK_HEADER: Final = "response.headers['x-0'].split('').all(c, c != 'none')"


def _times(form: str, expression: str, most: int = PARTS) -> str:
    """A list of YAML in one line: `form` so many times, each with the expression and its number."""
    return "[" + ", ".join(form.format(expression, number) for number in range(most)) + "]"


def _answer_walks(expression: str, **where: Any) -> str:
    steps = _times('{{name: x-{1}, value: "string({0})"}}', expression, SETS)
    return _file(f"transformation: {{response: {{set: {steps}}}}}", **where)


def _rule(action: str, form: str, expression: str = _WALK) -> str:
    return _file(f"authorization: {{action: {action}, policy: {{matchExpressions: {_times(form, expression)}}}}}")


WALKS: Final = _rule("Allow", '"{0}"')
BODY_WALKS: Final = _rule("Allow", '"{0}"', "string(request.body).split('').all(c, c != 'none')")
WALKS_DENY: Final = _rule("Deny", """"{0} || request.method == '{1}'\"""")
DECODES: Final = _rule("Allow", '"{0}"', "url.decode(string(request.body)) != ''")
DIGESTS: Final = _rule("Allow", '"{0}"', "sha256.encode(request.body) != ''")
ANSWER_WALKS: Final = _answer_walks(_WALK)
_FIELDS: Final = _times('a{1}: "{0}"', _WALK)[1:-1]
LOG_WALKS: Final = PLAIN + f"frontendPolicies: {{accessLog: {{add: {{{_FIELDS}}}}}}}\n"
EVIL1_WALKS: Final = _answer_walks(_WALK_HEADER, port=EVIL_PORT)
EVIL2_WALKS: Final = _answer_walks(_WALK_HEADER, port=EVIL_PORT, version="HTTP2")
BY_QUERY: Final = _file(
    matches="[" + ", ".join(f"{{queryParams: [{{name: q{n}, value: v}}]}}" for n in range(16)) + "]"
)
BY_REGEX: Final = _file(matches='[{path: {type: RegularExpression, value: "/(a+)+b"}}]')
REDIRECT: Final = _file("requestRedirect: {scheme: https, statusCode: 308}").replace(
    '      backends: [{host: "127.0.0.1:9001"}]\n', ""
)
CORS: Final = _file('cors: {allowOrigins: ["https://*.example.com"], exposeHeaders: [x-total]}')
BASIC: Final = _file(
    'basicAuthentication: {realm: r, users: ["bob:$2y$05$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni"]}'
)
JWT: Final = _file(
    'jwtAuthentication: {providers: [{issuer: \'https://i\', jwks: {inline: \'{"keys": [{"kty": "OKP", "crv":'
    ' "Ed25519", "kid": "1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}\'}}]}'
)
TO_H2: Final = _file(version="HTTP2")
JSON_ANSWER: Final = 'transformation: {response: {set: [{name: x-j, value: "string(json(response.body) == 1)"}]}}'
EVIL1: Final = _file(port=EVIL_PORT)
EVIL2: Final = _file(port=EVIL_PORT, version="HTTP2")
EVIL1_JSON: Final = _file(JSON_ANSWER, port=EVIL_PORT)

Source = Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class Row:
    """`side`: CLIENT or ENDPOINT. `source` makes what a client sends, or an endpoint for each request. `connections` of
    a client. Of an endpoint: `asks` is what a client sends that leads to it."""

    name: str
    side: str
    protocol: str
    source: Callable[..., Iterator[bytes]]
    config: str = PLAIN
    connections: int = 1
    asks: bytes = b""
    manner: dict[str, Any] = field(default_factory=dict)
    """How its `Peer` sends and reads."""

    @property
    def label(self) -> str:
        """Unique."""
        return f"{self.side}, {self.protocol}, {self.name}"

    def begin(self, world: World) -> list[Wire]:
        """Connect the hostile peer. The wires that are its own, as far as they are there."""
        if self.side == CLIENT:
            return [world.connect(Peer(self.source(), **self.manner), HOSTILE_PEER) for _ in range(self.connections)]
        hostile = Hostile1 if self.protocol == H1 else Hostile2
        world.endpoints[EVIL_PORT] = lambda: hostile(self.source, **self.manner)  # type: ignore[arg-type]
        asks = self.asks or GET
        return [world.connect(Peer(iter((asks,))), HOSTILE_PEER) for _ in range(self.connections)]


# --- what they send

GET: Final = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LONG_NOWHERE: Final = b"GET /" + b"a" * 32_000 + b" HTTP/1.1\r\nHost: b\r\n\r\n"
NOWHERE: Final = b"GET / HTTP/1.1\r\nHost: b\r\n\r\n"
POST: Final = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED: Final = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MIB: Final = 1 << 20


def changing(
    name: bytes, between: bytes, last: bytes, first: bytes = b"", number: int = 5500, part: bytes = b"p%d=%%41"
) -> Source:
    """Requests with one long header; the same one comes again behind five others."""
    heads = []
    for turn in range(6):
        parts = [part % (10_000 + each + turn) for each in range(number)]
        heads.append(request(lines=b"%b: %b%b\r\n" % (name, first, between.join([*parts, last]))))
    return lambda: cycle(heads)


def again(once: bytes, first: bytes = b"", size: int = MIB) -> Source:
    """`first`, then the same without end, many at a time."""
    many = once * max(1, size // len(once))
    return lambda: chain((first,) if first else (), repeat(many))


def only(*sent: bytes) -> Source:
    return lambda: iter(sent)


def numbered(make: Callable[[int], bytes], first: bytes = b"", at_once: int = 64, most: int = 1 << 40) -> Source:
    """`first`, then one after the other, `at_once` in a piece."""

    def source() -> Iterator[bytes]:
        yield first
        for begin in range(0, most, at_once):
            yield b"".join(make(number) for number in range(begin, begin + at_once))

    return source


def request(target: bytes = b"/", lines: bytes = b"", method: bytes = b"GET", body: bytes = b"") -> bytes:
    sized = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%b %b HTTP/1.1\r\nHost: a\r\n%b%b\r\n%b" % (method, target, sized, lines, body)


def lines(number: int, size: int = 8) -> bytes:
    return b"".join(b"x-%d: %b\r\n" % (each, b"v" * size) for each in range(number))


KEYS: Final = b"{" + b",".join(b'"k%d":1' % number for number in range(180_000)) + b"}"
COMMAS: Final = b"[" + b"1," * 190_000 + b"1]"
NESTED: Final = b"[" * 1_000_000
LONG_NUMBER: Final = b"[" + b"9" * 1_500_000 + b"]"
FLOATS: Final = b"[" + b",".join([b"1.2345678901234567e-300"] * 80_000) + b"]"
ESCAPES: Final = b'["' + rb"\u0041" * 300_000 + b'"]'
ESCAPED: Final = b"%41" * 690_000
SMALL_JSON: Final = b"{" + b",".join(b'"k%d":1' % number for number in range(6_000)) + b"}"
QUERY: Final = b"/?" + b"&".join(b"a%d=1" % number for number in range(4500))
SHORT_QUERY: Final = b"/?" + b"&".join([b"a"] * 16_000)
PERCENT_QUERY: Final = b"/?" + b"&".join([b"%61=%62"] * 4000)
COOKIES: Final = b"Cookie: " + b"; ".join(b"c%d=1" % number for number in range(7000)) + b"\r\n"

# HTTP/2: streams are numbered 1, 3, 5, ...


def h2(fields: Iterable[tuple[bytes, bytes]] = (), path: bytes = b"/", method: bytes = b"GET") -> tuple[Any, ...]:
    pseudo = ((b":method", method), (b":scheme", b"http"), (b":authority", b"a"), (b":path", path))
    return (*pseudo, *fields)


HELLO: Final = PREFACE + OPENING
CLOSED_WINDOW: Final = PREFACE + frame(SETTINGS, 0, 0, SETTING.pack(4, 0)) + OPENING[9:]
OPEN_POST: Final = HELLO + headers(1, h2(method=b"POST"), end=False)
CREDIT: Final = frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4))
CANCEL: Final = (8).to_bytes(4)


def of_stream(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda number: make(1 + 2 * number)


def block(stream: int, encoded: bytes, end: bool = True) -> bytes:
    """A header block as it is, in as many frames as it needs."""
    parts = [encoded[at : at + 16_384] for at in range(0, len(encoded), 16_384)] or [b""]
    found = []
    for at, part in enumerate(parts):
        flags = (END_HEADERS if at == len(parts) - 1 else 0) | (END_STREAM if end and not at else 0)
        found.append(frame(CONTINUATION if at else HEADERS, flags, stream, part))
    return b"".join(found)


def indexed_again(stream: int) -> bytes:
    """A field of 3,900 bytes is put into the table once, then named in a byte each time."""
    pseudo = literal(h2())
    if stream == 1:
        return block(1, pseudo + b"\x40\x01x" + b"\x7f\xbd\x1d" + b"v" * 3900)
    return block(stream, pseudo + b"\xbe" * 15)


def huffman(stream: int) -> bytes:
    """Fields whose values are in Huffman code: "0" has five bits, eight of them five octets of zeros."""
    return block(stream, literal(h2()) + (b"\x00\x01x" + b"\xfd" + bytes(125)) * 40)


def tabled(stream: int) -> bytes:
    """Each head changes the table, so that nothing of it is remembered."""
    fields = b"".join(b"\x40\x04" + b"%04d" % ((stream + n) % 10_000) + b"\x01v" for n in range(95))
    return block(stream, literal(h2()) + fields)


def large(stream: int) -> bytes:
    return block(stream, literal(h2((b"x-%d" % n, b"v" * 120 + b"%d" % stream) for n in range(80))))


def oversized(stream: int) -> bytes:
    fields = h2((b"x-%d" % n, b"v" * 400) for n in range(130))
    return block(stream, literal(fields)) + frame(RST_STREAM, 0, stream, CANCEL)


def settings_of(pairs: int) -> bytes:
    return frame(SETTINGS, 0, 0, SETTING.pack(9, 1) * pairs)


def json_stream(number: int, body: bytes, size: int = 16_384) -> bytes:
    stream = 1 + 2 * number
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    frames = [data(stream, part, at == len(parts) - 1) for at, part in enumerate(parts)]
    return headers(stream, h2(method=b"POST"), end=False) + b"".join(frames)


WINDOWS: Final = frame(SETTINGS, 0, 0, SETTING.pack(4, 0)) + frame(SETTINGS, 0, 0, SETTING.pack(4, 65_535))

# Answers of hostile endpoints.

CHUNKS: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE: Final = b"HTTP/1.1 200 OK\r\n\r\n"
INTERIM: Final = b"HTTP/1.1 103 Early Hints\r\n" + b"link: </a>; rel=preload\r\n" * 100 + b"\r\n"
ANSWER: Final = ((b":status", b"200"),)
HUNDRED: Final = HELLO + CREDIT + b"".join(headers(1 + 2 * number, h2()) for number in range(100))


def sized(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def answered(make: Callable[[int], bytes], first: bytes = b"", most: int = 1 << 40) -> Callable[[int], Iterator[bytes]]:
    """For each request: a head, then the same without end."""

    def script(stream: int) -> Iterator[bytes]:
        once = make(stream)
        yield headers(stream, ANSWER, end=False) + first
        yield from repeat(once * max(1, min(MIB // len(once), most)), 1 if most < 1 << 40 else 1_000_000)

    return script


def instead(make: Callable[[int], bytes], most: int = 1) -> Callable[[int], Iterator[bytes]]:
    """For each request: this, `most` times, in place of an answer."""
    return lambda stream: iter((make(stream) * most,))


def interims(stream: int) -> bytes:
    return headers(stream, ((b":status", b"103"), (b"link", b"</a>" * 50)), end=False)


def many_fields(stream: int) -> bytes:
    return block(stream, literal([(b":status", b"200"), *[(b"x-%d" % n, b"%d" % stream) for n in range(480)]]))


LONG_LINE: Final = b"HTTP/1.1 200 OK\r\nx-0: " + b"v" * 30_000 + b"\r\nContent-Length: 2\r\n\r\nok"
CHUNK_LINE: Final = b"1;" + b"e" * 4000 + b"\r\nx\r\n"

WALKED: Final = (
    (f"{PARTS} conditions", WALKS),
    (f"{PARTS} conditions of a Deny rule", WALKS_DENY),
    (f"{SETS} steps of responses", ANSWER_WALKS),
    (f"{PARTS} fields of the log", LOG_WALKS),
)
ROWS: Final = (
    # --- HTTP/1.1, clients: bodies
    Row("chunks of one byte", CLIENT, H1, again(b"1\r\nx\r\n", CHUNKED)),
    Row(
        "chunks of one byte, content between them",
        CLIENT,
        H1,
        again(b"1\r\nx\r\n" * 500 + b"9c4\r\n" + b"x" * 2500 + b"\r\n", CHUNKED),
    ),
    Row(
        "chunks of one byte for an endpoint of HTTP/2",
        CLIENT,
        H1,
        again(b"1\r\nx\r\n" * 500 + b"9c4\r\n" + b"x" * 2500 + b"\r\n", CHUNKED),
        TO_H2,
    ),
    Row(
        "chunks of one byte for a policy that reads the body",
        CLIENT,
        H1,
        again(b"1\r\nx\r\n" * 500 + b"9c4\r\n" + b"x" * 2500 + b"\r\n", CHUNKED),
        READS_BODY,
    ),
    Row("chunks, a byte in each read", CLIENT, H1, again(b"1\r\nx\r\n", CHUNKED), manner={"piece": 1, "pieces": 32}),
    Row("chunks with extensions of 4 KB", CLIENT, H1, again(CHUNK_LINE, CHUNKED)),
    Row("chunks with leading zeros", CLIENT, H1, again(b"000000000000001\r\nx\r\n", CHUNKED)),
    Row("requests with 100 trailers", CLIENT, H1, again(CHUNKED + b"1\r\nx\r\n0\r\n" + b"x-t: v\r\n" * 100 + b"\r\n")),
    Row(
        "trailers, a byte in each read",
        CLIENT,
        H1,
        only(CHUNKED + b"0\r\n" + b"x-t: v\r\n" * 99),
        manner={"piece": 1, "pieces": 32},
    ),
    Row("trailers without end", CLIENT, H1, again(b"x-t: v\r\n", CHUNKED + b"0\r\n")),
    Row("an upload as fast as it is read", CLIENT, H1, again(b"x" * MIB, POST + b"Content-Length: 9999999999\r\n\r\n")),
    Row(
        "an upload in single bytes",
        CLIENT,
        H1,
        again(b"x" * MIB, POST + b"Content-Length: 9999999999\r\n\r\n"),
        manner={"piece": 1, "pieces": 32},
    ),
    Row("uploads of one byte, pipelined", CLIENT, H1, again(request(method=b"POST", body=b"x"))),
    Row(
        "an upload for an endpoint of HTTP/2",
        CLIENT,
        H1,
        again(b"x" * MIB, POST + b"Content-Length: 9999999999\r\n\r\n"),
        TO_H2,
    ),
    # --- HTTP/1.1, clients: heads
    Row(
        "a head of 64 KB, a byte in each read",
        CLIENT,
        H1,
        only(b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"v" * 65_000),
        manner={"piece": 1, "pieces": 32},
    ),
    Row("a head without end", CLIENT, H1, again(b"x: v\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n")),
    Row("a request line without end", CLIENT, H1, again(b"a" * 1000, b"GET /")),
    Row("bytes that are no HTTP", CLIENT, H1, again(bytes(range(256)))),
    Row("empty lines", CLIENT, H1, again(b"\r\n")),
    Row("heads of 100 headers, pipelined", CLIENT, H1, numbered(lambda n: request(lines=lines(98) + b"x: %d\r\n" % n))),
    Row(
        "heads of 64 KB, pipelined",
        CLIENT,
        H1,
        numbered(lambda n: request(lines=lines(90, 700) + b"x: %d\r\n" % n), at_once=8),
    ),
    Row("header floods: 10,000 headers", CLIENT, H1, only(request(lines=b"a:\r\n" * 10_000))),
    Row(
        "heads of 64 KB for a policy that reads all headers",
        CLIENT,
        H1,
        numbered(lambda n: request(lines=lines(90, 700) + b"x: %d\r\n" % n), at_once=8),
        READS_HEADERS,
    ),
    Row("60 KB of cookies for a policy that looks for one", CLIENT, H1, again(request(lines=COOKIES)), READS_COOKIE),
    Row(
        "60 KB of cookies for 32 conditions",
        CLIENT,
        H1,
        changing(b"cookie", b"; ", b"last=v", number=5000),
        COOKIE_PARTS,
    ),
    Row("60 KB of form in a header for 32 conditions", CLIENT, H1, changing(b"x-text", b"&", b"last=v"), FORM_PARTS),
    Row("60 KB of headers for 32 conditions", CLIENT, H1, changing(b"x-text", b"&", b"last=v"), HEADER_PARTS),
    Row(
        "a query of 1,000 parameters in a header for 32 conditions",
        CLIENT,
        H1,
        changing(b"x-text", b"&", b"last=v", b"/?", number=990),
        QUERY_PARTS,
    ),
    Row(
        "JSON of 4,500 keys in a header for 32 conditions",
        CLIENT,
        H1,
        changing(b"x-text", b",", b'"a":1}]', b'["v",{', number=4500, part=b'"%d":1'),
        JSON_PARTS,
    ),
    Row(
        "60 KB of x-forwarded-for",
        CLIENT,
        H1,
        again(request(lines=b"X-Forwarded-For: " + b"1.2.3.4, " * 6500 + b"1.2.3.4\r\n")),
    ),
    Row("100 lines of forwarding headers", CLIENT, H1, again(request(lines=b"X-Forwarded-For: 1.2.3.4\r\n" * 98))),
    Row(
        "60 KB of Connection names",
        CLIENT,
        H1,
        again(request(lines=b"Connection: " + b"a, " * 20_000 + b"close-not\r\n")),
    ),
    Row(
        "60 KB of Origin for CORS",
        CLIENT,
        H1,
        again(request(lines=b"Origin: https://" + b"a." * 30_000 + b"example.com\r\n")),
        CORS,
    ),
    Row("targets of 32 KB, pipelined", CLIENT, H1, again(request(b"/" + b"a" * 32_000))),
    Row("targets of 32 KB in percent codes", CLIENT, H1, again(request(b"/" + b"%41" * 10_600))),
    Row("targets of 32 KB in dot segments", CLIENT, H1, again(request(b"/" + b"a/../" * 6400))),
    Row("targets of 32 KB for a regular expression", CLIENT, H1, again(request(b"/" + b"a" * 32_000)), BY_REGEX),
    Row("queries of 32 KB for 16 matches", CLIENT, H1, again(request(QUERY)), BY_QUERY),
    Row("queries of 16,000 names", CLIENT, H1, again(request(SHORT_QUERY)), BY_QUERY),
    Row("queries of 32 KB in percent codes", CLIENT, H1, again(request(PERCENT_QUERY)), BY_QUERY),
    Row("queries of 32 KB that an expression reads", CLIENT, H1, again(request(QUERY)), READS_QUERY),
    Row("targets that an expression walks over", CLIENT, H1, again(request(b"/" + b"a" * 32_000)), SLOW_EXPRESSION),
    *(
        Row(f"targets that {what} walk over", CLIENT, H1, again(request(b"/" + b"a" * 32_000)), config)
        for what, config in WALKED[:-1]
    ),
    Row(f"targets that {PARTS} fields of the log walk over", CLIENT, H1, again(LONG_NOWHERE), LOG_WALKS),
    Row(
        f"targets that {PARTS} conditions walk over, on 32 connections",
        CLIENT,
        H1,
        again(request(b"/" + b"a" * 32_000)),
        WALKS,
        connections=32,
    ),
    Row(
        f"targets that {PARTS} fields of the log walk over, on 32 connections",
        CLIENT,
        H1,
        again(LONG_NOWHERE),
        LOG_WALKS,
        connections=32,
    ),
    Row(
        "targets of 32 KB in percent codes, on 32 connections",
        CLIENT,
        H1,
        again(request(b"/" + b"%41" * 10_600)),
        connections=32,
    ),
    Row(
        "60 KB of Connection names, on 32 connections",
        CLIENT,
        H1,
        again(request(lines=b"Connection: " + b"a, " * 20_000 + b"close-not\r\n")),
        connections=32,
    ),
    # --- HTTP/1.1, clients: pipelines
    Row("requests, pipelined", CLIENT, H1, again(GET)),
    Row("requests for nothing, pipelined", CLIENT, H1, again(NOWHERE)),
    Row("requests for a redirect, pipelined", CLIENT, H1, again(GET), REDIRECT),
    Row("requests, pipelined over 16 connections", CLIENT, H1, again(NOWHERE), connections=16),
    Row("chunks of one byte over 32 connections", CLIENT, H1, again(b"1\r\nx\r\n", CHUNKED), connections=32),
    Row("requests that nobody reads the answers of", CLIENT, H1, again(NOWHERE), manner={"reads": 0}),
    Row("requests whose answers are read by the byte", CLIENT, H1, again(NOWHERE), manner={"reads": 1}),
    Row(
        "requests with Expect: 100-continue",
        CLIENT,
        H1,
        again(request(method=b"POST", lines=b"Expect: 100-continue\r\n", body=b"x")),
    ),
    Row("requests in absolute form", CLIENT, H1, again(request(b"http://a/" + b"b" * 100))),
    Row(
        "wrong passwords, pipelined",
        CLIENT,
        H1,
        numbered(lambda n: request(lines=b"Authorization: Basic Ym9iOnd%05d\r\n" % n)),
        BASIC,
    ),
    Row(
        "tokens of 60 KB, pipelined",
        CLIENT,
        H1,
        again(request(lines=b"Authorization: Bearer " + b"e30." + b"YWFh" * 15_000 + b".YWFh\r\n")),
        JWT,
    ),
    # --- HTTP/1.1, clients: JSON
    Row("JSON with 180,000 keys", CLIENT, H1, again(request(method=b"POST", body=KEYS)), READS_JSON),
    Row("JSON with 190,000 elements", CLIENT, H1, again(request(method=b"POST", body=COMMAS)), READS_JSON),
    Row("JSON, a million levels deep", CLIENT, H1, again(request(method=b"POST", body=NESTED)), READS_JSON),
    Row(
        "JSON with a number of 1.5 million digits",
        CLIENT,
        H1,
        again(request(method=b"POST", body=LONG_NUMBER)),
        READS_JSON,
    ),
    Row("JSON with 80,000 fractions", CLIENT, H1, again(request(method=b"POST", body=FLOATS)), READS_JSON),
    Row("JSON with 300,000 escapes", CLIENT, H1, again(request(method=b"POST", body=ESCAPES)), READS_JSON),
    Row(f"2 MB of escapes for {PARTS} conditions", CLIENT, H1, again(request(method=b"POST", body=ESCAPED)), DECODES),
    Row(f"2 MB for {PARTS} digests", CLIENT, H1, again(request(method=b"POST", body=ESCAPED)), DIGESTS),
    Row("JSON of 64 KB, pipelined", CLIENT, H1, again(request(method=b"POST", body=SMALL_JSON)), READS_JSON),
    Row(
        "JSON of 64 KB, on 32 connections",
        CLIENT,
        H1,
        again(request(method=b"POST", body=SMALL_JSON)),
        READS_JSON,
        connections=32,
    ),
    # --- HTTP/2, clients
    Row(
        "rapid reset",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2()) + frame(RST_STREAM, 0, s, CANCEL)), HELLO),
    ),
    Row("PING", CLIENT, H2, again(frame(PING, 0, 0, b"8 octets"), HELLO)),
    Row("SETTINGS", CLIENT, H2, again(frame(SETTINGS), HELLO)),
    Row("SETTINGS of 2,730 values", CLIENT, H2, again(settings_of(2730), HELLO)),
    Row(
        "windows that close and open over 100 answers",
        CLIENT,
        H2,
        again(WINDOWS, PREFACE + OPENING + b"".join(headers(1 + 2 * n, h2()) for n in range(100))),
    ),
    Row("PRIORITY", CLIENT, H2, again(frame(PRIORITY, 0, 1, bytes(5)), HELLO)),
    Row("WINDOW_UPDATE by one", CLIENT, H2, again(frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4)), HELLO)),
    Row("DATA without content", CLIENT, H2, again(data(1), OPEN_POST)),
    Row("DATA of one byte", CLIENT, H2, again(data(1, b"x"), OPEN_POST)),
    Row("DATA of one byte for an endpoint of HTTP/2", CLIENT, H2, again(data(1, b"x"), OPEN_POST), TO_H2),
    Row("DATA of one byte for a policy that reads the body", CLIENT, H2, again(data(1, b"x"), OPEN_POST), READS_BODY),
    Row(
        "DATA of one byte in 255 of padding",
        CLIENT,
        H2,
        again(frame(DATA, PADDED, 1, b"\xfex" + bytes(254)), OPEN_POST),
    ),
    Row(
        "DATA of one byte in 255 of padding, on 32 connections",
        CLIENT,
        H2,
        again(frame(DATA, PADDED, 1, b"\xfex" + bytes(254)), OPEN_POST),
        connections=32,
    ),
    Row("DATA of one byte over 32 connections", CLIENT, H2, again(data(1, b"x"), OPEN_POST), connections=32),
    Row("frames, a byte in each read", CLIENT, H2, again(data(1, b"x"), OPEN_POST), manner={"piece": 1, "pieces": 32}),
    Row("an upload as fast as windows let it", CLIENT, H2, again(data(1, b"x" * 16_384), OPEN_POST)),
    Row("heads of 12 KB", CLIENT, H2, numbered(of_stream(large), HELLO)),
    Row("heads in Huffman code", CLIENT, H2, numbered(of_stream(huffman), HELLO)),
    Row("heads of 4 KB fields that a byte names", CLIENT, H2, numbered(of_stream(indexed_again), HELLO)),
    Row("heads of 95 fields, each new in the table", CLIENT, H2, numbered(of_stream(tabled), HELLO)),
    Row("heads over the limit", CLIENT, H2, numbered(of_stream(oversized), HELLO)),
    Row(
        "CONTINUATION without end", CLIENT, H2, again(frame(CONTINUATION, 0, 1, b""), HELLO + frame(HEADERS, 0, 1, b""))
    ),
    Row("streams that are malformed", CLIENT, H2, numbered(of_stream(lambda s: headers(s, h2()[1:])), HELLO)),
    Row(
        "streams over the limit of 100",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2(method=b"POST"), end=False)), HELLO),
    ),
    Row("frames of unknown kinds", CLIENT, H2, again(frame(0xFA, 0, 0, b"x"), HELLO)),
    Row("GOAWAY", CLIENT, H2, again(frame(GOAWAY, 0, 0, bytes(8)), HELLO)),
    Row("requests, 100 at a time", CLIENT, H2, numbered(of_stream(lambda s: headers(s, h2())), HELLO, 100)),
    Row(
        "requests whose answers nobody reads",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2())), CLOSED_WINDOW, 100),
        manner={"reads": 0},
    ),
    Row(
        "requests whose answers are read by the byte",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2())), HELLO, 100),
        manner={"reads": 1},
    ),
    Row(
        "requests with trailers",
        CLIENT,
        H2,
        numbered(
            of_stream(
                lambda s: (
                    headers(s, h2(method=b"POST"), end=False)
                    + headers(s, [(b"x-%d" % n, b"%d" % s) for n in range(90)])
                )
            ),
            HELLO,
        ),
    ),
    Row(
        "queries of 15 KB for 16 matches",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2(path=QUERY[:15_000] + b"%d" % s))), HELLO),
        BY_QUERY,
    ),
    Row(
        "targets that an expression walks over",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2(path=b"/" + b"a" * 15_000))), HELLO),
        SLOW_EXPRESSION,
    ),
    *(
        Row(
            f"targets that {what} walk over",
            CLIENT,
            H2,
            numbered(of_stream(lambda s: headers(s, h2(path=b"/" + b"a" * 15_000))), HELLO, 32),
            config,
        )
        for what, config in WALKED
    ),
    Row(
        f"bodies that {PARTS} conditions walk over, in 100 streams",
        CLIENT,
        H2,
        numbered(partial(json_stream, body=b"a" * 12_000), HELLO, 100),
        BODY_WALKS,
    ),
    Row(
        "wrong passwords",
        CLIENT,
        H2,
        numbered(of_stream(lambda s: headers(s, h2([(b"authorization", b"Basic Ym9iOnd%05d" % (s % 99_999))]))), HELLO),
        BASIC,
    ),
    Row(
        "JSON with 6,000 keys, in 100 streams",
        CLIENT,
        H2,
        numbered(partial(json_stream, body=SMALL_JSON[:60_000] + b"}"), HELLO, 8),
        READS_JSON,
    ),
    # --- HTTP/1.1, endpoints
    Row("chunks of one byte", ENDPOINT, H1, again(b"1\r\nx\r\n", CHUNKS), EVIL1),
    Row(
        "chunks of one byte, content between them",
        ENDPOINT,
        H1,
        again(b"1\r\nx\r\n" * 500 + b"9c4\r\n" + b"x" * 2500 + b"\r\n", CHUNKS),
        EVIL1,
    ),
    Row(
        "chunks of one byte for a client of HTTP/2",
        ENDPOINT,
        H1,
        again(b"1\r\nx\r\n" * 500 + b"9c4\r\n" + b"x" * 2500 + b"\r\n", CHUNKS),
        EVIL1,
        asks=HUNDRED,
    ),
    Row("chunks with extensions of 4 KB", ENDPOINT, H1, again(CHUNK_LINE, CHUNKS), EVIL1),
    Row("trailers without end", ENDPOINT, H1, again(b"x-t: v\r\n", CHUNKS + b"0\r\n"), EVIL1),
    Row(
        "a head of 64 KB, a byte in each read",
        ENDPOINT,
        H1,
        only(b"HTTP/1.1 200 OK\r\nx: " + b"v" * 65_000),
        EVIL1,
        manner={"piece": 1, "pieces": 32},
    ),
    Row("a head without end", ENDPOINT, H1, again(b"x: v\r\n", b"HTTP/1.1 200 OK\r\n"), EVIL1),
    Row(
        "heads of 10,000 headers",
        ENDPOINT,
        H1,
        only(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000 + b"Content-Length: 0\r\n\r\n"),
        EVIL1,
        asks=GET * 50,
    ),
    Row("1xx without end", ENDPOINT, H1, again(INTERIM), EVIL1),
    Row("16 heads of 1xx before each answer", ENDPOINT, H1, only(INTERIM * 16 + sized(b"ok")), EVIL1, asks=GET * 200),
    Row("a download as fast as it is read", ENDPOINT, H1, again(b"x" * MIB, UNTIL_CLOSE), EVIL1),
    Row(
        "a download in single bytes",
        ENDPOINT,
        H1,
        again(b"x" * 1000, UNTIL_CLOSE),
        EVIL1,
        manner={"piece": 1, "pieces": 32},
    ),
    Row("a download for a client of HTTP/2", ENDPOINT, H1, again(b"x" * MIB, UNTIL_CLOSE), EVIL1, asks=HUNDRED),
    Row("bytes behind the answer", ENDPOINT, H1, again(b"x" * MIB, sized(b"ok")), EVIL1, asks=GET * 50),
    Row("JSON with 180,000 keys", ENDPOINT, H1, only(sized(KEYS)), EVIL1_JSON, asks=GET * 4),
    Row(
        "JSON of 64 KB, over 32 connections",
        ENDPOINT,
        H1,
        only(sized(SMALL_JSON)),
        EVIL1_JSON,
        asks=GET * 4,
        connections=32,
    ),
    Row(
        f"a header that {SETS} steps walk over, over 32 connections",
        ENDPOINT,
        H1,
        only(LONG_LINE),
        EVIL1_WALKS,
        asks=GET * 4,
        connections=32,
    ),
    # --- HTTP/2, endpoints
    Row("PING", ENDPOINT, H2, answered(lambda s: frame(PING, 0, 0, b"8 octets")), EVIL2),
    Row("SETTINGS of 2,730 values", ENDPOINT, H2, answered(lambda s: settings_of(2730)), EVIL2),
    Row("DATA without content", ENDPOINT, H2, answered(lambda s: data(s)), EVIL2),
    Row("DATA of one byte", ENDPOINT, H2, answered(lambda s: data(s, b"x")), EVIL2),
    Row(
        "DATA of one byte for a client of HTTP/2", ENDPOINT, H2, answered(lambda s: data(s, b"x")), EVIL2, asks=HUNDRED
    ),
    Row(
        "DATA of one byte in 255 of padding",
        ENDPOINT,
        H2,
        answered(lambda s: frame(DATA, PADDED, s, b"\xfex" + bytes(254))),
        EVIL2,
    ),
    Row("100 interim heads in each of 100 streams", ENDPOINT, H2, instead(interims, 100), EVIL2, asks=HUNDRED),
    Row("heads of 480 fields", ENDPOINT, H2, instead(many_fields), EVIL2, asks=HUNDRED),
    Row(
        "trailers of 480 fields",
        ENDPOINT,
        H2,
        instead(lambda s: headers(s, ANSWER, end=False) + headers(s, [(b"x-%d" % n, b"%d" % s) for n in range(480)])),
        EVIL2,
        asks=HUNDRED,
    ),
    Row(
        f"a header that {SETS} steps walk over",
        ENDPOINT,
        H2,
        instead(lambda s: block(s, literal([(b":status", b"200"), (b"x-0", b"v" * 30_000)]))),
        EVIL2_WALKS,
        asks=HUNDRED,
    ),
    Row("resets", ENDPOINT, H2, instead(lambda s: frame(RST_STREAM, 0, s, CANCEL)), EVIL2, asks=HUNDRED),
    Row("WINDOW_UPDATE by one", ENDPOINT, H2, answered(lambda s: frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4))), EVIL2),
    Row(
        "CONTINUATION without end",
        ENDPOINT,
        H2,
        instead(lambda s: frame(HEADERS, 0, s, b"") + frame(CONTINUATION, 0, s, b"") * 100_000),
        EVIL2,
    ),
    Row("frames of unknown kinds", ENDPOINT, H2, answered(lambda s: frame(0xFA, 0, 0, b"x")), EVIL2),
    Row("GOAWAY", ENDPOINT, H2, answered(lambda s: frame(GOAWAY, 0, 0, (2**31 - 1).to_bytes(4) + bytes(4))), EVIL2),
    Row("a download as fast as windows let it", ENDPOINT, H2, answered(lambda s: data(s, b"x" * 16_384)), EVIL2),
)
