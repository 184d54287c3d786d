"""Requests of HTTP/1.1 clients to an endpoint of HTTP/2, through a whole proxy in memory."""

from __future__ import annotations

import pytest

from dataplane.http.h2 import errors, frames
from dataplane.http.h2.budget import SERVERS
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.h2_wire import parse
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

FILE = """
backends:
- name: far
  host: 127.0.0.1:9000
  policies: {http: {version: HTTP2}}
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      backends:
      - backend: far
"""
GET = b"GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\nX-A: 1\r\n\r\n"
SETTINGS = frames.settings(b"")


def begun(text: str = FILE, settings: Settings | None = None) -> tuple[MemoryProxy, FakeTransport, Endpoint2]:
    """A proxy that has opened a connection for a GET."""
    proxy = MemoryProxy(text)
    client = proxy.connect()
    client.send(GET)
    return proxy, client, Endpoint2(proxy.upstream, settings or Settings())


def test_a_get() -> None:
    _, client, far = begun()
    (request,) = far.requests
    head = request.head
    assert (head.method, head.scheme, head.authority, head.path) == (b"GET", b"http", b"shop.example", b"/a?b=c")
    assert b"\r\nx-a: 1\r\n" in head.block and b"\r\nhost:" not in head.block and request.done
    assert not head.takes_trailers
    far.answer(request, 200, b"hello", b"\r\ncontent-length: 5\r\nx-b: 2\r\n")
    assert client.received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nx-b: 2\r\n" in client.received and client.received.endswith(b"\r\n\r\nhello")
    assert not far.failures


def test_a_response_that_ends_with_its_head_has_a_length() -> None:
    """An HTTP/1.1 client takes a response without one for one that ends with the connection."""
    _, client, far = begun()
    far.answer(far.requests[0], 200, b"", b"\r\nx-b: 2\r\n")
    assert client.received == b"HTTP/1.1 200 OK\r\nx-b: 2\r\ncontent-length: 0\r\n\r\n"


def test_trailers_alone_of_grpc_stay_as_they_are() -> None:
    _, client, far = begun()
    far.answer(far.requests[0], 200, b"", b"\r\ncontent-type: application/grpc\r\ngrpc-status: 12\r\n")
    assert b"content-length" not in client.received and client.received.endswith(b"\r\n\r\n0\r\n\r\n")


# Bodies and their pace.

POST = b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\n\r\n"


def again(client: FakeTransport, far: Endpoint2, request: bytes) -> None:
    """Another request behind the GET, which is answered first."""
    far.answer(far.requests[-1], 204)
    client.take()
    client.send(request)
    far.turn()


def test_a_post_with_a_length() -> None:
    _, client, far = begun()
    again(client, far, POST)
    request = far.requests[-1]
    assert (request.head.method, request.head.length, request.content, request.done) == (b"POST", 5, b"hello", True)
    far.answer(request, 201, b"made")
    assert client.received.startswith(b"HTTP/1.1 201 Created\r\n") and b"\r\n4\r\nmade\r\n0\r\n\r\n" in client.received


def test_chunks_and_trailers_both_ways() -> None:
    _, client, far = begun()
    again(client, far, CHUNKED + b"3\r\nabc\r\n")
    request = far.requests[-1]
    assert request.head.length == -1 and request.content == b"abc" and not request.done
    assert b"transfer-encoding" not in request.head.block
    client.send(b"2\r\nde\r\n0\r\nx-sum: 1\r\n\r\n")
    far.turn()
    assert (request.content, request.trailers, request.done) == (b"abcde", b"\r\nx-sum: 1\r\n", True)
    far.head(request)
    far.content(request, b"out")
    far.trailers(request, b"\r\nx-end: 2\r\n")
    assert client.received.endswith(b"3\r\nout\r\n0\r\nx-end: 2\r\n\r\n")


def test_interim_responses_pass_and_100_does_not() -> None:
    _, client, far = begun()
    far.interim(far.requests[0], 100)
    assert client.take() == b""
    far.interim(far.requests[0], 103, b"\r\nlink: </a>\r\n")
    assert client.take() == b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    far.answer(far.requests[0], 200, b"x")
    assert client.received.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("status", [204, 304])
def test_responses_without_content(status: int) -> None:
    _, client, far = begun()
    far.head(far.requests[0], status)
    far.content(far.requests[0], b"", True)
    assert client.received.startswith(b"HTTP/1.1 %d " % status) and client.received.endswith(b"\r\n\r\n")
    assert b"transfer-encoding" not in client.received
    client.take()
    client.send(GET)
    far.turn()
    assert len(far.requests) == 2, "the connection goes on"


def test_a_head_request_keeps_its_length() -> None:
    _, client, far = begun()
    again(client, far, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    far.answer(far.requests[-1], 200, b"", b"\r\ncontent-length: 7\r\n")
    assert client.received.startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n")
    assert client.received.endswith(b"\r\n\r\n")


def test_an_endpoint_that_takes_no_more_stops_the_client() -> None:
    _, client, far = begun(settings=Settings(stream_window=65_535))
    again(client, far, CHUNKED)
    far.reads = False
    piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    sent = 0
    while client.reading:
        assert sent < 10, "the client is stopped"
        client.send(piece)
        sent += 1
        far.turn()
    request = far.requests[-1]
    assert len(request.content) == 65_535
    far.codec.acknowledge(request.stream, len(request.content))
    far.turn()
    assert client.reading and len(request.content) == sent * 0x4000
    client.send(b"0\r\n\r\n")
    far.turn()
    far.answer(request)


def test_a_client_that_reads_slowly_stops_its_own_stream_alone() -> None:
    proxy, client, far = begun()
    other = proxy.connect()
    other.send(GET)
    far.turn()
    slow, quick = far.requests
    far.head(slow)
    client.protocol.pause_writing()
    far.codec.send_content(slow.stream, b"s" * 300_000, True)
    far.turn()
    assert slow.stream.waiting >= 300_000 - 65_536, "no window is opened for what nobody takes"
    far.answer(quick, 200, b"q" * 100_000)
    assert other.received.count(b"q") == 100_000
    client.protocol.resume_writing()
    far.turn()
    assert client.received.partition(b"\r\n\r\n")[2].count(b"s") == 300_000 and not slow.stream.waiting


def test_many_slow_clients_do_not_stop_the_others_on_their_connection() -> None:
    proxy, client, far = begun()
    slow = [client, *(proxy.connect() for _ in range(98))]
    for each in slow[1:]:
        each.send(GET)
    far.turn()
    for each, request in zip(slow, list(far.requests), strict=True):
        each.protocol.pause_writing()
        far.head(request)
        far.codec.send_content(request.stream, b"s" * 200_000, True)
    far.turn()
    quick = proxy.connect()
    quick.send(GET)
    far.turn()
    far.answer(far.requests[-1], 200, b"q" * 500_000)
    assert quick.received.count(b"q") == 500_000 and len(proxy.connector.upstreams) == 1


def test_the_window_of_the_connection_comes_back_when_slow_clients_go() -> None:
    """Content that was under way for clients that left is not owed for ever."""
    proxy, client, far = begun()
    for _ in range(250):
        far.now += 1
        client.protocol.pause_writing()
        far.head(far.requests[-1])
        far.codec.send_content(far.requests[-1].stream, b"s" * 60_000, False)
        far.turn()
        client.lose()
        far.turn()
        assert far.requests[-1].reset == errors.CANCEL
        client = proxy.connect()
        client.send(GET)
        far.turn()
    far.answer(far.requests[-1], 200, b"x" * 600_000)
    assert client.received.count(b"x") == 600_000


# What ends otherwise.


def test_a_client_that_leaves_resets_its_stream() -> None:
    proxy, client, far = begun()
    client.lose()
    far.turn()
    assert far.requests[0].reset == errors.CANCEL
    assert proxy.upstream.open, "the connection serves others"


def test_a_response_that_is_whole_before_the_request() -> None:
    _, client, far = begun()
    again(client, far, CHUNKED + b"3\r\nabc\r\n")
    far.answer(far.requests[-1], 413, b"too much")
    assert client.received.startswith(b"HTTP/1.1 413 ") and b"\r\nconnection: close\r\n" in client.received
    assert far.requests[-1].reset == errors.CANCEL


def test_a_response_that_breaks_off_is_noticed_by_the_client() -> None:
    proxy, client, far = begun()
    far.head(far.requests[0])
    far.content(far.requests[0], b"half")
    far.reset(far.requests[0], errors.INTERNAL_ERROR)
    assert b"4\r\nhalf\r\n" in client.received and not client.received.endswith(b"0\r\n\r\n")
    assert not client.open and client.aborted
    assert "reason=UpstreamFailed" in proxy.log_lines()[0]


def test_a_stream_that_is_reset_before_its_response() -> None:
    proxy, client, far = begun()
    far.reset(far.requests[0], errors.INTERNAL_ERROR)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert len(proxy.connector.upstreams) == 1 and len(far.requests) == 1


def test_a_refused_stream_is_sent_again_also_a_post() -> None:
    _, client, far = begun()
    again(client, far, POST)
    far.reset(far.requests[-1], errors.REFUSED_STREAM)
    assert len(far.requests) == 3 and far.requests[-1].content == b"hello"
    far.answer(far.requests[-1], 200, b"ok")
    assert client.received.startswith(b"HTTP/1.1 200 ")


def test_a_post_that_was_seen_is_not_sent_again() -> None:
    _, client, far = begun()
    again(client, far, POST)
    far.interim(far.requests[-1], 103)
    far.upstream.lose()
    assert b"HTTP/1.1 502 " in client.received
    assert len(far.requests) == 2


def test_streams_are_not_refused_for_ever() -> None:
    _, client, far = begun()
    while far.requests[-1].reset is None and not client.received:
        assert len(far.requests) < 10
        far.reset(far.requests[-1], errors.REFUSED_STREAM)
    assert client.received.startswith(b"HTTP/1.1 502 ") and len(far.requests) == 3


def test_goaway_lets_streams_end_and_others_go_elsewhere() -> None:
    proxy, client, far = begun()
    other = proxy.connect()
    other.send(GET)
    far.turn()
    first, second = far.requests
    far.upstream.answer(frames.goaway(first.stream.id, errors.NO_ERROR))
    assert len(proxy.connector.upstreams) == 2, "the second was left out: it is sent on a new connection"
    next_far = Endpoint2(proxy.upstream)
    assert len(next_far.requests) == 1 and second.head.path == next_far.requests[0].head.path
    next_far.answer(next_far.requests[0], 200, b"new")
    assert other.received.endswith(b"3\r\nnew\r\n0\r\n\r\n")
    far.answer(first, 200, b"old")
    assert b"old" in client.received
    assert not far.upstream.open, "it is closed with its last stream"


def test_goaway_while_idle_closes() -> None:
    proxy, _, far = begun()
    far.answer(far.requests[0])
    far.upstream.answer(frames.goaway(1, errors.NO_ERROR))
    assert not far.upstream.open
    assert proxy.context.leases.connector.endpoints


def test_a_lost_connection_loses_all_its_streams() -> None:
    proxy, client, far = begun()
    clients = [client]
    for _ in range(20):
        clients.append(proxy.connect())
        clients[-1].send(POST)
    far.turn()
    far.head(far.requests[3])
    far.content(far.requests[3], b"half")
    proxy.connector.refuse = "no route"
    far.upstream.lose(ConnectionResetError())
    assert sum(each.received.startswith(b"HTTP/1.1 50") for each in clients) == 20
    assert not clients[3].open


def test_a_connection_that_was_closed_while_idle_costs_nobody_anything() -> None:
    proxy, client, far = begun()
    far.answer(far.requests[0])
    client.take()
    client.send(GET)
    far.upstream.lose()  # it has not read the request
    again_far = Endpoint2(proxy.upstream)
    again_far.answer(again_far.requests[0], 200, b"ok")
    assert client.received.startswith(b"HTTP/1.1 200 ")


def test_idle_connections_are_closed_in_time_and_used_ones_are_not() -> None:
    proxy, client, far = begun()
    (endpoint,) = proxy.connector.endpoints
    assert endpoint.shared is not None
    for now in (10.0, 200.0):
        endpoint.shared.close_unused(now, 90.0)
    assert far.upstream.open, "a request is under way"
    far.answer(far.requests[0])
    endpoint.shared.close_unused(300.0, 90.0)
    client.send(GET)
    far.turn()
    far.answer(far.requests[1])
    for now in (380.0, 400.0):
        endpoint.shared.close_unused(now, 90.0)
    assert far.upstream.open, "it was used meanwhile"
    endpoint.shared.close_unused(500.0, 90.0)
    assert not far.upstream.open and not endpoint.shared.connections


def test_an_endpoint_that_does_not_acknowledge_our_settings_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """RFC 9113 6.5.3."""
    proxy = MemoryProxy(FILE)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(SETTINGS)
    proxy.upstream.take()
    (endpoint,) = proxy.connector.endpoints
    assert endpoint.shared is not None
    endpoint.shared.close_unused(9.9, 90.0)
    assert proxy.upstream.open and client.received == b""
    proxy.connector.refuse = "no route"
    endpoint.shared.close_unused(10.1, 90.0)
    (goaway,) = [each for each in parse(proxy.upstream.take()) if each.kind == frames.GOAWAY]
    assert goaway.payload[4:8] == errors.SETTINGS_TIMEOUT.to_bytes(4) and not proxy.upstream.open
    assert client.received.startswith(b"HTTP/1.1 502 ") and not endpoint.shared.connections
    assert faults(proxy) == {"SettingsTimeout": 1} and len(caplog.records) == 1


# Connections that the endpoint breaks.


def faults(proxy: MemoryProxy) -> dict[str, int]:
    """What was counted, by reason."""
    series = proxy.metrics.series()
    return {each.labels[0]: values[0] for each, values in series if each.metric.name == "upstream_http2_faults_total"}


BROKEN = [
    (frames.header(frames.DATA, 0, 0, 1) + b"x", "IdleStream", "code 1: IdleStream"),
    (frames.ping(b"12345678") * (2 * SERVERS["PingFlood"].burst + 10), "PingFlood", "code 11: PingFlood"),
    (frames.goaway(0, 11, b"too_many_pings"), "GoAway", "it sent GOAWAY with code 11: b'too_many_pings'"),
]


@pytest.mark.parametrize(("sent", "reason", "said"), BROKEN, ids=[reason for _, reason, _ in BROKEN])
def test_a_broken_connection_is_counted_each_time_and_logged_once_a_minute(
    sent: bytes, reason: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = MemoryProxy(FILE)
    for number in range(1, 6):
        client = proxy.connect()
        client.send(GET)
        far = Endpoint2(proxy.upstream)
        far.upstream.answer(sent)
        if far.upstream.open:
            far.upstream.lose()
        assert faults(proxy) == {reason: number}
    line = f"http2 connection to 127.0.0.1:9000 is broken: {said}"
    assert [each.getMessage() for each in caplog.records] == [line]
    proxy.connector.advance(61)
    proxy.connect().send(GET)
    Endpoint2(proxy.upstream).upstream.answer(sent)
    assert caplog.records[1].getMessage() == line + " (4 more since the last line)" and len(caplog.records) == 2


def test_a_connection_that_ends_in_order_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    proxy, _, far = begun()
    far.answer(far.requests[0])
    far.upstream.answer(frames.goaway(1, 0, b"bye"))
    far.upstream.lose()
    assert faults(proxy) == {} and not caplog.records


# Endpoints that are none.


def answered(proxy: MemoryProxy, client: FakeTransport) -> tuple[bytes, str]:
    """The status line, and the line of the log."""
    return client.received.partition(b"\r\n")[0], proxy.log_lines()[0]


def test_an_endpoint_that_speaks_http1() -> None:
    proxy = MemoryProxy(FILE)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
    status, line = answered(proxy, client)
    assert status == b"HTTP/1.1 503 Service Unavailable"
    assert "it speaks HTTP/1, where HTTP/2 was expected" in line and "reason=ConnectFailed" in line
    assert not proxy.upstream.open


def test_an_endpoint_that_closes_before_its_settings() -> None:
    proxy = MemoryProxy(FILE)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.lose()
    assert "closed before its HTTP/2 SETTINGS came" in answered(proxy, client)[1]


def test_requests_wait_for_the_first_connection_and_not_for_ever() -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    clients = [proxy.connect() for _ in range(30)]
    for each in clients:
        each.send(GET)
    assert len(proxy.connector.waiting) == 1, "one connection for all"
    for each in clients[:10]:
        each.lose()
    proxy.connector.advance(15)
    assert all(each.received.startswith(b"HTTP/1.1 503 ") for each in clients[10:])
    assert "no HTTP/2 stream free within 10 s" in proxy.log_lines()[-1]


def test_each_waits_about_ten_seconds_and_one_timer_serves_all() -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    clients = [proxy.connect() for _ in range(4)]
    for each in clients[:3]:
        each.send(GET)
    clients[0].lose()
    for _ in range(3):
        assert len(proxy.connector.timers) == 1
        proxy.connector.advance(2.5)
    clients[3].send(GET)
    assert not any(each.received for each in clients)
    proxy.connector.advance(2.5)
    assert [each.received[9:12] for each in clients] == [b"", b"503", b"503", b""]
    for _ in range(3):
        assert len(proxy.connector.timers) == 1 and not clients[3].received
        proxy.connector.advance(2.5)
    assert clients[3].received[9:12] == b"503" and not proxy.connector.timers
    assert not proxy.context.leases.connector.endpoints or all(
        each.shared is not None and not each.shared.waiting for each in proxy.context.leases.connector.endpoints
    )


def test_who_waits_alone_waits_for_ten_seconds() -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(GET)
    for _ in range(39):
        proxy.connector.advance(0.25)
    assert not client.received
    proxy.connector.advance(0.25)
    assert client.received.startswith(b"HTTP/1.1 503 ")


def test_too_many_that_wait() -> None:
    """4,096 of one endpoint; who is gone does not count."""
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    clients = [proxy.connect((f"10.0.{number >> 8}.{number & 255}", 1)) for number in range(4096)]
    for each in clients:
        each.send(GET)
    (late, later) = proxy.connect(), proxy.connect()
    late.send(GET)
    assert late.received.startswith(b"HTTP/1.1 503 ")
    assert "too many requests wait for an HTTP/2 stream" in proxy.log_lines()[-1]
    clients[7].lose()
    later.send(GET)
    assert not later.received
    proxy.connector.refuse = "no route"
    proxy.connector.release()
    proxy.connector.advance(0.0)  # they are answered a few at a time
    assert later.received.startswith(b"HTTP/1.1 503 ")


def test_one_client_leaves_streams_to_wait_for_to_others(caplog: pytest.LogCaptureFixture) -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    clients = [proxy.connect() for _ in range(3073)]  # of 4,096 three quarters are one client's
    for each in clients:
        each.send(GET)
    assert clients[-1].received.startswith(b"HTTP/1.1 503 ") and b"\r\nretry-after: 1\r\n" in clients[-1].received
    assert "reason=BackendBusy" in proxy.log_lines()[-1]
    assert "share of a pool is used up (http2Waiting)" in caplog.text
    other = proxy.connect(("198.51.100.7", 1))
    other.send(GET)
    assert not other.received
    proxy.connector.refuse = "no route"
    proxy.connector.release()
    proxy.connector.advance(0.0)
    assert other.received.startswith(b"HTTP/1.1 503 ")


def test_requests_that_waited_all_go_out() -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    clients = [proxy.connect() for _ in range(30)]
    for each in clients:
        each.send(GET)
    clients[0].lose()
    proxy.connector.hold = False
    proxy.connector.release()
    far = Endpoint2(proxy.upstream)
    assert len(far.requests) == 29
    for request in list(far.requests):
        far.answer(request)
    assert all(each.received.startswith(b"HTTP/1.1 200 ") for each in clients[1:])


def test_a_thousand_streams_over_connections_of_a_hundred() -> None:
    proxy = MemoryProxy(FILE)
    clients = [proxy.connect() for _ in range(1000)]
    fars: list[Endpoint2] = []
    for each in clients:
        each.send(GET)
        while len(fars) < len(proxy.connector.upstreams):
            fars.append(Endpoint2(proxy.connector.upstreams[len(fars)], Settings(max_streams=100)))
    for far in fars:
        far.turn()
        assert len(far.requests) == 100
        for request in list(far.requests):
            far.answer(request)
    assert len(fars) == 10
    assert all(each.received.startswith(b"HTTP/1.1 200 ") for each in clients)


def test_connections_are_bounded_and_the_rest_waits() -> None:
    proxy = MemoryProxy(FILE)
    clients = [proxy.connect() for _ in range(50)]
    fars: list[Endpoint2] = []
    for each in clients:
        each.send(GET)
        while len(fars) < len(proxy.connector.upstreams):
            fars.append(Endpoint2(proxy.connector.upstreams[len(fars)], Settings(max_streams=1)))
    for far in fars:
        far.turn()
    assert len(fars) == 32 and sum(len(far.requests) for far in fars) == 32
    at = 0
    while at < len(fars[0].requests):
        fars[0].answer(fars[0].requests[at])
        at += 1
    assert at == 19, "who waits gets the streams that end"


def test_an_endpoint_that_goes_away_at_once_is_not_asked_for_ever() -> None:
    proxy = MemoryProxy(FILE)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(SETTINGS + frames.goaway(0, errors.NO_ERROR))
    status, line = answered(proxy, client)
    assert status == b"HTTP/1.1 503 Service Unavailable" and "GOAWAY" in line
    assert len(proxy.connector.upstreams) == 1 and not proxy.upstream.open


def test_an_endpoint_that_goes_away_with_each_request_is_not_asked_for_ever() -> None:
    proxy = MemoryProxy(FILE)
    client = proxy.connect()
    client.send(GET)
    for number in range(10):
        if number < len(proxy.connector.upstreams):
            far = proxy.connector.upstreams[number]
            far.answer(SETTINGS)
            far.answer(frames.goaway(0, errors.NO_ERROR))
    assert len(proxy.connector.upstreams) == 3
    assert client.received.startswith(b"HTTP/1.1 502 ")


def test_an_endpoint_that_takes_no_stream_at_all() -> None:
    proxy = MemoryProxy(FILE)
    clients = [proxy.connect() for _ in range(300)]
    for each in clients:
        each.send(GET)
    at = 0
    while at < len(proxy.connector.upstreams):
        Endpoint2(proxy.connector.upstreams[at], Settings(max_streams=0))
        at += 1
    assert at <= 3
    proxy.connector.advance(15)
    assert all(each.received.startswith(b"HTTP/1.1 503 ") for each in clients)


def test_requests_that_wait_while_their_endpoint_leaves_the_table() -> None:
    proxy = MemoryProxy(FILE)
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(GET)
    proxy.load(FILE.replace("127.0.0.1:9000", "127.0.0.1:9001"))
    proxy.connector.hold = False
    proxy.connector.release()
    assert len(proxy.connector.upstreams) == 1
    far = Endpoint2(proxy.upstream)
    far.answer(far.requests[0], 200, b"old")
    assert client.received.startswith(b"HTTP/1.1 200 ") and not far.upstream.open


def test_connections_of_an_endpoint_that_leaves_the_table_close() -> None:
    proxy, client, far = begun()
    other = proxy.connect()
    other.send(GET)
    far.turn()
    far.answer(far.requests[0])
    proxy.load(FILE.replace("127.0.0.1:9000", "127.0.0.1:9001"))
    assert far.upstream.open, "a request is under way"
    far.answer(far.requests[1])
    assert not far.upstream.open and len(far.goaways) == 1
    assert client.received.startswith(b"HTTP/1.1 200 ") and other.received.startswith(b"HTTP/1.1 200 ")


def test_a_client_of_http10_that_names_no_host() -> None:
    _, client, far = begun()
    again(client, far, b"GET / HTTP/1.0\r\n\r\n")
    assert far.requests[-1].head.authority == b"localhost", "the server names one"
    far.answer(far.requests[-1], 200, b"x")
    assert client.received.startswith(b"HTTP/1.1 200 ") and not client.open


def test_expect_is_answered_here() -> None:
    _, client, far = begun()
    again(client, far, b"POST / HTTP/1.1\r\nHost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hello")
    far.turn()
    request = far.requests[-1]
    assert request.content == b"hello" and not request.head.expect
    far.answer(request)


def test_what_belongs_to_the_client_s_connection_stays_there() -> None:
    _, client, far = begun()
    lines = b"connection: keep-alive, x-mine\r\nkeep-alive: 5\r\nx-mine: 1\r\nte: trailers, gzip\r\n"
    again(client, far, b"GET / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n")
    block = far.requests[-1].head.block
    assert not [name for name in (b"connection", b"keep-alive", b"x-mine", b"te:") if b"\r\n" + name in block]
    assert not far.failures


def test_mirrors_and_retries_go_over_http2_too() -> None:
    text = FILE + "      policies: {requestMirror: {backendRef: {backend: far}}, retry: {codes: [503], attempts: 1}}\n"
    proxy, client, far = begun(text.replace("backendRef: {backend: far}", "backend: far"))
    assert len(far.requests) == 2, "the request and its copy"
    for request in list(far.requests):
        far.answer(request, 503, b"no")
    proxy.advance(1)
    far.turn()
    assert len(far.requests) == 3 and b"x-retry-attempt: 1" in far.requests[-1].head.block
    far.answer(far.requests[-1], 200, b"yes")
    assert client.received.startswith(b"HTTP/1.1 200 ")


# A hostile endpoint.

HOSTILE = {
    "endless 1xx": (frames.headers(1, b"\x08\x03103", False, 16_384) * 200, "Interim"),
    "a status that is none": (frames.headers(1, b"\x08\x03abc", True, 16_384), "PseudoHeader"),
    "upper-case names": (frames.headers(1, b"\x88\x00\x03X-A\x011", True, 16_384), "FieldName"),
    "a line feed in a value": (frames.headers(1, b"\x88\x00\x03x-a\x03a\nb", True, 16_384), "FieldValue"),
    "connection headers": (
        frames.headers(1, b"\x88\x00\x11transfer-encoding\x07chunked", True, 16_384),
        "ConnectionHeader",
    ),
    "more than its length": (
        frames.headers(1, b"\x88\x0f\x0d\x011", False, 16_384) + b"\x00\x00\x02\x00\x01\x00\x00\x00\x01ab",
        "ContentLength",
    ),
    "content before a head": (b"\x00\x00\x02\x00\x01\x00\x00\x00\x01ab", "NoHead"),
}


@pytest.mark.parametrize(("sent", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_malformed_response(sent: bytes, reason: str) -> None:
    proxy, client, far = begun()
    proxy.upstream.answer(sent)
    assert not client.received.startswith(b"HTTP/1.1 2") or not client.open
    line = proxy.log_lines()[0]
    assert reason in line or "reason=UpstreamFailed" in line
    other = proxy.connect()
    other.send(GET)
    far.turn()
    far.answer(far.requests[-1], 200, b"fine")
    assert b"fine" in other.received, "the other streams go on"


BROKEN = {
    "garbage": b"\xff" * 100,
    "a push": frames.headers(1, b"", False, 16_384)[:3] + b"\x05\x04\x00\x00\x00\x01",
    "a stream that nobody opened": b"\x00\x00\x04\x03\x00\x00\x00\x00\x63\x00\x00\x00\x00",
    "a flood of pings": frames.ping(b"12345678") * 3000,
    "a flood of settings": SETTINGS * 1000,
    "an endless header block": b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x88"
    + b"\x00\x00\x00\x09\x00\x00\x00\x00\x01" * 100,
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_a_broken_connection(sent: bytes) -> None:
    proxy, client, _ = begun()
    proxy.connector.hold = True
    upstream = proxy.upstream
    upstream.answer(sent)
    for _ in range(10):  # what a turn of the loop left
        if upstream.open:
            upstream.protocol.flush()
    assert not upstream.open
    assert client.received.startswith(b"HTTP/1.1 502 ") and "HTTP/2 connection error" in proxy.log_lines()[0]


def test_a_head_over_the_limit() -> None:
    proxy, client, far = begun()
    many = b"".join(b"\r\nx-%d: %b" % (number, b"v" * 1000) for number in range(70))
    far.head(far.requests[0], 200, many + b"\r\n")
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert "HeadersTooLarge" in proxy.log_lines()[0]


def test_a_window_that_never_opens_ends_with_the_request() -> None:
    text = FILE + "      policies: {timeouts: {request: 5s}}\n"
    proxy, client, far = begun(text, Settings(stream_window=1))
    again(client, far, b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000)
    far.reads = False
    proxy.advance(6)
    far.turn()
    assert client.received.startswith(b"HTTP/1.1 504 ")
    assert far.requests[-1].reset == errors.CANCEL


# Upgrades.

UPGRADE = (
    b"GET /chat HTTP/1.1\r\nHost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_a_websocket_becomes_extended_connect() -> None:
    _, client, far = begun()
    again(client, far, UPGRADE)
    request = far.requests[-1]
    assert (request.head.method, request.head.protocol, request.head.path) == (b"CONNECT", b"websocket", b"/chat")
    assert b"sec-websocket-key" not in request.head.block and b"sec-websocket-version: 13" in request.head.block
    far.head(request)
    assert client.received.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in client.take()  # RFC 6455 1.3
    client.send(b"ping")
    far.turn()
    assert request.content == b"ping"
    far.content(request, b"pong")
    assert client.take() == b"pong"
    far.content(request, b"bye", True)
    assert client.take() == b"bye" and client.eof
    client.half_close()
    far.turn()
    assert request.done and not client.open


def test_a_websocket_that_the_endpoint_refuses() -> None:
    _, client, far = begun()
    again(client, far, UPGRADE)
    far.answer(far.requests[-1], 403, b"no", b"\r\ncontent-length: 2\r\n")
    assert client.received.startswith(b"HTTP/1.1 403 ") and client.received.endswith(b"no")


def test_a_tunnel_that_is_reset_is_broken_off() -> None:
    _, client, far = begun()
    again(client, far, UPGRADE)
    far.head(far.requests[-1])
    far.reset(far.requests[-1], errors.CANCEL)
    assert client.aborted


def test_an_upgrade_to_one_of_several_protocols_is_none_of_http2() -> None:
    """RFC 8441 4: `:protocol` is one."""
    both = "    - name: all\n      policies: {upgrades: {protocols: [websocket, other]}}\n"
    proxy, client, far = begun(FILE.replace("    - name: all\n", both), Settings(connect_protocol=True))
    far.answer(far.requests[0])
    client.take()
    client.send(UPGRADE.replace(b"upgrade: websocket", b"upgrade: websocket, other"))
    assert client.received.startswith(b"HTTP/1.1 50") and len(far.requests) == 1
    assert "one of several protocols" in proxy.log_lines()[-1]


def test_an_endpoint_without_extended_connect() -> None:
    proxy, client, far = begun(settings=Settings(connect_protocol=False))
    again(client, far, UPGRADE)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert "extended CONNECT (RFC 8441)" in proxy.log_lines()[-1]


# Which version.


def test_grpc_keeps_http2_where_nothing_is_said() -> None:
    proxy = MemoryProxy(FILE.replace("  policies: {http: {version: HTTP2}}\n", ""))
    client = proxy.connect()
    client.send(POST.replace(b"\r\n\r\n", b"\r\ncontent-type: application/grpc+proto\r\n\r\n"))
    far = Endpoint2(proxy.upstream)
    assert far.requests[0].head.takes_trailers and far.requests[0].content == b"hello"
    far.head(far.requests[0], 200, b"\r\ncontent-type: application/grpc\r\n")
    far.trailers(far.requests[0], b"\r\ngrpc-status: 0\r\n")
    assert client.received.endswith(b"0\r\ngrpc-status: 0\r\n\r\n")
    client.take()
    client.send(GET)
    assert proxy.upstream.received.startswith(b"GET /a?b=c HTTP/1.1\r\n")
    proxy.upstream.answer(b"HTTP/1.1 204 No Content\r\n\r\n")


def test_a_route_names_the_version() -> None:
    text = FILE.replace("  policies: {http: {version: HTTP2}}\n", "") + "      policies: {http: {version: HTTP2}}\n"
    _, client, far = begun(text)
    far.answer(far.requests[0], 200, b"x")
    assert client.received.startswith(b"HTTP/1.1 200 ")


def test_the_backend_wins_over_the_route() -> None:
    proxy = MemoryProxy(FILE + "      policies: {http: {version: HTTP1}}\n")
    client = proxy.connect()
    client.send(GET)
    assert Endpoint2(proxy.upstream).requests


def test_an_edit_of_the_version_acts_on_the_next_request() -> None:
    proxy, client, far = begun()
    far.answer(far.requests[0])
    proxy.load(FILE.replace("HTTP2", "HTTP1"))
    client.send(GET)
    assert proxy.upstream.received.startswith(b"GET /a?b=c HTTP/1.1\r\n")
    proxy.upstream.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
