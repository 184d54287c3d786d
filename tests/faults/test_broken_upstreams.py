"""Upstreams that break their connections of HTTP/2, under requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dataplane.http.h2 import frames
from dataplane.http.h2.events import Event, Request
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_peer import EchoServer
from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import PORT, Client, Proxy, clients, proxy, until
from tests.harness.patience import PATIENCE

FILE = """\
backends:
- name: far
  host: 127.0.0.1:{upstream}
  policies: {{http: {{version: HTTP2}}}}
binds:
- port: {port}
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{{backend: far}}]
"""
RULE = frames.header(frames.DATA, 0, 0, 1) + b"x"
"""Content of no stream (RFC 9113 6.1)."""
FLOOD = frames.ping(b"12345678") * 1500
FAULTS = "gatewright_upstream_http2_faults_total"


class Breaking(EchoServer):
    """Breaks the connection as a path asks for, and answers other requests. Of the first request for `/left-out` a
    GOAWAY says that it was not processed."""

    def __init__(self, peers: list[EchoServer], asked: set[bytes]) -> None:
        super().__init__(Settings(), [], peers)
        self.asked = asked

    def on(self, event: Event) -> None:
        path = event.head.path if isinstance(event, Request) else b""
        if path == b"/rule":
            self.transport.write(RULE)
        elif path == b"/limit":
            self.transport.write(FLOOD)
        elif path == b"/goaway" and isinstance(event, Request):
            self.end(event.stream.id)
        elif path == b"/left-out" and path not in self.asked:
            self.asked.add(path)
            self.end(0)
        elif path == b"/part" and isinstance(event, Request):
            self.codec.send_response(event.stream, 200, b"\r\ncontent-length: 100\r\n", False)
            self.codec.send_content(event.stream, b"part", False)
        else:
            super().on(event)

    def end(self, last: int) -> None:
        self.transport.write(frames.goaway(last, 11, b"too_many_pings"))
        self.transport.close()


@asynccontextmanager
async def broken(folder: Path, workers: int) -> AsyncIterator[Proxy]:
    """A proxy before a `Breaking` endpoint."""
    peers: list[EchoServer] = []
    asked: set[bytes] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Breaking(peers, asked), "127.0.0.1", 0)
    try:
        file = folder / "proxy.yaml"
        file.write_text(FILE.format(port=PORT, upstream=server.sockets[0].getsockname()[1]))
        async with proxy(folder, "-f", str(file), workers=workers) as made:
            await made.ready()
            yield made
    finally:
        server.close()
        for peer in peers:
            peer.transport.abort()
        await server.wait_closed()


async def rest_of(client: Client) -> bytes:
    """What comes before the connection ends."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE):
            return await client.reader.read()
    return b""


@fault("An upstream breaks connections of HTTP/2")
async def test_broken_connections_are_counted_logged_once_and_cost_only_their_requests(tmp_path: Path) -> None:
    async with broken(tmp_path, 1) as made, clients(made.port) as connect:
        agent, client = made.agent, await connect()
        for round_ in range(1, 4):
            assert await client.ask("/rule") == 502
            assert await client.ask() == 200
            assert await client.ask("/limit") == 502
            assert await client.ask("/goaway") == 502
            assert await client.ask() == 200
            for reason in ("IdleStream", "PingFlood", "GoAway"):
                assert await made.metric(f'{FAULTS}{{reason="{reason}"}}') == round_
        await agent.says("is broken: …")
        assert await client.ask("/left-out") == 200
        assert await made.metric(f'{FAULTS}{{reason="GoAway"}}') == 4
        client.send("/part")
        async with asyncio.timeout(PATIENCE):
            assert (await client.reader.readuntil(b"part")).startswith(b"HTTP/1.1 200 ")
        other = await connect()
        assert await other.ask("/rule") == 502  # over the same connection to the endpoint
        assert await rest_of(client) == b""
        assert await other.ask() == 200
        await until(lambda: agent.out().count(" http.path=/part ") == 1, agent.out)
        said = Counter(
            (line.partition(" http.path=")[2].split()[0], line.partition(" reason=")[2].split()[0])
            for line in agent.out().splitlines()
            if " reason=" in line
        )
        assert said == {
            ("/rule", "UpstreamInvalid"): 4,
            ("/limit", "UpstreamInvalid"): 3,
            ("/goaway", "UpstreamFailed"): 3,
            ("/part", "UpstreamFailed"): 1,
        }
        assert page.count("is broken: …", agent.log()) == 1, "within a minute"
