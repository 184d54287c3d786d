"""Files of single routes as people and tools write them: the route, and perhaps the backend that comes with it.

Used by `propagation`. A route is reached by a hostname of its own or by a path of its own; its backend is one that is
there already, or a GatewayBackend or Service that comes and goes with it, in the same file or in one of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fleet import GATEWAY, TRAFFIC_HOST
from benchmarks.probes import Request

Object = dict[str, Any]

SHARED_HOST = "paths.example"


@dataclass(frozen=True, slots=True)
class Kind:
    """`backend`: what comes with the route ("" for nothing); `place`: in the same file, or in one written "before" or
    "after" it (and removed in the opposite order)."""

    name: str
    backend: str = ""
    place: str = "same"
    by_rename: bool = False
    """Written under another name first, as editors do; else written in place."""
    gap: float = 0.0
    """Seconds between the first file and the second, in both directions."""


KINDS = (
    Kind("alone"),
    Kind("alone, renamed", by_rename=True),
    Kind("GatewayBackend in the file", "GatewayBackend"),
    Kind("Service in the file", "Service"),
    Kind("Service in the file, renamed", "Service", by_rename=True),
    Kind("Service just before", "Service", "before"),
    Kind("Service just after", "Service", "after"),
    Kind("GatewayBackend just before", "GatewayBackend", "before"),
)


SLOW_KINDS = (
    Kind("Service long before", "Service", "before", gap=0.02),
    Kind("Service long after", "Service", "after", gap=0.02),
)
"""Written by something that takes its time. Not measured: when such a change was made is a matter of opinion."""


class RouteFiles:
    """Routes by number; kinds take turns."""

    def __init__(self, folder: Path, backend_port: int, kinds: Sequence[Kind] = KINDS) -> None:
        self._folder, self._port, self._kinds = folder, backend_port, kinds

    def kind(self, number: int) -> Kind:
        return self._kinds[number % len(self._kinds)]

    def request(self, number: int) -> Request:
        """What only this route answers."""
        if number // len(self._kinds) % 2:
            return Request(self.kind(number).name, SHARED_HOST, f"/route-{number}")
        return Request(self.kind(number).name, f"h{number}.example", "/")

    def first(self) -> Request:
        """Answered from the start."""
        return Request("first", TRAFFIC_HOST, "/")

    def write(self, number: int) -> None:
        kind = self.kind(number)
        for place, (name, objects) in enumerate(self._files(number)):
            time.sleep(kind.gap if place else 0.0)
            text = "\n---\n".join(json.dumps(each) for each in objects)
            file = self._folder / (f".{name}" if kind.by_rename else name)
            file.write_text(text)
            if kind.by_rename:
                file.rename(self._folder / name)

    def remove(self, number: int) -> None:
        for place, (name, _) in enumerate(reversed(self._files(number))):
            time.sleep(self.kind(number).gap if place else 0.0)
            (self._folder / name).unlink()

    def _files(self, number: int) -> list[tuple[str, list[Object]]]:
        """Names and contents, in the order of writing."""
        kind, name = self.kind(number), f"route-{number}"
        request = self.request(number)
        route = _route(name, request, kind.backend)
        backend = _BACKENDS[kind.backend](name, self._port) if kind.backend else []
        if kind.place == "same":
            return [(f"{name}.yaml", [*backend, route])]
        files = [(f"{name}-backend.yaml", backend), (f"{name}.yaml", [route])]
        return files if kind.place == "before" else files[::-1]


def _route(name: str, request: Request, backend: str) -> Object:
    reference = _REFERENCES[backend](name)
    match = {"path": {"type": "PathPrefix", "value": request.target}}
    spec = {
        "parentRefs": [{"name": GATEWAY, "sectionName": "http"}],
        "hostnames": [request.host],
        "rules": [{"matches": [match], "backendRefs": [reference]}],
    }
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", {"name": name}, spec=spec)


_REFERENCES = {
    "": lambda _: {"group": "gatewright.dev", "kind": "GatewayBackend", "name": "origin"},
    "GatewayBackend": lambda name: {"group": "gatewright.dev", "kind": "GatewayBackend", "name": name},
    "Service": lambda name: {"name": name, "port": 80},
}


def _gateway_backend(name: str, port: int) -> list[Object]:
    static = {"host": "127.0.0.1", "port": port}
    return [_object("gatewright.dev/v1alpha1", "GatewayBackend", {"name": name}, spec={"static": static})]


def _service(name: str, port: int) -> list[Object]:
    endpoints = {
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": port}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    }
    of_service = {"name": name, "labels": {"kubernetes.io/service-name": name}}
    return [
        _object("v1", "Service", {"name": name}, spec={"ports": [{"name": "web", "port": 80}]}),
        _object("discovery.k8s.io/v1", "EndpointSlice", of_service, **endpoints),
    ]


def _object(version: str, kind: str, metadata: Object, **content: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


_BACKENDS = {"GatewayBackend": _gateway_backend, "Service": _service}
