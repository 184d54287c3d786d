"""A control plane that sends what a benchmark says: delta ADS on a Unix socket, one proxy, no controller behind it.

States go out in chunks as the real one cuts them; `say` returns when the proxy has acknowledged all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import grpc

from dataplane.agent.xds_stream import Request, Response
from dataplane.table.store import Change
from tests.fakes.control_plane import ads

CHUNK = 250
"""Resources in one response (`controlplane/xds/protocol/delta`)."""


class Refused(RuntimeError):
    """The proxy refused a state of the benchmark: the figures would mean nothing."""


class Feed:
    """Made by `feeding`."""

    def __init__(self) -> None:
        self._send: asyncio.Queue[bytes] = asyncio.Queue()
        self._answers: asyncio.Queue[Request] = asyncio.Queue()
        self._said = 0
        self._states = 0

    async def say(self, changes: Iterable[Change]) -> None:
        """Send a state, endpoints first, and wait until all workers serve it. Raises Refused."""
        self._states += 1
        version = f"state-{self._states}"
        rest = iter(changes)
        chunk = list(islice(rest, CHUNK))
        while chunk:
            following = list(islice(rest, CHUNK))
            for response in _responses(chunk, version, is_last=not following):
                self._said += 1
                response.nonce = str(self._said)
                self._send.put_nowait(response.SerializeToString())
            chunk = following
            await asyncio.sleep(0)
        await self._answered(str(self._said))

    async def _answered(self, nonce: str) -> None:
        while True:
            answer = await self._answers.get()
            if answer.HasField("error_detail"):
                raise Refused(answer.error_detail.message)
            if answer.response_nonce == nonce:
                return

    async def talk(
        self, incoming: AsyncIterator[Request], _context: grpc.aio.ServicerContext[Request, bytes]
    ) -> AsyncIterator[bytes]:
        """One stream."""

        async def listen() -> None:
            async for request in incoming:
                if request.response_nonce:
                    self._answers.put_nowait(request)

        listening = asyncio.ensure_future(listen())
        try:
            while True:
                yield await self._send.get()
        finally:
            listening.cancel()


def _responses(chunk: list[Change], version: str, is_last: bool) -> Iterator[Response]:
    """A response for each run of one type; the last of the state carries its version."""
    by_type: dict[str, Response] = {}
    for change in chunk:
        response = by_type.setdefault(change.type_url, Response(type_url=change.type_url))
        if change.value is None:
            response.removed_resources.append(change.name)
            continue
        resource = response.resources.add(name=change.name, version=version)
        resource.resource.type_url, resource.resource.value = change.type_url, change.value
    *others, last = by_type.values()
    if is_last:
        last.system_version_info = version
    yield from others
    yield last


@asynccontextmanager
async def feeding(socket: Path) -> AsyncIterator[Feed]:
    """A feed at this socket until the block ends."""
    feed = Feed()
    async with ads(socket, feed.talk):
        yield feed
