"""A new connection of HTTP/1.1 for the holder of a lease: opened where limits allow for one, raced where endpoints are
of both IP families, or reported as not to be had. Leases, limits and shared connections ask alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.upstream.opening import cause_of
from dataplane.upstream.race import Race, of_other_family
from dataplane.upstream.versions import HTTP1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.upstream.connections import Pooled
    from dataplane.upstream.endpoint import Endpoint, Lease, Pool
    from dataplane.upstream.opening import Opens


def connect(connector: Opens, pool: Pool, holder: Lease, endpoints: Sequence[Endpoint]) -> None:
    """A new connection of HTTP/1.1 for `holder`, when limits allow for one. `endpoints`: () when it sends again."""
    if pool.gate is None:
        open_for(connector, pool, holder, endpoints)
    else:
        pool.gate.take(holder, pool, endpoints, HTTP1)


def open_for(connector: Opens, pool: Pool, holder: Lease, endpoints: Sequence[Endpoint]) -> None:
    """Open a connection for `holder`, unless its lease is over by then. `endpoints`: () when it sends again."""
    number = holder.lease

    def done(up: Pooled | None, cause: str) -> None:
        if holder.lease != number:  # it is not waited for any more
            if up is not None:
                up.park()
        elif up is None:
            not_connected(holder, cause, endpoints)
        else:
            holder.up = up
            if endpoints:
                holder.lease_ready(up)
            else:
                holder.lease_again(up)

    other = of_other_family(holder.endpoint, endpoints)
    if other is None:
        connector.connect(pool, done)
    else:
        Race(connector, holder, pool, other, done).begin()


def not_connected(holder: Lease, cause: str, endpoints: Sequence[Endpoint]) -> None:
    """There is no connection for `holder`. `endpoints`: of which it was to be one; () when it sends again."""
    leave_endpoint(holder)
    tried = () if holder.retries is None else holder.retries.tried
    holder.lease_failed(cause_of(cause), cause, any(each not in tried for each in endpoints))


def leave_endpoint(holder: Lease) -> None:
    """The endpoint has one request less in flight."""
    if holder.leased:
        holder.leased = False
        holder.endpoint.pending -= 1  # type: ignore[union-attr]  # it was leased
