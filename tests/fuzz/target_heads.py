"""Target `heads`: bytes of a client, into the whole request side, in several kinds of pieces.

Promises: what goes upstream is for h11 exactly the requests that h11 and llhttp read in what came in, at most one for
each, with the same method, target, host and body; everything that is not forwarded gets one well-formed answer out of
the documented table, and after a refusal the connection is closed; where the pieces are cut changes nothing; nothing
that is left half open at an endpoint stays open; no exception escapes, and none is caught.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from dataplane.chain.replies import REPLIES
from dataplane.server.h1.states import LINGER
from dataplane.server.protocols import HEAD_OF_PREFACE
from tests.fuzz.readers import read_answers, read_llhttp
from tests.fuzz.rig import Rig, pieces, require, without_date
from tests.fuzz.target_uri import naive_host, naive_target
from tests.raw.corpus import CASES
from tests.raw.parsers import IN_TRAILERS, Parsed, read_h11

SEEDS = tuple(b"".join(case.sent) for case in CASES if sum(map(len, case.sent)) < 2000)
LONGEST = 8192

OURS = {reply.status for reply in REPLIES.values()} - {REPLIES["InternalError"].status}
_INTERIM = re.compile(rb"HTTP/1\.1 100 Continue\r\n\r\n")
_NOWHERE = re.compile(rb"OPTIONS +\*")
_HEAD_END = re.compile(rb"\r\n\r\n")
ADDED = frozenset((b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-request-id"))


@cache
def rig() -> Rig:
    return Rig()


@dataclass(slots=True)
class Played:
    """What came of one way to send the bytes."""

    answers: bytes
    forwarded: list[Parsed]
    closed: bool


def check(data: bytes) -> None:
    if len(data) > LONGEST or data.startswith(HEAD_OF_PREFACE):
        return  # a client of HTTP/2: target `h2_frames`
    first = play(data, "whole", hold=False)
    judge(data, first)
    if _NOWHERE.search(data):
        return  # answered with its head: whether the connection goes on depends on whether its body is here by then
    for manner, hold in (("bytes", False), ("random", True)):
        other = play(data, manner, hold)
        require(other.answers == first.answers, f"{manner}: answers {other.answers!r}, whole: {first.answers!r}")
        require(other.forwarded == first.forwarded, f"{manner}: {other.forwarded}, whole: {first.forwarded}")
        require(other.closed == first.closed, f"{manner}: closed {other.closed}, whole: {first.closed}")


def play(data: bytes, manner: str, hold: bool) -> Played:
    """Send the bytes, answer each whole request that comes out; `hold`: connections come when all was sent."""
    with rig() as running:
        running.proxy.connector.hold = hold
        client = running.connect()
        answered: dict[int, int] = {}
        for piece in pieces(data, manner):
            if not client.open or client.aborted or client.protocol.state == LINGER:
                break
            client.send(piece)
            answer_all(running, answered)
        running.proxy.connector.release()
        answer_all(running, answered)
        running.check()
        streams = [(read_h11(upstream.received), upstream) for upstream in running.upstreams]
        for reading, upstream in streams:
            require(not reading.rest.startswith("error"), f"upstream got {upstream.received!r}: {reading.rest}")
        forwarded = [request for reading, _ in streams for request in reading.requests]
        closed = not client.open or client.protocol.state == LINGER
        for reading, upstream in streams:
            require(not (reading.rest and upstream.open and closed), "a cut request is left open upstream")
        require(not client.aborted, "the connection was cut off without an answer")
        return Played(without_date(_INTERIM.sub(b"", client.received)), forwarded, closed)


def answer_all(running: Rig, answered: dict[int, int]) -> None:
    """Answer what is whole, until nothing more comes out."""
    progress = True
    while progress:
        progress = False
        for place, upstream in enumerate(running.upstreams):
            if not upstream.open or not _HEAD_END.search(upstream.received):
                continue
            requests = read_h11(upstream.received).requests
            done = answered.get(place, 0)
            if len(requests) > done:
                require(len(requests) == done + 1, f"two requests at once: {upstream.received!r}")
                answered[place] = done + 1
                upstream.answer(response_to(requests[-1]))
                progress = True


def response_to(request: Parsed) -> bytes:
    body = request.method + b" " + request.target
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + (b"" if request.method == b"HEAD" else body)


def judge(data: bytes, played: Played) -> None:
    """Compare with what the oracles read in the same bytes."""
    meant = read_h11(data, skip_empty_line=True)
    methods = [request.method for request in meant.requests]
    if meant.rest.startswith(f"error: {IN_TRAILERS}"):  # one that h11 does not report: as it came out of us
        methods += [request.method for request in played.forwarded[len(methods) :]]
    answers, rest = read_answers(played.answers, methods, refusals=True)
    require(not rest, f"half an answer: {rest!r}")
    require(len(played.forwarded) <= len(answers), f"{len(played.forwarded)} requests out, answers {answers}")
    theirs = read_llhttp(data)
    forwarded = iter(played.forwarded)
    for place, (status, _, close) in enumerate(answers):
        if status != 200:
            require(status in OURS, f"an answer of ours with status {status}")
            require(not close or place == len(answers) - 1, "answers after a close")
            continue
        if place == len(meant.requests) and meant.rest.startswith(f"error: {IN_TRAILERS}"):
            return  # h11 refuses trailers that look like framing, which we drop (RFC 9110 6.5.1), and reads no further
        require(place < len(meant.requests), f"h11 does not read request {place}: {meant.rest}")
        one = next(forwarded)
        compare(meant.requests[place], one)
        if place < len(theirs):
            require(theirs[place][1] == one.body, f"body for llhttp {theirs[place][1]!r}, upstream {one.body!r}")
        else:
            earlier = meant.requests[len(theirs) : place + 1]
            require(any(map(is_too_strict, earlier)), f"llhttp does not read request {place}")
    require(next(forwarded, None) is None, "a request went upstream whose answer was not passed on")
    if answers and answers[-1][2]:
        require(played.closed, "the connection stays open after an answer that says close")


def is_too_strict(request: Parsed) -> bool:
    """Whether llhttp refuses what we may take: trailers that look like framing (we drop them, RFC 9110 6.5.1)."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in request.trailers)


def compare(came: Parsed, went: Parsed) -> None:
    """One request as h11 reads it at the client's side and at the endpoint's."""
    require(came.method == went.method, f"method {came.method!r} became {went.method!r}")
    require(came.body == went.body, f"body {came.body!r} became {went.body!r}")
    target, host = naive_target(came.target)
    require(went.target == target, f"target {came.target!r} became {went.target!r}, wanted {target!r}")
    if came.host:
        require(went.host == came.host, f"host {came.host!r} became {went.host!r}")
        require(naive_host(went.host) is not None, f"host {went.host!r} is none")
    elif host:
        require(went.host.lower() == host.lower(), f"host of {came.target!r} became {went.host!r}")
    fields = set(came.fields)
    for field in went.fields:
        require(field in fields or field[0] in ADDED or field[0] in (b"connection", b"upgrade"), f"{field!r} was added")
    require(set(went.trailers) <= set(came.trailers), f"trailers {went.trailers!r} of {came.trailers!r}")
