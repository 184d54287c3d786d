"""A handshake with an endpoint: what comes of it, and what comes between its end and who is there to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from OpenSSL import SSL

from dataplane.net.turns import Turns
from dataplane.tls import client
from dataplane.tls.binding import Records
from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.settings import TLS_1_2, Identity, TlsSettings
from dataplane.tls.transport import LEFT
from dataplane.upstream.handshake import Handshake, HandshakeFailed
from dataplane.upstream.versions import HTTP1, HTTP2
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


AUTHORITY = Authority()
ISSUED = AUTHORITY.issue("shop.example")
KNOWN = client.security(lambda _, make: make(), authorities=[AUTHORITY.pem])
FOREIGN = client.security(lambda _, make: make(), authorities=[Authority("x").pem])


class Meeting:
    """Handshakes with one server, one after the other, of one pool."""

    def __init__(self, security: client.ClientSecurity = KNOWN, name: str = "shop.example", **server: Any) -> None:
        self.security, self.name = security, name
        self.context = server_context(TlsSettings(**server), [load(Identity(ISSUED.chain, ISSUED.key))])
        self.pool: Any = SimpleNamespace(last=None, label="10.0.0.1:443", transport=None)
        self.resumed = False

    def begin(self, versions: list[int], names: tuple[str, ...] = ()) -> tuple[Handshake, Socket]:
        turns = Turns(lambda call: None)
        tls = SimpleNamespace(security=self.security, alpn=("h2", "http/1.1", "h3"))
        made: Any = SimpleNamespace(tls=tls, names=names, server_name=self.name)
        self.pool.transport = made
        handshake = Handshake(asyncio.get_running_loop(), self.pool, made, versions, Handshakes(turns), turns)
        below = Socket()
        handshake.transport.connection_made(below)
        return handshake, below

    async def meet(self, versions: list[int], names: tuple[str, ...] = ()) -> int:
        handshake, below = self.begin(versions, names)
        connection = accepting(self.context)
        server = Records(connection)
        for _ in range(3):
            server.feed(b"".join(below.sent))
            below.sent.clear()
            with suppress(SSL.Error):
                server.shake()
            data = server.take()
            if data and not below.closing:
                below.protocol.data_received(data)
        self.resumed = server.agreed(b"").resumed
        return await handshake.ended()


@pytest.mark.parametrize(
    ("server", "versions", "expected"),
    [
        ((b"h2", b"http/1.1"), [HTTP1, HTTP2], HTTP2),
        ((b"http/1.1", b"h2"), [HTTP1, HTTP2], HTTP1),
        ((b"h2", b"http/1.1"), [HTTP1], HTTP1),
        ((b"h2", b"http/1.1"), [HTTP2], HTTP2),
        ((), [HTTP1, HTTP2], HTTP1),  # it says nothing
    ],
)
async def test_the_version_is_the_one_that_the_server_chose(
    server: tuple[bytes, ...], versions: list[int], expected: int
) -> None:
    meeting = Meeting(alpn=server)
    assert await meeting.meet(versions) == expected
    assert meeting.pool.last is not None


@pytest.mark.parametrize(
    ("meeting", "versions", "names", "message", "reason"),
    [
        (
            Meeting(alpn=()),
            [HTTP2],
            (),
            "TLS handshake with shop.example: it does not speak HTTP/2 (ALPN)",
            "does not speak HTTP/2 (ALPN)",
        ),
        (
            Meeting(FOREIGN),
            [HTTP1],
            (),
            "TLS handshake with shop.example failed: its certificate cannot be verified:"
            " unable to get local issuer certificate",
            "its certificate cannot be verified: unable to get local issuer certificate",
        ),
        (
            Meeting(KNOWN, ""),
            [HTTP1],
            ("evil.example",),
            "TLS handshake with it failed: its certificate is not for evil.example",
            "its certificate is not for evil.example",
        ),
        (
            Meeting(alpn=(b"h2",)),
            [HTTP1],
            (),
            "TLS handshake with shop.example failed: tlsv1 alert no application protocol",
            "tlsv1 alert no application protocol",
        ),
    ],
    ids=["version", "authority", "name", "protocol"],
)
async def test_what_fails_is_said_with_and_without_a_name(
    meeting: Meeting, versions: list[int], names: tuple[str, ...], message: str, reason: str
) -> None:
    with pytest.raises(HandshakeFailed) as failed:
        await meeting.meet(versions, names)
    assert (str(failed.value), failed.value.reason) == (message, reason)
    assert meeting.pool.last is None, "no session of it is taken up"


async def test_a_server_that_leaves_is_said_once() -> None:
    handshake, below = Meeting().begin([HTTP1])
    below.protocol.connection_lost(None)
    handshake.failed(handshake.transport, "later")
    with pytest.raises(HandshakeFailed, match=f"TLS handshake with shop.example failed: {LEFT}"):
        await handshake.ended()


async def test_the_session_of_the_last_connection_is_taken_up() -> None:
    meeting = Meeting(maximum=TLS_1_2)  # whose tickets come with the handshake
    assert await meeting.meet([HTTP1, HTTP2]) == HTTP2
    first = meeting.pool.last
    assert not meeting.resumed
    assert await meeting.meet([HTTP1, HTTP2]) == HTTP2
    assert meeting.resumed and meeting.pool.last is not first
