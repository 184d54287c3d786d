"""WebSocket over HTTP/2 (RFC 8441): an extended CONNECT is the upgrade that it stands for."""

from __future__ import annotations

import base64
import re

import pytest

from dataplane.http.h2.errors import CANCEL, NO_ERROR
from dataplane.http.h2.frames import RST_STREAM
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, data, frame, headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.policy_run import served

CONNECT = (
    (b":method", b"CONNECT"),
    (b":protocol", b"websocket"),
    (b":scheme", b"http"),
    (b":authority", b"a.example"),
    (b":path", b"/chat?room=1"),
    (b"sec-websocket-version", b"13"),
    (b"origin", b"http://a.example"),
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
)


def begun(text: str = served("policies: {}")) -> tuple[MemoryProxy, FrameClient]:
    proxy = Http1Endpoints(text)
    client = FrameClient(proxy)
    client.send(headers(1, CONNECT, end=False))
    return proxy, client


def tunnel() -> tuple[MemoryProxy, FrameClient]:
    proxy, client = begun()
    proxy.upstream.answer(SWITCH)
    proxy.upstream.take()
    client.take()
    return proxy, client


class TestBegins:
    def test_as_an_upgrade_with_a_key_of_ours(self) -> None:
        proxy, _ = begun()
        sent = proxy.upstream.received
        assert sent.startswith(b"GET /chat?room=1 HTTP/1.1\r\nhost: a.example\r\nsec-websocket-version: 13\r\n")
        assert sent.endswith(b"\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        (key,) = re.findall(rb"\r\nsec-websocket-key: (\S+)\r\n", sent)
        assert len(base64.b64decode(key)) == 16

    def test_with_a_new_key_each_time_and_never_the_clients(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        for number in range(2):
            client.send(headers(1 + 2 * number, (*CONNECT, (b"sec-websocket-key", b"mine")), end=False))
        keys = [re.findall(rb"sec-websocket-key: (\S+)", each.received) for each in proxy.connector.upstreams]
        assert [len(each) for each in keys] == [1, 1] and keys[0] != keys[1] and [b"mine"] not in keys

    def test_with_200_and_without_the_proof_of_http1(self) -> None:
        proxy, client = begun()
        proxy.upstream.answer(SWITCH + b"first")
        head, content = client.take()
        assert (head, head.headers) == (Said("head", 1, 200), {b"sec-websocket-protocol": b"chat"})
        assert content == Said("data", 1, b"first")

    def test_with_what_the_client_sent_too_early(self) -> None:
        proxy, client = begun()
        client.send(data(1, b"one"), data(1, b"two"))
        assert not proxy.upstream.received.endswith(b"onetwo")
        proxy.upstream.answer(SWITCH)
        assert proxy.upstream.received.endswith(b"\r\n\r\nonetwo")

    def test_with_no_more_than_a_window_too_early(self) -> None:
        _, client = begun()
        for _ in range(4):
            client.send(data(1, bytes(16_384)))
        client.frames()
        assert 1 not in client.windows

    def test_with_the_steps_that_see_a_get(self) -> None:
        rules = "{action: Deny, policy: {matchExpressions: ['request.method != \"GET\"']}}"
        proxy, client = begun(served(f"policies: {{authorization: {rules}}}"))
        proxy.upstream.answer(SWITCH)
        assert client.take()[0] == Said("head", 1, 200)


class TestIsRefused:
    @pytest.mark.parametrize("status", [200, 204, 206])
    def test_where_the_answer_would_pass_for_a_tunnel(self, status: int) -> None:
        """RFC 8441 5: 2xx says that it stands."""
        proxy, client = begun()
        proxy.upstream.answer(b"HTTP/1.1 %d Fine\r\nX-A: 1\r\n\r\nendless" % status)
        assert client.take()[0] == Said("head", 1, 502, end=True)
        proxy.advance(0.1)
        assert not proxy.upstream.open
        assert " http.status=502 " in proxy.log_lines()[0] and " reason=UpgradeFailed " in proxy.log_lines()[0]
        client.send(headers(3, GET))
        assert client.open and len(proxy.connector.upstreams) == 2

    def test_where_a_step_answers_2xx(self) -> None:
        proxy, client = begun(served("policies: {directResponse: {status: 200, body: hello}}"))
        assert client.take()[0] == Said("head", 1, 502, end=True)
        assert not proxy.connector.upstreams

    @pytest.mark.parametrize("status", [302, 403, 500])
    def test_where_the_answer_says_so(self, status: int) -> None:
        proxy, client = begun()
        proxy.upstream.answer(b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno" % status)
        assert client.take() == [Said("head", 1, status), Said("data", 1, b"no", True), Said("reset", 1, NO_ERROR)]

    def test_where_the_endpoint_switches_to_something_else(self) -> None:
        proxy, client = begun()
        proxy.upstream.answer(SWITCH.replace(b"websocket", b"other"))
        assert client.take()[0] == Said("head", 1, 502)

    @pytest.mark.parametrize("protocol", [b"h2c", b"H2"])
    def test_where_it_asks_for_http2_within_http2(self, protocol: bytes) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, [(name, protocol if name == b":protocol" else value) for name, value in CONNECT]))
        assert client.take()[0] == Said("head", 1, 501) and not proxy.connector.upstreams


@pytest.mark.parametrize(
    ("protocol", "passes"),
    [(b"websocket", True), (b"WebSocket", True), (b"any", True), (b"h2c", False), (b"H2", False), (b"h3", False)],
)
def test_what_may_be_switched_to_is_the_same_for_both_versions(protocol: bytes, passes: bool) -> None:
    """HTTP itself would be a way past routes and policies."""
    text = served("policies: {upgrades: {protocols: [websocket, any]}}")
    older = Http1Endpoints(text)
    older.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % protocol)
    newer = Http1Endpoints(text)
    client = FrameClient(newer)
    client.send(headers(1, [(name, protocol if name == b":protocol" else value) for name, value in CONNECT], end=False))
    asked = b"\r\nconnection: upgrade\r\nupgrade: " + protocol
    assert (asked.lower() in older.upstream.received.lower()) is passes
    if passes:
        assert asked in newer.upstream.received
        assert (b"sec-websocket-key" in newer.upstream.received) is (protocol.lower() == b"websocket")
    else:
        assert client.take()[0] == Said("head", 1, 501) and not newer.connector.upstreams


class TestEnds:
    def test_each_direction_by_itself(self) -> None:
        proxy, client = tunnel()
        client.send(data(1, b"last", end=True))
        assert proxy.upstream.take() == b"last" and proxy.upstream.eof
        proxy.upstream.answer(b"still")
        assert client.take() == [Said("data", 1, b"still")]
        proxy.upstream.half_close()
        assert client.take() == [Said("data", 1, b"", end=True)]
        assert " request.bytes=4 response.bytes=5 " in proxy.log_lines()[0]

    def test_when_the_endpoint_closes(self) -> None:
        proxy, client = tunnel()
        proxy.upstream.lose()
        assert client.take() == [Said("data", 1, b"", end=True), Said("reset", 1, NO_ERROR)]

    def test_when_the_endpoint_breaks_off(self) -> None:
        proxy, client = tunnel()
        proxy.upstream.lose(ConnectionResetError())
        assert client.take() == [Said("reset", 1, CANCEL)]

    def test_when_the_client_resets(self) -> None:
        proxy, client = tunnel()
        client.send(frame(RST_STREAM, 0, 1, CANCEL.to_bytes(4)))
        assert not proxy.upstream.open and proxy.left() == []

    def test_with_a_client_that_ended_before_it_stood(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, CONNECT, end=True))
        proxy.upstream.answer(SWITCH)
        assert proxy.upstream.eof
        proxy.upstream.answer(b"answer")
        proxy.upstream.half_close()
        assert client.take() == [Said("head", 1, 200), Said("data", 1, b"answer"), Said("data", 1, b"", end=True)]


def test_content_waits_for_windows_both_ways() -> None:
    proxy, client = tunnel()
    proxy.upstream.protocol.pause_writing()
    for _ in range(4):
        client.send(data(1, bytes(16_000)))
    client.frames()
    assert 1 not in client.windows
    proxy.upstream.protocol.resume_writing()
    client.frames()
    assert client.windows[1] == 64_000
    proxy.upstream.answer(bytes(100_000))
    assert not proxy.upstream.reading


def test_a_stream_whose_endpoint_declines_ends_behind_the_answer() -> None:
    """The client's side is open still: NO_ERROR says that nothing more of it is wanted (RFC 9113 8.1)."""
    proxy, client = begun()
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    said = client.take()
    proxy.advance(0.1)
    assert [*said, *client.take()] == [Said("head", 1, 502, end=True), Said("reset", 1, NO_ERROR)] and client.open
