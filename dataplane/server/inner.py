"""Connections that come by a tunnel of a CONNECT instead of a socket: they meet all that connections of their bind do.

But for the PROXY header: who the client is was said on the connection outside, and is not the client's to say again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.server.entry import Entry
from dataplane.server.protocols import plan_of
from dataplane.table.binds import Phases

if TYPE_CHECKING:
    from dataplane.http.messages import Peer
    from dataplane.proxy.context import Context


def enter(context: Context, key: str, transport: Any, peer: Peer) -> None:
    """As `proxy.context.Context.enter`."""
    bind = context.bind_of(key)
    if bind is None:  # taken out of the configuration since
        transport.abort()
        return
    phases = Phases() if bind.phases is None else replace(bind.phases, proxy=None)
    entry = Entry(plan_of(context, key), bind, phases)
    entry.is_new = True
    context.recorder.connected(key)
    transport.set_protocol(entry)
    entry.take(transport, peer)
    entry.go_on()
