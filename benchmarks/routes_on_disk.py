"""A folder of many HTTPRoutes as YAML, in one of two forms: a file for each route, or a few files of many documents.

Used by `startup`. All routes go to one Service, so that a change of it concerns every one of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.harness.ports import reserve

GATEWAY: Final = "bench"
FOLDERS: Final = 20
BIG_FILES: Final = 4

_CLASS: Final = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""
_GATEWAY: Final = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default}}
spec:
  gatewayClassName: gatewright
  listeners:
{listeners}
"""
_SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{port: 80}]}
"""
_SLICE: Final = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, namespace: default, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [127.0.0.1]}]
"""
_ROUTE: Final = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: route-{number}
  namespace: default
spec:
  parentRefs:
  - name: {gateway}
  hostnames:
  - h{number}.example
  rules:
  - matches:
    - path:
        type: PathPrefix
        value: /
    filters:
    - type: ResponseHeaderModifier
      responseHeaderModifier:
        set:
        - name: x-route
          value: route-{number}-{version}
    timeouts:
      request: 30s
    backendRefs:
    - name: shop
      port: 80
"""


def _route(number: int, version: int = 1) -> str:
    return _ROUTE.format(number=number, version=version, gateway=GATEWAY)


def files(count: int) -> Iterator[tuple[str, str]]:
    """A file for each route, in some folders."""
    for number in range(count):
        yield f"team-{number % FOLDERS:02}/route-{number}.yaml", _route(number)


def documents(count: int) -> Iterator[tuple[str, str]]:
    """A few files of many documents."""
    each = -(-count // BIG_FILES)
    for first in range(0, count, each):
        numbers = range(first, min(first + each, count))
        yield f"routes-{first:06}.yaml", "---\n".join(_route(number) for number in numbers)


FORMS: Final[dict[str, Callable[[int], Iterator[tuple[str, str]]]]] = {"files": files, "documents": documents}


class RouteFolder:
    """The folder; `path` is deleted by `remove`."""

    def __init__(self, form: str, count: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="gatewright-startup"))
        self.form, self.count = form, count
        self.port, self.extra_port = reserve(), reserve()
        self.write("class.yaml", _CLASS)
        self.write("slice.yaml", _SLICE)
        self.service(there=True)
        self.gateway(extra=False)
        for name, text in FORMS[form](count):
            self.write(name, text)

    def gateway(self, extra: bool) -> None:
        """The Gateway, with one listener or two."""
        ports = {"http": self.port, "extra": self.extra_port} if extra else {"http": self.port}
        rows = (f"  - {{name: {name}, protocol: HTTP, port: {port}}}" for name, port in ports.items())
        self.write("gateway.yaml", _GATEWAY.format(name=GATEWAY, listeners="\n".join(rows)))

    def service(self, there: bool) -> None:
        """The Service that all routes name, or no such Service."""
        if there:
            self.write("service.yaml", _SERVICE)
        else:
            (self.path / "service.yaml").unlink()

    def one_route(self, version: int) -> None:
        """Edits the last route, in the file where it is."""
        name, text = list(FORMS[self.form](self.count))[-1]
        last = self.count - 1
        self.write(name, text.replace(f"route-{last}-1", f"route-{last}-{version}"))

    def write(self, name: str, text: str) -> None:
        """Replaces a file in one step, as editors do."""
        target = self.path / name
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_name(f".{target.name}")
        temporary.write_text(text)
        temporary.replace(target)

    def remove(self) -> None:
        shutil.rmtree(self.path)
