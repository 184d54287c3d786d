"""Between the objects of a folder: references that lead nowhere in it, and dynamic forward proxies that nobody guards.

Called by lint. It knows only the objects it is given: what lives elsewhere cannot be seen, so all of this are warnings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from gatewright.api.advice import Advice
from gatewright.api.gateway_backend import GatewayBackend
from gatewright.api.gateway_policy import GatewayPolicy, TargetReference
from gatewright.api.http_route import HTTPRoute
from gatewright.api.kinds import KINDS
from gatewright.api.metadata import KubeObject, ObjectKey
from gatewright.api.names import GATEWAY_BACKEND
from gatewright.api.parts import parts
from gatewright.api.references import (
    BackendObjectReference,
    ConfigMapReference,
    LocalBackendObjectReference,
    LocalObjectReference,
    LocalSecretObjectRef,
    LocalServiceReference,
    ObjectReference,
    ParametersReference,
    ParentReference,
    SecretObjectReference,
)
from gatewright.api.standalone_file import StandaloneFile

_REFERENCES: Final = (
    ParentReference,
    BackendObjectReference,
    SecretObjectReference,
    ObjectReference,
    LocalObjectReference,
    ParametersReference,
    LocalSecretObjectRef,
    LocalBackendObjectReference,
    LocalServiceReference,
    ConfigMapReference,
    TargetReference,
)
"""Models that name an object; all have group, kind and name, some a namespace."""

REACHES_ALL: Final = "can reach anything that the gateway can"


def dangling(item: KubeObject, known: Collection[ObjectKey]) -> Iterator[Advice]:
    """References of `item` to objects that are not among `known`, in namespaces that are."""
    namespaces = {key.namespace for key in known}
    for path, part in parts(item):
        if isinstance(part, _REFERENCES):
            key = _named(part, item.key.namespace)
            if key is not None and key not in known and key.namespace in namespaces:
                yield Advice(path, f"leads nowhere: no {key} in these files")


def _named(reference: Any, namespace: str) -> ObjectKey | None:
    """The object of a kind of ours that a reference names."""
    kind = reference.kind or "Secret"  # LocalSecretObjectRef: an empty kind is a Secret
    info = KINDS.get(kind)
    if info is None or info.group != reference.group:
        return None
    given = getattr(reference, "namespace", None)
    return ObjectKey(kind, (given or namespace) if info.namespaced else "", reference.name)


def open_forwards(objects: Mapping[ObjectKey, KubeObject]) -> Iterator[tuple[ObjectKey, Advice]]:
    """GatewayBackends that forward to anywhere, reached by routes that no authorization guards."""
    forwards = [
        item for item in objects.values() if isinstance(item, GatewayBackend) and item.spec.dynamic_forward_proxy
    ]
    if not forwards:
        return
    guarded = {key for item in objects.values() if isinstance(item, GatewayPolicy) for key in _guards(item, objects)}
    routes = [item for item in objects.values() if isinstance(item, HTTPRoute)]
    for backend in forwards:
        leading = [route for route in routes if backend.key in _backends(route)]
        bare = [route for route in leading if not guarded.intersection([route.key, *_parents(route)])]
        if bare or not (leading or guarded):
            names = ", ".join(str(route.key) for route in bare)
            through = f" through {names}, which no authorization policy of these files guards" if bare else ""
            cure = "guard it by a GatewayPolicy with traffic.authorization"
            yield backend.key, Advice(("spec", "dynamicForwardProxy"), f"{REACHES_ALL}{through}; {cure}")


def _guards(policy: GatewayPolicy, objects: Iterable[ObjectKey]) -> Iterator[ObjectKey]:
    """What a policy with authorization is attached to."""
    spec, namespace = policy.spec, policy.key.namespace
    traffic = spec.traffic is not None and spec.traffic.authorization is not None
    network = spec.frontend is not None and spec.frontend.network_authorization is not None
    if not traffic and not network:
        return
    for target in spec.target_refs or ():
        yield ObjectKey(target.kind, namespace, target.name)
    # By labels: an object of that kind there may be meant, which is enough for not warning.
    kinds = {target.kind for target in spec.target_selectors or ()}
    yield from (key for key in objects if key.kind in kinds and key.namespace == namespace)


def _backends(route: HTTPRoute) -> set[ObjectKey]:
    found = (_named(part, route.key.namespace) for _, part in parts(route) if isinstance(part, BackendObjectReference))
    return {key for key in found if key is not None and key.kind == GATEWAY_BACKEND}


def _parents(route: HTTPRoute) -> list[ObjectKey]:
    found = (_named(part, route.key.namespace) for _, part in parts(route) if isinstance(part, ParentReference))
    return [key for key in found if key is not None]


def open_forwards_of_file(content: StandaloneFile) -> Iterator[Advice]:
    """The same for the standalone file: backends that forward to anywhere, in routes without authorization."""
    named = {backend.name for backend in content.backends if backend.dynamic_forward_proxy is not None}
    frontend = content.frontend_policies
    if frontend is not None and frontend.network_authorization is not None:
        return
    for place in content.routes():
        listener = place.listener.listener.policies
        if place.route.policies.authorization is not None:
            continue
        if listener is not None and listener.authorization is not None:
            continue
        for index, backend in enumerate(place.route.backends):
            if backend.dynamic_forward_proxy is not None or backend.backend in named:
                message = f"{REACHES_ALL}; guard this route by policies.authorization"
                yield Advice((*place.path, "backends", index), message)
