"""What comes from outside: objects as decoded, and what is known of the proxies. Filled by `Program` alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from controlplane.derive import AnyChange, Context, Graph, Source
from controlplane.facts import Fact, Invalid
from controlplane.translate.conditions import Condition
from controlplane.translate.fleet import FleetView, RefusalKey
from controlplane.translate.gateway.gateways import is_managed
from controlplane.translate.gateway.wanted import Outcome, Provisioner
from controlplane.translate.keys import ObjectKey
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from controlplane.translate.status import claims, invalid
from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy
from gatewright.api.objects.config_map import ConfigMap
from gatewright.api.objects.custom_resource_definition import CustomResourceDefinition
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.gateway_parameters import GatewayParameters
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.inference_pool import InferencePool
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.objects.namespace import Namespace
from gatewright.api.objects.pod import Pod
from gatewright.api.objects.reference_grant import ReferenceGrant
from gatewright.api.objects.secret import Secret
from gatewright.api.objects.service import Service
from gatewright.api.schema import metadata as api
from gatewright.api.schema.names import INFERENCE_POOL


class Inputs:
    """The sources."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.by_kind: dict[str, Source[ObjectKey, Any]] = {}
        """Those of objects; Any: each kind has a model of its own."""
        self.gateway_classes: Source[ObjectKey, GatewayClass] = self._objects("GatewayClass")
        self.gateways: Source[ObjectKey, Gateway] = self._objects("Gateway")
        self.listener_sets: Source[ObjectKey, ListenerSet] = self._objects("ListenerSet")
        self.routes = {kind: self._objects(kind) for kind in ROUTE_KINDS}
        """By kind."""
        self.grants: Source[ObjectKey, ReferenceGrant] = self._objects("ReferenceGrant")
        self.namespaces: Source[ObjectKey, Namespace] = self._objects("Namespace")
        self.services: Source[ObjectKey, Service] = self._objects("Service")
        self.pools: Source[ObjectKey, InferencePool] = self._objects(INFERENCE_POOL)
        self.pods: Source[ObjectKey, Pod] = self._objects("Pod")
        self.slices: Source[ObjectKey, EndpointSlice] = self._objects("EndpointSlice")
        self.gateway_backends: Source[ObjectKey, GatewayBackend] = self._objects("GatewayBackend")
        self.gateway_policies: Source[ObjectKey, GatewayPolicy] = self._objects("GatewayPolicy")
        self.gateway_parameters: Source[ObjectKey, GatewayParameters] = self._objects("GatewayParameters")
        self.secrets: Source[ObjectKey, Secret] = self._objects("Secret")
        self.config_maps: Source[ObjectKey, ConfigMap] = self._objects("ConfigMap")
        self.definitions: Source[ObjectKey, CustomResourceDefinition] = self._objects("CustomResourceDefinition")
        self.backend_tls_policies: Source[ObjectKey, BackendTLSPolicy] = self._objects("BackendTLSPolicy")

        self.invalid: Source[api.ObjectKey, Invalid] = graph.source("invalid")
        """Objects that cannot be read, also those that something acts for."""

        self.vanished: Source[ObjectKey, frozenset[ObjectKey]] = graph.source("vanished classes")
        """Classes managed by Gatewright whose object is gone, with the Gateways that they had: these go on as if it
        were there. A class may go by accident (with an example that had it, with the definition of its kind), and takes
        all its Gateways along; one that is meant to end gets another `controllerName`."""

        self.claims: Source[ObjectKey, str] = graph.source("claims")
        """What the written statuses of Gateways say of whose they were (`claims`)."""

        self.class_versions: Source[ObjectKey, str] = graph.source("versions of classes")
        """Of the objects, each write makes another, where their source gives them."""

        self.hours: Source[str, int] = graph.source("hours")
        """Under "": whole hours since the epoch, for what is said of times to come."""
        self.fleet: Source[ObjectKey, FleetView] = graph.source("fleet")
        self.provisioner: Source[str, Provisioner] = graph.source("provisioner")
        """Under "", where somebody makes what Gateways want."""
        self.outcomes: Source[ObjectKey, Outcome] = graph.source("outcomes")
        """What became of the wanted objects of a Gateway."""
        self.refusals: Source[RefusalKey, str] = graph.source("refusals")
        self.refusals_by_gateway = self.refusals.index("gateway", lambda key, _: [key.gateway])
        self.refusals_by_resource = self.refusals.index("resource", lambda key, _: [key.resource])

    def changes(self, facts: Iterable[Fact]) -> Iterator[AnyChange]:
        """What facts change in the sources; kinds that nothing reads are passed over."""
        classes: dict[ObjectKey, str] = {}
        """Of the Gateways among them; "": none, the Gateway is gone."""
        seen: set[ObjectKey] = set()
        for fact in facts:
            source, previous = self.by_kind.get(fact.key.kind), fact.previous
            if source is None:
                continue
            key = ObjectKey(fact.key.namespace, fact.key.name)
            yield self.invalid, fact.key, fact.invalid
            if source is self.gateway_classes:
                seen.add(key)
                yield self.class_versions, key, previous.resource_version if previous is not None else None
                yield from self._class(key, fact)
                continue
            yield source, key, fact.acts
            if source is self.gateways:
                classes[key] = fact.acts.spec.gateway_class_name if isinstance(fact.acts, Gateway) else ""
                yield self.claims, key, claims.claimed(previous.status) if previous is not None else None
        yield from self._left(classes, seen)

    def _class(self, key: ObjectKey, fact: Fact) -> Iterator[AnyChange]:
        known = self.gateway_classes.get(key)
        if fact.acts is not None or known is None or not is_managed(known):
            yield self.gateway_classes, key, fact.acts
            yield self.vanished, key, None
            return
        users = frozenset(name for name, each in self.gateways.items() if each.spec.gateway_class_name == key.name)
        yield from self._users(key, users)

    def _left(self, classes: Mapping[ObjectKey, str], seen: Set[ObjectKey]) -> Iterator[AnyChange]:
        """Gateways that go, or name another class, are none of a vanished one any more, also when they name it again.
        `seen`: classes of which there is news."""
        for key, users in self.vanished.items():
            left = frozenset(each for each in users if classes.get(each, key.name) == key.name)
            if len(left) < len(users) and key not in seen:
                yield from self._users(key, left)

    def _users(self, key: ObjectKey, users: frozenset[ObjectKey]) -> Iterator[AnyChange]:
        """Of a vanished class, which is forgotten with the last of them."""
        yield self.vanished, key, users or None
        if not users:
            yield self.gateway_classes, key, None

    def refused(self, context: Context, kind: str, key: ObjectKey) -> Condition | None:
        """Why an object that cannot be read does nothing; None for one that is read, or that a last good version
        represents."""
        found = context.fetch(self.invalid, api.ObjectKey(kind, *key))
        return invalid.refused(kind, found) if found is not None and found.last_good is None else None

    def _objects(self, kind: str) -> Source[ObjectKey, Any]:
        self.by_kind[kind] = source = self._graph.source(kind)
        return source
