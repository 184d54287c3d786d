"""Sockets of datagrams: what they are, that a port which somebody holds is noticed, and from where replies leave."""

from __future__ import annotations

import errno
import socket
from struct import pack
from typing import Any

import pytest

from dataplane.net import udp
from dataplane.net.tcp import ANY_IPV6, CAN_SHARE_PORT, any_address

IPV6 = ["::1", "::"] if any_address() == ANY_IPV6 else []


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", *IPV6])
@pytest.mark.parametrize("shared", [False, True])
def test_what_a_socket_is(address: str, shared: bool) -> None:
    with udp.listen(address, 0, shared=shared) as sock:
        assert (sock.type, sock.getblocking()) == (socket.SOCK_DGRAM, False)
        assert bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)) is (shared and CAN_SHARE_PORT)
        if ":" in address:
            assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO)
            assert bool(sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)) is (address != "::")
        else:
            assert sock.getsockopt(socket.IPPROTO_IP, 8), "IP_PKTINFO of Linux"


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_somebody_holds_is_noticed(shared: bool) -> None:
    with udp.listen("127.0.0.1", 0, shared=shared) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            udp.probe("127.0.0.1", port)


@pytest.mark.parametrize("how", [udp.listen, udp.connect])
def test_nothing_is_left_of_a_socket_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, how: Any) -> None:
    made: list[socket.socket] = []

    class Refusing(socket.socket):
        def bind(self, address: Any, /) -> None:
            made.append(self)
            raise OSError(errno.EADDRINUSE, "in use")

        connect = bind

    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(OSError, match="in use"):
        how("127.0.0.1", 9, **({"shared": False} if how is udp.listen else {}))
    assert [sock.fileno() for sock in made] == [-1]


@pytest.mark.parametrize("address", ["127.0.0.1", *IPV6[:1]])
def test_a_reply_reaches_who_asked_and_there_may_be_nothing_to_receive(address: str) -> None:
    with udp.listen(address, 0, shared=False) as sock:
        assert udp.receive(sock) is None
        with udp.connect(address, sock.getsockname()[1]) as client:
            assert not client.getblocking()
            client.send(b"")
            client.send(b"ask")
            empty, asked = udp.receive(sock), udp.receive(sock)
            assert empty is not None and asked is not None
            assert (empty.data, asked.data, asked.source) == (b"", b"ask", client.getsockname())
            assert len(asked.ancillary) == 1
            assert udp.reply(sock, b"answer", asked.source, asked.ancillary)
            client.setblocking(True)
            assert client.recv(100) == b"answer"


class Said:
    """A socket that gets one datagram with such ancillary data, and sends nothing."""

    def __init__(self, ancillary: list[tuple[int, int, bytes]], error: OSError | None = None) -> None:
        self.ancillary, self.error = ancillary, error

    def recvmsg(self, size: int, room: int) -> Any:
        if self.error is not None:
            raise self.error
        assert (size, room) == (65_535, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(20))
        return b"data", self.ancillary, 0, ("192.0.2.1", 7)

    def sendmsg(self, *_: Any) -> int:
        if self.error is not None:
            raise self.error
        return 4


OURS4, HEADER4, OURS6 = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\xff", b"\x20\x01" + bytes(13) + b"\x01"
OF_IPV4 = (socket.IPPROTO_IP, 8, pack("@i4s4s", 3, OURS4, HEADER4))
OF_IPV6 = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, pack("@16si", OURS6, 3))
REPLY4 = [(socket.IPPROTO_IP, 8, pack("@i4s4s", 0, OURS4, bytes(4)))]
REPLY6 = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, pack("@16si", OURS6, 0))]


@pytest.mark.parametrize(
    ("ancillary", "expected"),
    [
        ([], []),
        ([OF_IPV4], REPLY4),  # whatever interface it came by
        ([OF_IPV6], REPLY6),
        ([(socket.SOL_SOCKET, 29, bytes(16)), OF_IPV4], REPLY4),  # behind a timestamp
        ([(socket.SOL_SOCKET, 29, bytes(32)), OF_IPV6], REPLY6),
        ([(socket.IPPROTO_IPV6, 8, bytes(32)), OF_IPV4], REPLY4),  # another kind, of the same number
        ([(socket.IPPROTO_IP, socket.IPV6_PKTINFO, bytes(32)), OF_IPV6], REPLY6),
        ([(socket.SOL_SOCKET, socket.IPV6_PKTINFO, bytes(32)), OF_IPV6], REPLY6),
        ([(socket.IPPROTO_IPV6, 52, bytes(32)), OF_IPV6], REPLY6),
        ([(socket.IPPROTO_IP, 2, bytes(32)), OF_IPV4], REPLY4),
        ([(socket.SOL_SOCKET, 8, bytes(32)), OF_IPV4], REPLY4),
        ([(*OF_IPV4[:2], OF_IPV4[2][:-1])], []),  # cut off
        ([(*OF_IPV6[:2], OF_IPV6[2][:-1])], []),
        ([OF_IPV4, OF_IPV6], REPLY4),
    ],
)
def test_a_reply_leaves_from_the_address_that_the_datagram_came_to(
    ancillary: list[tuple[int, int, bytes]], expected: list[tuple[int, int, bytes]]
) -> None:
    said: Any = Said(ancillary)
    assert udp.receive(said) == (b"data", ("192.0.2.1", 7), expected)


@pytest.mark.parametrize("error", [BlockingIOError(), InterruptedError()])
def test_nothing_came_where_the_system_says_so(error: OSError) -> None:
    said: Any = Said([], error)
    assert udp.receive(said) is None


@pytest.mark.parametrize("error", [BlockingIOError(), OSError(errno.EHOSTUNREACH, "no route")])
def test_a_reply_that_the_system_does_not_take_is_lost(error: OSError) -> None:
    said: Any = Said([], error)
    assert not udp.reply(said, b"data", ("192.0.2.1", 7), [])
    said.error = None
    assert udp.reply(said, b"data", ("192.0.2.1", 7), [])


def test_other_errors_of_receiving_are_the_callers() -> None:
    said: Any = Said([], OSError(errno.EBADF, "closed"))
    with pytest.raises(OSError, match="closed"):
        udp.receive(said)
