"""`date` of responses (RFC 9110 6.6.1): a proxy adds it where the endpoint sent none, with the moment of arrival."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from time import gmtime, strftime, time
from types import SimpleNamespace

import pytest

from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.h2_wire import GET as H2_GET
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.policy_run import served

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok"
DATE = re.compile(rb"\r\ndate: (\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT)(?=\r\n)", re.IGNORECASE)

STEPS = {
    "no policy": "",
    "a response step": "policies: {headerModifiers: {response: {set: [{name: x-b, value: '1'}]}}}",
    "a step that reads the body": "policies: {transformation: {response: {body: 'response.body'}}}",
    "retries": "policies: {retry: {attempts: 2, codes: [503]}}",
}


def dates(head: bytes) -> list[bytes]:
    return DATE.findall(head.partition(b"\r\n\r\n")[0] + b"\r\n")


def is_now(date: bytes) -> bool:
    return abs(parsedate_to_datetime(date.decode()).timestamp() - time()) < 600


def given(text: str, answer: bytes, request: bytes = GET) -> bytes:
    """What the client gets of an answer that arrives as it is written."""
    proxy = Http1Endpoints(text)
    client = proxy.connect()
    client.send(request)
    proxy.upstream.send(answer)
    return client.take()


@pytest.mark.parametrize("steps", STEPS)
def test_a_response_without_it_gets_the_present_one(steps: str) -> None:
    got = given(served(STEPS[steps]), OK)
    (date,) = dates(got)
    assert is_now(date) and b"\r\nX-A: 1\r\n" in got and got.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", [b"Date", b"date", b"DATE"])
def test_that_of_the_endpoint_passes_unchanged(name: bytes, steps: str) -> None:
    line = b"\r\n%b: Tue, 15 Nov 1994 08:12:31 GMT\r\n" % name
    got = given(served(STEPS[steps]), OK.replace(b"\r\nX-A: 1\r\n", line))
    assert line in got and got.lower().count(b"\r\ndate:") == 1


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (GET, b"HTTP/1.1 204 No Content\r\n\r\n"),
        (GET, b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n"),
        (GET, b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        (HEAD, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        (GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        (GET, b"HTTP/1.1 200 OK\r\nX-Date: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: 0\r\n\r\n"),
        (GET, b"HTTP/1.1 200 OK\r\nConnection: date\r\nDate: x\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_each_final_response_has_one(request_: bytes, answer: bytes) -> None:
    assert len(dates(given(served(""), answer, request_))) == 1


def test_interim_responses_have_none() -> None:
    got = given(served(""), b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    early, _, final = got.partition(b"\r\n\r\n")
    assert b"103" in early and b"date" not in early.lower() and len(dates(final)) == 1


def test_a_switch_of_protocols_has_none() -> None:
    ask = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    got = given(served(""), b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", ask)
    assert got.startswith(b"HTTP/1.1 101 ") and b"date" not in got.lower()


def test_equal_responses_get_the_date_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal heads, which are read once, and of heads that differ in a value."""
    proxy = Http1Endpoints(served(""))
    client = proxy.connect()
    got = []
    for now, value in ((0.0, b"1"), (0.9, b"1"), (1.0, b"1"), (86400.5, b"22"), (86400.6, b"333"), (3.0, b"333")):
        clock = SimpleNamespace(time=lambda now=now: now, strftime=strftime, gmtime=gmtime)
        monkeypatch.setattr("dataplane.http.dates.time", clock)
        client.send(GET)
        proxy.upstream.send(OK.replace(b"X-A: 1", b"X-A: " + value))
        answer = client.take()
        assert b"\r\nX-A: %b\r\n" % value in answer
        got += dates(answer)
    first, second = b"Thu, 01 Jan 1970 00:00:00 GMT", b"Thu, 01 Jan 1970 00:00:01 GMT"
    later = b"Fri, 02 Jan 1970 00:00:00 GMT"
    assert got == [first, first, second, later, later, b"Thu, 01 Jan 1970 00:00:03 GMT"]


def test_steps_may_take_it_out() -> None:
    got = given(served("policies: {headerModifiers: {response: {remove: [date]}}}"), OK)
    assert got.endswith(b"\r\n\r\nok") and b"date" not in got.lower()


@pytest.mark.parametrize("named", ["", "headers: [{name: Date, value: \"'Tue, 15 Nov 1994 08:12:31 GMT'\"}], "])
def test_answers_of_our_own_have_one(named: str) -> None:
    proxy = MemoryProxy(served(f"policies: {{directResponse: {{{named}status: 200}}}}"))
    client = proxy.connect()
    client.send(GET)
    (date,) = dates(client.take())
    assert is_now(date) is not bool(named)


def test_a_client_of_http2_gets_it() -> None:
    proxy = Http1Endpoints(served(""))
    client = FrameClient(proxy)
    client.send(headers(1, H2_GET))
    proxy.upstream.send(OK)
    assert is_now(client.take()[0].headers[b"date"])


@pytest.mark.parametrize("block", [b"\r\nx-a: 1\r\n", b"\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\n"])
def test_an_endpoint_of_http2(block: bytes) -> None:
    proxy = MemoryProxy(served(""))
    client = FrameClient(proxy)
    client.send(headers(1, H2_GET))
    far = Endpoint2(proxy.upstream)
    far.codec.send_response(far.requests[0].stream, 200, block, True)
    far.turn()
    (said,) = client.take()
    assert is_now(said.headers[b"date"]) is (b"x-a" in block)
