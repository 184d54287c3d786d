"""The steps of dialling, as rows: what each adds, over what the steps below it have opened.

A connection is opened from the first row up. Each row gets a protocol to connect (asyncio's, by shape) and `below`,
which connects a protocol of its own to what the rows before it make. A row that does not concern a pool is left out.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataplane.net import proxy_header
from dataplane.upstream.handshake import Handshake
from dataplane.upstream.settings import OURSELVES, Client
from dataplane.upstream.versions import HTTP1, HTTP2

if TYPE_CHECKING:
    import asyncio

    from dataplane.net.turns import Turns
    from dataplane.tls.handshakes import Handshakes
    from dataplane.upstream.endpoint import Pool
    from dataplane.upstream.opening import Forwards, Proxies, Tunnels
    from dataplane.upstream.own_pages import OwnPages

Make = Callable[[], Any]
"""Makes the protocol that is to be connected."""
Below = Callable[[Make], Awaitable[None]]


class Means(NamedTuple):
    """Of a worker."""

    loop: asyncio.AbstractEventLoop
    own: OwnPages
    handshakes: Handshakes
    turns: Turns


@dataclass(slots=True)
class Dial:
    """One connection that is being opened."""

    means: Means
    pool: Pool
    protocols: dict[int, Any]
    """By version of HTTP, what takes the connection; of several the server chooses. Bytes that are no requests count as
    HTTP/1.1."""
    client: Client | None = None
    """For whom it is made, where the pool does not say."""
    proxies: Proxies | None = None
    """Of the worker: through whom tunnels are opened."""
    tunnels: Tunnels | None = None
    """Of the worker: to workloads of a mesh."""
    forwarded: Forwards | None = None
    """What takes the connection, where it is one to a forward proxy that requests are sent to in absolute form."""
    version: int = 0
    """That is spoken, once it is open."""
    transport: Any = None
    """asyncio's, or one by shape, once it is open."""

    def taken(self, version: int) -> Any:
        """The protocol for this version, which is spoken."""
        self.version = version
        return self.protocols[version]


class DialStep(NamedTuple):
    """A row."""

    name: str
    reason: str
    """Why at this place."""
    concerns: Callable[[Pool], bool]
    check: Callable[[Dial], None] | None = None
    """Asked before anything is opened. Raises OSError."""
    open: Callable[[Dial, Below, Make], Awaitable[None]] | None = None
    """Connects a protocol over what the rows before have opened. Raises OSError, `opening.NotOpened`, ValueError. None:
    it adds nothing to the connection."""


def _all(pool: Pool) -> bool:
    return True


def _refuse_own_pages(dial: Dial) -> None:
    pool = dial.pool
    if dial.means.own.are_at(pool.address, pool.port, pool.unix_path):
        raise PermissionError(errno.EACCES, "the proxy's own pages are no backend")


async def _socket(dial: Dial, below: Below, make: Make) -> None:
    pool, loop = dial.pool, dial.means.loop
    if pool.unix_path:
        dial.transport, _ = await loop.create_unix_connection(make, pool.unix_path)
    else:
        dial.transport, _ = await loop.create_connection(make, pool.address, pool.port)


def _has_tunnel(pool: Pool) -> bool:
    return pool.transport is not None and pool.transport.tunnel is not None


def _is_workload(pool: Pool) -> bool:
    return bool(pool.workload) and not _has_tunnel(pool)


def _is_direct(pool: Pool) -> bool:
    return not pool.workload and not _has_tunnel(pool)


async def _hbone(dial: Dial, below: Below, make: Make) -> None:
    pool = dial.pool
    assert dial.tunnels is not None  # who knows workloads has them
    dial.transport = await dial.tunnels.open(pool.address, pool.port, pool.workload, make)


async def _tunnel(dial: Dial, below: Below, make: Make) -> None:
    pool = dial.pool
    assert pool.transport is not None and pool.transport.tunnel is not None  # it concerns this pool
    assert dial.proxies is not None  # who serves a table has them
    tunnel = pool.transport.tunnel
    dial.transport = await dial.proxies.open(tunnel, pool.address, pool.port, make, dial.forwarded)


def _has_header(pool: Pool) -> bool:
    return pool.transport is not None and bool(pool.transport.tcp.proxy_version)


async def _proxy_header(dial: Dial, below: Below, make: Make) -> None:
    await below(lambda: _Announcing(_header(dial), make()))


def _has_tls(pool: Pool) -> bool:
    return pool.transport is not None and pool.transport.tls is not None


async def _tls(dial: Dial, below: Below, make: Make) -> None:
    """What takes the connection is connected when the handshake has said which version is spoken."""
    means, pool = dial.means, dial.pool
    assert pool.transport is not None  # it concerns this pool
    handshake = Handshake(means.loop, pool, pool.transport, list(dial.protocols), means.handshakes, means.turns)
    try:
        await below(lambda: handshake.transport)
        version = await handshake.ended()
    except BaseException:
        handshake.transport.abort()
        raise
    if len(dial.protocols) > 1:
        pool.spoken = version
    dial.transport = handshake.transport
    handshake.hand_over(dial.taken(version))


STEPS: Final[Sequence[DialStep]] = (
    DialStep("own pages", "nothing is opened to what clients must not reach", _all, check=_refuse_own_pages),
    DialStep("socket", "what everything else is written to", _is_direct, open=_socket),
    DialStep(
        "tunnel",
        "in place of a socket: a connection to the proxy, by these same steps and with TLS where the proxy wants it",
        _has_tunnel,
        open=_tunnel,
    ),
    DialStep(
        "HBONE",
        "in place of a socket: a stream of the tunnel to a workload of the mesh; a forward proxy that somebody has"
        " configured comes first",
        _is_workload,
        open=_hbone,
    ),
    DialStep("PROXY header", "the first bytes say who it is for, before TLS", _has_header, open=_proxy_header),
    DialStep("TLS", "last: what is spoken in it is for the server that it has verified", _has_tls, open=_tls),
)


async def connect(dial: Dial) -> None:
    """Open the connection, and give it to what takes it. Raises as `DialStep.open`."""
    steps = [step for step in STEPS if step.concerns(dial.pool)]
    for step in steps:
        if step.check is not None:
            step.check(dial)
    below: Below = _nowhere
    for step in steps:
        if step.open is not None:
            below = partial(step.open, dial, below)
    await below(lambda: dial.taken(HTTP2 if HTTP2 in dial.protocols else HTTP1))


async def _nowhere(make: Make) -> None:
    raise RuntimeError("nothing is below the socket")


def _header(dial: Dial) -> bytes:
    """The PROXY header of a connection."""
    transport = dial.pool.transport
    assert transport is not None  # it says that there is one
    version, whom = transport.tcp.proxy_version, dial.client or transport.client or OURSELVES
    host, _, port = whom.local.decode("latin-1").rpartition(":")
    if not whom.address or not port.isdecimal():
        return proxy_header.of_ourselves(version)
    return proxy_header.written(version, (whom.address, whom.port), (host.strip("[]"), int(port)))


class _Announcing:
    """asyncio's protocol of a connection until it is open: it writes the first bytes, before those of whose it is."""

    __slots__ = ("_first", "_inner")

    def __init__(self, first: bytes, inner: Any) -> None:  # Any: a protocol by shape
        self._first, self._inner = first, inner

    def connection_made(self, transport: Any) -> None:
        transport.write(self._first)
        transport.set_protocol(self._inner)
        self._inner.connection_made(transport)
