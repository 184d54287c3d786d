"""What targets of MCP backends are found with: Services that say they are MCP servers, and namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controlplane.derive import Collection, Context, Graph, Groups, Selecting
from controlplane.translate import mcp, mcp_selection
from controlplane.translate.backends import ServiceView
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.keys import ObjectKey
from controlplane.translate.mcp import McpService
from controlplane.translate.mcp_selection import Labelled, Selection
from controlplane.translate.namespaces import Labels
from controlplane.translate.references import permitted
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.service import Service
from gatewright.api.schema.names import GATEWAY_BACKEND, GROUP

Found = tuple[tuple[ObjectKey, McpService], ...]


@dataclass(frozen=True, slots=True)
class _Server:
    """A Service with MCP ports, and what it is selected by."""

    service: McpService
    labels: Labelled


class McpViews:
    """Collections for the selectors of MCP backends."""

    def __init__(
        self,
        graph: Graph,
        inputs: Inputs,
        services: Collection[ObjectKey, ServiceView],
        granted: Groups[Permission] | None,
    ) -> None:
        """`granted`: where selectors need grants for Services of other namespaces."""
        self._services = services
        self._granted = granted
        self._labels = graph.map(
            "labels of namespaces", inputs.namespaces, lambda _, __, each: _sorted(each.metadata.labels)
        )
        servers = graph.map("MCP services", inputs.services, self._server)
        wanted = graph.groups("MCP selectors", inputs.gateway_backends.index("MCP selectors", mcp_selection.selections))
        self._selected: Collection[Selection, Found] = graph.selected(
            "MCP selections",
            wanted,
            servers,
            Selecting(
                lambda key, server: mcp_selection.groups(key, server.labels),
                lambda _, server: server.service,
                mcp_selection.select,
                mcp.MOST_FOUND if granted is None else None,
            ),
        )

    def lookups(self, context: Context) -> _Lookups:
        return _Lookups(context, self._services, self._selected, self._granted)

    def _server(self, context: Context, key: ObjectKey, service: Service) -> _Server | None:
        view = mcp.service_view(service)
        if view is None:
            return None
        of_namespace = context.fetch(self._labels, ObjectKey("", key.namespace))
        return _Server(view, Labelled(_sorted(service.metadata.labels), of_namespace))


@dataclass(frozen=True, slots=True)
class _Lookups:
    """`mcp.Lookups` for one run of a transform."""

    context: Context
    services: Collection[ObjectKey, ServiceView]
    selections: Collection[Selection, Found]
    granted: Groups[Permission] | None

    @property
    def need_grants(self) -> bool:
        return self.granted is not None

    def may_find(self, namespace: str, service: ObjectKey) -> bool:
        wanted = Permission(GROUP, GATEWAY_BACKEND, namespace, "", "Service", *service)
        return self.granted is None or permitted(self.context, self.granted, wanted)

    def service(self, key: ObjectKey) -> ServiceView | None:
        return self.context.fetch(self.services, key)

    def selected(self, selector: Selection) -> Iterable[tuple[ObjectKey, McpService]]:
        return self.context.fetch(self.selections, selector) or ()


def _sorted(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
