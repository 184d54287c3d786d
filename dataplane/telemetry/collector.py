"""Where records of telemetry are sent: a value of plans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Collector:
    """`backend`: key of a Backend; `path`: of OTLP over HTTP, b"" for gRPC."""

    backend: str
    path: bytes = b""
