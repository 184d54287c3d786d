"""A handshake with an endpoint: what comes between its end and the moment when somebody is there to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from dataplane.net.turns import Turns
from dataplane.tls import client
from dataplane.tls.binding import Records
from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.settings import TLS_1_2, Identity, TlsSettings
from dataplane.upstream.handshake import Handshake
from dataplane.upstream.versions import HTTP1
from tests.fakes.certificates import Authority
from tests.fakes.tls_pair import Inner, Socket


class Reader(Inner):
    def connection_made(self, transport: Any) -> None:
        self.heard.append("made")


async def test_what_a_server_says_before_anybody_reads_is_kept() -> None:
    calls: list[Callable[[], None]] = []
    turns = Turns(calls.append)
    security = client.security(lambda _, make: make(), verifies=client.NOTHING)
    made: Any = SimpleNamespace(tls=SimpleNamespace(security=security, alpn=()), names=(), server_name="shop.example")
    pool: Any = SimpleNamespace(last=None, label="10.0.0.1:443", transport=made)
    handshake = Handshake(asyncio.get_running_loop(), pool, made, [HTTP1], Handshakes(turns), turns)
    issued = Authority().issue("shop.example")
    settings = TlsSettings(maximum=TLS_1_2)  # of later versions the client has the last word in a handshake
    server = Records(accepting(server_context(settings, [load(Identity(issued.chain, issued.key))])))
    socket, reader = Socket(), Reader()
    handshake.transport.connection_made(socket)
    for number in range(2):
        server.feed(b"".join(socket.sent))
        socket.sent.clear()
        is_done = server.shake()
        assert is_done is (number == 1)
        socket.protocol.data_received(server.take() + (server.seal(b"hello") if is_done else b""))
    assert await handshake.ended() == HTTP1
    handshake.hand_over(reader)
    for call in calls:
        call()
    assert reader.heard == ["made"] and reader.data == b"hello"
