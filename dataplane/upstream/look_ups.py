"""What a host name resolves to, and for how long that is good. `resolver` decides when to ask.

The question goes to c-ares (`aiodns`), which reads `resolv.conf` (servers, search list, ndots, timeouts) and the order
of `nsswitch.conf` as the system's resolver does, and says how long the records are good. What it does not find, or
cannot ask, the system's resolver is asked for as well: it may know further sources (mDNS, a directory). That one
(`getaddrinfo`) reports no time for any name. A name that stands in `/etc/hosts` is asked of the system alone: c-ares
makes one entry of all lines that have an address or a name in common, and so finds addresses that the file does not
give to that name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from gatewright import files

if TYPE_CHECKING:
    from aiodns import DNSResolver

log = logging.getLogger("dataplane.upstream")


class Found(NamedTuple):
    """Addresses in the order in which they should be tried."""

    addresses: tuple[str, ...]
    ttl: int | None
    """Seconds for which the records are good, the shortest of them; None: not known."""


FILES: Final = 4
"""Descriptors of c-ares: two of a pipe, one of epoll, one by which it hears of changed settings."""

Make = Callable[[asyncio.AbstractEventLoop], "DNSResolver"]
LookUp = Callable[[str, int], Awaitable[Found]]
"""Resolves a host name and port. Raises OSError or ValueError."""


async def not_asked(host: str, port: int) -> Found:
    """As `LookUp`, where there is no network."""
    raise OSError(f"{host}: names are not looked up here")


HOSTS: Final = "/etc/hosts"
MAX_HOSTS: Final = 4 * 1024 * 1024
"""Bytes of that file: lists that block advertisers have some hundred thousand names."""


class Hosts:
    """Which names stand in a file of hosts (hosts(5)); read again when it has changed."""

    def __init__(self, path: str = HOSTS) -> None:
        self._path = path
        self._read_as: tuple[int, int, int] | None = None
        self._names: frozenset[bytes] = frozenset()

    def __contains__(self, host: str) -> bool:
        """Whatever cannot be read has no names: then the system does not find them there either."""
        try:
            status = os.stat(self._path)
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            if seen != self._read_as:
                self._read_as = seen
                self._names = _names_in(files.read(self._path, MAX_HOSTS))
        except OSError as error:
            log.debug("no names of %s: %s", self._path, error)
            self._read_as, self._names = None, frozenset()
        return host.lower().removesuffix(".").encode() in self._names


def _names_in(text: bytes) -> frozenset[bytes]:
    """Behind the address of each line; "#" begins a comment."""
    names: set[bytes] = set()
    for line in text.splitlines():
        names.update(name.lower() for name in line.partition(b"#")[0].split()[1:])
    return frozenset(names)


class LookUps:
    """One per worker. `make` is called with the first question, for the one who is asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: Make | None = None, hosts: Hosts | None = None) -> None:
        self._loop, self._make = loop, make or made
        self._hosts = hosts or Hosts()
        self._resolver: DNSResolver | None = None
        self._is_unusable = False

    async def look_up(self, host: str, port: int) -> Found:
        """As `LookUp`."""
        if host in self._hosts:  # which are written without the dot of the root
            return await of_system(self._loop, host.removesuffix("."), port)
        found = await self._ask_dns(host, port)
        return found if found is not None else await of_system(self._loop, host, port)

    async def _ask_dns(self, host: str, port: int) -> Found | None:
        resolver = self._made()
        if resolver is None:
            return None
        from aiodns.error import DNSError

        try:
            answer = await resolver.getaddrinfo(host, socket.AF_UNSPEC, port, 0, socket.SOCK_STREAM)
        except (DNSError, UnicodeError) as error:
            log.debug("c-ares does not find %s: %s", host, error)
            return None
        nodes = [node for node in answer.nodes if node.family in (socket.AF_INET, socket.AF_INET6)]
        addresses = dict.fromkeys(_text(node.addr[0]) for node in nodes)
        return Found(tuple(addresses), min(node.ttl for node in nodes)) if nodes else None

    def _made(self) -> DNSResolver | None:
        """None: the system's settings cannot be read; reported once."""
        if self._resolver is None and not self._is_unusable:
            from aiodns.error import DNSError

            try:
                self._resolver = self._make(self._loop)
            except (OSError, RuntimeError, DNSError) as error:
                self._is_unusable = True
                log.warning("names are asked of the system's resolver alone, which reports no time: %s", error)
        return self._resolver

    @property
    def files(self) -> int:
        """Descriptors that are open between two questions."""
        return 0 if self._resolver is None else FILES

    async def close(self) -> None:
        if self._resolver is not None:
            await self._resolver.close()


def made(loop: asyncio.AbstractEventLoop) -> DNSResolver:
    """One with the system's settings. Raises DNSError."""
    from aiodns import DNSResolver  # here: workers without a name of a backend do without

    return DNSResolver(loop=loop)


async def of_system(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Found:
    """What the system's resolver says. Raises OSError or ValueError."""
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return Found(tuple(dict.fromkeys(str(entry[4][0]) for entry in found)), None)


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
