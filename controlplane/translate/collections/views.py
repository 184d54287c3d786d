"""What routes and policies refer to, without what changes nothing for them (metadata, status, fields that are not
read)."""

from __future__ import annotations

from datetime import datetime

from controlplane.derive import Context, Graph
from controlplane.translate import certificates, references
from controlplane.translate.backend import endpoints, gateway_backends, inference_pools, secrets, workloads
from controlplane.translate.backend.backends import Backends, GatewayBackendView
from controlplane.translate.backend.inference_pools import PoolView
from controlplane.translate.backend.secrets import Secrets
from controlplane.translate.backend.service_views import service_view
from controlplane.translate.backend.tls_references import Known
from controlplane.translate.collections.found_services import FoundServices
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.conditions import HOUR, Condition
from controlplane.translate.gateway import listener_certificates
from controlplane.translate.keys import ObjectKey
from controlplane.translate.status import api_versions
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.inference_pool import InferencePool


class Views:
    """Grants, Services with their endpoints, GatewayBackends, Secrets and CA certificates."""

    def __init__(self, graph: Graph, inputs: Inputs, *, selectors_need_grants: bool) -> None:
        versions = graph.map("API versions", inputs.definitions, lambda _, __, each: api_versions.bundle_version(each))
        self.api_versions = versions.index("all", lambda _, __: [()])
        """Of Gateway API's definitions, as one group."""
        self.granted = graph.groups("granted", inputs.grants.index("permissions", references.permissions))

        self.services = graph.map("services", inputs.services, lambda _, __, each: service_view(each))
        self.slices = graph.map("slices", inputs.slices, lambda _, key, each: endpoints.slice_view(key, each))
        self.workloads = graph.map("workloads", inputs.pods, lambda _, key, pod: workloads.view(key, pod))
        """Pods that take tunnels of a mesh."""
        self.workloads_by_address = self.workloads.index("address", lambda _, view: [view.address])
        self.meshed = graph.groups("meshed", self.workloads.index("all", lambda _, __: [()]))
        """One group, while there are some."""
        self.slices_by_service = self.slices.index("service", lambda _, view: [view.service])
        pods = graph.map("pods", inputs.pods, lambda _, __, each: inference_pools.pod_view(each))
        self.pods_by_label = pods.index("labels", lambda key, view: [(key.namespace, *label) for label in view.labels])
        """By namespace, and each label with its value."""
        self.pools = graph.map("inference pools", inputs.pools, self._pool)
        self.secret_views = graph.map("secrets", inputs.secrets, lambda _, __, secret: secrets.view(secret))
        self.certificates = graph.map("certificates", inputs.config_maps, lambda _, __, ca: certificates.ca_view(ca))
        self.pairs = graph.map(
            "certificate pairs", inputs.secrets, lambda _, __, secret: listener_certificates.pair_problem(secret)
        )
        """What is wrong with the certificate and key of a Secret; "" when nothing is."""
        self._hours = inputs.hours
        self._expiries = graph.map(
            "certificate expiries", inputs.secrets, lambda _, __, secret: listener_certificates.expiry(secret)
        )
        self.expiring = graph.map("expiring certificates", self._expiries, self._expiring)
        """What is said of Secrets whose certificate expires soon, or has expired."""
        self.secrets = Secrets(self.secret_views, self.secret_views.index("labels", secrets.labels))
        self.tls = Known(self.secrets, self.certificates, self.pairs)
        """What `backend.tls` may name."""
        granted = self.granted if selectors_need_grants else None
        self._found = FoundServices(graph, inputs, self.services, self.pools, granted)
        self.gateway_backends = graph.map("gateway backends", inputs.gateway_backends, self._backend)
        self.backends = Backends(self.services, self.gateway_backends, self.pools, self.granted)

    def _pool(self, context: Context, key: ObjectKey, pool: InferencePool) -> PoolView:
        return inference_pools.pool_view(context, self.services, key, pool)

    def _backend(self, context: Context, key: ObjectKey, backend: GatewayBackend) -> GatewayBackendView:
        return gateway_backends.backend_view(context, self.tls, self._found.lookups(context), key, backend)

    def _expiring(self, context: Context, key: ObjectKey, expires: datetime) -> Condition | None:
        hour = context.fetch(self._hours, "")
        return listener_certificates.expiring(key, expires, hour * HOUR) if hour is not None else None
