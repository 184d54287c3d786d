"""The raw-bytes suite: the corpus of `tests/raw/corpus` and whole conversations, against the real proxy."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.harness.patience import PATIENCE
from tests.harness.seeds import times
from tests.raw.case import Case, chunked, get, head, post
from tests.raw.client import Answer, Conversation
from tests.raw.corpus import CASES
from tests.raw.gateway import Gateway, forward_all
from tests.raw.judge import play
from tests.raw.origin import CLOSE, Origin, Request, Step
from tests.raw.parsers import Parsed, read_h11

pytestmark = pytest.mark.leaves("the module's origin lives in this process, with what the proxy keeps open to it")


def _text(*steps: Step):  # type: ignore[no-untyped-def]
    def script(_: Request) -> Iterable[Step]:
        return steps

    return script


def _empty_unless(status: bytes):  # type: ignore[no-untyped-def]
    return _text(b"HTTP/1.1 " + status + b"\r\nX-Kept: 1\r\n\r\n")


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

SCRIPTS = {
    b"/chunked": _text(_CHUNKED + b"3\r\none\r\n", 0.01, b"3\r\ntwo\r\n0\r\n\r\n"),
    b"/trailers": _text(_CHUNKED + b"3\r\none\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n"),
    b"/until-close": _text(b"HTTP/1.1 200 OK\r\n\r\nall there is", CLOSE),
    b"/1.0": _text(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", CLOSE),
    b"/204": _empty_unless(b"204 No Content"),
    b"/304": _text(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"),
    b"/hints": _text(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0.01, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    ),
    b"/no-reason": _text(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
    b"/hop": _text(
        b"HTTP/1.1 200 OK\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok"
    ),
    b"/early": _text(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", CLOSE),
    b"/socket": _text(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello"),
}


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin(SCRIPTS, early=(b"/early",)) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(origin: Origin) -> Iterator[Gateway]:
    with Gateway(forward_all(origin.port)) as running:
        yield running


@pytest.fixture
def talk(gateway: Gateway) -> Iterator[Conversation]:
    with Conversation(gateway.address) as conversation:
        yield conversation


def answered(talk: Conversation, method: bytes = b"GET") -> Answer:
    answer = talk.answer(method)
    assert answer is not None, f"no answer ({talk.ended or 'still open'})"
    return answer


def requests_since(origin: Origin, mark: object) -> list[Parsed]:
    parts = origin.since(mark)  # type: ignore[arg-type]
    return [request for data, _ in parts for request in read_h11(data).requests]


def test_the_corpus_is_large_and_named() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 120


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_one_right_answer(case: Case, gateway: Gateway, origin: Origin) -> None:
    assert play(case, gateway.address, origin) == []


def split(case: Case, places: Sequence[int]) -> Case:
    """The same bytes, cut at these places instead of where the case cuts them."""
    data = b"".join(case.sent)
    edges = [0, *places, len(data)]
    return replace(case, sent=tuple(data[start:end] for start, end in pairwise(edges) if start < end))


@pytest.mark.parametrize("cutting", range(times(2)))
def test_where_segments_end_changes_nothing(
    cutting: int, dice: random.Random, gateway: Gateway, origin: Origin
) -> None:
    """TCP may cut anywhere: the answers are those of the whole."""
    wrong = {}
    for case in CASES:
        length = sum(map(len, case.sent))
        places = sorted(dice.randrange(1, length) for _ in range(3))
        problems = play(split(case, places), gateway.address, origin)
        if problems:
            wrong[case.name] = (places, problems)
    assert wrong == {}


@pytest.mark.slow
def test_one_byte_at_a_time_changes_nothing(gateway: Gateway, origin: Origin) -> None:
    short = [case for case in CASES if sum(map(len, case.sent)) < 400]
    each = {case.name: split(case, range(1, sum(map(len, case.sent)))) for case in short}
    wrong = {name: play(case, gateway.address, origin) for name, case in each.items()}
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_the_judge_sees_wrong_answers(origin: Origin) -> None:
    """Played against the origin itself, which takes everything as it comes."""
    cases = {case.name: case for case in CASES}
    naked = ("127.0.0.1", origin.port)
    assert play(cases["line-plain"], naked, origin) == []
    for name in ("coding-and-length", "path-dot-dot", "forward-hop-named", "trailer-host"):
        assert play(cases[name], naked, origin) != []


def test_many_requests_on_one_connection(talk: Conversation) -> None:
    for number in range(50):
        talk.send((get(b"/%d" % number),))
        assert answered(talk).body == b"GET /%d" % number


def test_a_deep_pipeline_is_answered_in_order(talk: Conversation) -> None:
    talk.send((b"".join(get(b"/%d" % n) for n in range(60)),))
    assert [answered(talk).body for _ in range(60)] == [b"GET /%d" % n for n in range(60)]


def test_100_continue_comes_before_the_body(talk: Conversation, origin: Origin) -> None:
    mark = origin.mark()
    talk.send((head(b"POST /x HTTP/1.1", b"Expect: 100-continue", b"Content-Length: 5"),))
    deadline = time.monotonic() + PATIENCE
    while b"\r\n\r\n" not in talk.left and time.monotonic() < deadline:
        talk.receive(0.5)
    assert talk.left.startswith(b"HTTP/1.1 100")
    talk.send((b"hello",))
    assert answered(talk).status == 200
    assert [request.body for request in requests_since(origin, mark)] == [b"hello"]


def test_no_100_continue_for_a_request_refused_at_its_head(talk: Conversation) -> None:
    talk.send((head(b"POST /away HTTP/1.1", b"Expect: 100-continue", b"Content-Length: 5"),))
    answer = answered(talk)
    assert (answer.status, answer.interim) == (302, [])


def test_a_chunked_response_passes(talk: Conversation) -> None:
    talk.send((get(b"/chunked") + get(b"/next"),))
    assert answered(talk).body == b"onetwo"
    assert answered(talk).body == b"GET /next"


def test_response_trailers_pass_save_forbidden_ones(talk: Conversation) -> None:
    talk.send((get(b"/trailers", b"TE: trailers"),))
    answer = answered(talk)
    assert (answer.body, answer.trailers) == (b"one", [(b"x-sum", b"1")])


def test_a_response_that_ends_with_its_connection(talk: Conversation) -> None:
    talk.send((get(b"/until-close"),))
    assert answered(talk).body == b"all there is"


@pytest.mark.parametrize("target", [b"/chunked", b"/until-close", b"/trailers"])
def test_an_http_1_0_client_gets_no_chunks(target: bytes, talk: Conversation) -> None:
    talk.send((get(target, version=b"HTTP/1.0"),))
    assert talk.await_end()
    status, _, body = talk.left.partition(b"\r\n\r\n")
    assert status.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in status.lower()
    assert body in (b"onetwo", b"all there is", b"one")


def test_an_http_1_0_client_may_keep_the_connection(talk: Conversation) -> None:
    talk.send((get(b"/one", b"Connection: keep-alive", version=b"HTTP/1.0"),))
    answer = answered(talk)
    assert (b"connection", b"keep-alive") in [(n, v.lower()) for n, v in answer.headers]
    talk.send((get(b"/two", version=b"HTTP/1.0"),))
    assert answered(talk).body == b"GET /two"
    assert talk.await_end()


def test_an_http_1_0_origin(talk: Conversation) -> None:
    talk.send((get(b"/1.0") + get(b"/next"),))
    assert answered(talk).body == b"ok"
    assert answered(talk).body == b"GET /next"


@pytest.mark.parametrize("target", [b"/204", b"/304"])
def test_answers_without_a_body(target: bytes, talk: Conversation) -> None:
    talk.send((get(target) + get(b"/next"),))
    answer = answered(talk)
    assert (answer.status, answer.body) == (int(target[1:]), b"")
    assert answered(talk).body == b"GET /next"


def test_interim_responses_pass(talk: Conversation) -> None:
    talk.send((get(b"/hints"),))
    answer = answered(talk)
    assert (answer.status, answer.interim, answer.body) == (200, [103], b"ok")


def test_an_http_1_0_client_gets_no_interim_responses(talk: Conversation) -> None:
    talk.send((get(b"/hints", version=b"HTTP/1.0"),))
    answer = answered(talk)
    assert (answer.status, answer.interim) == (200, [])


def test_a_status_line_without_a_reason(talk: Conversation) -> None:
    talk.send((get(b"/no-reason"),))
    assert answered(talk).body == b"ok"


def test_hop_by_hop_fields_of_a_response_are_removed(talk: Conversation) -> None:
    talk.send((get(b"/hop") + get(b"/next"),))
    names = [name for name, _ in answered(talk).headers]
    assert b"x-hop" not in names and b"keep-alive" not in names
    assert answered(talk).body == b"GET /next"


def test_an_answer_before_the_body_ended_reaches_the_client(talk: Conversation) -> None:
    talk.send((head(b"POST /early HTTP/1.1", b"Content-Length: 1000000") + b"x" * 1000,))
    assert answered(talk).status == 413
    assert talk.is_quiet()


def test_a_request_after_a_half_close_is_answered(gateway: Gateway) -> None:
    with Conversation(gateway.address) as talk:
        talk.send((get(b"/one") + get(b"/chunked"),))
        talk.half_close()
        assert answered(talk).body == b"GET /one"
        assert answered(talk).body == b"onetwo"
        assert talk.await_end()


def test_a_large_body_both_ways(talk: Conversation, origin: Origin) -> None:
    mark = origin.mark()
    body = bytes(range(256)) * 4096
    talk.send((post(body, b"Content-Length: %d" % len(body)),))
    assert answered(talk).status == 200
    pieces = b"".join(b"%x\r\n" % len(part) + part + b"\r\n" for part in (body[:1], body[1:70000], body[70000:]))
    talk.send((chunked(pieces + b"0\r\n\r\n"),))
    assert answered(talk).status == 200
    assert [request.body == body for request in requests_since(origin, mark)] == [True, True]


def test_an_upgrade_is_tunnelled(talk: Conversation, origin: Origin) -> None:
    mark = origin.mark()
    talk.send((get(b"/socket", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),))
    assert answered(talk).status == 101
    while len(talk.left) < 5:
        assert talk.receive(PATIENCE)
    assert talk.left == b"hello"
    talk.send((b"\x81\x05raw\r\n",))
    deadline = time.monotonic() + PATIENCE
    while not any(data.endswith(b"\x81\x05raw\r\n") for data, _ in origin.since(mark)):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_an_upgrade_that_the_origin_ignores_is_a_plain_answer(talk: Conversation, origin: Origin) -> None:
    mark = origin.mark()
    talk.send((get(b"/plain", b"Connection: Upgrade", b"Upgrade: websocket"),))
    assert answered(talk).body == b"GET /plain"
    [request] = requests_since(origin, mark)
    assert request.values(b"upgrade") == [b"websocket"]
    talk.send((get(b"/next"),))
    assert answered(talk).body == b"GET /next"


def test_a_request_id_is_made_where_there_is_none(talk: Conversation, origin: Origin) -> None:
    mark = origin.mark()
    talk.send((get(b"/x"),))
    assert answered(talk).status == 200
    [request] = requests_since(origin, mark)
    [made] = request.values(b"x-request-id")
    assert len(made) >= 16
