"""Where a signal is sent, of a policy's message."""

from __future__ import annotations

from dataplane.chain.filter import Refused
from dataplane.http.uri import is_target
from dataplane.telemetry.collector import Collector
from gatewright.wire.v1 import frontend_pb2


def collector_of(backend: str, protocol: int, path: str, field: str = "path") -> Collector:
    """`field`: of the policy, that names the path. Raises `Refused` for what is no path."""
    if protocol != frontend_pb2.OTLP_PROTOCOL_HTTP:
        return Collector(backend)
    path = "/" + path.removeprefix("/")
    if not is_target(path):
        raise Refused(f"{field}: {path!r} is not a path")
    return Collector(backend, path.encode())


def of_otlp(message: frontend_pb2.Otlp) -> Collector | None:
    """Of an `otlp` of a policy; None: it has none."""
    return collector_of(message.backend, message.protocol, message.path, "otlp.path") if message.backend else None
