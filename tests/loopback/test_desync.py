"""The desync oracle. Whatever is sent, everything that reached the origin must mean the same to h11 and to Go's
net/http, and never more requests come out than went in. Whatever an origin sends, nobody else's client sees it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

import h11
import pytest

from tests.harness.seeds import rolls, times
from tests.raw.case import get, head
from tests.raw.client import Conversation
from tests.raw.corpus import CASES
from tests.raw.gateway import Gateway, forward_all
from tests.raw.mutations import mutants
from tests.raw.origin import CLOSE, RESET, Origin, Request, Step
from tests.raw.parsers import GoParser, Parsed, Reading, read_h11, read_h11_responses
from tests.raw.responses import RESPONSES

pytestmark = pytest.mark.leaves("the module's origins live in this process, with what the proxy keeps open to them")

_STATUS = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9]) ")
_SEEDS = [b"".join(case.sent) for case in CASES if sum(map(len, case.sent)) < 2000]


@pytest.fixture(scope="module")
def go(tool: Callable[[str], str]) -> Iterator[GoParser]:
    parser = GoParser(tool("go"))
    yield parser
    parser.close()


# --- Requests


def comparable(request: Parsed) -> Parsed:
    """Without the fields that Go takes out when it has read them, or adds (`Cache-Control` beside `Pragma`)."""
    fields = tuple(pair for pair in request.fields if pair[0] not in (b"trailer", b"connection", b"cache-control"))
    return Parsed(request.method, request.target, request.host, request.body, fields, request.trailers)


def disagreements(streams: Sequence[bytes], go: GoParser) -> list[str]:
    """Connections in which the two parsers see different requests, or a different end."""
    found = []
    for data, theirs in zip(streams, go.read(streams), strict=True):
        ours = read_h11(data)
        pairs = zip_longest(map(comparable, ours.requests), map(comparable, theirs.requests))
        different = next(((one, other) for one, other in pairs if one != other), None)
        if different is not None:
            found.append(f"h11 reads {different[0]}, Go reads {different[1]} ({ours.rest}, {theirs.rest})")
        elif bool(ours.rest) != bool(theirs.rest) or ours.rest.startswith("error"):
            found.append(f"h11: {ours.rest or 'whole'}, Go: {theirs.rest or 'whole'} at the end of {data[-300:]!r}")
    return found


def exchange(sent: bytes, gateway: Gateway) -> bytes:
    """Send it all, shut down, and take everything that comes until the gateway closes."""
    with Conversation(gateway.address) as talk:
        talk.send((sent,))
        talk.half_close()
        assert talk.await_end(), f"still open after {sent!r}"
        return talk.left


def forwarded(parts: Iterable[tuple[bytes, object]]) -> list[Parsed]:
    return [request for data, _ in parts for request in read_h11(data).requests]


def check_counts(sent: bytes, came: bytes, out: list[Parsed], meant: Reading, theirs: Reading) -> None:
    """Every request at the origin has its own answer, and there are no more than the most liberal reader finds."""
    statuses = Counter(_STATUS.findall(came))
    assert len(out) <= sum(statuses.values()), f"more requests out than answers: {sent!r}"
    assert len(out) <= max(len(meant.requests), len(theirs.requests), 1), f"one request became {len(out)}: {sent!r}"


def run(inputs: Sequence[bytes], go: GoParser) -> int:
    """Send every input; answers how many requests were forwarded."""
    total = 0
    with Origin() as origin, Gateway(forward_all(origin.port)) as gateway:
        readings = go.read(inputs)
        for sent, theirs in zip(inputs, readings, strict=True):
            mark = origin.mark()
            came = exchange(sent, gateway)
            out = forwarded(origin.since(mark))
            check_counts(sent, came, out, read_h11(sent, skip_empty_line=True), theirs)
            total += len(out)
        origin.settle()
        assert disagreements([bytes(c.received) for c in origin.connections], go) == []
    return total


def test_the_corpus_means_the_same_to_both_parsers(go: GoParser) -> None:
    assert run([b"".join(case.sent) for case in CASES], go) >= 100


def test_mutants_mean_the_same_to_both_parsers(go: GoParser, dice: random.Random) -> None:
    assert run(list(mutants(_SEEDS, 600, dice)), go) >= 30


@pytest.mark.slow
def test_many_mutants_mean_the_same_to_both_parsers(go: GoParser, dice: random.Random) -> None:
    assert run(list(mutants(_SEEDS, times(15_000), dice)), go) >= 500


def test_the_oracle_sees_a_desync(go: GoParser) -> None:
    """The oracle itself: bytes that the two parsers read differently are reported."""
    assert disagreements([get(b"/")], go) == []
    assert len(disagreements([get(b"/", host=None)], go)) == 1


# --- Origins that lie (H7): name of the behaviour -> what it sends

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_FOREIGN = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nFOREIGN"
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def _with(*lines: bytes, body: bytes = b"hello") -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"", body))


EVIL: dict[str, tuple[Step, ...]] = {
    "bytes-after": (_OK + b"FOREIGN",),
    "bytes-after-later": (_OK, 0.02, b"FOREIGN"),
    "second-response": (_OK + _FOREIGN,),
    "second-response-later": (_OK, 0.02, _FOREIGN),
    "second-response-much-later": (_OK, 0.15, _FOREIGN),
    "body-longer-than-length": (_with(b"Content-Length: 2", body=b"okFOREIGN"),),
    "body-shorter-than-length": (_with(b"Content-Length: 500"), CLOSE),
    "body-shorter-reset": (_with(b"Content-Length: 500"), 0.01, RESET),
    "two-lengths": (_with(b"Content-Length: 5", b"Content-Length: 2"),),
    "length-list": (_with(b"Content-Length: 5, 2"),),
    "length-not-a-number": (_with(b"Content-Length: x"),),
    "length-negative": (_with(b"Content-Length: -1"),),
    "length-plus": (_with(b"Content-Length: +5"),),
    "length-and-chunked": (_with(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\nFOREIGN"),),
    "chunked-twice": (_with(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),),
    "coding-unknown": (_with(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),),
    "chunked-in-1.0": (_with(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n").replace(b"/1.1", b"/1.0"), CLOSE),
    "chunk-size-bad": (_CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n",),
    "chunk-size-hex-prefix": (_CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",),
    "chunk-size-overflow": (_CHUNKED + b"10000000000000005\r\nhello\r\n0\r\n\r\n",),
    "chunk-bare-lf": (_CHUNKED + b"5\nhello\n0\n\n",),
    "chunk-end-missing": (_CHUNKED + b"5\r\nhello0\r\n\r\n",),
    "chunk-cut": (_CHUNKED + b"5\r\nhel", CLOSE),
    "chunk-end-then-bytes": (_CHUNKED + b"0\r\n\r\nFOREIGN",),
    "trailer-garbage": (_CHUNKED + b"0\r\nnot a field\r\n\r\n",),
    "head-garbage": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n",),
    "head-no-colon": (_with(b"not a field", b"Content-Length: 5"),),
    "head-space-before-colon": (_with(b"Content-Length : 5"),),
    "head-folded": (_with(b"X: 1", b" 2", b"Content-Length: 5"),),
    "head-nul": (_with(b"X: a\x00b", b"Content-Length: 5"),),
    "head-bare-cr": (_with(b"X: a\rSet-Cookie: s=FOREIGN", b"Content-Length: 5"),),
    "head-bare-lf": (_with(b"X: a\nSet-Cookie: s=FOREIGN", b"Content-Length: 5"),),
    "head-endless": (b"HTTP/1.1 200 OK\r\nX: " + b"v" * 200_000,),
    "head-too-many-lines": (_with(*(b"X: 1" for _ in range(5000)), b"Content-Length: 5"),),
    "head-cut": (b"HTTP/1.1 200 OK\r\nContent-Le", CLOSE),
    "status-too-low": (_OK.replace(b"200", b"099"),),
    "status-too-high": (_OK.replace(b"200", b"1000"),),
    "status-letters": (_OK.replace(b"200", b"2xx"),),
    "version-2": (_OK.replace(b"/1.1", b"/2.0"),),
    "nothing": (CLOSE,),
    "reset": (RESET,),
    "interim-flood": (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, 0.05, CLOSE),
    "hints-flood": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 5000, 0.05, CLOSE),
    "switch-unasked": (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nFOREIGN",),
    "no-content-with-body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\nFOREIGN",),
    "not-modified-with-body": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\nFOREIGN",),
    "response-before-request": (_OK + _FOREIGN + _FOREIGN,),
}

_FATAL = ("two-", "length-", "chunked-twice", "coding-", "head-", "status-", "nothing", "reset", "switch-")
MUST_FAIL = frozenset(name for name in EVIL if name.startswith(_FATAL)) - {
    "head-too-many-lines",
    "head-space-before-colon",
}
"""Behaviours that must be answered 502 (503 where nothing came), because no honest response can be made of them. White
space before a colon is taken out of a response (RFC 9112 5.1)."""


def _evil_script(steps: tuple[Step, ...]):  # type: ignore[no-untyped-def]
    def script(_: Request) -> Iterable[Step]:
        return steps

    return script


@pytest.fixture(scope="module")
def evil() -> Iterator[Origin]:
    with Origin({b"/" + name.encode(): _evil_script(steps) for name, steps in EVIL.items()}) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(evil: Origin) -> Iterator[Gateway]:
    with Gateway(forward_all(evil.port)) as running:
        yield running


def others_are_served(gateway: Gateway) -> None:
    """New clients get their own answers and nothing else."""
    for number in range(4):
        with Conversation(gateway.address) as talk:
            talk.send((get(b"/honest%d" % number),))
            answer = talk.answer()
            assert answer is not None
            assert (answer.status, answer.body) == (200, b"GET /honest%d" % number)
            assert b"FOREIGN" not in talk.left


@pytest.mark.parametrize("method", [b"GET", b"HEAD"], ids=["get", "head"])
@pytest.mark.parametrize("name", EVIL)
def test_an_origin_that_lies_harms_nobody_else(name: str, method: bytes, gateway: Gateway) -> None:
    request = head(method + b" /" + name.encode() + b" HTTP/1.1")
    came = exchange_open(request, gateway)
    assert b"FOREIGN" not in came.partition(b"\r\n\r\n")[2]
    assert len(_STATUS.findall(came)) <= 1
    if name in MUST_FAIL and method == b"GET":
        assert _STATUS.findall(came)[:1] in ([b"502"], [b"503"])
    others_are_served(gateway)


def exchange_open(sent: bytes, gateway: Gateway) -> bytes:
    """Send it and take what comes until the end or a moment of silence (no half close: the origin is the subject)."""
    silence = 0.25 if b"later" in sent or b"flood" in sent else 0.05
    with Conversation(gateway.address) as talk:
        talk.send((sent,))
        if talk.receive(2.0):
            while talk.receive(silence):
                continue
        return talk.left


def test_honest_clients_beside_lying_origins(gateway: Gateway) -> None:
    """Requests to the same endpoint at the same time, on connections that come and go with every lie.

    Without the lies that come late: once a connection has the next request, they cannot be told from its answer.
    """

    def honest(number: int) -> list[str]:
        wrong = []
        for turn in range(60):
            target = b"/client%d/%d" % (number, turn)
            with Conversation(gateway.address) as talk:
                talk.send((get(target) + get(target + b"/again"),))
                bodies = [answer.body if (answer := talk.answer()) else None for _ in range(2)]
            if bodies != [b"GET " + target, b"GET " + target + b"/again"]:
                wrong.append(f"{target!r}: {bodies}")
        return wrong

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(honest, number) for number in range(3)]
        for name in (name for name in EVIL if "later" not in name):
            pool.submit(exchange_open, get(b"/" + name.encode()), gateway)
        assert [result.result() for result in results] == [[], [], []]


@pytest.mark.parametrize("name", ["body-shorter-than-length", "body-shorter-reset", "chunk-cut", "chunk-size-bad"])
def test_a_cut_response_does_not_look_whole(name: str, gateway: Gateway) -> None:
    """RFC 9112 8: a client must be able to tell that a response is incomplete."""
    with Conversation(gateway.address) as talk:
        talk.send((get(b"/" + name.encode()),))
        try:
            answer = talk.answer()
        except h11.RemoteProtocolError:
            return
        assert answer is None or answer.status == 502


# --- Responses: what the client gets must mean the same to both parsers, too


def pull(target: bytes, gateway: Gateway) -> bytes:
    """Everything that comes in answer to one request on a connection of its own."""
    with Conversation(gateway.address) as talk:
        talk.send((get(target, b"Connection: close"),))
        assert talk.await_end(), f"still open: {talk.left!r}"
        return talk.left


def run_responses(answers: Sequence[bytes], go: GoParser) -> int:
    """Have the origin send each; answers how many were passed on whole."""
    scripts = {b"/%d" % number: _evil_script((answer, CLOSE)) for number, answer in enumerate(answers)}
    with Origin(scripts) as origin, Gateway(forward_all(origin.port)) as gateway:
        came = [pull(target, gateway) for target in scripts]
        others_are_served(gateway)
    wrong = []
    whole = 0
    for sent, data, theirs in zip(answers, came, go.read(came, "responses"), strict=True):
        ours = read_h11_responses(data)
        finals = [message for message in ours.requests if message.method >= b"200"]
        whole += len(finals) == 1 and finals[0].method not in (b"502", b"503")
        same = list(map(comparable, ours.requests)) == list(map(comparable, theirs.requests))
        if len(finals) > 1 or not same or bool(ours.rest) != bool(theirs.rest) or ours.rest.startswith("error"):
            wrong.append((sent, data, ours.rest, theirs.rest))
    assert wrong == []
    return whole


def test_responses_mean_the_same_to_both_parsers(go: GoParser, dice: random.Random) -> None:
    assert run_responses(RESPONSES, go) == len(RESPONSES)
    assert run_responses(list(mutants(RESPONSES, 400, dice)), go) >= 50


@pytest.mark.slow
def test_many_responses_mean_the_same_to_both_parsers(go: GoParser, dice: random.Random) -> None:
    assert run_responses(list(mutants(RESPONSES, times(8000), dice)), go) >= 1000


def test_a_mutant_is_the_same_every_time() -> None:
    first, again = (list(mutants(_SEEDS, 20, rolls("mutant"))) for _ in range(2))
    assert first == again
