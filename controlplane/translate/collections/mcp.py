"""What targets of MCP backends are found with: Services that say they are MCP servers, and namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.derive import Collection, Context, Graph, Groups, Index
from controlplane.translate import mcp
from controlplane.translate.backends import ServiceView
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.keys import ObjectKey
from controlplane.translate.mcp import McpService
from controlplane.translate.namespaces import Labels
from controlplane.translate.references import permitted
from gatewright.api.objects.grants import Permission
from gatewright.api.schema.names import GATEWAY_BACKEND, GROUP


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
        servers = graph.map("MCP services", inputs.services, lambda _, __, service: mcp.service_view(service))
        self._servers = servers.index("namespace", lambda key, _: [key.namespace])
        labels = graph.map(
            "labels of namespaces", inputs.namespaces, lambda _, __, each: tuple(sorted(each.metadata.labels.items()))
        )
        self._namespaces = labels.index("all", lambda _, __: [""])

    def lookups(self, context: Context) -> _Lookups:
        return _Lookups(context, self._services, self._servers, self._namespaces, self._granted)


@dataclass(frozen=True, slots=True)
class _Lookups:
    """`mcp.Lookups` for one run of a transform."""

    context: Context
    services: Collection[ObjectKey, ServiceView]
    by_namespace: Index[str, ObjectKey, McpService]
    all_namespaces: Index[str, ObjectKey, Labels]
    granted: Groups[Permission] | None

    @property
    def need_grants(self) -> bool:
        return self.granted is not None

    def may_find(self, namespace: str, service: ObjectKey) -> bool:
        wanted = Permission(GROUP, GATEWAY_BACKEND, namespace, "", "Service", *service)
        return self.granted is None or permitted(self.context, self.granted, wanted)

    def service(self, key: ObjectKey) -> ServiceView | None:
        return self.context.fetch(self.services, key)

    def servers(self, namespace: str) -> Iterable[tuple[ObjectKey, McpService]]:
        return self.context.fetch_index(self.by_namespace, namespace)

    def namespaces(self) -> Iterable[tuple[str, Labels]]:
        return ((key.name, labels) for key, labels in self.context.fetch_index(self.all_namespaces, ""))
