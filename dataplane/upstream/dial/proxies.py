"""The forward proxies that tunnels lead through (`backend.tunnel`), as those know them who look for a connection: by
the key of a Backend. `tunnel` opens them.

Policies above a backend say nothing of the proxy in front of it: what its own Backend says counts, so that there is no
proxy of a proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.opening import Forwards, TunnelFailed

if TYPE_CHECKING:
    from dataplane.net.writes import Writes
    from dataplane.upstream.endpoint import Pool
    from dataplane.upstream.lease import BackendPlan, Leases
    from dataplane.upstream.settings import Transport, Tunnel

MAX_WAYS: Final = 4096
"""Transports for which is remembered what their proxy's plan was."""
UNUSED: Final = 600.0
"""Seconds after which a name that no request needs is forgotten, as the resolver forgets names."""


class Table(Protocol):
    """`table.Table`."""

    @property
    def backends(self) -> Mapping[str, Any]: ...  # Any: a BackendPlan; mappings of protocols do not vary


class Proxies:
    """One per worker. `table()`: the one that serves now. `closed()`: a connection to a proxy is gone."""

    __slots__ = ("_closed", "_leases", "_names", "_table", "_ways")

    def __init__(self, table: Callable[[], Table], leases: Leases, closed: Callable[[], None]) -> None:
        self._table, self._leases, self._closed = table, leases, closed
        self._ways: dict[Transport, tuple[BackendPlan, Transport]] = {}
        self._names: dict[tuple[bytes, int], _Name] = {}

    def named(self, host: bytes, port: int) -> tuple[Endpoint]:
        """As `opening.Proxies.named`."""
        now = self._leases.connector.clock()
        name = self._names.get((host, port))
        if name is None:
            self._forget(now)
            name = self._names[host, port] = _Name(Endpoint(host.decode("latin-1"), port))
        name.used = now
        return (name.endpoint,)

    def _forget(self, now: float) -> None:
        """Names that are no longer used: they come from the configuration alone, so they are looked through when
        there is another one."""
        for key, name in [*self._names.items()]:
            if now - name.used > UNUSED:
                del self._names[key]
                name.endpoint.close_idle()

    def way(self, transport: Transport) -> Transport:
        """As `opening.Proxies.way`."""
        tunnel = transport.tunnel
        plan = None if tunnel is None else self._table().backends.get(tunnel.backend)
        if tunnel is None or plan is None:
            return transport
        known = self._ways.get(transport)
        if known is not None and known[0] is plan:
            return known[1]
        if len(self._ways) >= MAX_WAYS:
            self._ways.clear()
        said: Hashable = (plan.own, plan.where)
        made = replace(transport, tunnel=replace(tunnel, way=said))
        self._ways[transport] = plan, made
        return made

    def forwarding(self, pool: Pool, writes: Writes, closed: Callable[[], None]) -> Forwards:
        """As `opening.Proxies.forwarding`."""
        from dataplane.upstream.dial.forwarded import ForwardedConnection  # here: as in `open`

        return ForwardedConnection(pool, writes, closed)

    async def open(
        self,
        tunnel: Tunnel,
        host: str,
        port: int,
        make: Callable[[], Any],
        forwarded: Forwards | None = None,
    ) -> Any:
        """As `opening.Proxies.open`. Raises `TunnelFailed`."""
        plan = self._table().backends.get(tunnel.backend)
        if plan is None:
            raise TunnelFailed(f"the tunnel's proxy {tunnel.backend} does not exist", "no such proxy")
        if plan.of_kind is not None or plan.by_request:
            raise TunnelFailed(f"the tunnel's proxy {tunnel.backend} is no host", "no such proxy")
        if plan.transport is not None and plan.transport.tunnel is not None:
            raise TunnelFailed(f"the tunnel's proxy {tunnel.backend} is behind a tunnel itself", "proxy behind a proxy")
        from dataplane.upstream.dial import tunnel as tunnels  # here: most workers open none

        if forwarded is not None:
            return await tunnels.reached(plan, self._leases, self._closed, (host, port), forwarded)
        return await tunnels.opened(plan, self._leases, self._closed, (host, port), make)


@dataclass(slots=True)
class _Name:
    endpoint: Endpoint
    used: float = 0.0
    """When it was asked for last (monotonic seconds)."""
