"""Listening sockets: one per worker, kept, told apart by address; failures that name who and what to do."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.agent import holders
from dataplane.agent.sockets import Place, Sockets
from dataplane.link.messages import WantedBind
from dataplane.net import tcp
from tests.harness.ports import reserve


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
    port = reserve()
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
    place = Place("b", "127.0.0.1", reserve())
    assert sockets.open(place, "xds") == ""
    assert sockets.of_bind("b", 0) == sockets.of_bind("b", 1)
    assert connects("127.0.0.1", place.port)
    sockets.close(place)
    assert not connects("127.0.0.1", place.port)


def test_a_bind_without_addresses_takes_ipv4_and_ipv6(sockets: Sockets) -> None:
    port = reserve()
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
    a, b, c = reserve(), reserve(), reserve()
    wanted = [WantedBind("x", a, ("127.0.0.1",)), WantedBind("y", b, ("127.0.0.1", "127.0.0.2"))]
    for place in sockets.difference(wanted).open:
        assert sockets.open(place, "xds") == ""
    difference = sockets.difference([WantedBind("y", b, ("127.0.0.2",)), WantedBind("z", c, ("127.0.0.1",))])
    assert difference.close == (Place("x", "127.0.0.1", a), Place("y", "127.0.0.1", b))
    assert difference.open == (Place("z", "127.0.0.1", c),)
    assert sockets.difference(wanted).open == sockets.difference(wanted).close == ()


def test_the_offset_moves_every_port() -> None:
    port = reserve()
    sockets = Sockets(workers=1, offset=1 if port > 1024 else 2000)
    assert sockets.open(Place("b", "127.0.0.1", port - 1), "xds") == ""
    assert connects("127.0.0.1", port)
    assert "no such port" in sockets.open(Place("c", "127.0.0.1", 65535), "xds")
    sockets.release()


def test_the_system_chooses_a_port_for_each_place_and_all_workers_share_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sockets = Sockets(workers=3, offset=None)
    places = [Place("b", "127.0.0.1", 80), Place("b", "127.0.0.2", 80), Place("c", "127.0.0.1", 443)]
    try:
        for place in places:
            assert sockets.open(place, "xds") == ""
        assert sockets.addresses() == {80: sockets.listening()["b"], 443: sockets.listening()["c"]}
        found = [address.rpartition(":") for port in (80, 443) for address in sockets.addresses()[port]]
        assert [host for host, _, _ in found] == ["127.0.0.1", "127.0.0.2", "127.0.0.1"]
        assert all(int(port) not in (80, 443) and connects(host, int(port)) for host, _, port in found)
        for index in range(3):
            ports = [socket.socket(fileno=os.dup(fd)) for _, fd in sockets.of_worker(index)]
            assert [str(each.getsockname()[1]) for each in ports] == [port for _, _, port in found]
            for each in ports:
                each.close()
        assert sockets.difference([WantedBind("b", 80, ("127.0.0.1", "127.0.0.2"))]).close == (places[2],)
        sockets.close(places[2])
        sockets.log_closed(places[2], "xds")
        opened, closed = caplog.records[2], caplog.records[3]
        assert opened.fields["address"] == closed.fields["address"] == f"127.0.0.1:{found[2][2]}"  # type: ignore[attr-defined]
    finally:
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
    place = Place("b", "192.0.2.1", reserve())  # TEST-NET: no interface has it
    assert "no interface" in sockets.open(place, "xds")
    assert "no interface" in sockets.open(place, "xds")
    assert len(caplog.records) == 1
    sockets.difference([])  # it is not wanted any more; if it is again, that is news
    sockets.open(place, "xds")
    assert len(caplog.records) == 2


def test_a_port_that_nobody_holds_is_told_without_a_name() -> None:
    assert holders.describe(reserve()) == "another process"


@pytest.fixture
def held() -> Iterator[int]:
    """A port that this process holds."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def test_a_holder_is_named_by_its_command(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = f"pid {os.getpid()} ({' '.join(sys.orig_argv)[:120]})"
    assert holders.describe(held) == ours
    monkeypatch.setattr(holders, "TCP", ("/nowhere", *holders.TCP))  # a system without IPv6, say
    monkeypatch.setattr(holders, "_pids", lambda: ["999999999", str(os.getpid())])  # the first has just ended
    assert holders.describe(held) == ours


def test_a_long_command_is_cut_and_that_of_one_that_ended_is_not_known(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bytes | OSError] = [b"a\0-b\xff\0\0", b"x" * 121, OSError("ended meanwhile")]

    def read(_path: Path) -> bytes:
        text = found.pop(0)
        if isinstance(text, OSError):
            raise text
        return text

    monkeypatch.setattr(Path, "read_bytes", read)
    told = [holders.describe(held).partition("(")[2] for _ in range(3)]
    assert told == ["a -b\ufffd)", "x" * 120 + ")", "ended)"]


def test_a_holder_that_may_not_be_seen_is_another_process(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("readlink", "scandir", "listdir"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, forbidden)
            told = holders.describe(held)
        assert told == "another process"


def test_closing_our_copy_leaves_a_workers_copy_accepting(sockets: Sockets) -> None:
    port = reserve()
    place = Place("b", "127.0.0.1", port)
    sockets.open(place, "xds")
    worker = socket.socket(fileno=os.dup(sockets.of_bind("b", 0)[0]))
    sockets.close(place)
    assert connects("127.0.0.1", port)
    worker.close()
    assert not connects("127.0.0.1", port)


def test_a_failure_is_told_again_after_it_was_over(
    sockets: Sockets, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place, real = Place("b", "127.0.0.1", reserve()), tcp.probe

    def fails(_address: str, _port: int) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    for turn in (1, 2):
        monkeypatch.setattr(tcp, "probe", fails)
        assert sockets.open(place, "xds") and sockets.open(place, "xds")
        assert caplog.text.count("bind failed") == turn
        monkeypatch.setattr(tcp, "probe", real)
        assert sockets.open(place, "xds") == ""
        sockets.close(place)


def test_what_was_released_is_nobodys(sockets: Sockets) -> None:
    place = Place("b", "127.0.0.1", reserve())
    assert sockets.open(place, "xds") == ""
    sockets.release()
    assert sockets.listening() == {} and sockets.of_worker(0) == [] and not connects("127.0.0.1", place.port)
    assert sockets.open(place, "xds") == "" and connects("127.0.0.1", place.port)


def test_a_port_that_the_system_chooses(caplog: pytest.LogCaptureFixture) -> None:
    """Each place has one of its own, and all workers that one; it is what is shown."""
    sockets = Sockets(workers=2, offset=None)
    one, other = Place("a", "127.0.0.1", 80), Place("b", "127.0.0.1", 80)
    assert sockets.open(one, "file") == sockets.open(other, "file") == ""
    shown = [text for texts in sockets.listening().values() for text in texts]
    ports = [int(text.removeprefix("127.0.0.1:")) for text in shown]
    assert len(set(ports)) == 2 and min(ports) > 1 and all(connects("127.0.0.1", port) for port in ports)
    for worker in range(2):
        found = [socket.socket(fileno=os.dup(fd)) for _, fd in sockets.of_worker(worker)]
        assert [sock.getsockname()[1] for sock in found] == ports
        for sock in found:
            sock.close()
    sockets.release()


def test_a_port_that_was_chosen_once_is_not_said_of_a_bind_that_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made, place = Sockets(workers=1, offset=None), Place("b", "127.0.0.1", 80)
    assert made.open(place, "xds") == ""
    (port,) = [int(each.rpartition(":")[2]) for each in made.listening()["b"]]
    made.close(place)
    made.log_closed(place, "xds")

    def refuse(*_: object, **_more: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tcp, "listen", refuse)
    assert "Too many open files" in made.open(place, "xds")
    closed, failed = [vars(each)["fields"]["address"] for each in caplog.records[-2:]]
    assert (closed, failed) == (f"127.0.0.1:{port}", "127.0.0.1:0")
