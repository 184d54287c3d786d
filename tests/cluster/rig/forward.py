"""Passes connections and datagrams of one address on to others, where an address cannot simply be moved there."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import cast

Target = tuple[str, int]
Targets = Callable[[], list[Target]]


class Forward:
    """Listens from `open` to `close`."""

    def __init__(self, address: str, port: int, protocol: str, targets: Targets) -> None:
        self._where, self._protocol, self._targets = (address, port), protocol, targets
        self._close: Callable[[], None] = lambda: None

    async def open(self) -> None:
        if self._protocol == "UDP":
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self._targets), self._where)
            self._close = transport.close
        else:
            server = await asyncio.start_server(self._accept, *self._where)
            self._close = server.close

    def close(self) -> None:
        self._close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, IndexError):
            onward = await asyncio.open_connection(*random.choice(self._targets()))
            await asyncio.gather(_pump(reader, onward[1]), _pump(onward[0], writer))
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:  # a reset on one side is a reset on the other
        writer.transport.abort()


class _Datagrams(asyncio.DatagramProtocol):
    """A socket of its own for each client, for the way back."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._clients: dict[Target, asyncio.DatagramTransport] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, client: Target) -> None:
        task = asyncio.create_task(self._pass(data, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass(self, data: bytes, client: Target) -> None:
        if client not in self._clients:
            targets = self._targets()
            if not targets:
                return
            loop, front = asyncio.get_running_loop(), self._transport
            onward, _ = await loop.create_datagram_endpoint(
                lambda: _Back(lambda answer: front.sendto(answer, client)), remote_addr=random.choice(targets)
            )
            self._clients[client] = onward
        self._clients[client].sendto(data)


class _Back(asyncio.DatagramProtocol):
    def __init__(self, give: Callable[[bytes], None]) -> None:
        self._give = give

    def datagram_received(self, data: bytes, _address: Target) -> None:
        self._give(data)
