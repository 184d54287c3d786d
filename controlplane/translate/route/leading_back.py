"""Backends of TCP, TLS and UDP routes that lead back to a listener of the same Gateway, as their objects show it.

Proxies refuse such a connection when it is made; this says beforehand which reference is the cause. Of several
routes that take the same connections the oldest one is judged, as it has them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from controlplane.translate.conditions import Condition, joined
from controlplane.translate.gateway.attachment import Listening
from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.route.routes import RouteTranslation
from gatewright.api.checks import own_ports
from gatewright.api.checks.own_ports import Hop, Place, is_here
from gatewright.wire.v1 import route_pb2

REASON: Final = "BackendLeadsBack"

CLUSTER_DOMAIN: Final = "cluster.local"
"""What nearly all clusters have. Under another one a name of the Service is found when it is connected to."""

StreamMessage = route_pb2.TcpRoute | route_pb2.UdpRoute
"""Of their rules on the wire."""


class Where(NamedTuple):
    """A reference of a route."""

    kind: str
    route: ObjectKey
    rule: int
    reference: int
    name: str
    """Of the backend, for a message."""


class Taken(NamedTuple):
    """What a rule would take at a listener of a Gateway, and where it would lead that of the Gateway's own."""

    gateway: ObjectKey
    order: str
    """Of the rule: of those that take the same, the smallest has it."""
    begins: Place
    server_name: str
    hops: tuple[Hop[Where], ...]


class Found(NamedTuple):
    """A reference that leads back, and the port that it leads back to."""

    where: Where
    port: int

    @property
    def text(self) -> str:
        return f"{self.where.name} leads back to port {self.port} of the Gateway, where the connection came in"


Target = Callable[[ObjectKey, BackendKey], Iterable[int]]
"""The ports of a Gateway's own that a backend is; none: it is somewhere else, or it is unknown."""


class Names(NamedTuple):
    """By what a Gateway's proxies are reached, beside this machine's own addresses."""

    service: ObjectKey | None
    """The Service that is made for the Gateway, where one is."""
    addresses: frozenset[str]
    """That it was given."""

    def are(self, host: str) -> bool:
        """Whether a host is the proxy itself, or some proxy of the same Gateway."""
        host = host.lower().rstrip(".")
        return is_here(host) or host in self.addresses or host in self._of_service()

    def _of_service(self) -> Sequence[str]:
        if self.service is None:
            return ()
        name = f"{self.service.name}.{self.service.namespace}"
        return name, f"{name}.svc", f"{name}.svc.{CLUSTER_DOMAIN}"


def taken(
    kind: str,
    key: ObjectKey,
    message: type[StreamMessage],
    translation: RouteTranslation,
    listeners: Mapping[ObjectKey, Sequence[Listening]],
    target: Target,
) -> Iterator[Taken]:
    """By the rules of a route, at the listeners of each Gateway that take it."""
    for rule, data in translation.rules:
        read = message.FromString(data)
        for gateway, found in listeners.items():
            led = [
                (Where(kind, key, rule, number, _shown(backend)), port)
                for number, backend in _used(read, translation.named)
                for port in target(gateway, backend)
            ]
            for begins, name in _begins(found, translation.hostnames):
                hops = tuple(Hop(where, begins, Place(begins.transport, port), name) for where, port in led)
                yield Taken(gateway, read.order, begins, name, hops)


def _used(rule: StreamMessage, named: Iterable[BackendKey]) -> Iterator[tuple[int, BackendKey]]:
    """The references of a rule that connections go to."""
    backends = {each.resource: each for each in named}
    for number, reference in enumerate(rule.backends):
        if reference.weight and reference.backend in backends:
            yield number, backends[reference.backend]


def _begins(listeners: Sequence[Listening], hostnames: Sequence[str]) -> Iterator[tuple[Place, str]]:
    """Where a route of these hostnames takes what comes, and under which server names."""
    for each in listeners:
        if each.served and each.passes_on:
            place = Place("UDP" if each.protocol == "UDP" else "TCP", each.site.port)
            names = own_ports.server_names(each.protocol, each.site.hostname, hostnames)
            yield from ((place, name) for name in names)


def _shown(backend: BackendKey) -> str:
    if backend.kind == "service":
        return f"Service {backend.object} port {backend.port}"
    return f"GatewayBackend {backend.object}"


def found(rules: Sequence[Taken]) -> tuple[Found, ...]:
    """Of all that take something at a Gateway, the references that lead back."""
    oldest: dict[tuple[Place, str], str] = {}
    for each in rules:
        what = each.begins, each.server_name
        oldest[what] = min(each.order, oldest.get(what, each.order))
    acting = (each for each in rules if each.order == oldest[each.begins, each.server_name])
    back = own_ports.leading_back(hop for each in acting for hop in each.hops)
    return tuple(sorted({Found(hop.where, hop.begins.port) for hop in back}))


def condition(found: Iterable[Found]) -> Condition | None:
    """`ResolvedRefs` of a route with these."""
    texts = dict.fromkeys(each.text for each in found)
    return Condition("ResolvedRefs", False, REASON, joined([*texts])) if texts else None
