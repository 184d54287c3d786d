"""Between the objects of a folder: references that lead nowhere in it, and dynamic forward proxies that nobody guards.

Called by lint. It knows only the objects it is given: what lives elsewhere cannot be seen, so all of this are warnings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from gatewright.api import reach
from gatewright.api.advice import Advice
from gatewright.api.gateway_backend import GatewayBackend
from gatewright.api.gateway_policy import GatewayPolicy, TargetReference
from gatewright.api.metadata import KubeObject, ObjectKey
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


def dangling(objects: reach.Objects, known: Collection[ObjectKey]) -> Iterator[tuple[ObjectKey, Advice]]:
    """References to objects that are not among `known`, in namespaces that are. What is broken is known, too."""
    namespaces = {key.namespace for key in known}
    for owner, item in objects.items():
        for path, part in parts(item):
            key = reach.named(part, owner.namespace) if isinstance(part, _REFERENCES) else None
            if key is not None and key not in known and key.namespace in namespaces:
                yield owner, Advice(path, f"leads nowhere: no {key} in these files")


def open_forwards(objects: Mapping[ObjectKey, KubeObject]) -> Iterator[tuple[ObjectKey, Advice]]:
    """GatewayBackends that forward to anywhere, reached by routes that no authorization guards."""
    forwards = [key for key, item in objects.items() if isinstance(item, GatewayBackend) and _forwards(item)]
    policies = [item for item in objects.values() if isinstance(item, GatewayPolicy) and _authorizes(item)]
    guarded = {key for policy in policies for key, _ in reach.targets(policy, objects)}
    routes = reach.leading(objects) if forwards else {}
    for backend in forwards:
        leading = routes.get(backend, [])
        bare = [route.key for route in leading if not guarded & {route.key, *reach.parents(route)}]
        if bare or not (leading or guarded):
            names = ", ".join(map(str, bare))
            through = f" through {names}, which no authorization policy of these files guards" if bare else ""
            cure = "guard it by a GatewayPolicy with traffic.authorization"
            yield backend, Advice(("spec", "dynamicForwardProxy"), f"{REACHES_ALL}{through}; {cure}")


def _forwards(backend: GatewayBackend) -> bool:
    return backend.spec.dynamic_forward_proxy is not None


def _authorizes(policy: GatewayPolicy) -> bool:
    traffic, frontend = policy.spec.traffic, policy.spec.frontend
    return (traffic is not None and traffic.authorization is not None) or (
        frontend is not None and frontend.network_authorization is not None
    )


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
