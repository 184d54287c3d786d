"""MCP backends: their targets, static ones and those that selectors find, as keys of backends (spec 1, MCPBackend).

A target with a host is a backend of its own, a part of the GatewayBackend; one that names a Service is that Service's
port. Selectors find ports of Services whose `appProtocol` says that they are MCP servers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.mcp_selection import Selection, selection
from gatewright.api.backend.mcp_targets import MCPBackend, McpSelector, McpTarget
from gatewright.api.lower import backends as lowered
from gatewright.api.objects.service import Service
from gatewright.wire.v1 import policy_pb2

PROTOCOLS: Final = {"gatewright.dev/mcp": "StreamableHTTP", "gatewright.dev/mcp-sse": "SSE"}
"""`appProtocol` of ports that are MCP servers, and what these speak."""
PATH_ANNOTATION: Final = "gatewright.dev/mcp-path"
_PATH: Final = re.compile(r"/[!-~]{0,1023}")
MOST_FOUND: Final = 256
"""Services that the selectors of one backend find, all together: a session may be one with each of them."""
MAX_MESSAGES: Final = 8
"""Bad targets that one condition lists."""
LONG_NAME: Final = 32
"""Characters of a target's name beyond which names of its tools may be too long for clients."""


@dataclass(frozen=True, slots=True)
class McpPort:
    """A port of a Service that says it is an MCP server."""

    number: int
    protocol: str


@dataclass(frozen=True, slots=True)
class McpService:
    """A Service that was selected."""

    path: str | None
    """None: that of the protocol."""
    ports: tuple[McpPort, ...]
    is_usable: bool = True
    """Whether its path is one. Proxies would refuse the whole backend for it, and whoever writes the Service may be
    somebody else."""


@dataclass(frozen=True, slots=True)
class Part:
    """A target with a host."""

    host: str
    port: int
    policies: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class McpView:
    """An MCP backend as routes and proxies see it."""

    message: bytes
    """`McpBackend` of the wire."""
    targets: tuple[tuple[str, BackendKey], ...]
    """Names and what they lead to; of one that is not there the key that it would have."""
    selectors: tuple[str, ...]
    """Names of selectors."""
    parts: Mapping[str, Part]
    """Targets with hosts, by name."""
    policies: tuple[bytes, ...] = ()
    """The backend's own."""

    @property
    def sections(self) -> tuple[str, ...]:
        """What policies may name of it: a target, or all that a selector has found."""
        return (*(name for name, _ in self.targets), *self.selectors)

    @property
    def backends(self) -> tuple[BackendKey, ...]:
        return tuple(key for _, key in self.targets)


class Ports(Protocol):
    """A Service as static targets see it (`backends.ServiceView`)."""

    @property
    def external(self) -> bool: ...

    def port(self, number: int | None) -> object | None: ...


class Lookups(Protocol):
    """What targets are resolved with."""

    def service(self, key: ObjectKey) -> Ports | None: ...

    def selected(self, selector: Selection) -> Iterable[tuple[ObjectKey, McpService]]:
        """Services that have MCP ports, by namespace and name: `MOST_FOUND` of them, and one more if there is; all of
        them where grants are needed."""
        ...

    @property
    def need_grants(self) -> bool:
        """Whether selectors find Services of other namespaces only where a ReferenceGrant lets them."""

    def may_find(self, namespace: str, service: ObjectKey) -> bool:
        """Whether a selector of a GatewayBackend of that namespace may find the Service."""
        ...


def service_view(service: Service) -> McpService | None:
    """None: it has no MCP port."""
    ports = tuple(
        McpPort(port.port, PROTOCOLS[protocol])
        for port in service.spec.ports
        if port.protocol == "TCP" and (protocol := (port.app_protocol or "").lower()) in PROTOCOLS
    )
    if not ports or service.spec.type == "ExternalName":
        return None
    path = service.metadata.annotations.get(PATH_ANNOTATION) or None
    return McpService(path, ports, path is None or _PATH.fullmatch(path) is not None)


@dataclass(frozen=True, slots=True)
class _Server:
    """One target as it was found. `key` of a static one with a host: None; `selector`: the name of that which found
    it."""

    name: str
    key: BackendKey | None
    path: str | None
    protocol: str | None
    static: McpTarget | None = None
    selector: str = ""


def view(
    key: ObjectKey,
    model: MCPBackend,
    policies: lowered.Policies,
    own_policies: Mapping[str, lowered.Policies],
    lookups: Lookups,
) -> tuple[McpView, list[str]]:
    """The view, and what is wrong with targets. `policies`: those of the GatewayBackend, by field of the wire;
    `own_policies`: those of targets with hosts, by name."""
    problems: list[str] = []
    servers = list(_servers(key, model, lookups, problems))
    parts, targets, found = {}, [], []
    for each in servers:
        backend = each.key or BackendKey("gatewaybackend", key.namespace, key.name, part=each.name)
        targets.append((each.name, backend))
        found.append(lowered.McpServer(each.name, backend.resource, each.path, each.protocol, each.selector))
        if each.static is not None and each.static.host is not None:
            made = lowered.of_servers(policies, own_policies.get(each.name, {}))
            parts[each.name] = Part(each.static.host, each.static.port, tuple(map(_bytes, made)))
    message = lowered.mcp_backend(model, found).SerializeToString(deterministic=True)
    selectors = tuple(each.name for each in model.targets if each.selector is not None)
    own = tuple(map(_bytes, lowered.of_endpoint(policies)))
    return McpView(message, tuple(targets), selectors, parts, own), problems


def _bytes(policy: policy_pb2.Policy) -> bytes:
    return policy.SerializeToString(deterministic=True)


def _servers(key: ObjectKey, model: MCPBackend, lookups: Lookups, problems: list[str]) -> Iterator[_Server]:
    """In the order of the targets; what a selector finds is sorted. A name that is taken goes to whoever is first."""
    taken: set[str] = set()
    finds = _Finds(lookups)
    for target in model.targets:
        if target.static is not None:
            found = [_static(key, target.name, target.static, lookups, problems)]
        elif finds.is_full:
            continue
        elif target.selector is not None:
            found = _selected(key, target.name, target.selector, finds, taken, problems)
            if not found and not finds.is_full:
                problems.append(
                    f"target {target.name}: no Service with an MCP port is selected{_lacking(key, lookups)}"
                )
        for each in found:
            if each.name in taken:
                problems.append(f"target {each.name}: the name is taken")
                continue
            taken.add(each.name)
            yield each


def _lacking(key: ObjectKey, lookups: Lookups) -> str:
    """The same whether there are Services that only lack a grant: nobody learns here of those of others."""
    if not lookups.need_grants:
        return ""
    return f"; others need a ReferenceGrant in their namespace, from GatewayBackends of namespace {key.namespace}"


def _static(key: ObjectKey, name: str, target: McpTarget, lookups: Lookups, problems: list[str]) -> _Server:
    if target.backend_ref is None:
        return _Server(name, None, target.path, target.protocol, target)
    service = ObjectKey(key.namespace, target.backend_ref.name)
    found = lookups.service(service)
    if found is None:
        problems.append(f"target {name}: Service {service} does not exist")
    elif found.external:
        problems.append(f"target {name}: Service {service} is of type ExternalName, which has no endpoints")
    elif found.port(target.port) is None:
        problems.append(f"target {name}: Service {service} has no port {target.port}")
    return _Server(name, BackendKey("service", *service, target.port), target.path, target.protocol, target)


def _selected(
    key: ObjectKey, selector_name: str, selector: McpSelector, finds: _Finds, taken: set[str], problems: list[str]
) -> list[_Server]:
    """Ports of the Services that are selected, sorted by namespace and name. A name that several would have gets the
    namespace in front of it."""
    found: list[tuple[ObjectKey, McpService, McpPort]] = []
    for service, each in finds.of(selection(key.namespace, selector), selector_name, problems):
        if not each.is_usable:
            problems.append(f"Service {service}: the path in annotation {PATH_ANNOTATION} must begin with / and be "
                            "printable ASCII without spaces, 1,024 characters at most")  # fmt: skip
        else:
            found += ((service, each, port) for port in each.ports)
    names = [f"{service.name}-{port.number}" for service, _, port in found]
    counts = Counter(names)
    return [
        _Server(
            f"{service.namespace}-{name}" if counts[name] > 1 or name in taken else name,
            BackendKey("service", service.namespace, service.name, port.number),
            each.path,
            port.protocol,
            selector=selector_name,
        )
        for name, (service, each, port) in zip(names, found, strict=True)
    ]


class _Finds:
    """What the selectors of one backend find, `MOST_FOUND` Services at most."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._left = MOST_FOUND
        self.is_full = False
        """Whether something was left out. Then no selector finds anything more."""

    def of(self, wanted: Selection, target: str, problems: list[str]) -> Iterator[tuple[ObjectKey, McpService]]:
        for service, each in self._lookups.selected(wanted):
            if not self._lookups.may_find(wanted.home, service):
                continue
            if not self._left:
                self.is_full = True
                problems.insert(0, f"target {target}: the selectors of a backend find {MOST_FOUND} Services at most; "
                                   f"those from {service} on, and of targets after it, are left out")  # fmt: skip
                return
            self._left -= 1
            yield service, each


def long_names(found: McpView) -> str:
    """A warning about names, "" when there is none: several clients take tools of 64 characters at most."""
    if len(found.targets) <= 1:
        return ""
    long = [name for name, _ in found.targets if len(name) > LONG_NAME]
    shown = ", ".join(long[:MAX_MESSAGES])
    return f"names of tools begin with their target's and may exceed 64 characters: {shown}" if long else ""
