"""What names resolve to and for how long: c-ares against a DNS server on loopback, the system's resolver behind it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiodns import DNSResolver
from aiodns.error import DNSError

from dataplane.upstream import look_ups
from dataplane.upstream.look_ups import FILES, MAX_HOSTS, Found, Hosts, LookUps
from tests.fakes.dns_server import Records, dns
from tests.harness.patience import PATIENCE


@asynccontextmanager
async def asking(records: Records, port: int | None = None) -> AsyncIterator[LookUps]:
    async with dns(records) as server:

        def make(loop: asyncio.AbstractEventLoop) -> DNSResolver:
            # Without `lookups`: pycares frees that text before c-ares copies it, which then may ask nobody.
            where: Any = {"nameservers": ["127.0.0.1"], "udp_port": port or server.port}
            return DNSResolver(loop=loop, timeout=PATIENCE, tries=5, **where)

        made = LookUps(asyncio.get_running_loop(), make)
        try:
            yield made
        finally:
            await made.close()


SHOP: Records = {"shop.test": (77, ("192.0.2.1", "192.0.2.2", "2001:db8::1"))}


async def test_addresses_of_both_families_and_the_shortest_time() -> None:
    async with asking(SHOP) as names:
        found = await names.look_up("shop.test", 443)
        assert sorted(found.addresses) == ["192.0.2.1", "192.0.2.2", "2001:db8::1"] and found.ttl == 77


async def test_what_dns_does_not_know_is_asked_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    async def system(_loop: asyncio.AbstractEventLoop, host: str, port: int) -> Found:
        return Found((f"{host}:{port}",), None)

    monkeypatch.setattr(look_ups, "of_system", system)
    async with asking({"empty.test": (5, ())}) as names:
        for name in ("absent.test", "empty.test"):
            assert await names.look_up(name, 80) == Found((f"{name}:80",), None)


async def test_a_name_that_nobody_knows_is_an_error_of_the_system() -> None:
    async with asking({}) as names:
        with pytest.raises(OSError):
            await names.look_up("nowhere.invalid", 80)


async def test_where_dns_cannot_be_asked_the_system_is_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def make(_loop: asyncio.AbstractEventLoop) -> DNSResolver:
        raise DNSError(1, "no settings")

    names = LookUps(asyncio.get_running_loop(), make, Hosts("/nowhere"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = await names.look_up("localhost", 80)
            assert "127.0.0.1" in found.addresses and found.ttl is None
    assert len(caplog.records) == 1 and "no settings" in caplog.text
    await names.close()


async def test_the_system_s_hosts_are_known_and_addresses_are_names_of_themselves() -> None:
    names = LookUps(asyncio.get_running_loop())
    try:
        assert names.files == 0, "nothing is opened before the first question"
        assert {*(await names.look_up("localhost", 80)).addresses} & {"127.0.0.1", "::1"}
        assert (await names.look_up("127.0.0.9", 80)).addresses == ("127.0.0.9",)
        assert names.files == look_ups.FILES, "c-ares was asked, which knows times as well"
    finally:
        await names.close()


HOSTS = b"""\
127.0.0.1\tlocalhost
192.0.2.1 one.test  ONE # shared.test
192.0.2.1 two.test
192.0.2.2 two.test
#192.0.2.3 off.test
"""


@pytest.mark.parametrize(
    ("host", "is_there"),
    [
        *((name, True) for name in ("one.test", "one", "Two.Test", "two.test.", "localhost")),
        *((name, False) for name in ("shared.test", "off.test", "192.0.2.1", "test", "")),
    ],
)
async def test_a_name_of_the_file_of_hosts_is_asked_of_the_system_alone(
    host: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c-ares makes one entry of lines that share an address: `one.test` would have the address of `two.test`, too."""

    async def system(_loop: asyncio.AbstractEventLoop, host: str, port: int) -> Found:
        return Found((f"system {host}",), None)

    monkeypatch.setattr(look_ups, "of_system", system)
    path = tmp_path / "hosts"
    path.write_bytes(HOSTS)
    knows = Knows(node(b"198.51.100.1", 5))
    names = LookUps(asyncio.get_running_loop(), knows.make, Hosts(str(path)))
    of_dns = Found(("198.51.100.1",), 5)
    relative = host.removesuffix(".")  # as the file has them
    assert await names.look_up(host, 80) == (Found((f"system {relative}",), None) if is_there else of_dns)
    assert len(knows.asked) == (0 if is_there else 1)


def test_a_file_of_hosts_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    hosts = Hosts(str(path))
    assert "one.test" not in hosts, "there is no file"
    path.write_bytes(HOSTS)
    assert "one.test" in hosts and "new.test" not in hosts
    path.write_bytes(HOSTS + b"192.0.2.9 new.test\n")
    assert "new.test" in hosts
    path.unlink()
    assert "new.test" not in hosts


@pytest.mark.parametrize("kind", ["a folder", "too large"])
def test_a_file_of_hosts_that_cannot_be_read_has_no_names(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    if kind == "a folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.write(HOSTS)
            file.truncate(MAX_HOSTS + 1)
    assert "one.test" not in Hosts(str(path))


def node(address: str | bytes, ttl: int, family: int = socket.AF_INET) -> Any:
    return SimpleNamespace(family=family, addr=(address, 443), ttl=ttl)


class Knows:
    """Stands for c-ares: what it was asked, what it answers, whether it was closed."""

    def __init__(self, *nodes: Any, error: Exception | None = None) -> None:
        self.nodes, self.error = nodes, error
        self.asked: list[tuple[Any, ...]] = []
        self.made = 0
        self.is_closed = False

    def make(self, _loop: asyncio.AbstractEventLoop) -> Any:
        self.made += 1
        return self

    def names(self) -> LookUps:
        return LookUps(asyncio.get_running_loop(), self.make)

    async def getaddrinfo(self, *asked: Any) -> Any:
        self.asked.append(asked)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(nodes=list(self.nodes))

    async def close(self) -> None:
        self.is_closed = True


async def test_of_an_answer_the_addresses_of_both_families_count_once_and_the_shortest_time() -> None:
    other = node("ff", 1, socket.AF_UNIX)
    knows = Knows(node(b"192.0.2.1", 90), node("2001:db8::1", 60, socket.AF_INET6), other, node("192.0.2.1", 70))
    found = await knows.names().look_up("shop.test", 443)
    assert found == Found(("192.0.2.1", "2001:db8::1"), 60)
    assert knows.asked == [("shop.test", socket.AF_UNSPEC, 443, 0, socket.SOCK_STREAM)], "of any family, for streams"


@pytest.mark.parametrize(
    "knows",
    [Knows(), Knows(node("ff", 1, socket.AF_UNIX)), Knows(error=DNSError(4, "none")), Knows(error=UnicodeError())],
)
async def test_without_an_address_the_system_is_asked(knows: Knows) -> None:
    found = await knows.names().look_up("127.0.0.1", 443)
    assert found == Found(("127.0.0.1",), None) and len(knows.asked) == 1


async def test_who_is_asked_is_made_once_with_the_first_question_and_closed_in_the_end() -> None:
    knows = Knows(node("192.0.2.1", 90))
    names = knows.names()
    await names.close()
    assert (knows.made, names.files, knows.is_closed) == (0, 0, False)
    for _ in range(2):
        await names.look_up("shop.test", 443)
    assert (knows.made, names.files) == (1, FILES)
    await names.close()
    assert knows.is_closed
