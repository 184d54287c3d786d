"""Why an object has no status: the controller does not act on it. Pure; asked by the composition root for such objects
alone.

In a cluster Gateway API leaves their status to the controller that owns them. People look here first, so the reason is
shown here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.routes.grpc_route import GRPCRoute
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.routes.stream_routes import TCPRoute, TLSRoute, UDPRoute
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.names import CONTROLLER_NAME
from gatewright.api.schema.references import ParentReference

Objects = Mapping[ObjectKey, KubeObject]


def reason(item: KubeObject, objects: Objects) -> str:
    """ "" for kinds that have no status of Gatewright (Services and the like)."""
    if isinstance(item, GatewayClass):
        return f"is of controller {item.spec.controller_name}, not of {CONTROLLER_NAME}"
    if isinstance(item, Gateway):
        return _of_gateway(item, objects)
    if isinstance(item, HTTPRoute | GRPCRoute | TLSRoute | TCPRoute | UDPRoute):
        parents = item.spec.parent_refs or ()
        reasons = dict.fromkeys(_of_parent(each, item.key.namespace, objects) for each in parents)
        return "; ".join(reasons) if reasons else "names no parent (parentRefs), so no Gateway takes it"
    return ""


def is_foreign(item: KubeObject) -> bool:
    """Whether it is in order that the controller does not act on it."""
    return isinstance(item, GatewayClass)


def _of_gateway(gateway: Gateway, objects: Objects) -> str:
    name = gateway.spec.gateway_class_name
    found = objects.get(ObjectKey("GatewayClass", "", name))
    if found is None:
        return f"its GatewayClass {name} does not exist"
    return f"its GatewayClass {name} {reason(found, objects)}"


def _of_parent(parent: ParentReference, namespace: str, objects: Objects) -> str:
    key = ObjectKey(parent.kind, parent.namespace or namespace, parent.name)
    found = objects.get(key)
    if found is None:
        return f"its parent {key} does not exist"
    if isinstance(found, Gateway):
        return f"its parent {key} is not served: {_of_gateway(found, objects)}"
    return f"its parent {key} is not served"
