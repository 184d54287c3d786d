"""Listening sockets: one per worker, kept, told apart by address; failures that name who and what to do."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Iterator

import pytest

from dataplane.agent import holders
from dataplane.agent.sockets import Place, Sockets
from dataplane.link.messages import WantedBind
from dataplane.net import tcp


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    made = Sockets(workers=2, offset=0)
    yield made
    made.release()


def connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True


def test_each_worker_has_a_socket_of_its_own_on_the_same_port(sockets: Sockets) -> None:
    port = free_port()
    assert sockets.open(Place("b", "127.0.0.1", port), "xds") == ""
    one, other = sockets.of_bind("b", 0), sockets.of_bind("b", 1)
    assert len(one) == len(other) == 1
    if tcp.CAN_SHARE_PORT:
        assert one != other
    assert sockets.of_worker(0) == [("b", one[0])]
    assert sockets.listening() == {"b": [f"127.0.0.1:{port}"]}
    assert connects("127.0.0.1", port)
    sockets.close(Place("b", "127.0.0.1", port))
    assert not connects("127.0.0.1", port)
    assert sockets.listening() == {}


def test_where_ports_cannot_be_shared_all_workers_have_the_same_socket(
    sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "CAN_SHARE_PORT", False)
    place = Place("b", "127.0.0.1", free_port())
    assert sockets.open(place, "xds") == ""
    assert sockets.of_bind("b", 0) == sockets.of_bind("b", 1)
    assert connects("127.0.0.1", place.port)
    sockets.close(place)
    assert not connects("127.0.0.1", place.port)


def test_a_bind_without_addresses_takes_ipv4_and_ipv6(sockets: Sockets) -> None:
    port = free_port()
    (place,) = sockets.difference([WantedBind("b", port, ())]).open
    assert sockets.open(place, "xds") == ""
    assert connects("127.0.0.1", port)
    if place.address == tcp.ANY_IPV6:
        assert connects("::1", port)


def test_without_ipv6_it_is_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def no_ipv6(family: int = socket.AF_INET, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return real(family, *rest)

    monkeypatch.setattr(socket, "socket", no_ipv6)
    assert tcp.any_address() == tcp.ANY_IPV4


def test_only_what_changed_is_opened_and_closed(sockets: Sockets) -> None:
    a, b, c = free_port(), free_port(), free_port()
    wanted = [WantedBind("x", a, ("127.0.0.1",)), WantedBind("y", b, ("127.0.0.1", "127.0.0.2"))]
    for place in sockets.difference(wanted).open:
        assert sockets.open(place, "xds") == ""
    difference = sockets.difference([WantedBind("y", b, ("127.0.0.2",)), WantedBind("z", c, ("127.0.0.1",))])
    assert difference.close == (Place("x", "127.0.0.1", a), Place("y", "127.0.0.1", b))
    assert difference.open == (Place("z", "127.0.0.1", c),)
    assert sockets.difference(wanted).open == sockets.difference(wanted).close == ()


def test_the_offset_moves_every_port() -> None:
    port = free_port()
    sockets = Sockets(workers=1, offset=1 if port > 1024 else 2000)
    assert sockets.open(Place("b", "127.0.0.1", port - 1), "xds") == ""
    assert connects("127.0.0.1", port)
    assert "no such port" in sockets.open(Place("c", "127.0.0.1", 65535), "xds")
    sockets.release()


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use_names_its_holder_and_the_cure(sockets: Sockets, shares: bool) -> None:
    with socket.socket() as holder:
        if shares:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        reason = sockets.open(Place("b", "127.0.0.1", port), "xds")
        assert reason.startswith(f"127.0.0.1:{port} is in use by pid {os.getpid()} (")
        assert "another port" in reason
        assert sockets.of_bind("b", 0) == []


def test_a_failure_is_logged_once_until_it_is_another(sockets: Sockets, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    place = Place("b", "192.0.2.1", free_port())  # TEST-NET: no interface has it
    assert "no interface" in sockets.open(place, "xds")
    assert "no interface" in sockets.open(place, "xds")
    assert len(caplog.records) == 1
    sockets.difference([])  # it is not wanted any more; if it is again, that is news
    sockets.open(place, "xds")
    assert len(caplog.records) == 2


def test_a_port_that_nobody_holds_is_told_without_a_name() -> None:
    assert holders.describe(free_port()) == "another process"


def test_closing_our_copy_leaves_a_workers_copy_accepting(sockets: Sockets) -> None:
    port = free_port()
    place = Place("b", "127.0.0.1", port)
    sockets.open(place, "xds")
    worker = socket.socket(fileno=os.dup(sockets.of_bind("b", 0)[0]))
    sockets.close(place)
    assert connects("127.0.0.1", port)
    worker.close()
    assert not connects("127.0.0.1", port)
