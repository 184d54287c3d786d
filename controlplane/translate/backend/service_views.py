"""Services as those see them who lead to their ports."""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.api.objects.service import Service


@dataclass(frozen=True, slots=True)
class PortView:
    """A port of a Service."""

    port: int
    name: str
    target: int | None
    """The target port's number; None when it is a name, which EndpointSlices have resolved."""
    protocol: str
    app_protocol: str


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A Service as routes see it."""

    external: bool
    ports: tuple[PortView, ...]

    def port(self, number: int | None, transport: str = "TCP") -> PortView | None:
        return next((port for port in self.ports if (port.port, port.protocol) == (number, transport)), None)


def service_view(service: Service) -> ServiceView:
    ports = tuple(
        PortView(
            port.port,
            port.name or "",
            port.target_port if isinstance(port.target_port, int) else None,
            port.protocol,
            port.app_protocol or "",
        )
        for port in service.spec.ports
    )
    return ServiceView(external=service.spec.type == "ExternalName", ports=ports)
