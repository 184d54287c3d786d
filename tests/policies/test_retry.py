"""Retry from the standalone file to the attempts that an endpoint sees."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import retry
from dataplane.table.plans import Retry
from dataplane.telemetry.metrics import Metrics
from dataplane.upstream.endpoint import INITIAL_LATENCY, Endpoint
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"


# --- the setting


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{attempts: 3, codes: [503, 502], backoff: 100ms}", Retry(frozenset((502, 503)), 3, 0.1)),
        ("{codes: [500]}", Retry(frozenset((500,)), 1, 0.025)),  # decisions, Retry: the defaults
        ("{attempts: 0}", Retry(frozenset(), 0, 0.025)),
    ],
)
def test_retry(fields: str, expected: Retry) -> None:
    assert PolicyRun(f"policies: {{retry: {fields}}}").route(exchange()).policies.retry == expected


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.retry is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (traffic_pb2.Retry(codes=[200]), "code 200 is not between 400 and 599"),
        (traffic_pb2.Retry(precondition="request.methd == 'GET'"), "precondition: .*methd"),
        (traffic_pb2.Retry(precondition="response.code == 500"), "precondition: .*response"),
        (traffic_pb2.Retry(condition="1 +"), "condition: "),
        (traffic_pb2.Retry(condition="response.bdy == b''"), "condition: .*bdy"),
    ],
)
def test_refused(config: traffic_pb2.Retry, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        retry.build(config, ENV)


# --- what it does


class Names:
    """A resolver that knows one name, with these addresses; it fails when there are none."""

    def __init__(self, *addresses: str) -> None:
        self.found = tuple(Endpoint(address, 9000) for address in addresses)

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return self.found


def proxy_with(fields: str, *addresses: str, others: str = "") -> MemoryProxy:
    """A proxy with this retry policy and a backend with these addresses."""
    names = Names(*(addresses or ("10.0.0.1", "10.0.0.2", "10.0.0.3")))
    proxy = MemoryProxy(text_of(f"policies: {{retry: {fields}{others}}}\nbackends: [{{host: 'origin.test:9000'}}]"))
    proxy.context.resolver = names  # type: ignore[assignment]
    return proxy


def address(upstream: FakeUpstream) -> str:
    connection: Any = upstream.protocol
    return str(connection.endpoint.address)


def counted(metrics: Metrics, name: str) -> dict[str, int]:
    """By label: what was counted."""
    return {series.labels[0]: values[0] for series, values in metrics.series() if series.metric.name == name}


def sent(upstream: FakeUpstream) -> tuple[bytes | None, bytes]:
    """(x-retry-attempt, body) of the request that an endpoint was sent."""
    head, _, body = upstream.received.partition(b"\r\n\r\n")
    found = re.findall(rb"\r\nx-retry-attempt: (\d+)", head)
    assert len(found) <= 1
    return (found[0] if found else None), body


def break_off(upstream: FakeUpstream) -> None:
    upstream.lose(ConnectionResetError())


@pytest.mark.parametrize("request_bytes", [GET, POST])
def test_a_code_is_tried_again_on_another_endpoint_each_time(request_bytes: bytes) -> None:
    proxy = proxy_with("{attempts: 2, codes: [503]}")
    client = proxy.connect()
    client.send(request_bytes)
    for number in (None, b"1", b"2"):
        assert sent(proxy.upstream) == (number, request_bytes.partition(b"\r\n\r\n")[2])
        assert client.received == b""
        proxy.upstream.answer(OK if number == b"2" else BUSY)
        proxy.advance(1)
    assert client.take() == OK
    upstreams = proxy.connector.upstreams
    assert sorted(map(address, upstreams)) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert all(upstream.open for upstream in upstreams)  # drained: each may carry the next request
    assert counted(proxy.metrics, "upstream_retries_total") == {"status": 2}
    assert counted(proxy.metrics, "retried_requests_total") == {"success": 1}
    assert " retry.attempt=2 " in proxy.log_lines()[-1]


def test_the_last_answer_stands_when_tries_are_used_up() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY
    assert counted(proxy.metrics, "retried_requests_total") == {"exhausted": 1}
    assert " retry.attempt=1 retry.given_up=exhausted " in proxy.log_lines()[-1]


def test_a_code_that_is_not_named_stands() -> None:
    proxy = proxy_with("{codes: [502]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY
    assert counted(proxy.metrics, "retried_requests_total") == {}


def test_no_attempts_is_off() -> None:
    proxy = proxy_with("{attempts: 0, codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY


def test_the_same_endpoint_only_when_there_is_no_other() -> None:
    proxy = proxy_with("{attempts: 3, codes: [503]}", "10.0.0.1", "10.0.0.2")
    proxy.connect().send(GET)
    for _ in range(3):
        proxy.upstream.answer(b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        proxy.advance(1)
    tried = list(map(address, proxy.connector.upstreams))
    assert len(tried) == 4 and all(one != other for one, other in pairwise(tried))
    alone = proxy_with("{codes: [503]}", "10.0.0.1")
    client = alone.connect()
    client.send(GET)
    alone.upstream.answer(BUSY)
    alone.advance(1)
    alone.upstream.answer(OK)
    assert client.received == OK


@pytest.mark.parametrize(
    ("backoff", "number", "seconds"),
    [("100ms", 0, 0.1), ("100ms", 1, 0.2), ("100ms", 4, 1.6), ("100ms", 20, 10.0), ("30s", 3, 30.0)],
)
def test_the_backoff_doubles_up_to_a_bound_and_chance_adds_up_to_half(
    backoff: str, number: int, seconds: float
) -> None:
    proxy = proxy_with(f"{{attempts: 30, codes: [503], backoff: {backoff}}}", "10.0.0.1")
    proxy.context.random = lambda: 0.999999
    proxy.connect().send(GET)
    for _ in range(number):
        proxy.upstream.answer(BUSY)
        proxy.advance(100)
    before = proxy.upstream.received
    proxy.upstream.answer(BUSY)
    proxy.advance(seconds * 1.499)
    assert proxy.upstream.received == before
    proxy.advance(seconds * 0.002)
    assert len(proxy.upstream.received) > len(before)


# --- which failures


def test_a_connection_that_is_refused() -> None:
    proxy = proxy_with("{}")
    proxy.connector.refuse = "refused"
    client = proxy.connect()
    client.send(POST)  # nothing was sent: any method may be tried again
    proxy.connector.refuse = ""
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"1", b"body")
    proxy.upstream.answer(OK)
    assert client.received == OK


def test_a_name_that_does_not_resolve() -> None:
    proxy = proxy_with("{}")
    names, proxy.context.resolver.found = proxy.context.resolver.found, ()  # type: ignore[attr-defined]
    client = proxy.connect()
    client.send(POST)
    proxy.context.resolver.found = names  # type: ignore[attr-defined]
    proxy.advance(1)
    proxy.upstream.answer(OK)
    assert client.received == OK
    assert counted(proxy.metrics, "upstream_retries_total") == {"dns": 1}


def test_a_name_that_takes_too_long_to_resolve() -> None:
    class Slow(Names):
        asked: list[Callable[[], None]]

        def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
            self.asked.append(ready)
            return self.found if len(self.asked) > 1 else None  # type: ignore[return-value]  # not known yet

    proxy = proxy_with("{}", others=", timeouts: {backendRequest: 1s}")
    proxy.context.resolver = slow = Slow("10.0.0.1")  # type: ignore[assignment]
    slow.asked = []
    client = proxy.connect()
    client.send(POST)
    proxy.advance(1.05)
    slow.asked[0]()  # too late: it is the next try's turn
    assert not proxy.connector.upstreams
    proxy.advance(0.1)
    assert sent(proxy.upstream) == (b"1", b"body")
    proxy.upstream.answer(OK)
    assert client.received == OK


@pytest.mark.parametrize(
    ("request_bytes", "fields", "tried_again"),
    [
        (GET, "{}", True),
        (POST, "{}", False),  # the endpoint may have acted on it
        (POST, "{codes: [502]}", True),  # that is what the code of our answer would be
        (POST, "{codes: [503]}", False),
    ],
)
def test_a_connection_that_breaks_before_the_response(request_bytes: bytes, fields: str, tried_again: bool) -> None:
    proxy = proxy_with(fields)
    client = proxy.connect()
    client.send(request_bytes)
    proxy.upstream.lose(ConnectionResetError())
    proxy.advance(1)
    if tried_again:
        assert sent(proxy.upstream)[0] == b"1"
        proxy.upstream.answer(OK)
        assert client.received == OK
    else:
        assert client.received.startswith(b"HTTP/1.1 502 ")


def test_connections_that_break_on_every_try() -> None:
    proxy = proxy_with("{attempts: 2}")
    client = proxy.connect()
    client.send(GET)
    for _ in range(3):
        assert client.received == b""
        break_off(proxy.upstream)
        proxy.advance(1)
    assert client.received.startswith(b"HTTP/1.1 503 ")
    assert client.received.endswith(b"upstream closed the connection on every try")
    assert " reason=RetriesExhausted " in proxy.log_lines()[-1]


def test_a_response_that_has_begun_is_not_tried_again() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    proxy.upstream.lose(ConnectionResetError())
    proxy.advance(1)
    assert client.aborted
    assert len(proxy.connector.upstreams) == 1


def test_an_attempt_that_takes_too_long() -> None:
    proxy = proxy_with("{}", others=", timeouts: {backendRequest: 1s}")
    client = proxy.connect()
    client.send(GET)
    proxy.advance(1.05)
    first = proxy.upstream
    assert first.aborted and client.received == b""
    proxy.advance(0.1)
    assert sent(proxy.upstream)[0] == b"1"
    proxy.advance(1.05)
    assert client.received.startswith(b"HTTP/1.1 504 ")
    assert client.received.endswith(b"upstream call timeout")


def test_an_attempt_that_does_not_get_connected_in_time() -> None:
    proxy = proxy_with("{}", others=", timeouts: {backendRequest: 1s}")
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(POST)  # nothing was sent
    proxy.advance(1.05)
    proxy.advance(0.1)
    proxy.connector.release()  # both: the late one is kept for whoever comes next
    assert [sent(upstream)[0] for upstream in proxy.connector.upstreams] == [None, b"1"]
    assert proxy.connector.upstreams[0].received == b""
    proxy.upstream.answer(OK)
    assert client.received == OK


# --- the request's deadline


def test_tries_and_backoffs_end_with_the_request() -> None:
    proxy = proxy_with("{attempts: 5, codes: [503]}", others=", timeouts: {request: 1s}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    proxy.advance(0.1)
    proxy.advance(0.95)  # in the second try
    assert client.received.startswith(b"HTTP/1.1 504 ")
    assert client.received.endswith(b"request timeout")
    assert counted(proxy.metrics, "retried_requests_total") == {"deadline": 1}


def test_a_backoff_that_does_not_fit_is_not_waited_for() -> None:
    proxy = proxy_with("{codes: [503], backoff: 2s}", others=", timeouts: {request: 1s}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY
    assert " retry.given_up=deadline " in proxy.log_lines()[-1]


def test_a_response_is_cut_by_the_deadline() -> None:
    proxy = proxy_with("{codes: [503]}", others=", timeouts: {request: 1s}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    proxy.advance(0.1)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    proxy.advance(1)
    assert client.aborted
    assert client.received.endswith(b"half")


def test_a_client_that_leaves_ends_the_tries() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    client.lose()
    proxy.advance(1)
    assert len(proxy.connector.upstreams) == 1
    assert counted(proxy.metrics, "retried_requests_total") == {"abandoned": 1}


# --- the responses that are let go


@pytest.mark.parametrize(
    ("reply", "stays_open"),
    [
        (BUSY, True),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbu", True),  # the rest comes below
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\n", False),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n", False),  # it never ends
        (b"HTTP/1.1 503 Busy\r\n\r\nuntil the end", False),
        (b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy", False),
    ],
)
def test_the_connection_of_a_response_that_nobody_takes(reply: bytes, stays_open: bool) -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    first = proxy.upstream
    first.answer(reply)
    if reply.endswith(b"bu"):
        first.answer(b"sy")
    proxy.advance(0.1)
    proxy.upstream.answer(OK)
    assert client.received == OK
    proxy.advance(2)
    connection: Any = first.protocol
    assert first.open == stays_open
    assert (connection in connection.endpoint.idle) == stays_open
    assert connection.endpoint.pending == 0


def test_a_response_that_floods_is_cut_off() -> None:
    proxy = proxy_with("{codes: [503]}")
    proxy.connect().send(GET)
    first = proxy.upstream
    first.answer(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n")
    first.answer(b"20000\r\n" + bytes(0x20000) + b"\r\n")
    assert first.aborted


# --- conditions


@pytest.mark.parametrize(
    ("fields", "method", "tried_again"),
    [
        ("{condition: 'response.code == 418'}", b"GET", True),
        ('{condition: \'response.headers["x-again"] == "yes"\'}', b"POST", True),
        ('{condition: \'response.headers["x-absent"] == "yes"\'}', b"GET", False),  # fails: it is not true
        ("{condition: 'request.method == \"PUT\"'}", b"GET", False),
        ("{codes: [418], precondition: 'request.method == \"GET\"'}", b"GET", True),
        ("{codes: [418], precondition: 'request.method == \"GET\"'}", b"POST", False),
        ('{codes: [418], precondition: \'request.headers["x-absent"] == "yes"\'}', b"GET", False),
    ],
)
def test_conditions(fields: str, method: bytes, tried_again: bool) -> None:
    proxy = proxy_with(fields)
    client = proxy.connect()
    client.send(method + GET[3:])
    proxy.upstream.answer(b"HTTP/1.1 418 Tea\r\nX-Again: yes\r\nContent-Length: 0\r\n\r\n")
    proxy.advance(1)
    assert (len(proxy.connector.upstreams) == 2) == tried_again
    assert (client.received == b"") == tried_again


def test_a_precondition_may_read_the_body() -> None:
    fields = "{codes: [503], precondition: 'request.body == b\"again\"'}"
    proxy = proxy_with(fields, others=", timeouts: {request: 1s}")
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nag")
    assert not proxy.connector.upstreams
    proxy.advance(5)  # nothing is sent: the request's time has not begun
    client.send(b"ain")
    proxy.upstream.answer(BUSY)
    proxy.advance(0.1)
    assert sent(proxy.upstream) == (b"1", b"again")


def test_a_body_over_the_limit_has_no_value_for_a_precondition() -> None:
    proxy = proxy_with("{codes: [503], precondition: 'size(request.body) > 0'}")
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2097153\r\n\r\n")
    for _ in range(32):
        client.send(bytes(0x10000))
    client.send(b"1")
    assert len(sent(proxy.upstream)[1]) == 0x200001
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY


def test_a_client_that_leaves_before_its_body_is_whole() -> None:
    proxy = proxy_with("{codes: [503], precondition: 'size(request.body) > 0'}")
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nag")
    client.lose()
    assert not proxy.connector.upstreams
    assert " reason=ClientGone " in proxy.log_lines()[-1]


# --- conditions that read the body of the response

AGAIN = "{condition: 'string(response.body).contains(\"again\")'}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nag", b"ain"],
        [CHUNKED, b"2\r\nag\r\n3\r\nain\r\n", b"0\r\n\r\n"],
    ],
)
@pytest.mark.parametrize("others", ["", ", headerModifiers: {response: {add: [{name: x-out, value: '1'}]}}"])
def test_a_body_that_asks_for_another_try(pieces: list[bytes], others: str) -> None:
    proxy = proxy_with(AGAIN, others=others)
    client = proxy.connect()
    client.send(POST)
    first = proxy.upstream
    for piece in pieces:
        first.answer(piece)
    assert client.received == b""
    assert first.open  # the response was read to its end
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"1", b"body")
    proxy.upstream.answer(CHUNKED)
    proxy.upstream.answer(b"4\r\nfine\r\n")
    assert client.received == b""
    proxy.upstream.answer(b"0\r\nx-trailer: 1\r\n\r\n")
    head, _, body = client.received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (b"x-out: 1" in head) == bool(others)
    assert body == b"4\r\nfine\r\n0\r\nx-trailer: 1\r\n\r\n"
    assert client.open


@pytest.mark.parametrize(
    "reply",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\nagain",  # too large to be held: no body, no other try
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nagain\r\n",
    ],
)
def test_a_body_that_does_not(reply: bytes) -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(reply)
    assert client.received == reply
    assert len(proxy.connector.upstreams) == 1


def test_a_body_that_gets_too_large_while_it_is_held() -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(CHUNKED)
    for _ in range(33):
        assert client.received == b""
        proxy.upstream.answer(b"10000\r\n" + bytes(0x10000) + b"\r\n")
    assert client.received.count(bytes(0x10000)) == 33
    proxy.upstream.answer(b"0\r\n\r\n")
    assert client.received.endswith(b"0\r\n\r\n")


def test_an_endpoint_that_breaks_off_while_its_body_is_held() -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(POST.replace(b"POST", b"PUT"))
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nag")
    break_off(proxy.upstream)
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"1", b"body")
    proxy.upstream.answer(OK)
    assert client.received == OK


def test_nothing_of_a_response_that_was_let_go_is_left() -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain")
    client.lose()
    assert " http.status=499 " in proxy.log_lines()[-1]


def test_a_code_is_decided_before_the_body() -> None:
    proxy = proxy_with("{codes: [503], condition: 'string(response.body).contains(\"again\")'}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\n")
    proxy.advance(0.1)
    proxy.upstream.answer(OK)
    assert client.received == OK


# --- the body


def test_a_body_that_is_still_coming_is_sent_again_from_its_beginning() -> None:
    proxy = proxy_with("{attempts: 3, codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
    proxy.upstream.answer(BUSY)
    assert proxy.upstream.aborted  # it still waits for the rest: it cannot carry another request
    client.send(b"3\r\ntwo\r\n")  # nobody takes it now
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"1", b"6\r\nonetwo\r\n")
    client.send(b"5\r\nthree\r\n")
    assert sent(proxy.upstream) == (b"1", b"6\r\nonetwo\r\n5\r\nthree\r\n")
    break_off(proxy.upstream)
    client.send(b"0\r\n\r\n")
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"2", b"b\r\nonetwothree\r\n0\r\n\r\n")
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert sent(proxy.upstream) == (b"3", b"b\r\nonetwothree\r\n0\r\n\r\n")
    proxy.upstream.answer(OK)
    assert client.received == OK and client.open


def test_between_tries_no_more_than_usual_is_taken_from_the_client() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
    proxy.upstream.answer(BUSY)
    client.send(bytes(100_000))
    assert not client.reading
    proxy.advance(1)
    assert client.reading
    assert len(sent(proxy.upstream)[1]) == 100_000


@pytest.mark.parametrize("framing", [b"Content-Length: 2097153", b"Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_is_sent_once(framing: bytes) -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
    if b"chunked" in framing:
        client.send(b"200001\r\n" + bytes(0x200001) + b"\r\n0\r\n\r\n")
    else:
        client.send(bytes(0x200001))
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY
    assert counted(proxy.metrics, "retried_requests_total") == {"too_large": 1}
    assert " retry.given_up=too_large " in proxy.log_lines()[-1]


def test_nothing_is_kept_of_a_body_that_is_announced_to_be_too_large() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2097153\r\n\r\n" + bytes(1000))
    client.send(bytes(1000))
    assert client.protocol.exchange.copy.pieces == []


def test_a_body_of_exactly_the_limit_is_sent_again() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2097152\r\n\r\n")
    client.send(bytes(0x200000))
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert len(sent(proxy.upstream)[1]) == 0x200000


MEGABYTE = 1_000_000


@pytest.mark.parametrize(("precondition", "least", "most"), [("false", 0, 200_000), ("true", MEGABYTE, 1_300_000)])
def test_memory_of_a_streamed_body(precondition: str, least: int, most: int) -> None:
    proxy = proxy_with(f"{{codes: [503], precondition: '{precondition}'}}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2 * MEGABYTE))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pour(client, proxy, MEGABYTE)
        assert least <= tracemalloc.get_traced_memory()[0] - before <= most
        pour(client, proxy, MEGABYTE)
        proxy.upstream.answer(OK[:-1])
        assert tracemalloc.get_traced_memory()[0] - before <= 200_000  # let go with the head
        proxy.upstream.answer(OK[-1:])
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before <= 200_000  # its log line is not even made yet
    finally:
        tracemalloc.stop()


def pour(client: FakeTransport, proxy: MemoryProxy, size: int) -> None:
    """A client that sends as the endpoint takes it."""
    upstream = proxy.upstream
    for _ in range(0, size, 50_000):
        client.send(bytes(50_000))
        upstream.received = b""
        upstream.writes.clear()


# --- beside it


def test_waits_do_not_count_as_latency_of_an_endpoint() -> None:
    proxy = proxy_with("{codes: [503], backoff: 5s}", "10.0.0.1")
    proxy.connect().send(GET)
    proxy.upstream.answer(BUSY)
    proxy.advance(5)
    proxy.upstream.answer(OK)
    connection: Any = proxy.upstream.protocol
    assert connection.endpoint.latency == INITIAL_LATENCY


def test_a_stale_connection_costs_no_try() -> None:
    proxy = proxy_with("{codes: [503]}", "10.0.0.1")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(OK)
    client.take()
    client.send(GET)
    proxy.upstream.lose()
    assert sent(proxy.upstream)[0] is None
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    proxy.upstream.answer(OK)
    assert client.received == OK
    assert counted(proxy.metrics, "upstream_retries_total") == {"status": 1}


def test_a_try_may_meet_a_stale_connection_too() -> None:
    proxy = proxy_with("{attempts: 2, codes: [503]}", "10.0.0.1")
    client = proxy.connect()
    client.send(GET)
    for _ in range(2):
        proxy.upstream.answer(BUSY)
        proxy.advance(1)
    proxy.upstream.lose()  # the last try, on the connection of the one before
    proxy.upstream.answer(OK)
    assert client.received == OK


def test_a_bug_in_a_later_try_ends_in_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(BUSY)
    monkeypatch.setattr(proxy.context, "resolver", None)
    proxy.advance(1)
    assert client.received.startswith(b"HTTP/1.1 500 ")


def test_a_client_cannot_claim_to_be_a_retry() -> None:
    proxy = proxy_with("{codes: [503]}")
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Retry-Attempt: 7\r\n\r\n")
    assert b"x-retry-attempt" not in proxy.upstream.take().lower()
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert sent(proxy.upstream)[0] == b"1"
    assert b"7" not in re.findall(rb"(?i)x-retry-attempt: (\d)", proxy.upstream.received)


def test_the_next_request_of_the_connection_begins_anew() -> None:
    proxy = proxy_with("{codes: [503]}", "10.0.0.1")
    client = proxy.connect()
    client.send(POST + POST)
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    proxy.upstream.answer(OK)
    assert client.take() == OK
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert proxy.upstream.received.count(b"x-retry-attempt: 1\r\n\r\nbody") == 2
    proxy.upstream.answer(OK)
    assert client.take() == OK
