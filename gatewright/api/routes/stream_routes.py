"""TCPRoute, UDPRoute and TLSRoute, Gateway API 1.7: routes of connections, which have one rule."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.routes.http_route import parents_differ
from gatewright.api.schema.fields import Hostname, Integer, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.schema.references import BackendObjectReference, ParentReference


class BackendRef(BackendObjectReference):
    """Gateway API BackendRef."""

    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1

    @property
    def filters(self) -> tuple[()]:
        """Of requests, which are not looked at."""
        return ()


class StreamRouteRule(Model):
    """Gateway API TCPRouteRule, UDPRouteRule and TLSRouteRule, which are alike."""

    name: SectionName | None = None
    backend_refs: Annotated[tuple[BackendRef, ...], Field(min_length=1, max_length=16)]


class StreamRouteSpec(RuledModel):
    """What the three kinds have in common. `useDefaultGateways` belongs to the experimental channel."""

    parent_refs: Annotated[tuple[ParentReference, ...], Field(max_length=32)] = ()
    rules: Annotated[tuple[StreamRouteRule, ...], Field(min_length=1, max_length=1)]
    use_default_gateways: Literal["All", "None"] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from parents_differ(self.parent_refs)


class PortRouteSpec(StreamRouteSpec):
    """Gateway API TCPRouteSpec and UDPRouteSpec."""

    @property
    def hostnames(self) -> tuple[()]:
        """Nothing says which host is meant: the listener's port does."""
        return ()


class TLSRouteSpec(StreamRouteSpec):
    """Gateway API TLSRouteSpec."""

    hostnames: Annotated[tuple[Hostname, ...], Field(min_length=1, max_length=1024)]

    def broken_rules(self) -> Iterator[Broken]:
        yield from super().broken_rules()
        for index, name in enumerate(self.hostnames):
            if _is_address(name):
                yield Broken(("hostnames", index), "must be a host name, not an IP address")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class TCPRoute(KubeObject):
    """Routing of TCP connections."""

    spec: PortRouteSpec


class UDPRoute(KubeObject):
    """Routing of UDP sessions."""

    spec: PortRouteSpec


class TLSRoute(KubeObject):
    """Routing of TLS connections by server name."""

    spec: TLSRouteSpec
