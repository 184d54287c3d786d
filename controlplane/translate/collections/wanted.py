"""What should exist because of Gateways, and the parameters that say how: the input of a deployer."""

from __future__ import annotations

from typing import Final

from controlplane.deploy.request import Defaults, Layer
from controlplane.derive import Collection, Context, Graph
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway import parameters, wanted
from controlplane.translate.gateway.gateways import ClassView
from controlplane.translate.gateway.listeners import GatewayPlan
from controlplane.translate.gateway.parameters import ParametersView
from controlplane.translate.gateway.wanted import Provisioner, Rendering
from controlplane.translate.keys import ObjectKey
from controlplane.translate.status.gateway_status import Provisioning
from gatewright.api.objects.gateway_parameters import GatewayParameters

STAND_IN: Final = Provisioner(Defaults("latest"), "authority")
"""Without provisioning: what is wrong with parameters is reported all the same."""


class WantedObjects:
    """By Gateway."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways) -> None:
        self._inputs = inputs
        self.parameters = graph.map("parameters", inputs.gateway_parameters, self._view)
        self.of_classes: Collection[ObjectKey, Layer | Condition] = graph.map(
            "parameters of classes", gateways.classes, self._of_class
        )
        """A layer, or why there is none."""
        self.renderings = graph.map("renderings", gateways.plans, self._rendering)
        self.objects = graph.map("wanted objects", self.renderings, lambda _, __, found: found.wanted)

    def _view(self, context: Context, key: ObjectKey, item: GatewayParameters) -> ParametersView:
        return parameters.view(key, item, self._inputs.refused(context, parameters.KIND, key))

    def _of_class(self, context: Context, key: ObjectKey, _: ClassView) -> Layer | Condition | None:
        item = context.fetch(self._inputs.gateway_classes, key)
        reference = item.spec.parameters_ref if item is not None else None
        return parameters.named(reference, "", lambda named: context.fetch(self.parameters, named))

    def _rendering(self, context: Context, key: ObjectKey, plan: GatewayPlan) -> Rendering | None:
        gateway = context.fetch(self._inputs.gateways, key)
        if gateway is None:
            return None
        class_name = gateway.spec.gateway_class_name
        of_class = parameters.of_class(class_name, context.fetch(self.of_classes, ObjectKey("", class_name)))
        infrastructure = gateway.spec.infrastructure
        reference = infrastructure.parameters_ref if infrastructure is not None else None
        own = parameters.named(reference, key.namespace, lambda named: context.fetch(self.parameters, named))
        provisioner = context.fetch(self._inputs.provisioner, "") or STAND_IN
        return wanted.rendering(plan, gateway, (of_class, own), provisioner)

    def news(self, context: Context, key: ObjectKey) -> Provisioning:
        """What is known of the objects of a Gateway, for its status."""
        found = context.fetch(self.renderings, key)
        return Provisioning(
            found.problem if found is not None else None,
            context.fetch(self._inputs.outcomes, key),
            context.fetch(self._inputs.provisioner, "") is not None,
        )
