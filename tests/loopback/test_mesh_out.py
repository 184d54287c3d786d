"""Tunnels to workloads of a mesh (HBONE): one connection for many streams, the workload's identity verified, ends."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dataplane.net.writes import Writes
from dataplane.tls.client import ClientSecurity
from dataplane.upstream.connector import Connector
from dataplane.upstream.dial import hbone
from dataplane.upstream.dial.hbone import Tunnels
from dataplane.upstream.dial.workload import MeshPlan
from dataplane.upstream.opening import NotOpened
from tests.fakes.certificates import Issued
from tests.fakes.mesh import MeshAuthority, Stream, Tunnel, Workload, identity, tls, workload
from tests.harness.patience import PATIENCE

APP = "demo/app"
APP_ID, OWN_ID = identity("demo", "app"), identity("shop", "web")
REQUEST = b"GET / HTTP/1.1\r\nhost: app\r\n\r\n"
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Counts:
    """As `connector.Count`."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.reasons: list[str] = []

    def upstream_opened(self, outcome: str) -> None:
        self.opened.append(outcome)

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        self.reasons.append(reason)

    def upstream_connected(self, endpoint: str, server_name: str) -> None: ...

    def upstream_closed(self) -> None: ...

    def upstream_fault(self, reason: str) -> None: ...


class Client(asyncio.Protocol):
    """What is connected over a stream."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.lost = asyncio.Event()
        self.changed = asyncio.Event()
        self.is_blocked = self.is_ended = False
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.changed.set()

    def eof_received(self) -> bool:
        self.is_ended = True
        self.changed.set()
        return True

    def pause_writing(self) -> None:
        self.is_blocked = True

    def resume_writing(self) -> None:
        self.is_blocked = False
        self.changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self.changed.set()

    async def until(self, there: Callable[[Client], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not there(self):
                self.changed.clear()
                await self.changed.wait()


@dataclass
class World:
    """A workload at an address of its own, and tunnels to it. `mesh` is what the table says."""

    authority: MeshAuthority
    address: str
    peer: Workload
    tunnels: Tunnels
    counts: Counts
    mesh: MeshPlan | None = None
    late: float = 0.0
    """Seconds that the clock is ahead."""

    async def connect(self, name: str = APP, port: int = 8080) -> Client:
        async with asyncio.timeout(PATIENCE):
            stream = await self.tunnels.open(self.address, port, name, Client)
        made: Client = stream.get_protocol()
        return made

    async def refused(self, name: str = APP) -> str:
        with pytest.raises(NotOpened) as caught:
            await self.connect(name)
        return str(caught.value)

    def plan(self, seconds: float = 3600.0, domains: tuple[str, ...] = ("cluster.local",)) -> MeshPlan:
        own = self.authority.workload(OWN_ID, seconds)
        ends = own.certificate.not_valid_after_utc.timestamp()
        return MeshPlan(ClientSecurity(own.chain, own.key, (self.authority.root.pem,)), domains, ends)


@asynccontextmanager
async def world(presents: Issued | None = None, authority: MeshAuthority | None = None) -> AsyncIterator[World]:
    """`presents`: the workload's certificate; its own, if None."""
    authority = authority or MeshAuthority()
    address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
    context = tls(presents or authority.workload(APP_ID), authority.root.pem, server=True)
    loop = asyncio.get_running_loop()
    counts = Counts()
    connector = Connector(loop, Writes(loop.call_soon), counts)

    class Table:
        @property
        def mesh(self) -> MeshPlan | None:
            return made.mesh

    async with workload(address, context) as peer:
        tunnels = Tunnels(Table, connector, lambda: time.time() + made.late)
        made = World(authority, address, peer, tunnels, counts)
        made.mesh = made.plan()
        try:
            yield made
        finally:
            for found in tunnels._workloads.values():  # a worker ends with its process
                for each in found.tunnels:
                    each.connection.close()


async def test_connections_to_a_workload_are_streams_of_one_tunnel() -> None:
    async with world() as made:
        clients = await asyncio.gather(*(made.connect(port=8000 + number) for number in range(20)))
        assert len(made.peer.tunnels) == 1
        assert {each.authority for each in made.peer.streams} == {f"{made.address}:{8000 + n}" for n in range(20)}
        for client in clients:
            client.transport.write(REQUEST)
        for client in clients:
            await client.until(lambda each: bytes(each.got) == HELLO)
        certificate = made.peer.tunnels[0].transport.get_extra_info("ssl_object").getpeercert()
        assert ("URI", OWN_ID) in certificate["subjectAltName"]


async def test_a_thousand_streams_share_a_tunnel_and_a_slow_one_holds_none() -> None:
    async with world() as made:
        first = await made.connect()
        first.transport.pause_reading()
        (stream,) = made.peer.streams
        made.peer.tunnels[0].send(stream, b"x" * 1_000_000)  # more than its window
        clients = await asyncio.gather(*(made.connect() for _ in range(999)))
        assert len(made.peer.tunnels) == 1 and len(made.peer.streams) == 1000
        for client in clients:
            client.transport.write(REQUEST)
        for client in clients:
            await client.until(lambda each: bytes(each.got) == HELLO)
        assert not first.got
        assert made.peer.tunnels[0].wire.local_flow_control_window(stream.number) == 0, "it was told to wait"
        first.transport.resume_reading()
        await first.until(lambda each: len(each.got) == 1_000_000)


async def test_a_workload_that_takes_few_streams_gets_further_tunnels() -> None:
    async with world() as made:
        made.peer.room = 10
        clients = await asyncio.gather(*(made.connect() for _ in range(25)))
        assert len(made.peer.tunnels) == 3 and len(clients) == 25


WRONG: dict[str, tuple[Callable[[MeshAuthority], Issued], str]] = {
    "another service account": (lambda mesh: mesh.workload(identity("demo", "other")), f"is not for {APP_ID}"),
    "another namespace": (lambda mesh: mesh.workload(identity("other", "app")), f"is not for {APP_ID}"),
    "another trust domain": (lambda mesh: mesh.workload(identity("demo", "app", "x.example")), "is not for"),
    "an ended certificate": (lambda mesh: mesh.workload(APP_ID, seconds=-5.0), "certificate has expired"),
    "another authority": (lambda _: MeshAuthority("Other").workload(APP_ID), "cannot be verified"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_nothing_is_sent_to_who_is_not_the_workload(what: str) -> None:
    authority = MeshAuthority()
    present, why = WRONG[what]
    async with world(present(authority), authority) as made:
        assert why in await made.refused()
        assert not made.peer.streams


async def test_a_workload_of_a_further_trust_domain_is_believed_where_it_is_named() -> None:
    authority = MeshAuthority()
    async with world(authority.workload(identity("demo", "app", "two.example")), authority) as made:
        made.mesh = made.plan(domains=("cluster.local", "two.example"))
        await made.connect()


async def test_without_a_certificate_nothing_goes_another_way() -> None:
    async with world() as made:
        made.mesh = MeshPlan(None, ("cluster.local",), why="it has no certificate now")
        assert "it has no certificate now" in await made.refused()
        made.mesh = None
        assert "the mesh is not joined" in await made.refused()
        made.mesh = made.plan()
        made.late = 4000.0
        assert "has ended" in await made.refused()
        assert not made.peer.tunnels and not made.counts.opened


async def test_a_workload_that_refuses_a_connection_is_said_to() -> None:
    async with world() as made:
        made.peer.status = 403
        assert "answered CONNECT with 403" in await made.refused()
        made.peer.status = 200
        client = await made.connect()
        assert len(made.peer.tunnels) == 1, "the tunnel goes on"
        client.transport.close()
        await client.until(lambda each: each.lost.is_set())


async def test_each_direction_ends_by_itself() -> None:
    async with world() as made:
        client = await made.connect()
        (tunnel,), (stream,) = made.peer.tunnels, made.peer.streams
        client.transport.write(b"all")
        client.transport.write_eof()
        async with asyncio.timeout(PATIENCE):
            await stream.until(lambda each: each.is_ended)
        tunnel.send(stream, b"answer")
        tunnel.end(stream)
        await client.until(lambda each: each.is_ended)
        assert bytes(client.got) == b"answer" and bytes(stream.content) == b"all"
        client.transport.close()


async def test_what_was_written_before_a_close_arrives() -> None:
    async with world() as made:
        client = await made.connect()
        (stream,) = made.peer.streams
        stream.is_slow = True
        client.transport.write(b"y" * 200_000)  # more than a window
        client.transport.close()
        async with asyncio.timeout(PATIENCE):
            await stream.until(lambda each: len(each.content) >= 65_535)
        made.peer.tunnels[0].wire.acknowledge_received_data(65_535, stream.number)
        stream.is_slow = False
        made.peer.tunnels[0].write()
        async with asyncio.timeout(PATIENCE):
            await stream.until(lambda each: len(each.content) == 200_000)


async def test_a_writer_is_told_when_its_stream_takes_no_more() -> None:
    async with world() as made:
        client = await made.connect()
        (stream,) = made.peer.streams
        stream.is_slow = True
        client.transport.write(b"y" * 200_000)
        assert client.is_blocked
        other = await made.connect()
        other.transport.write(REQUEST)
        await other.until(lambda each: bytes(each.got) == HELLO)
        client.transport.abort()
        async with asyncio.timeout(PATIENCE):
            await stream.until(lambda each: each.is_reset)


async def test_a_renewed_certificate_is_used_by_new_tunnels_and_old_ones_end_when_unused() -> None:
    async with world() as made:
        client = await made.connect()
        made.mesh = made.plan()
        other = await made.connect()
        assert len(made.peer.tunnels) == 2
        made.tunnels._look()
        client.transport.write(REQUEST)
        await client.until(lambda each: bytes(each.got) == HELLO)
        client.transport.close()
        async with asyncio.timeout(PATIENCE):
            await made.peer.tunnels[0].closed.wait()
        other.transport.write(REQUEST)
        await other.until(lambda each: bytes(each.got) == HELLO)


@pytest.mark.parametrize(("own", "theirs"), [(100.0, 3600.0), (3600.0, 100.0)])
async def test_a_tunnel_is_cut_a_grace_after_a_certificate_of_it_has_ended(own: float, theirs: float) -> None:
    authority = MeshAuthority()
    async with world(authority.workload(APP_ID, theirs), authority) as made:
        made.mesh = made.plan(own)
        client = await made.connect()
        made.late = 110.0
        made.tunnels._look()
        client.transport.write(REQUEST)
        await client.until(lambda each: bytes(each.got) == HELLO)
        made.late = 100.0 + hbone.GRACE + 1.0
        made.tunnels._look()
        await client.until(lambda each: each.lost.is_set())


async def test_a_workload_that_is_gone_loses_its_connections_and_is_connected_to_anew() -> None:
    async with world() as made:
        client = await made.connect()
        made.peer.tunnels[0].transport.abort()
        await client.until(lambda each: each.lost.is_set())
        await made.connect()
        assert len(made.peer.tunnels) == 2


async def test_one_that_gives_up_holds_no_stream() -> None:
    async with world() as made:
        took: list[tuple[Tunnel, Stream]] = []
        made.peer._took = lambda tunnel, stream: took.append((tunnel, stream))  # type: ignore[method-assign]
        asking = asyncio.ensure_future(made.tunnels.open(made.address, 8080, APP, Client))
        async with asyncio.timeout(PATIENCE):
            while not took:
                await asyncio.sleep(0)
            asking.cancel()
            await took[0][1].until(lambda each: each.is_reset)
        assert asking.cancelled() or asking.done()


async def test_workloads_that_tunnels_lead_to_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbone, "MAX_WORKLOADS", 1)
    async with world() as made:
        await made.connect()
        assert "1 workloads already" in await made.refused("demo/other")
