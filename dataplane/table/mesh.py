"""The proxy's part in a mesh: its certificate and who is believed, from the agent's Mesh and its Secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.filter import Refused
from dataplane.table.security import AUTHORITIES, CERTIFICATE, KEY
from dataplane.table.store import decode

if TYPE_CHECKING:
    from dataplane.table.store import Store
    from dataplane.table.swap import Swap
    from dataplane.upstream.dial.workload import MeshPlan


def change_mesh(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`."""
    store = swap.of.store
    message = None if value is None else decode(key, value).mesh
    store.secret_users.set(key, (message.secret,) if message is not None and message.secret else ())
    store.mesh = message
    swap.is_mesh_new = True


def plan_of(store: Store) -> MeshPlan | None:
    """None: the agent has said nothing of a mesh."""
    from dataplane.tls.client import BadSettings, ClientSecurity  # by the first mesh
    from dataplane.tls.contexts import load
    from dataplane.tls.settings import Identity
    from dataplane.upstream.dial.workload import MeshPlan

    message = store.mesh
    if message is None:
        return None
    domains = tuple(message.trust_domains)
    if not message.secret:
        return MeshPlan(None, domains, why="it has no certificate now")
    try:
        entries = store.secret(message.secret)
        chain, key, authorities = (entries.get(name, b"") for name in (CERTIFICATE, KEY, AUTHORITIES))
        if not authorities:
            raise BadSettings("no authority is known")
        ends = load(Identity(chain, key)).expires
        return MeshPlan(ClientSecurity(chain, key, (authorities,)), domains, ends)
    except (Refused, BadSettings) as error:
        return MeshPlan(None, domains, why=str(error))
