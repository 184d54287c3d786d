"""Classes whose finalizers are not as they should be: the input of who writes them."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.gateway import class_finalizers
from controlplane.translate.gateway.class_finalizers import FinalizerWrite
from controlplane.translate.gateway.gateways import ClassView
from controlplane.translate.keys import ObjectKey


class ClassFinalizers:
    """Of classes managed by Gatewright."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways) -> None:
        self._inputs = inputs
        self._users = inputs.gateways.index("class", lambda _, each: [each.spec.gateway_class_name])
        self.writes = graph.map("finalizers of classes", gateways.classes, self._write)

    def _write(self, context: Context, key: ObjectKey, view: ClassView) -> FinalizerWrite | None:
        """None as well of one that is not there, or cannot be read: what is known of it is not the newest. A source
        that gives no versions keeps no finalizers."""
        item = context.fetch(self._inputs.gateway_classes, key)
        if item is None or view.vanished is not None or view.refused is not None:
            return None
        found = class_finalizers.wanted(item, in_use=context.count(self._users, key.name) > 0)
        version = context.fetch(self._inputs.class_versions, key) if found is not None else None
        return FinalizerWrite(found, version) if found is not None and version else None
