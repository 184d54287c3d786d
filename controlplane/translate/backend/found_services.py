"""What selectors of MCP backends find: ports of Services whose `appProtocol` says that they are MCP servers.

Called by `backend_references`, for the targets of a backend.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from controlplane.translate.backend.service_selection import Selection, selection
from controlplane.translate.keys import BackendKey, ObjectKey
from gatewright.api.backend.mcp_targets import McpSelector
from gatewright.api.objects.service import Service

PROTOCOLS: Final = {"gatewright.dev/mcp": "StreamableHTTP", "gatewright.dev/mcp-sse": "SSE"}
"""`appProtocol` of ports that are MCP servers, and what these speak."""
PATH_ANNOTATION: Final = "gatewright.dev/mcp-path"
_PATH: Final = re.compile(r"/[!-~]{0,1023}")
MOST_FOUND: Final = 256
"""Services that the selectors of one backend find, all together: a session may be one with each of them."""

_WRONG_PATH: Final = (
    f"the path in annotation {PATH_ANNOTATION} must begin with / and be printable ASCII without spaces, "
    "1,024 characters at most"
)
_TOO_MANY: Final = (
    f"the selectors of a backend find {MOST_FOUND} Services at most; those from {{}} on, and of targets after it, "
    "are left out"
)


@dataclass(frozen=True, slots=True)
class FoundPort:
    """A port of a Service that says it is an MCP server."""

    number: int
    protocol: str


@dataclass(frozen=True, slots=True)
class FoundService:
    """A Service that was selected."""

    path: str | None
    """None: that of the protocol."""
    ports: tuple[FoundPort, ...]
    is_usable: bool = True
    """Whether its path is one. Proxies would refuse the whole backend for it, and the author of the Service may be
    somebody else."""


class Ports(Protocol):
    """A Service as static targets see it (`service_views.ServiceView`)."""

    @property
    def external(self) -> bool: ...

    def port(self, number: int | None) -> object | None: ...


class Lookups(Protocol):
    """What targets are resolved with."""

    def service(self, key: ObjectKey) -> Ports | None: ...

    def has_pool(self, key: ObjectKey) -> bool:
        """Whether there is such an InferencePool."""
        ...

    def selected(self, selector: Selection) -> Iterable[tuple[ObjectKey, FoundService]]:
        """Services that have MCP ports, by namespace and name: `MOST_FOUND` of them, and one more if there is; all of
        them where grants are needed."""
        ...

    @property
    def need_grants(self) -> bool:
        """Whether selectors find Services of other namespaces only where a ReferenceGrant lets them."""

    def may_find(self, namespace: str, service: ObjectKey) -> bool:
        """Whether a selector of a GatewayBackend of that namespace may find the Service."""
        ...


def service_view(service: Service) -> FoundService | None:
    """None: it has no MCP port."""
    ports = tuple(
        FoundPort(port.port, PROTOCOLS[protocol])
        for port in service.spec.ports
        if port.protocol == "TCP" and (protocol := (port.app_protocol or "").lower()) in PROTOCOLS
    )
    if not ports or service.spec.type == "ExternalName":
        return None
    path = service.metadata.annotations.get(PATH_ANNOTATION) or None
    return FoundService(path, ports, path is None or _PATH.fullmatch(path) is not None)


class FoundServer(NamedTuple):
    """A port that was found. `path`, `protocol`: as the API has them."""

    name: str
    key: BackendKey
    path: str | None
    protocol: str


class Finds:
    """What the selectors of one backend find, `MOST_FOUND` Services at most. What is wrong goes to `problems`."""

    def __init__(self, lookups: Lookups, backend: ObjectKey, problems: list[str]) -> None:
        self._lookups, self._namespace, self._problems = lookups, backend.namespace, problems
        self._left = MOST_FOUND
        self._is_full = False
        """Whether something was left out. Then no selector finds anything more."""

    def of(self, target: str, selector: McpSelector, taken: Collection[str]) -> list[FoundServer]:
        """Of one target, sorted by namespace and name. `taken`: names that are given."""
        if self._is_full:
            return []
        found = self._named(list(self._ports(target, selection(self._namespace, selector))), taken)
        if not found and not self._is_full:
            self._problems.append(f"target {target}: no Service with an MCP port is selected{self._lacking()}")
        return found

    def _ports(self, target: str, wanted: Selection) -> Iterator[tuple[ObjectKey, FoundService, FoundPort]]:
        for service, each in self._services(target, wanted):
            if each.is_usable:
                yield from ((service, each, port) for port in each.ports)
            else:
                self._problems.append(f"Service {service}: {_WRONG_PATH}")

    def _services(self, target: str, wanted: Selection) -> Iterator[tuple[ObjectKey, FoundService]]:
        for service, each in self._lookups.selected(wanted):
            if not self._lookups.may_find(wanted.home, service):
                continue
            if not self._left:
                self._is_full = True
                self._problems.insert(0, f"target {target}: {_TOO_MANY.format(service)}")
                return
            self._left -= 1
            yield service, each

    @staticmethod
    def _named(found: list[tuple[ObjectKey, FoundService, FoundPort]], taken: Collection[str]) -> list[FoundServer]:
        """A name that several would have gets the namespace in front of it."""
        names = [f"{service.name}-{port.number}" for service, _, port in found]
        counts = Counter(names)
        return [
            FoundServer(
                f"{service.namespace}-{name}" if counts[name] > 1 or name in taken else name,
                BackendKey("service", service.namespace, service.name, port.number),
                each.path,
                port.protocol,
            )
            for name, (service, each, port) in zip(names, found, strict=True)
        ]

    def _lacking(self) -> str:
        """The same whether there are Services that only lack a grant: the answer shows nothing of other namespaces."""
        if not self._lookups.need_grants:
            return ""
        return f"; others need a ReferenceGrant in their namespace, from GatewayBackends of namespace {self._namespace}"
