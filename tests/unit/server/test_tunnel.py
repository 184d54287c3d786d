"""Upgrades: when two connections become a tunnel, what passes through it, and how it ends."""

from __future__ import annotations

import pytest

from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"

Tunnel = tuple[MemoryProxy, FakeTransport]


@pytest.fixture
def tunnel() -> Tunnel:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(REQUEST)
    proxy.upstream.answer(SWITCH)
    return proxy, client


class TestBegins:
    def test_with_what_came_behind_the_head(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(REQUEST)
        sent = proxy.upstream.take()
        assert b"\r\nconnection: upgrade\r\nupgrade: websocket\r\n" in sent
        proxy.upstream.answer(SWITCH + b"\x81\x00")
        assert client.take() == SWITCHED + b"\x81\x00"

    def test_with_what_the_client_sent_too_early(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(REQUEST + b"first")
        client.send(b" words")
        assert not proxy.upstream.take().endswith(b"first")
        proxy.upstream.answer(SWITCH)
        assert proxy.upstream.received == b"first words"

    def test_reads_on_where_too_much_came_too_early(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(REQUEST)
        client.send(b"x" * 70_000)
        assert not client.reading
        proxy.upstream.answer(SWITCH)
        assert client.reading

    @pytest.mark.parametrize("asked", [GET, REQUEST.replace(b"websocket", b"other")])
    def test_not_when_nobody_asked_for_it(self, asked: bytes) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(asked)
        proxy.upstream.answer(SWITCH)
        assert client.received.startswith(b"HTTP/1.1 502 ")
        assert not proxy.upstream.open
        assert "reason=UpgradeFailed" in proxy.log_lines()[0]

    def test_not_when_the_endpoint_declines(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(REQUEST)
        proxy.upstream.answer(OK)
        assert client.received == OK


class TestPasses:
    def test_bytes_both_ways(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        proxy.upstream.take(), client.take()
        client.send(b"\x81\x85abc")
        assert proxy.upstream.take() == b"\x81\x85abc"
        proxy.upstream.answer(b"\x88\x00")
        assert client.take() == b"\x88\x00"

    def test_at_the_pace_of_the_slower_side(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        client.protocol.pause_writing()
        assert not proxy.upstream.reading
        client.protocol.resume_writing()
        assert proxy.upstream.reading
        proxy.upstream.protocol.pause_writing()
        assert not client.reading
        proxy.upstream.protocol.resume_writing()
        assert client.reading

    def test_for_as_long_as_both_like(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        client.half_close()
        proxy.advance(100_000)
        proxy.upstream.answer(b"late")
        assert client.received.endswith(b"late")


class TestEnds:
    @pytest.mark.parametrize("client_first", [True, False])
    def test_when_both_sides_have_ended(self, tunnel: Tunnel, client_first: bool) -> None:
        proxy, client = tunnel
        first, second = (client, proxy.upstream) if client_first else (proxy.upstream, client)
        first.half_close()
        assert second.open
        assert second.eof
        second.send(b"last words")
        assert first.received.endswith(b"last words")
        second.half_close()
        assert not client.open
        assert not proxy.upstream.open
        assert not client.aborted
        assert not proxy.upstream.aborted
        assert proxy.context.recorder.active == 0

    def test_when_the_client_closes(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        client.lose()
        assert not proxy.upstream.open
        assert "reason" not in proxy.log_lines()[0]

    def test_when_the_client_breaks_off(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        client.lose(ConnectionResetError())
        assert not proxy.upstream.open
        assert "reason=ClientGone" in proxy.log_lines()[0]

    def test_when_the_endpoint_closes(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        proxy.upstream.lose()
        assert not client.open and not client.aborted
        assert "reason" not in proxy.log_lines()[0]

    def test_when_the_endpoint_breaks_off(self, tunnel: Tunnel) -> None:
        proxy, client = tunnel
        proxy.upstream.lose(ConnectionResetError())
        assert client.aborted
        assert "reason=UpstreamFailed" in proxy.log_lines()[0]
        assert proxy.context.recorder.active == 0
