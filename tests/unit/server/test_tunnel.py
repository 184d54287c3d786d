"""Upgrades: when two connections become a tunnel, what passes through it, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy, Pending
from tests.fakes.policy_run import text_of

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

    def test_with_the_end_of_a_client_that_came_too_early(self) -> None:
        """Its connection was watched for a client that is gone, which nobody in a tunnel is."""
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(REQUEST + b"first")
        client.half_close()
        proxy.upstream.answer(SWITCH)
        assert proxy.upstream.received.endswith(b"first") and proxy.upstream.eof
        proxy.advance(100_000)
        proxy.upstream.answer(b"last words")
        assert client.received.endswith(b"last words")
        proxy.upstream.half_close()
        assert not client.open and not proxy.upstream.open and not client.aborted


class TestPasses:
    def test_nothing_but_what_was_sent(self, tunnel: Tunnel) -> None:
        """The end of the client's side is no byte."""
        proxy, client = tunnel
        proxy.upstream.take(), client.take()
        client.half_close()
        assert proxy.upstream.take() == b"" and proxy.upstream.eof and client.open
        proxy.upstream.answer(b"last")
        assert client.take() == b"last"

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


STEPS = text_of("""
    policies:
      cors: {allowOrigins: ["https://app.example"], allowCredentials: true}
      headerModifiers: {response: {set: [{name: x-gw, value: "1"}], remove: [server, sec-websocket-accept]}}
      transformation:
        response:
          set:
          - {name: x-switched, value: "string(response.code)"}
          - {name: ":status", value: "'200'"}
          body: "json(response.body)"
      buffer: {response: {}}
    backends: [{host: "127.0.0.1:9000"}]
""")
SHAKE = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Server: x\r\nSec-WebSocket-Accept: abc=\r\n\r\n"
)


class TestResponseSteps:
    def test_see_the_head_and_leave_what_makes_it_a_tunnel(self) -> None:
        proxy = MemoryProxy(STEPS)
        client = proxy.connect()
        client.send(REQUEST.replace(b"\r\n\r\n", b"\r\nOrigin: https://app.example\r\n\r\n"))
        proxy.upstream.answer(SHAKE + b"\x81\x00")
        head, _, data = client.take().partition(b"\r\n\r\n")
        line, *headers = head.split(b"\r\n")
        assert line == b"HTTP/1.1 101 Switching Protocols"
        assert sorted(each.lower() for each in headers) == [
            b"access-control-allow-credentials: true",
            b"access-control-allow-origin: https://app.example",
            b"connection: upgrade",
            b"sec-websocket-accept: abc=",
            b"upgrade: websocket",
            b"vary: origin",
            b"x-gw: 1",
            b"x-switched: 101",
        ]
        assert data == b"\x81\x00"
        client.send(b"\x81\x01")
        assert proxy.upstream.received.endswith(b"\x81\x01")
        client.lose()
        assert "http.status=101" in proxy.log_lines()[0]

    def test_may_answer_instead(self) -> None:
        proxy = with_step(lambda x: Reply(403, "No", b"no"))
        client = proxy.connect()
        client.send(REQUEST)
        proxy.upstream.answer(SWITCH)
        assert client.received.startswith(b"HTTP/1.1 403 ")
        assert not proxy.upstream.open

    @pytest.mark.parametrize("ends", [False, True])
    def test_may_wait(self, ends: bool) -> None:
        asked: list[Pending] = []

        async def wait() -> None:
            asked.append(Pending())
            await asked[0]

        proxy = with_step(lambda x: wait())
        client = proxy.connect()
        client.send(REQUEST)
        proxy.upstream.answer(SWITCH + b"\x81\x00")
        client.send(b"early")
        if ends:
            proxy.upstream.half_close()
        assert client.received == b""
        asked[0].set_result(None)
        assert client.received == SWITCHED + b"\x81\x00"
        assert proxy.upstream.received.endswith(b"early")
        assert client.eof == ends
        client.half_close()
        assert client.open != ends
        assert proxy.upstream.open != ends

    def test_are_seen_by_the_log(self) -> None:
        log = "frontendPolicies: {accessLog: {add: {server: \"response.headers['server']\"}}}\n"
        proxy = MemoryProxy(log + ROUTES)
        client = proxy.connect()
        client.send(REQUEST)
        proxy.upstream.answer(SHAKE)
        client.lose()
        assert "server=x" in proxy.log_lines()[0]


def with_step(respond: Callable[[Exchange], Any]) -> MemoryProxy:
    """A proxy whose route has one response step."""
    step = Filter("test", response=respond)
    rows = [row for row in ROWS if row.name != "csrf"]
    rows.append(Row("csrf", lambda config, env: step, STEP, "test"))
    return MemoryProxy(ROUTES.replace("      backends:", "      policies: {csrf: {}}\n      backends:"), rows)
