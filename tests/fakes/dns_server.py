"""A DNS server on loopback that knows a few names, with addresses and times to live, and denies others.

Reads the one question of a query and writes A and AAAA records, by hand: what is tested is who asks.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

A, AAAA, NXDOMAIN = 1, 28, 3

Records = Mapping[str, tuple[int, tuple[str, ...]]]
"""Name -> seconds to live of the first address, and addresses: each further one of a family lives a second longer."""


class DnsServer(asyncio.DatagramProtocol):
    transport: asyncio.DatagramTransport

    def __init__(self, records: Records) -> None:
        self.records = dict(records)
        self.asked: list[str] = []
        self.port = 0

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.transport.sendto(self._answer(data), addr)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name = ".".join(labels)
        (kind,) = struct.unpack_from("!H", query, at + 1)
        question = query[12 : at + 5]
        self.asked.append(name)
        ttl, addresses = self.records.get(name, (0, ()))
        packed = [ipaddress.ip_address(each).packed for each in addresses]
        found = [each for each in packed if len(each) == {A: 4, AAAA: 16}.get(kind)]
        flags = 0x8180 if name in self.records else 0x8180 | NXDOMAIN
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
        records = [
            struct.pack("!HHHIH", 0xC00C, kind, 1, ttl + number, len(each)) + each for number, each in enumerate(found)
        ]
        return head + question + b"".join(records)


@asynccontextmanager
async def dns(records: Records) -> AsyncIterator[DnsServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: DnsServer(records), local_addr=("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
