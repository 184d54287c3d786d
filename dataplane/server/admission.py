"""Whether a new connection may stay, and which one goes for it.

A connection that has a request is never closed for another one. The oldest idle connection goes, of the address that
has most: so who opens many harms itself first. When that is the new connection itself, it is refused. As connections
with a request stay, no address gets more than its share of the descriptors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.link.loads import CONNECTIONS

if TYPE_CHECKING:
    from dataplane.proxy.context import Context

CONNECTIONS_LIMIT: Final = "maxConnections"
ADDRESS_LIMIT: Final = "maxConnectionsPerAddress"
DESCRIPTORS: Final = "descriptors"
"""Names of limits, in log and metrics."""

RESERVED: Final = 64
"""File descriptors that connections leave alone: those of the process itself, and of connections that come in one
turn."""

SHARE: Final = 4
"""Of a small number of descriptors, one in so many is left alone instead."""


EACH: Final = 2
"""Descriptors that a connection of a client may take: its own, and one to an endpoint. An address may have as many
connections as leave others as much as they may take: a third of the descriptors, where it is alone."""

LEAST: Final = 8
"""Connections that an address may have whatever it leaves of the descriptors: where these are very few."""

AT_ONCE: Final = 8
"""Idle connections that go when a look finds no descriptor left."""


def for_connections(descriptors: int, listening: int) -> int:
    """How many connections a worker may have, of clients and to endpoints, that may open so many descriptors;
    `listening`: sockets that it accepts on."""
    return descriptors - min(RESERVED, descriptors // SHARE) - listening


def admit(connection: Any, of_address: bool = True) -> None:  # a `net.crowd.Guest` with context and peer
    """Judge a connection that has just been added to its worker's. `of_address`: also by its address."""
    context: Context = connection.context
    crowd = context.connections
    limits = context.current.table.limits
    most = limits.address_connections if of_address else None
    if most is not None and crowd.of_source(connection) > most:
        _close_for(context, ADDRESS_LIMIT, connection, crowd.oldest_idle_of(connection))
        if connection not in crowd:
            return
    if limits.connections is not None and context.loads.total(CONNECTIONS) > limits.connections:
        _close_for(context, CONNECTIONS_LIMIT, connection, crowd.oldest_idle())
        return
    left = context.descriptors() - len(crowd) - context.recorder.upstream_open()
    if left < 0:
        _close_for(context, DESCRIPTORS, connection, crowd.oldest_idle())
    elif of_address and crowd.here(connection) > max(left // EACH, LEAST):  # it leaves others too little
        _close_for(context, DESCRIPTORS, connection, crowd.oldest_idle_of(connection))


def spare_descriptor(context: Context) -> None:
    """A connection to an endpoint is about to be opened: where descriptors are few an idle client goes for it."""
    if len(context.connections) + context.recorder.upstream_open() >= context.descriptors():
        close_idle(context, 1)


def close_idle(context: Context, most: int) -> bool:
    """There is no descriptor left: close so many idle connections at most. Whether there was one."""
    for number in range(most):
        goes = context.connections.oldest_idle()
        if goes is None:
            return number > 0
        _close(context, DESCRIPTORS, goes)
    return True


def _close_for(context: Context, limit: str, new: Any, goes: Any) -> None:
    if goes is None or goes is new:
        context.shortages.refused(limit, new.peer.address)
        context.connections.discard(new)
        new.close_idle()
    else:
        _close(context, limit, goes)


def _close(context: Context, limit: str, goes: Any) -> None:
    context.shortages.closed(limit, goes.peer.address)
    context.connections.discard(goes)  # at once: it must not be chosen, or counted, a second time
    goes.close_idle()
