"""Who is at the other end of a stream: the proxy's identity, from its xDS node.

Pure. `node.id` is "namespace/gateway/instance" and `node.cluster` "namespace/gateway"; the latter may be left empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gatewright.wire.external import node_pb2

_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"  # a DNS subdomain, as object names are
_NODE_ID: Final = re.compile(rf"({_NAME}/{_NAME})/([!-~]{{1,253}})")


class ProtocolError(Exception):
    """The peer broke the protocol: the stream ends with INVALID_ARGUMENT and this text."""


class Exhausted(ProtocolError):
    """The peer makes us keep more than it may: the stream ends with RESOURCE_EXHAUSTED and this text."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A proxy: the Gateway that it serves ("namespace/name") and its own name among that Gateway's proxies."""

    gateway: str
    instance: str

    @property
    def node_id(self) -> str:
        return f"{self.gateway}/{self.instance}"


@dataclass(frozen=True, slots=True)
class Peer:
    """The connection: where it comes from, over a Unix socket or not, the call's metadata (tokens: not shown), and the
    URIs of its certificate, which TLS has checked."""

    address: str
    local: bool
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    uris: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Peer {self.address}>"


def identify(node: node_pb2.Node) -> Identity:
    """The identity that a node claims.

    Raises:
        ProtocolError: the id is missing or malformed, or the cluster names another Gateway.
    """
    if not node.id:
        raise ProtocolError('the first request must carry a node; its id is "namespace/gateway/instance"')
    found = _NODE_ID.fullmatch(node.id)
    if found is None:
        raise ProtocolError(f'node.id {node.id[:600]!r} is not of the form "namespace/gateway/instance"')
    gateway, instance = found.groups()
    if node.cluster not in ("", gateway):
        raise ProtocolError(f"node.cluster {node.cluster[:600]!r} and node.id {node.id!r} name different Gateways")
    return Identity(gateway, instance)
