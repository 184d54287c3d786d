"""Listening sockets: what is asked of the system, where there is no IPv6, and that nothing is left of what failed."""

from __future__ import annotations

import errno
import importlib.util
import socket
import sys

import pytest

from dataplane.net import tcp

IPV6 = ["::1", "::"] if tcp.any_address() == tcp.ANY_IPV6 else []


@pytest.mark.parametrize("address", ["127.0.0.1", *IPV6])
@pytest.mark.parametrize("shared", [False, True])
def test_what_a_listening_socket_is(address: str, shared: bool) -> None:
    with tcp.listen(address, 0, shared=shared) as sock:
        assert not sock.getblocking() and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        assert bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)) is (shared and tcp.CAN_SHARE_PORT)
        if ":" in address:
            assert bool(sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)) is (address != "::")


def test_a_port_is_not_shared_where_the_system_gives_connections_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "CAN_SHARE_PORT", False)
    with tcp.listen("127.0.0.1", 0, shared=True) as sock:
        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)


def test_a_port_that_another_process_would_share_is_found_out() -> None:
    with tcp.listen("127.0.0.1", 0, shared=True) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            tcp.probe("127.0.0.1", port)
        with tcp.listen("127.0.0.1", port, shared=True):
            pass
    tcp.probe("127.0.0.1", port)


def test_nothing_is_left_of_a_socket_that_cannot_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Refusing] = []

    class Refusing(socket.socket):
        def listen(self, backlog: int = 0, /) -> None:
            made.append(self)
            raise OSError(errno.EADDRINUSE, f"in use, {backlog} may wait")

    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(OSError, match=f"in use, {tcp.BACKLOG} may wait"):
        tcp.listen("127.0.0.1", 0, shared=False)
    assert [sock.fileno() for sock in made] == [-1]


@pytest.mark.parametrize("number", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT, errno.EMFILE])
def test_ipv4_stands_in_for_ipv6_only_where_that_is_missing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError(number, "no")

    assert tcp.any_address() == ("::" if IPV6 else "0.0.0.0")
    monkeypatch.setattr(socket, "socket", refuse)
    if number == errno.EMFILE:
        with pytest.raises(OSError, match="no"):
            tcp.any_address()
    else:
        assert tcp.any_address() == "0.0.0.0"


def test_addresses_as_people_write_them() -> None:
    assert tcp.host_port("127.0.0.1", 80) == "127.0.0.1:80" and tcp.host_port("::1", 80) == "[::1]:80"


@pytest.mark.parametrize(
    ("platform", "has_option", "can_share"), [("linux", True, True), ("linux", False, False), ("darwin", True, False)]
)
def test_where_ports_can_be_shared(
    monkeypatch: pytest.MonkeyPatch, platform: str, has_option: bool, can_share: bool
) -> None:
    """Other systems have the option, and give all connections to one socket."""
    assert tcp.__spec__ is not None and tcp.__spec__.loader is not None
    module = importlib.util.module_from_spec(tcp.__spec__)  # another one: that of the process stays as it is
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    if has_option:
        monkeypatch.setattr(socket, "SO_REUSEPORT", 15, raising=False)
    tcp.__spec__.loader.exec_module(module)
    assert module.CAN_SHARE_PORT is can_share


class Closed:
    """A transport of uvloop that is closed: its socket has no descriptor."""

    family = socket.AF_INET
    aborted = False

    def get_extra_info(self, name: str) -> Closed:
        assert name == "socket"
        return self

    def setsockopt(self, *_: object) -> None:
        socket.socket(fileno=-1)  # what uvloop does for each call

    def abort(self) -> None:
        self.aborted = True


def test_what_is_closed_already_is_reset_without_an_error() -> None:
    """Else the timers that were due at the same moment were lost."""
    transport = Closed()
    tcp.reset(transport)
    assert transport.aborted
