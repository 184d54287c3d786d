"""What parts of GatewayBackends are found with: Services that say they are servers of a kind, and namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controlplane.derive import Collection, Context, Graph, Groups, Selecting
from controlplane.translate.backend import found_services, service_selection
from controlplane.translate.backend.found_services import FoundService
from controlplane.translate.backend.inference_pools import PoolView
from controlplane.translate.backend.service_selection import Labelled, Selection
from controlplane.translate.backend.service_views import ServiceView
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.keys import ObjectKey
from controlplane.translate.namespaces import Labels
from controlplane.translate.references import permitted
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.service import Service
from gatewright.api.schema.names import GATEWAY_BACKEND, GROUP

Found = tuple[tuple[ObjectKey, FoundService], ...]


@dataclass(frozen=True, slots=True)
class _Server:
    """A Service with such ports, and what it is selected by."""

    service: FoundService
    labels: Labelled


class FoundServices:
    """Collections for the selectors of GatewayBackends."""

    def __init__(
        self,
        graph: Graph,
        inputs: Inputs,
        services: Collection[ObjectKey, ServiceView],
        pools: Collection[ObjectKey, PoolView],
        granted: Groups[Permission] | None,
    ) -> None:
        """`granted`: where selectors need grants for Services of other namespaces."""
        self._services, self._pools = services, pools
        self._granted = granted
        self._labels = graph.map(
            "labels of namespaces", inputs.namespaces, lambda _, __, each: _sorted(each.metadata.labels)
        )
        servers = graph.map("services that are servers", inputs.services, self._server)
        wanted = graph.groups(
            "selectors of services",
            inputs.gateway_backends.index("selectors of services", service_selection.selections),
        )
        self._selected: Collection[Selection, Found] = graph.selected(
            "selected services",
            wanted,
            servers,
            Selecting(
                lambda key, server: service_selection.groups(key, server.labels),
                lambda _, server: server.service,
                service_selection.select,
                found_services.MOST_FOUND if granted is None else None,
            ),
        )

    def lookups(self, context: Context) -> _Lookups:
        return _Lookups(context, self._services, self._pools, self._selected, self._granted)

    def _server(self, context: Context, key: ObjectKey, service: Service) -> _Server | None:
        view = found_services.service_view(service)
        if view is None:
            return None
        of_namespace = context.fetch(self._labels, ObjectKey("", key.namespace))
        return _Server(view, Labelled(_sorted(service.metadata.labels), of_namespace))


@dataclass(frozen=True, slots=True)
class _Lookups:
    """`found_services.Lookups` for one run of a transform."""

    context: Context
    services: Collection[ObjectKey, ServiceView]
    pools: Collection[ObjectKey, PoolView]
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

    def has_pool(self, key: ObjectKey) -> bool:
        return self.context.fetch(self.pools, key) is not None

    def selected(self, selector: Selection) -> Iterable[tuple[ObjectKey, FoundService]]:
        return self.context.fetch(self.selections, selector) or ()


def _sorted(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
