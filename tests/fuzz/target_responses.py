"""Target `responses`: bytes of an endpoint, to clients of every kind, in several kinds of pieces.

Promises: a client gets at most one final answer; when it is passed on whole it has the status, content and trailers
that h11 reads in what the endpoint sent; when it is not, the client can tell (502, or a broken connection); bytes
behind it reach nobody, and the connection that they came on is not used again; the next request gets its own answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from dataplane.http.trailers import FORBIDDEN_TRAILERS
from dataplane.server.h1.states import LINGER
from tests.fuzz.readers import first_end, read_answers
from tests.fuzz.rig import Rig, Violation, pieces, require
from tests.raw.parsers import read_h11, read_h11_responses
from tests.raw.responses import RESPONSES

SEEDS = (
    *RESPONSES,
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 18 + b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
)
LONGEST = 4096

REQUESTS = {
    "get": b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "head": b"HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "old": b"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n",
}
_NEXT = b"GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
_HONEST = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhonest"


@cache
def rig() -> Rig:
    return Rig()


@dataclass(slots=True)
class Played:
    """What a client got: `interim` statuses, the final answer, whether it is whole, and the next answer."""

    status: int
    body: bytes
    trailers: tuple[tuple[bytes, bytes], ...]
    whole: bool
    following: bytes


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    for kind in REQUESTS:
        first = play(data, kind, "whole")
        judge(data, kind, first)
        manner = "bytes" if len(data) < 200 else "random"
        other = play(data, kind, manner)
        # a body that breaks after its head went out is cut off; one that broke before is answered with 502
        failed = not first.whole or first.status == 502
        same = (not other.whole or other.status == 502) if failed else other == first
        require(same, f"{kind}, {manner}: {other}, whole: {first}")


def play(data: bytes, kind: str, manner: str) -> Played:
    """One request, the endpoint's bytes, its end; then another request to an honest endpoint, if that can be."""
    with rig() as running:
        client = running.connect()
        client.send(REQUESTS[kind])
        (upstream,) = running.upstreams
        for piece in pieces(data, manner):
            if not upstream.open:
                break
            upstream.send(piece)
        if upstream.open and client.open and client.protocol.exchange is not None:
            upstream.half_close()
        running.check()
        came = client.take()
        require(upstream.received.count(b"\r\n\r\n") == 1, "the request was sent again")
        end = first_end(data, b"HEAD" if kind == "head" else b"GET")
        require(end is None or end == len(data) or not upstream.open, "a connection with bytes left over is kept")
        following = follow(running, client) if client.open and client.protocol.state != LINGER else b""
        running.check()
        return finish(came, kind, client.aborted, following)


def follow(running: Rig, client: object) -> bytes:
    """What the same client gets for its next request, with an endpoint that answers as it should."""
    client.send(_NEXT)  # type: ignore[attr-defined]
    running.check()
    upstream = next((each for each in reversed(running.upstreams) if each.open), None)
    require(upstream is not None, "the next request found no endpoint")
    require(read_h11(upstream.received).requests[-1].target == b"/next", "the next request went elsewhere")  # type: ignore[union-attr]
    upstream.answer(_HONEST)  # type: ignore[union-attr]
    return client.take()  # type: ignore[attr-defined,no-any-return]


def finish(came: bytes, kind: str, aborted: bool, following: bytes) -> Played:
    """Read what the client got as h11 does."""
    if kind == "head":
        return finish_head(came, aborted, following)
    reading = read_h11_responses(came)
    require(not reading.rest.startswith("error"), f"h11 cannot read the answer: {reading.rest}: {came!r}")
    finals = [message for message in reading.requests if message.method >= b"200"]
    if not finals:
        require(aborted or reading.rest == "incomplete", f"no answer: {came!r}")
        return Played(0, b"", (), False, following)
    (final,) = finals
    whole = not reading.rest and not aborted
    return Played(int(final.method), final.body, final.trailers, whole, following)


def finish_head(came: bytes, aborted: bool, following: bytes) -> Played:
    """The same of a HEAD request, whose answer ends with its head."""
    answers, left = read_answers(came, [b"HEAD"])
    require(not left or aborted, f"bytes behind the answer: {left!r}")
    require(len(answers) == 1 or (not answers and aborted), f"{len(answers)} answers: {came!r}")
    status, body, _ = answers[0] if answers else (0, b"", False)
    return Played(status, body, (), bool(answers) and not aborted, following)


FRAMING = ("Only Transfer-Encoding: chunked is supported", "multiple Transfer-Encoding headers")
"""What h11 finds wrong about framing of a head that is well formed otherwise."""


_SPACE = re.compile(rb"(?m)^([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]+:")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1")


def tidied(data: bytes) -> bytes:
    """Heads without white space before colons: a proxy takes it out, to h11 it is an error (RFC 9112 5.1)."""
    done = b""
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        done += _SPACE.sub(rb"\1:", head) + end
        if not end or not _INTERIM.match(head):
            return done + rest
        data = rest


def judge(data: bytes, kind: str, played: Played) -> None:
    """Compare with what h11 reads in the endpoint's bytes."""
    if played.whole and played.following:
        require(played.following.endswith(b"\r\n\r\nhonest"), f"the next answer: {played.following!r}")
    if not played.whole or played.status == 502:
        return
    if kind == "head":
        require(not played.body, "a body for a HEAD request")
        return
    meant = read_h11_responses(tidied(data))
    final = next((message for message in meant.requests if message.method >= b"200"), None)
    if final is None and played.status in (204, 304) and not played.body and meant.rest.endswith(FRAMING):
        return  # h11 looks at framing that says nothing there: the head is all (RFC 9112 6.3, the first rule)
    if final is None:
        raise Violation(f"h11 reads no answer ({meant.rest}), the client got {played}")
    require(int(final.method) == played.status, f"status {final.method!r} became {played.status}")
    require(final.body == played.body, f"content {final.body!r} became {played.body!r}")
    if kind == "get":
        kept = tuple(pair for pair in final.trailers if pair[0].replace(b"_", b"-") not in FORBIDDEN_TRAILERS)
        require(played.trailers == kept, f"trailers {final.trailers!r} became {played.trailers!r}")
