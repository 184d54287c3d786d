"""Gateways of our classes: what they are for routes and policies, and their resources."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate import gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.gateways import ClassView
from controlplane.translate.keys import ObjectKey
from controlplane.translate.listeners import GatewayPlan
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass


class Gateways:
    """Classes and Gateways."""

    def __init__(self, graph: Graph, inputs: Inputs) -> None:
        self._inputs = inputs
        self.classes = graph.map("classes", inputs.gateway_classes, self._class_view)
        self.plans = graph.map("gateways", inputs.gateways, self._plan)
        self.sections = graph.derive("sections", self.plans, lambda _, __, plan: gateways.sections(plan))
        """Gateways with one listener alone: one that is added to a Gateway moves no route of another one."""
        self.resources = graph.derive("gateway resources", self.plans, lambda _, __, plan: gateways.resources(plan))

    def _plan(self, context: Context, key: ObjectKey, gateway: Gateway) -> GatewayPlan | None:
        view = context.fetch(self.classes, ObjectKey("", gateway.spec.gateway_class_name))
        if view is None:
            return None
        refused = self._inputs.refused(context, "Gateway", key)
        return gateways.plan(key, gateway, view) if refused is None else GatewayPlan(key, (), refused)

    def _class_view(self, context: Context, key: ObjectKey, gateway_class: GatewayClass) -> ClassView | None:
        if not gateways.is_ours(gateway_class):
            return None
        refused = self._inputs.refused(context, "GatewayClass", key)
        return gateways.class_view(gateway_class) if refused is None else ClassView(refused)
