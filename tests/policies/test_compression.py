"""Compression: which responses, for which clients, and that what comes out is what went in."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import brotli
import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import compression
from dataplane.http import codings
from dataplane.http.accepted import best
from dataplane.http.codings import CODINGS
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.fakes.policy_run import problems, served

TEXT: Final = b"some text of a page, again and again. " * 200
HTML: Final = ("content-type", "text/html; charset=utf-8")
DECODED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda data: zlib.decompress(data, 16 + zlib.MAX_WBITS),
    "br": brotli.decompress,
    "zstd": codings.zstd_module().decompress,
}


def proxy_with(carrier: Carrier, fields: str = "{}", others: str = "") -> Run:
    return carrier.proxy(served(f"policies: {{compression: {fields}{others}}}"))


def accepting(value: str | None, method: str = "GET", *headers: tuple[str, str]) -> Request:
    return Request(method, headers=[*([("accept-encoding", value)] if value is not None else []), *headers])


def page(*headers: tuple[str, str], status: int = 200, body: bytes = TEXT, sized: bool = True) -> Response:
    return Response(status, [HTML, *headers], body, sized=sized)


def is_plain(answer: Answer, body: bytes = TEXT) -> bool:
    return "content-encoding" not in answer.headers and answer.body == body


@pytest.mark.parametrize("coding", DECODED)
@pytest.mark.parametrize("sized", [True, False])
def test_what_comes_out_is_what_went_in(coding: str, sized: bool, carrier: Carrier) -> None:
    answer = proxy_with(carrier).carry(accepting(coding), page(sized=sized)).answer
    assert answer.headers["content-encoding"] == coding and answer.headers["vary"] == "Accept-Encoding"
    assert len(answer.body) < len(TEXT) / 10 and answer.ended
    assert DECODED[coding](answer.body) == TEXT
    assert answer.headers.get("content-length") in (None, str(len(answer.body)))


BR, ZSTD, GZIP, NONE = b"br", b"zstd", b"gzip", b"identity"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, NONE),
        ("", NONE),
        ("gzip", GZIP),
        ("GZip", GZIP),
        ("x-gzip", GZIP),
        ("gzip, deflate, br, zstd", ZSTD),
        ("gzip, br;q=0.9", GZIP),
        ("gzip;q=0.5, br;q=0.5", BR),
        ("gzip;q=0", NONE),
        ("gzip;q=0.000", NONE),
        ("*", ZSTD),
        ("*;q=0.1, br", BR),
        ("*, zstd;q=0", BR),
        ("*;q=0", NONE),
        ("identity", NONE),
        ("identity;q=0, gzip", GZIP),
        ("identity;q=0", NONE),
        ("identity, gzip;q=0.5", NONE),
        ("identity;q=0.5, gzip;q=0.5", GZIP),
        ("gzip ; q = 0.3", GZIP),
        ("gzip;q=2", NONE),
        ("gzip;q=nan", NONE),
        ("gzip;level=9", NONE),
        ("deflate", NONE),
        (",,gzip,", GZIP),
        ("gzip," * 200, NONE),
    ],
)
def test_what_a_client_likes_best(value: str | None, expected: bytes) -> None:
    assert best(None if value is None else value.encode(), (ZSTD, BR, GZIP)) == expected


def test_lines_of_accept_encoding_are_one_list(carrier: Carrier) -> None:
    asked = Request(headers=[("accept-encoding", "deflate"), ("accept-encoding", "br;q=0.1")])
    assert proxy_with(carrier).carry(asked, page()).answer.headers["content-encoding"] == "br"


def test_the_order_of_the_policy_decides_among_equals(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{encodings: [gzip, br]}")
    assert run.carry(accepting("br, gzip, zstd"), page()).answer.headers["content-encoding"] == "gzip"


UNTOUCHED: Final = {
    "no-transform": page(("cache-control", "public, No-Transform")),
    "encoded": page(("content-encoding", "gzip")),
    "a part": page(("content-range", "bytes 0-7599/9000"), status=206),
    "another type": Response(200, [("content-type", "image/png")], TEXT),
    "no type": Response(200, [], TEXT),
    "small": page(body=b"x" * 1023),
    "grpc": Response(200, [("content-type", "application/grpc")], TEXT),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_what_passes_as_it_is(name: str, carrier: Carrier) -> None:
    response = UNTOUCHED[name]
    seen = proxy_with(carrier, "{contentTypes: ['text/*', 'application/grpc']}").carry(accepting("gzip"), response)
    assert isinstance(response.body, bytes) and seen.answer.body == response.body
    assert seen.answer.headers.all("content-encoding") == (["gzip"] if name == "encoded" else [])
    assert "vary" not in seen.answer.headers


@pytest.mark.parametrize(("size", "is_small"), [(299, True), (300, False)])
def test_what_is_small_may_be_said(size: int, is_small: bool, carrier: Carrier) -> None:
    body = b"x" * size
    seen = proxy_with(carrier, "{minSize: 300}").carry(accepting("gzip"), page(body=body))
    assert is_plain(seen.answer, body) is is_small


def test_no_transform_of_a_request_is_respected(carrier: Carrier) -> None:
    asked = accepting("gzip", "GET", ("cache-control", "no-transform"))
    assert is_plain(proxy_with(carrier).carry(asked, page()).answer)


def test_an_answer_to_head_is_left_alone(carrier: Carrier) -> None:
    head = Response(200, [HTML, ("content-length", "9000"), ("etag", '"1"')])
    answer = proxy_with(carrier).carry(accepting("gzip", "HEAD"), head).answer
    assert answer.headers["content-length"] == "9000" and answer.headers["etag"] == '"1"'
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_content_is_left_alone(status: int, carrier: Carrier) -> None:
    answer = proxy_with(carrier).carry(accepting("gzip"), Response(status, [HTML, ("etag", '"1"')])).answer
    assert answer.status == status and answer.headers["etag"] == '"1"' and "content-encoding" not in answer.headers


def test_identity_is_sent_to_who_takes_nothing_else_and_caches_are_told(carrier: Carrier) -> None:
    answer = proxy_with(carrier).carry(accepting(None), page(("etag", '"1"'))).answer
    assert is_plain(answer) and answer.headers["vary"] == "Accept-Encoding" and answer.headers["etag"] == '"1"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["Origin"], ["Origin", "Accept-Encoding"]),
        (["accept-encoding"], ["accept-encoding"]),
        (["Cookie, Accept-Encoding"], ["Cookie, Accept-Encoding"]),
        (["*"], ["*"]),
    ],
)
def test_vary(before: list[str], after: list[str], carrier: Carrier) -> None:
    response = page(*(("vary", each) for each in before))
    assert proxy_with(carrier).carry(accepting("gzip"), response).answer.headers.all("vary") == after


@pytest.mark.parametrize(("tag", "expected"), [('"1"', 'W/"1"'), ('W/"1"', 'W/"1"')])
def test_an_entity_tag_is_weak_then(tag: str, expected: str, carrier: Carrier) -> None:
    response = page(("etag", tag), ("accept-ranges", "bytes"), ("content-digest", "sha-256=:AA==:"))
    answer = proxy_with(carrier).carry(accepting("gzip"), response).answer
    assert answer.headers["etag"] == expected
    assert not {"accept-ranges", "content-digest"} & {*answer.headers.but("content-length", "date")}


def test_events_are_passed_on_at_once(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{contentTypes: [text/event-stream]}")
    asked = run.begin(accepting("gzip"))
    run.arrival.head(Response(200, [("content-type", "text/event-stream")], sized=False))
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
    seen = 0
    for number in range(3):
        event = b"data: %d\n\n" % number
        run.arrival.content(event)
        body = asked.answer.body
        assert decoder.decompress(body[seen:]) == event, "it is here whole"
        seen = len(body)
    run.arrival.end()
    assert asked.answer.ended


def test_who_takes_no_more_stops_the_backend(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    asked = run.begin(accepting("gzip"))
    run.arrival.head(page(body=b"", sized=False))
    asked.pause()
    noise = bytes(range(32, 127)) * 700
    for turn in range(400):
        run.arrival.content(zlib.compress(noise + b"%d" % turn, 9) * 40)
        if not run.arrival.is_read:
            break
    assert not run.arrival.is_read
    asked.resume()
    assert run.arrival.is_read
    run.arrival.end()


def test_a_step_that_reads_the_response_sees_it_as_it_is(carrier: Carrier) -> None:
    edit = "transformation: {response: {body: 'string(response.body) + \"!\"'}}"
    answer = proxy_with(carrier, "{}", f", {edit}").carry(accepting("gzip"), page(("etag", '"1"'))).answer
    assert DECODED["gzip"](answer.body) == TEXT + b"!" and answer.headers["content-encoding"] == "gzip"


def test_what_is_hidden_from_the_backend_is_still_the_clients_word(carrier: Carrier) -> None:
    hidden = ", headerModifiers: {request: {remove: [accept-encoding]}}"
    seen = proxy_with(carrier, "{}", hidden).carry(accepting("gzip"), page())
    assert "accept-encoding" not in seen.received.headers
    assert seen.answer.headers["content-encoding"] == "gzip"


def test_an_answer_of_ours_passes_as_it_is(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{minSize: 0}", ", directResponse: {status: 200, body: hello}")
    assert is_plain(run.carry(accepting("gzip")).answer, b"hello")


def test_a_client_that_leaves_makes_room(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    crowd = run.memory.applier.carryover.kept("compression", compression.Crowd)
    asked = run.begin(accepting("gzip"))
    run.arrival.head(page(body=b"", sized=False))
    run.arrival.content(TEXT)
    assert crowd.taken == 1
    asked.cancel()
    assert crowd.taken == 0
    run.carry(accepting("gzip"), page())
    assert crowd.taken == 0


def test_more_than_a_worker_compresses_pass_as_they_are(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    run.memory.applier.carryover.kept("compression", compression.Crowd).taken = compression.MOST_AT_A_TIME
    answer = run.carry(accepting("gzip"), page()).answer
    assert is_plain(answer) and answer.headers["vary"] == "Accept-Encoding"


def test_one_client_leaves_responses_to_compress_to_others(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    run.memory.applier.carryover.kept("compression", compression.Crowd).hold("192.0.2.7", size=768)
    assert is_plain(run.carry(accepting("gzip"), page()).answer)
    assert run.counted("limits_exceeded_total") == {"compressedResponses": 1}
    other = run.client(("198.51.100.7", 1)).send(accepting("gzip"))
    run.arrival.answer(page())
    assert other.answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("coding", [*CODINGS])
def test_each_piece_is_whole_after_a_flush(coding: bytes) -> None:
    made = CODINGS[coding]()
    out = made.compress(b"one") + made.flush()
    assert out
    out += made.compress(b"two") + made.finish()
    assert DECODED[coding.decode()](out) == b"onetwo"


def test_refused() -> None:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    for encodings in (["deflate"], []):
        with pytest.raises(Refused, match=r"encodings: (deflate|none) is not one of"):
            compression.build(traffic_pb2.Compression(encodings=encodings), env)


@pytest.mark.parametrize(
    "fields", ["{encodings: []}", "{encodings: [br, br]}", "{contentTypes: ['*/*']}", "{minSize: x}"]
)
def test_what_the_file_refuses(fields: str) -> None:
    assert problems(f"policies: {{compression: {fields}}}")
