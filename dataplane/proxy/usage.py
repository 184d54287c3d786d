"""What the exchanges of one worker hold now, as numbers: for the dump, and to look for leaks.

When its clients are gone and what they asked for has ended, everything but `upstream_idle` and `worker_sockets` is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.upstream.endpoint import Endpoint

if TYPE_CHECKING:
    from dataplane.proxy.context import Context


def usage(context: Context) -> dict[str, int]:
    """Connections and exchanges are counts, `buffered_bytes` and `mirrored_bytes` bytes of bodies.

    `pending`: requests and calls that an endpoint has not answered yet. `upstream_streams`: of HTTP/2 connections;
    `upstream_waiting`: requests that wait for one. `worker_sockets`: by which other workers of the proxy ask this one.
    """
    endpoints = context.leases.connector.endpoints
    shared = [endpoint.shared for endpoint in endpoints if endpoint.shared is not None]
    idle = sum(len(endpoint.idle) for endpoint in endpoints) + sum(each.idle for each in shared)
    return {
        "connections": len(context.connections),
        "exchanges": context.recorder.active,
        "upstream_in_use": context.recorder.upstream_open() - idle,
        "upstream_idle": idle,
        "upstream_streams": sum(each.streams for each in shared),
        "upstream_waiting": sum(each.waiting for each in shared),
        "pending": sum(each.pending for each in endpoints if isinstance(each, Endpoint)),
        "buffered_bytes": context.body_memory.used,
        "worker_sockets": context.worker_sockets,
        "mirrors": context.mirrors.count,
        "mirrored_bytes": context.mirrors.bytes,
    }
