"""Backends: only those that routes and policies use, each computed once and sent to the Gateways of these."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate.backend import backend_tls, backends, endpoints, inference_pools, workloads
from controlplane.translate.backend.endpoints import Address
from controlplane.translate.collections.backend_tls import BackendTLS
from controlplane.translate.collections.policies import Policies
from controlplane.translate.collections.views import Views
from controlplane.translate.keys import ENDPOINT_TYPE, POOL, RESOURCE_TYPE, BackendKey, BackendUse, ResourceKey


class UsedBackends:
    """Ports of Services and InferencePools with their endpoints, and GatewayBackends."""

    def __init__(self, graph: Graph, views: Views, policies: Policies, tls: BackendTLS) -> None:
        self._views = views
        self._tls = tls.policies
        self._closed = policies.consents.closed
        self.uses = graph.groups("uses", policies.leads, policies.uses)
        self.uses_by_backend = self.uses.index("backend", lambda use, _: [use.backend])
        self.used = graph.groups("used backends", self.uses_by_backend)
        self.addresses = graph.map("addresses", self.used, self._addresses)
        self.unfinished = self.addresses.index("unfinished", lambda key, found: () if found else (key.resource,))
        """Services without an endpoint."""
        self.messages = graph.map("backends", self.used, self._message)
        self.endpoint_messages = graph.map(
            "endpoints", self.addresses, lambda _, key, found: endpoints.endpoint_resources(key, found)
        )
        self.resources = graph.derive("backend resources", self.uses, self._resources)
        self.endpoint_resources = graph.derive("endpoint resources", self.uses, self._endpoint_resources)

    def _addresses(self, context: Context, key: BackendKey, _: bool) -> tuple[Address, ...] | None:
        if key.kind == POOL:
            return self._members(context, key)
        if key.kind != "service":
            return None
        service = context.fetch(self._views.services, key.object)
        port = service.port(key.port, key.transport) if service is not None else None
        if port is None:
            return None
        slices = (view for _, view in context.fetch_index(self._views.slices_by_service, key.object))
        return self._of_mesh(context, key, endpoints.addresses(slices, port))

    def _of_mesh(self, context: Context, key: BackendKey, found: tuple[Address, ...]) -> tuple[Address, ...]:
        """The same, with the workload where an address is that of a Pod that takes tunnels of a mesh."""
        if key.transport == "UDP" or not context.fetch(self._views.meshed, ()):
            return found
        return tuple(each._replace(workload=self._workload(context, each.host)) for each in found)

    def _workload(self, context: Context, address: str) -> str:
        return workloads.workload_of(view for _, view in context.fetch_index(self._views.workloads_by_address, address))

    def _members(self, context: Context, key: BackendKey) -> tuple[Address, ...] | None:
        pool = context.fetch(self._views.pools, key.object)
        if pool is None:
            return None
        group = inference_pools.group(key.namespace, pool.labels)
        members = (view for _, view in context.fetch_index(self._views.pods_by_label, group))
        return self._of_mesh(context, key, inference_pools.addresses(pool, members))

    def _message(self, context: Context, key: BackendKey, _: bool) -> bytes | None:
        return MESSAGES[key.kind](self, context, key)

    def _service_message(self, context: Context, key: BackendKey) -> bytes | None:
        service = context.fetch(self._views.services, key.object)
        port = service.port(key.port, key.transport) if service is not None else None
        empty = not context.fetch(self.addresses, key)
        tls = backend_tls.outcome(context, self._tls, key)
        return backends.service_resource(key, port, tls, empty=empty) if port is not None else None

    def _pool_message(self, context: Context, key: BackendKey) -> bytes | None:
        pool = context.fetch(self._views.pools, key.object)
        empty = not context.fetch(self.addresses, key)
        return inference_pools.resource(key, pool, empty=empty) if pool is not None else None

    def _gateway_backend_message(self, context: Context, key: BackendKey) -> bytes | None:
        view = context.fetch(self._views.gateway_backends, key.object)
        if view is None or view.kind is None:
            return None
        if key.part:
            part = view.parts.get(key.part)
            return backends.gateway_backend_resource(key, part) if part is not None else None
        tls = backend_tls.outcome(context, self._tls, key) if view.kind.parts is None else None
        return backends.gateway_backend_resource(key, view.message, tls)

    def _resources(self, context: Context, use: BackendUse, _: bool) -> dict[ResourceKey, bytes]:
        data = context.fetch(self.messages, use.backend)
        why = context.fetch(self._closed, use) if data is not None and use.backend.kind == "gatewaybackend" else None
        if data is None:
            return {}
        if why:
            found = {use.backend.resource: backends.closed_resource(use.backend, data, why)}
        else:
            found = {use.backend.resource: data, **self._written(context, use.backend)}
        return {ResourceKey(use.gateway, RESOURCE_TYPE, name): content for name, content in found.items()}

    def _written(self, context: Context, key: BackendKey) -> dict[str, bytes]:
        """Secrets of values that a GatewayBackend holds itself, those of its parts too."""
        if key.kind != "gatewaybackend" or key.part:
            return {}
        view = context.fetch(self._views.gateway_backends, key.object)
        return dict(view.written) if view is not None else {}

    def _endpoint_resources(self, context: Context, use: BackendUse, _: bool) -> dict[ResourceKey, bytes]:
        found = context.fetch(self.endpoint_messages, use.backend) or ()
        return {ResourceKey(use.gateway, ENDPOINT_TYPE, name): data for name, data in found}


MESSAGES = {
    "service": UsedBackends._service_message,
    "gatewaybackend": UsedBackends._gateway_backend_message,
    POOL: UsedBackends._pool_message,
}
