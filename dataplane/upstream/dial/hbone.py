"""Tunnels to workloads of a mesh (HBONE): HTTP/2 with mutual TLS to port 15008 of an endpoint, in which each connection
to the endpoint is a stream. In place of a socket, as `steps` has it.

A workload's certificate must name it: its service account, as the control plane knows it of its Pod. Tunnels are shared
by all connections of this worker to one workload at one address, and end with the certificates that they were opened
under. All is bounded: workloads, tunnels to each, streams in each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.http.h2.settings import Settings
from dataplane.upstream.dial.hbone_stream import HboneStream
from dataplane.upstream.dial.workload import MeshPlan
from dataplane.upstream.endpoint import Pool
from dataplane.upstream.opening import NotOpened
from dataplane.upstream.settings import PLAIN_TCP, Tls, Transport

if TYPE_CHECKING:
    from dataplane.upstream.connections import Shared
    from dataplane.upstream.h2.shared_connection import SharedConnection

PORT: Final = 15008
STREAMS: Final = 1000
STREAM_WINDOW: Final = 65_536
SETTINGS: Final = Settings(
    max_local_streams=STREAMS,
    stream_window=STREAM_WINDOW,
    connection_window=2 * (STREAMS + 1) * STREAM_WINDOW,
)
"""As in `upstream.h2.shared_connection`: the connection's window is as large as those of all streams."""
MAX_TUNNELS: Final = 32
"""To one workload at one address, of one worker."""
MAX_WORKLOADS: Final = 4096
"""That one worker has tunnels to, or opens some to."""
UNUSED: Final = 300.0
"""Seconds without a stream after which a tunnel is closed."""
LOOK: Final = 15.0
"""Seconds between two looks at tunnels that are unused, or whose certificates have ended."""
GRACE: Final = 60.0
"""Seconds that what a tunnel carries has to end when a certificate has ended."""

Done = Callable[["Shared | None", str], None]
Place = tuple[str, str]
"""Address and workload."""


class Table(Protocol):
    """`table.Table`."""

    @property
    def mesh(self) -> MeshPlan | None: ...


class Connector(Protocol):
    """`upstream.connector.Connector`."""

    loop: asyncio.AbstractEventLoop

    def open(self, endpoint: Pool, done: Done, either: bool = False, settings: Settings = SETTINGS) -> None: ...


@dataclass(slots=True, eq=False)
class _Tunnel:
    connection: SharedConnection
    plan: MeshPlan
    ends: float
    """Of the certificates, the one that ends first (seconds since the epoch)."""


@dataclass(slots=True, eq=False)
class _Workload:
    tunnels: list[_Tunnel] = field(default_factory=list)
    opening: asyncio.Future[str] | None = None
    """Why no tunnel came of it; ""."""


class Tunnels:
    """One per worker. `table()`: the one that serves now."""

    __slots__ = ("_connector", "_is_looking", "_now", "_table", "_workloads")

    def __init__(self, table: Callable[[], Table], connector: Connector, now: Callable[[], float] = time.time) -> None:
        self._table, self._connector, self._now = table, connector, now
        self._workloads: dict[Place, _Workload] = {}
        self._is_looking = False

    async def open(self, address: str, port: int, workload: str, make: Callable[[], Any]) -> HboneStream:
        """Connect a protocol that `make` makes to a port of a workload. Raises `NotOpened`."""
        connection = await self._with_capacity((address, workload))
        stream = HboneStream(connection, self._connector.loop)
        host = f"[{address}]" if ":" in address else address
        await stream.ask(f"{host}:{port}".encode())
        stream.hand_over(make())
        return stream

    async def _with_capacity(self, place: Place) -> SharedConnection:
        """A tunnel that takes one more stream. Raises `NotOpened`."""
        while True:
            plan = self._plan()
            found = self._workloads.get(place)
            if found is None:
                found = self._entered(place)
            for tunnel in found.tunnels:
                if tunnel.plan is plan and tunnel.connection.free_streams():
                    return tunnel.connection
            if found.opening is None:
                if len(found.tunnels) >= MAX_TUNNELS:
                    why = f"{MAX_TUNNELS} tunnels to {place[1]} have no stream free"
                    raise NotOpened(why, "tunnel: no stream free")
                self._begin(place, found, plan)
            assert found.opening is not None  # it was begun
            cause = await asyncio.shield(found.opening)
            if cause:
                raise NotOpened(f"tunnel to workload {place[1]}: {cause}", "tunnel: not opened")

    def _plan(self) -> MeshPlan:
        """Raises `NotOpened`: what is for the mesh goes no other way."""
        plan = self._table().mesh
        if plan is None or plan.security is None:
            raise NotOpened(
                f"the mesh is not joined: {'no word of it yet' if plan is None else plan.why}", "tunnel: no certificate"
            )
        if plan.ends <= self._now():
            raise NotOpened("our certificate in the mesh has ended", "tunnel: certificate ended")
        return plan

    def _entered(self, place: Place) -> _Workload:
        if len(self._workloads) >= MAX_WORKLOADS:
            raise NotOpened(f"there are tunnels to {MAX_WORKLOADS} workloads already", "tunnel: too many workloads")
        found = self._workloads[place] = _Workload()
        if not self._is_looking:
            self._is_looking = True
            self._connector.loop.call_later(LOOK, self._look)
        return found

    def _begin(self, place: Place, found: _Workload, plan: MeshPlan) -> None:
        """Open one more tunnel, for all who wait for one."""
        address, workload = place
        opening = found.opening = self._connector.loop.create_future()
        pool = Pool(address, PORT)
        tls = Tls(plan.security, names=plan.names(workload), alpn=("h2",))
        pool.transport = Transport(PLAIN_TCP, tls, address)

        def done(connection: Shared | None, cause: str) -> None:
            found.opening = None
            if connection is not None:
                ends = min(plan.ends, _peer_ends(pool))
                found.tunnels.append(_Tunnel(connection, plan, ends))  # type: ignore[arg-type]  # what it opens
            if not opening.done():
                opening.set_result(cause)

        self._connector.open(pool, done, settings=SETTINGS)

    def _look(self) -> None:
        """Close what is not used, and what was opened under a certificate that has ended or was renewed."""
        now, plan = self._now(), self._table().mesh
        for place, found in [*self._workloads.items()]:
            found.tunnels = [each for each in found.tunnels if not self._is_over(each, plan, now)]
            if not found.tunnels and found.opening is None:
                del self._workloads[place]
        self._is_looking = bool(self._workloads)
        if self._is_looking:
            self._connector.loop.call_later(LOOK, self._look)

    def _is_over(self, tunnel: _Tunnel, plan: MeshPlan | None, now: float) -> bool:
        """Whether it is gone; a tunnel that is to end begins to."""
        connection = tunnel.connection
        if now >= tunnel.ends + GRACE:
            connection.close()
        elif connection.is_late(self._connector.loop.time()):
            pass
        elif tunnel.plan is not plan or now >= tunnel.ends:
            connection.retire()
        elif connection.streams:
            connection.idle_since = 0.0
        elif not connection.idle_since:
            connection.idle_since = self._connector.loop.time()
        elif self._connector.loop.time() - connection.idle_since > UNUSED:
            connection.close()
        return connection.is_gone

    def __repr__(self) -> str:
        return f"Tunnels({len(self._workloads)} workloads)"


def _peer_ends(pool: Pool) -> float:
    """When the certificate of who answered ends. Its session is not resumed: each tunnel looks at a certificate."""
    made, pool.last = pool.last, None
    certificate = None if made is None else made.get_peer_certificate(as_cryptography=True)
    return 0.0 if certificate is None else certificate.not_valid_after_utc.timestamp()
