"""Opening connections: real sockets on loopback."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path

import pytest

from dataplane.net.writes import Writes
from dataplane.upstream.connector import SESSION_TIME, SWEEP, Connector
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.settings import PLAIN_TCP, Transport
from tests.fakes.moved_loop import moved


class Count:
    """What was counted, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failures: list[tuple[str, str, str]] = []

    def upstream_opened(self, outcome: str) -> None:
        self.seen.append(outcome)

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        self.failures.append((endpoint, server_name, reason))

    def upstream_connected(self, endpoint: str, server_name: str) -> None: ...

    def upstream_closed(self) -> None:
        self.seen.append("closed")

    def upstream_fault(self, reason: str) -> None:
        self.seen.append(reason)


async def connect(endpoint: Endpoint, count: Count) -> tuple[UpstreamConnection | None, str]:
    loop = asyncio.get_running_loop()
    connector = Connector(loop, Writes(loop.call_soon), count)
    answer: asyncio.Future[tuple[UpstreamConnection | None, str]] = loop.create_future()
    connector.connect(endpoint, lambda connection, cause: answer.set_result((connection, cause)))
    connection, cause = await answer
    if connection is not None:
        connection.close()
        while "closed" not in count.seen:
            await asyncio.sleep(0)
    await connector.close()
    return connection, cause


async def test_a_tcp_endpoint_and_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    tcp = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    unix = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    async with tcp, unix:
        for endpoint in (Endpoint("127.0.0.1", tcp.sockets[0].getsockname()[1]), Endpoint("", 0, path)):
            count = Count()
            connection, cause = await connect(endpoint, count)
            assert connection is not None
            assert cause == ""
            assert count.seen == ["opened", "closed"]


async def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    count = Count()
    connection, cause = await connect(Endpoint("127.0.0.1", port), count)
    assert connection is None
    assert cause.startswith(f"connect to 127.0.0.1:{port} failed: ")
    assert count.seen == ["failed"]
    assert count.failures == [(f"127.0.0.1:{port}", "", "Connection refused")]


@pytest.mark.parametrize(("number", "tries"), [(errno.EMFILE, 2), (errno.ENFILE, 2), (errno.ECONNREFUSED, 1)])
async def test_only_without_a_descriptor_room_is_made_and_one_more_try(
    number: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a server refuses would be refused again: it is asked once."""
    loop, done = asyncio.get_running_loop(), list[str]()

    async def no_connection(*_: object) -> None:
        done.append("tried")
        raise OSError(number, "no")

    def close_idle() -> bool:
        done.append("made room")
        return True

    connector = Connector(loop, Writes(loop.call_soon), Count())
    connector.close_idle = close_idle
    monkeypatch.setattr(loop, "create_connection", no_connection)
    answer: asyncio.Future[str] = loop.create_future()
    connector.connect(Endpoint("127.0.0.1", 1), lambda _, cause: answer.set_result(cause))
    assert await answer
    assert done == ["tried", "made room", "tried"][: 2 * tries - 1]
    await connector.close()


@moved
async def test_a_transport_whose_connections_never_came_is_forgotten_as_others_are() -> None:
    """Each certificate that is renewed makes one, also while nobody can be reached."""
    loop = asyncio.get_running_loop()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", free.getsockname()[1])
    connector, causes = Connector(loop, Writes(loop.call_soon), Count()), list[str]()
    pool = endpoint.pool(Transport(PLAIN_TCP, None, ""))
    connector.connect(pool, lambda _, cause: causes.append(cause))
    await asyncio.sleep(SESSION_TIME)
    assert len(causes) == 1 and causes[0] and list(endpoint.pools.values()) == [pool]
    await asyncio.sleep(3 * SWEEP)
    assert not endpoint.pools and pool.closed
    await connector.close()
