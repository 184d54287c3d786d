"""The derivation graph: all collections of the control plane, a table of contents in reading order.

Each part is made from those above it: its parameters are what it reads. The parts are in `collections`; they say which
collection is made from which, and by which function of the other packages. Built once by `Program`.
"""

from __future__ import annotations

from controlplane.derive import Collection, Graph
from controlplane.translate.collections.backend_tls import BackendTLS
from controlplane.translate.collections.backends import UsedBackends
from controlplane.translate.collections.finalizers import ClassFinalizers
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.leading_back import LeadingBack
from controlplane.translate.collections.outcomes import Outcomes
from controlplane.translate.collections.policies import Policies
from controlplane.translate.collections.routes import Routes
from controlplane.translate.collections.secrets import UsedSecrets
from controlplane.translate.collections.statuses import (
    BackendStatuses,
    BackendTLSStatuses,
    GatewayStatuses,
    ParametersStatuses,
    PolicyStatuses,
    PoolStatuses,
    RouteStatuses,
)
from controlplane.translate.collections.views import Views
from controlplane.translate.collections.wanted import WantedObjects
from controlplane.translate.conditions import StatusBody
from controlplane.translate.keys import ObjectKey, ResourceKey
from controlplane.translate.unfinished import Unfinished
from gatewright.api.schema.names import INFERENCE_POOL


class Collections:
    """The graph and its collections."""

    def __init__(self, *, selectors_need_grants: bool = False) -> None:
        graph = self.graph = Graph()

        # Objects as decoded, and what is known of the proxies.
        inputs = self.inputs = Inputs(graph)
        # What is served, and what routes and policies refer to, each without what changes nothing for its readers.
        views = self.views = Views(graph, inputs, selectors_need_grants=selectors_need_grants)
        gateways = self.gateways = Gateways(graph, inputs, views)
        # Where routes and policies attach, what they say, and which policies win.
        routes = self.routes = Routes(graph, inputs, gateways, views)
        policies = self.policies = Policies(graph, inputs, gateways, views, routes)
        outcomes = self.outcomes = Outcomes(graph, policies, routes.classes)
        # Which backends want TLS.
        backend_tls = BackendTLS(graph, inputs, views)
        # Only what listeners, routes and policies use.
        backends = UsedBackends(graph, views, policies, backend_tls)
        secrets = UsedSecrets(graph, inputs, gateways, policies)

        self.resources: tuple[Collection[ResourceKey, bytes], ...] = (
            *gateways.resources,
            *routes.resources,
            policies.resources,
            *secrets.resources,
            backends.resources,
            backends.endpoint_resources,
        )

        self.unfinished = Unfinished(
            [*(each.unfinished for each in routes.by_kind.values()), policies.unfinished], backends.unfinished
        )

        # A proxy that waits for a resource need not wait for statuses.
        graph.part_ends()

        leading_back = self.leading_back = LeadingBack(graph, inputs, views, routes, backends)

        of_wanted = WantedObjects(graph, inputs, gateways)
        self.wanted = of_wanted.objects

        self.class_finalizers = ClassFinalizers(graph, inputs, gateways).writes

        of_gateways = GatewayStatuses(graph, inputs, views, gateways, routes, of_wanted)
        self.statuses: dict[str, Collection[ObjectKey, StatusBody]] = {
            "GatewayClass": of_gateways.of_classes,
            "Gateway": of_gateways.of_gateways,
            "ListenerSet": of_gateways.of_sets,
            **{
                kind: RouteStatuses(graph, inputs, each, policies, outcomes, leading_back).of_routes
                for kind, each in routes.by_kind.items()
            },
            "GatewayBackend": BackendStatuses(graph, inputs, views, policies, backends).of_backends,
            INFERENCE_POOL: PoolStatuses(graph, inputs, views, backends).of_pools,
            "BackendTLSPolicy": BackendTLSStatuses(graph, inputs, backend_tls, policies).of_policies,
            "GatewayPolicy": PolicyStatuses(graph, inputs, policies, outcomes).of_policies,
            "GatewayParameters": ParametersStatuses(graph, inputs, of_wanted).of_parameters,
        }
