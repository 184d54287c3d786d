"""What a downstream HTTP/2 connection counts, adds, gives back and waits for, beside carrying requests."""

from __future__ import annotations

import pytest

from dataplane.http.h2.errors import CANCEL, NO_ERROR
from dataplane.http.h2.frames import RST_STREAM, SETTING, SETTINGS
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, POST, data, frame, headers
from tests.fakes.memory_proxy import FakeUpstream, Http1Endpoints
from tests.unit.server_h2.test_h2_websocket import CONNECT, tunnel

TWO = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


def begun() -> tuple[Http1Endpoints, FrameClient]:
    proxy = Http1Endpoints()
    return proxy, FrameClient(proxy)


def rejected(proxy: Http1Endpoints) -> dict[str, int]:
    series = proxy.metrics.series()
    return {each.labels[0]: values[0] for each, values in series if each.metric.name == "http_rejected_total"}


def content_of(upstream: FakeUpstream) -> bytes:
    return upstream.take().partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("own", [(), ((b"x-request-id", b"mine"),)])
def test_each_request_has_one_id(own: tuple[tuple[bytes, bytes], ...]) -> None:
    proxy, client = begun()
    for number in (1, 3):
        client.send(headers(number, (*GET, *own)))
        sent = proxy.upstream.take()
        assert sent.count(b"\r\nx-request-id: ") == 1
        assert (b"\r\nx-request-id: mine\r\n" in sent) == bool(own)
        proxy.upstream.answer(TWO + b"ok")


def test_the_log_says_the_version() -> None:
    proxy, client = begun()
    client.send(headers(1, GET))
    proxy.upstream.answer(TWO + b"ok")
    assert " http.version=HTTP/2 " in proxy.log_lines()[0]


REFUSED = {
    "ConnectNotAllowed": ((b":method", b"CONNECT"), (b":authority", b"a:1")),
    "MethodNotImplemented": ((b":method", b"BREW"), *GET[1:]),
    "HeadersTooLarge": (*GET, *((b"x-%d" % number, b"1") for number in range(101))),
}


@pytest.mark.parametrize("reason", REFUSED)
@pytest.mark.parametrize("ends", [True, False])
def test_what_is_refused_is_counted_by_its_reason(reason: str, ends: bool) -> None:
    """And what comes of its content holds no window."""
    proxy, client = begun()
    client.send(headers(1, REFUSED[reason], end=ends))
    if not ends:
        client.send(data(1, b"x" * 1000))
    client.send(headers(3, GET))
    proxy.upstream.answer(TWO + b"ok")
    assert client.take()[-1] == Said("data", 3, b"ok", end=True)
    assert rejected(proxy) == {reason: 1}


def test_what_a_client_resets_is_not_counted_as_rejected() -> None:
    proxy, client = begun()
    client.send(headers(1, POST, end=False), frame(RST_STREAM, 0, 1, CANCEL.to_bytes(4)))
    assert rejected(proxy) == {}
    client.send(headers(3, POST, end=False), headers(3, [(b"x-a", b"1")], end=False))
    assert rejected(proxy) == {"Trailers": 1}


def test_trailers_of_a_request_without_content() -> None:
    """It was sent whole with its head: nothing of them follows."""
    proxy, client = begun()
    client.send(headers(1, (*POST, (b"content-length", b"0")), end=False), headers(1, [(b"x-a", b"1")]))
    assert proxy.upstream.received.endswith(b"\r\n\r\n") and b"chunked" not in proxy.upstream.received
    proxy.upstream.answer(TWO + b"ok")
    assert client.take()[-1] == Said("data", 1, b"ok", end=True)


def test_trailers_in_a_tunnel_are_its_end() -> None:
    proxy, client = tunnel()
    client.send(headers(1, [(b"x-a", b"1")]))
    assert proxy.upstream.eof and proxy.upstream.open
    proxy.upstream.lose()


def test_a_tunnel_has_no_length_and_waits_for_nothing() -> None:
    proxy, client = begun()
    client.send(headers(1, (*CONNECT, (b"content-length", b"5"), (b"expect", b"100-continue")), end=False))
    assert client.take() == [] and proxy.upstream.received.startswith(b"GET ")
    assert b"chunked" not in proxy.upstream.received
    client.send(frame(RST_STREAM, 0, 1, CANCEL.to_bytes(4)))


def test_windows_come_back_of_requests_that_their_endpoint_did_not_read() -> None:
    """Each was sent whole, and answered while a part of it waited for the endpoint."""
    proxy, client = begun()
    for number in range(1, 41, 2):
        client.send(headers(number, POST, end=False))
        upstream = proxy.upstream
        upstream.protocol.pause_writing()
        for _ in range(3):
            client.send(data(number, bytes(16_000)))
        client.send(data(number, bytes(12_000), end=True))
        upstream.answer(b"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        assert Said("head", number, 413, end=True) in client.take()
    assert client.open and rejected(proxy) == {}
    client.frames()
    assert client.windows[0] >= 20 * 60_000 - 270_000


def test_the_window_of_content_that_came_at_once_comes_back_when_it_is_taken() -> None:
    proxy, client = begun()
    proxy.connector.hold = True
    before = client.windows[0]
    for number in range(1, 61, 2):
        client.send(headers(number, POST, end=False), data(number, bytes(16_000), end=True))
    client.frames()
    assert client.windows[0] == before, "30 bodies wait for their endpoints"
    proxy.connector.release()
    client.frames()
    assert client.windows[0] >= before + 30 * 16_000 - 270_000
    chunked = b"3e80\r\n" + bytes(16_000) + b"\r\n0\r\n\r\n"
    assert [*map(content_of, proxy.connector.upstreams)] == [chunked] * 30


def test_exchanges_under_way_are_those_that_have_not_ended() -> None:
    """One that has said all may still wait for its client's window."""
    proxy, client = begun()
    client.send(frame(SETTINGS, 0, 0, SETTING.pack(4, 0)))
    client.send(headers(1, GET), headers(3, GET))
    proxy.connector.upstreams[0].answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    connection = client.transport.protocol
    assert len(connection.codec.streams) == 2
    assert [each.path for each in connection.exchanges()] == [b"/"] and connection.exchange is connection.exchanges()[0]
    client.send(frame(RST_STREAM, 0, 3, CANCEL.to_bytes(4)))
    assert connection.exchanges() == [] and connection.exchange is None


def test_a_drain_gives_clients_a_second_to_hear_of_it() -> None:
    proxy, client = begun()
    client.transport.protocol.drain()
    announced = client.take()
    assert [each.kind for each in announced] == ["goaway", "ping"]
    proxy.advance(0.8)
    assert client.take() == [] and not client.is_ended
    client.send(headers(1, GET))
    proxy.advance(0.4)
    assert client.take() == [Said("goaway", 1, NO_ERROR)] and not client.is_ended
    proxy.upstream.answer(TWO + b"ok")
    assert client.take()[-1] == Said("data", 1, b"ok", end=True) and client.is_ended
    assert client.open, "its last words may be on the way"
    proxy.advance(0.8)
    assert client.open
    proxy.advance(0.4)
    assert not client.open
