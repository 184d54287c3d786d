"""Stand-ins for Gateways and classes that objects of a folder name and that are in none of its files.

Somebody else makes them, or they were forgotten (`links.dangling` reports that). Either way what names them is judged
as if they were as it wants them: a Gateway with the listeners that are named, which admit everybody. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatewright.api.lint import reach
from gatewright.api.lint.lint import Folder
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.names import CONTROLLER_NAME, GATEWAY_API_GROUP

API: Final = f"{GATEWAY_API_GROUP}/v1"
CLASS: Final = "gatewright"
ANY: Final = "any"
"""The listener of a Gateway of which no section is named."""
FIRST_PORT: Final = 20000
"""Of listeners of which no port is named: one that no other listener has."""


class Wanted(NamedTuple):
    """A listener as a reference names it."""

    section: str
    port: int


def stand_ins(folder: Folder) -> Mapping[ObjectKey, KubeObject]:
    """What to add to the objects of a folder."""
    wanted: dict[ObjectKey, dict[Wanted, None]] = defaultdict(dict)
    classes: dict[str, None] = {}
    for item in folder.objects.values():
        if isinstance(item, Gateway):
            classes[item.spec.gateway_class_name] = None
        for key, listener in _named(item):
            if key not in folder.known:
                wanted[key][listener] = None
    if wanted:
        classes[CLASS] = None
    absent = [name for name in classes if ObjectKey("GatewayClass", "", name) not in folder.known]
    made = {ObjectKey("GatewayClass", "", name): _class(name) for name in absent}
    # A folder may have a class of that name that is somebody else's.
    name = CLASS if CLASS in absent or not wanted else f"{CLASS}-elsewhere"
    if name not in absent and wanted:
        made[ObjectKey("GatewayClass", "", name)] = _class(name)
    return {**made, **{key: _gateway(key, name, list(listeners)) for key, listeners in wanted.items()}}


def _named(item: Any) -> Iterator[tuple[ObjectKey, Wanted]]:  # Any: whatever kind
    """The Gateways that a route, a ListenerSet or a policy names."""
    for parent in getattr(getattr(item, "spec", None), "parent_refs", None) or ():
        key = reach.named(parent, item.key.namespace)
        if key is not None and key.kind == "Gateway":
            yield key, Wanted(parent.section_name or "", parent.port or 0)
    if isinstance(item, ListenerSet):
        key = reach.named(item.spec.parent_ref, item.key.namespace)
        if key is not None and key.kind == "Gateway":
            yield key, Wanted("", 0)
    for target in (item.spec.target_refs or ()) if isinstance(item, GatewayPolicy) else ():
        if target.kind == "Gateway":
            yield ObjectKey("Gateway", item.key.namespace, target.name), Wanted(target.section_name or "", 0)


def _class(name: str) -> GatewayClass:
    content = {"metadata": {"name": name}, "spec": {"controllerName": CONTROLLER_NAME}}
    return GatewayClass.model_validate({"apiVersion": API, "kind": "GatewayClass", **content})


def _gateway(key: ObjectKey, gateway_class: str, wanted: list[Wanted]) -> Gateway:
    listeners: dict[str, dict[str, Any]] = {}
    taken = {each.port for each in wanted}
    free = (port for port in range(FIRST_PORT, FIRST_PORT + len(wanted) * 2 + 1) if port not in taken)
    for each in wanted:
        name = each.section or (f"port-{each.port}" if each.port else ANY)
        listeners.setdefault(
            name,
            {
                "name": name,
                "port": each.port or next(free),
                "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": "All"}},
            },
        )
    metadata = {"namespace": key.namespace, "name": key.name}
    all_sets = {"namespaces": {"from": "All"}}
    spec = {"gatewayClassName": gateway_class, "listeners": [*listeners.values()], "allowedListeners": all_sets}
    return Gateway.model_validate({"apiVersion": API, "kind": "Gateway", "metadata": metadata, "spec": spec})
