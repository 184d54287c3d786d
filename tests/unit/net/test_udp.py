"""Sockets of datagrams: what they are, and that a port which somebody holds is noticed."""

from __future__ import annotations

import socket

import pytest

from dataplane.net import udp


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("shared", [False, True])
def test_what_a_socket_is(address: str, shared: bool) -> None:
    with udp.listen(address, 0, shared=shared) as sock:
        assert (sock.type, sock.getblocking()) == (socket.SOCK_DGRAM, False)
        assert bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)) is (shared and udp.CAN_SHARE_PORT)


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_somebody_holds_is_noticed(shared: bool) -> None:
    with udp.listen("127.0.0.1", 0, shared=shared) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            udp.probe("127.0.0.1", port)
