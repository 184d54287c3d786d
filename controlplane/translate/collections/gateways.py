"""Gateways of our classes: what they are for routes and policies, and their resources."""

from __future__ import annotations

from controlplane.derive import Collection, Context, Graph, Selecting
from controlplane.translate import namespaces
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.views import Views
from controlplane.translate.gateway import gateway_resources, gateways
from controlplane.translate.gateway.attachment import ParentPlan
from controlplane.translate.gateway.gateways import ClassView
from controlplane.translate.gateway.listener_tls import Lookups
from controlplane.translate.gateway.listeners import GatewayPlan, SetPlan
from controlplane.translate.keys import ObjectKey, ResourceKey
from controlplane.translate.label_rules import Rules
from controlplane.translate.namespaces import Labels
from controlplane.translate.status import claims
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.objects.namespace import Namespace
from gatewright.attach.parents import Owner


class Gateways:
    """Classes, Gateways and the ListenerSets that add listeners to these."""

    def __init__(self, graph: Graph, inputs: Inputs, views: Views) -> None:
        self._inputs = inputs
        self._views = views
        self._selected = self._selected_namespaces(graph, inputs)
        self.classes = graph.map("classes", inputs.gateway_classes, self._class_view)
        sets = graph.map("listener sets", inputs.listener_sets, self._set_plan)
        self._sets = sets.index("gateway", lambda _, plan: [plan.gateway])
        self.plans = graph.map("gateways", inputs.gateways, self._plan)
        self.sets = graph.derive("joined listener sets", self.plans, lambda _, __, plan: gateways.joined_sets(plan))
        """Those of our Gateways."""
        self.parents = graph.derive("parents", self.plans, self._parents)
        """As routes see them."""
        self._tls = graph.derive("TLS of listeners", self.plans, lambda _, __, plan: gateway_resources.tls_plans(plan))
        self.resources = (
            graph.derive("gateway resources", self.plans, lambda _, __, plan: gateway_resources.resources(plan)),
            graph.derive("listener resources", self.parents, self._listener_resources),
        )
        self.certificate_uses = graph.groups(
            "certificate uses", self.plans.index("certificates", lambda _, plan: gateway_resources.certificates(plan))
        )

    def _selected_namespaces(self, graph: Graph, inputs: Inputs) -> Collection[Rules, frozenset[str]]:
        """By selector; of all namespaces that there are, or that hold an object that asks."""
        labels = graph.map("labels", inputs.namespaces, lambda _, __, namespace: _labels(namespace))
        found = graph.groups(
            "namespaces",
            inputs.namespaces.index("name", lambda key, _: [key.name]),
            *(
                source.index("namespace", lambda key, _: [key.namespace])
                for source in (*inputs.routes.values(), inputs.listener_sets)
            ),
        )
        known = graph.map(
            "known namespaces", found, lambda context, name, _: context.fetch(labels, ObjectKey("", name)) or ()
        )
        selectors = graph.groups(
            "namespace selectors",
            inputs.gateways.index("selectors", gateways.selectors),
            inputs.listener_sets.index("selectors", gateways.selectors_of_set),
        )
        how: Selecting[Rules, str, Labels, None] = Selecting(namespaces.groups, lambda _, __: None, namespaces.select)
        selected = graph.selected("namespaces by selector", selectors, known, how)
        return graph.map("selected namespaces", selected, lambda _, __, found: frozenset(name for name, _ in found))

    def _known(self, context: Context) -> namespaces.Known:
        return lambda rules: context.fetch(self._selected, rules) or frozenset()

    def _parents(self, context: Context, _: ObjectKey, plan: GatewayPlan) -> dict[Owner, ParentPlan]:
        return gateways.parents(plan, self._known(context))

    def _listener_resources(self, context: Context, owner: Owner, plan: ParentPlan) -> dict[ResourceKey, bytes]:
        return gateway_resources.listener_resources(plan, context.fetch(self._tls, owner) or ())

    def _lookups(self, context: Context) -> Lookups:
        views = self._views
        return Lookups(
            lambda secret: context.fetch(views.pairs, secret),
            lambda wanted: context.fetch(views.granted, wanted) is not None,
            lambda config_map: context.fetch(views.certificates, config_map),
        )

    def _plan(self, context: Context, key: ObjectKey, gateway: Gateway) -> GatewayPlan | None:
        view = self._class_of(context, key, gateway)
        if view is None:
            return None
        sets = [plan for _, plan in context.fetch_index(self._sets, key)]
        refused = self._inputs.refused(context, "Gateway", key)
        if refused is not None:
            return gateways.unread_plan(key, refused, sets)
        return gateways.plan(key, gateway, view, sets, self._known(context), self._lookups(context))

    def _class_of(self, context: Context, key: ObjectKey, gateway: Gateway) -> ClassView | None:
        """None: no class of Gatewright. Of a class that is gone the status that was written before says which it
        was."""
        name = gateway.spec.gateway_class_name
        view = context.fetch(self.classes, ObjectKey("", name))
        if view is not None and view.has(key):
            return view
        is_there = view is None and context.fetch(self._inputs.gateway_classes, ObjectKey("", name)) is not None
        if is_there or not claims.is_claimed(name, context.fetch(self._inputs.claims, key)):
            return None
        return view or ClassView(vanished=frozenset({key}), is_known=False)

    def _set_plan(self, context: Context, key: ObjectKey, item: ListenerSet) -> SetPlan | None:
        refused = self._inputs.refused(context, "ListenerSet", key)
        return gateways.set_plan(key, item, refused, self._lookups(context))

    def _class_view(self, context: Context, key: ObjectKey, gateway_class: GatewayClass) -> ClassView | None:
        if not gateways.is_managed(gateway_class):
            return None
        vanished = context.fetch(self._inputs.vanished, key)
        return ClassView(self._inputs.refused(context, "GatewayClass", key), vanished)


def _labels(namespace: Namespace) -> Labels:
    return tuple(sorted(namespace.metadata.labels.items()))
