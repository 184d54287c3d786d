"""What gRPC's listeners have in common: options of a server, binding, and what a call says of its peer."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import grpc

from controlplane.xds.node import Peer
from controlplane.xds.session import Call, DeltaCall
from controlplane.xds.unix_socket import SocketError

MOST_RECEIVED: Final = 4 << 20
"""Bytes of one request: a client that comes back to another state names each resource it holds, 40,000 of them are
about this. Our own proxies that hold more say that they hold nothing. gRPC ends a call with a larger one by
RESOURCE_EXHAUSTED."""
MOST_CALLS: Final = 256
"""Calls of one connection at a time: a proxy has one."""

TCP_REFUSES: Final = (
    "resources are served on the Unix socket only; this address offers reflection, health and status. To serve"
    " resources here start the controller with --xds-tls-cert and --xds-tls-key, and --xds-token-file or"
    " --xds-client-ca"
)


def options(keepalive: float, keepalive_timeout: float) -> list[tuple[str, int]]:
    """Of a server that drops a peer which answers no ping for so many seconds."""
    return [
        ("grpc.so_reuseport", 0),  # a second controller on the same port must fail, not share it
        ("grpc.max_receive_message_length", MOST_RECEIVED),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", MOST_CALLS),
        ("grpc.keepalive_time_ms", int(keepalive * 1000)),
        ("grpc.keepalive_timeout_ms", int(keepalive_timeout * 1000)),
        ("grpc.http2.ping_timeout_ms", int(keepalive_timeout * 1000)),  # else 60 s, seen
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.max_ping_strikes", 0),  # a proxy may ping as often as it likes
    ]


def bind(server: grpc.aio.Server, address: str, credentials: Any = None) -> int:  # Any: grpc is not typed
    """The port that was bound (1 for a Unix socket). Raises SocketError."""
    add = server.add_insecure_port
    if credentials is not None:
        add = partial(server.add_secure_port, server_credentials=credentials)
    try:
        port: int = add(address)
    except RuntimeError as error:
        raise SocketError(f"cannot listen on {address}: {error}") from error
    if port == 0:
        raise SocketError(f"cannot listen on {address}")
    return port


def peer(call: Call) -> Peer:
    """Where the call comes from, and its credentials."""
    address = call.peer()
    metadata = tuple((str(key), value) for key, value in call.invocation_metadata() or ())
    uris = tuple(uri.decode("utf-8", "replace") for uri in call.auth_context().get("peer_uri", ()))
    # gRPC escapes the brackets of an IPv6 address; logs show them.
    return Peer(unquote(address), address.startswith("unix:"), metadata, uris)


async def refuse(requests: object, call: DeltaCall) -> None:
    """The delta method of a listener that serves no resources."""
    await call.abort(grpc.StatusCode.PERMISSION_DENIED, TCP_REFUSES)
