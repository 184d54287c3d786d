"""What should exist because of Gateways: the input of a deployer."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate import wanted
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.keys import ObjectKey
from controlplane.translate.listeners import GatewayPlan
from controlplane.translate.wanted import Wanted, WantedKey


class WantedObjects:
    """By key of the object itself: two Gateways never want the same."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways) -> None:
        self._gateways = inputs.gateways
        self.objects = graph.derive("wanted objects", gateways.plans, self._of_gateway)

    def _of_gateway(self, context: Context, key: ObjectKey, plan: GatewayPlan) -> dict[WantedKey, Wanted]:
        gateway = context.fetch(self._gateways, key)
        return {} if gateway is None else wanted.wanted(plan, gateway)
