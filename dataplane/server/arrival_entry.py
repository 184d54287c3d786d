"""Who connects, as phases of a connection: the PROXY header, network authorization, and whether it is within the
limits.

They come before everything that costs more than a few bytes. Who is refused is closed without a word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.chain.network import REFUSED
from dataplane.net.proxy_rules import UNTRUSTED
from dataplane.server import admission
from dataplane.server.phases import MORE, NEXT, OVER

if TYPE_CHECKING:
    from dataplane.net.proxy_header import Header
    from dataplane.server.phases import Arrival


def read_header(entry: Arrival) -> int:
    """As `phases.Phase.step`: the PROXY header."""
    rules = entry.phases.proxy
    if rules is None:
        return NEXT
    found = rules.judge(entry.data)
    if found is None:
        return MORE
    return _judged(entry, found)


def header_is_late(entry: Arrival) -> int:
    """As `phases.Phase.late`."""
    rules = entry.phases.proxy
    assert rules is not None  # this phase would be over
    return _judged(entry, rules.late(entry.data))


def _judged(entry: Arrival, found: Header | str) -> int:
    if isinstance(found, str):
        rules = entry.phases.proxy
        return _refuse(entry, found, "" if rules is None else rules.refused)
    if found.size:
        if not all(hops.trusts(entry.peer.address) for hops in entry.phases.hops):
            return _refuse(entry, UNTRUSTED)
        entry.data = entry.data[found.size :]
        rules = entry.phases.proxy
        entry.peer = replace(entry.peer, is_gateway=rules is not None and rules.is_strict)
    if found.address:
        _names(entry, found)
    entry.has_time(entry.phases.timeout)
    return NEXT


def _names(entry: Arrival, header: Header) -> None:
    """The client is who the header says; who connected is kept beside it."""
    peer, connections = entry.peer, entry.context.connections
    entry.peer = replace(peer, address=header.address, port=header.port, raw_address=peer.address, raw_port=peer.port)
    connections.discard(entry)
    connections.add(entry, header.address)


def authorize(entry: Arrival) -> int:
    """As `phases.Phase.step`: `networkAuthorization`."""
    gate = entry.phases.network
    why = "" if gate is None else gate.refuses(entry.peer)
    return _refuse(entry, REFUSED, why) if why else NEXT


def admit(entry: Arrival) -> int:
    """As `phases.Phase.step`: limits of connections. After the phases before it, so that who may not connect takes
    no place, and the address is the one that counts."""
    if entry.is_new:
        admission.admit(entry)
    return OVER if entry.is_over else NEXT


def _refuse(entry: Arrival, reason: str, detail: str = "") -> int:
    entry.context.refusals.refused(reason, entry.peer.address, detail)
    return entry.hang_up()
