"""Between the objects of a folder: references to what is in none of its files, and dynamic forward proxies that no
policy protects.

Called by lint. It knows only the objects it is given. What lives elsewhere cannot be seen: the caller says of which
kinds that is to be expected. References are followed here, and not by the control plane, as far as they name objects at
all: it reads neither objects with mistakes nor references of settings that are not supported yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from gatewright.api.checks.parts import parts
from gatewright.api.lint import reach
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_policy import GatewayPolicy, TargetReference
from gatewright.api.objects.kinds import there_is
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.near_names import near_name
from gatewright.api.schema.references import (
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
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.text.problem import Advice, Severity

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

_NEEDED: Final = (ParentReference, BackendObjectReference, SecretObjectReference, LocalSecretObjectRef)
"""Those without which nothing is served, or all requests are refused."""

BACKEND_KINDS: Final = ("Service", "GatewayBackend")
"""What a reference to a backend can name; without a kind it is a Service."""

MOST_CURES: Final = 20
"""Missing objects for which near names are looked up: each takes a look at all names of the folder."""

STREAM_ROUTES: Final = ("TLSRoute", "TCPRoute")
"""Whose connections meet no authorization of requests."""

REACHES_ALL: Final = "can reach anything that the gateway can"


def dangling(
    objects: reach.Objects, known: Collection[ObjectKey], elsewhere: Collection[str] = ()
) -> Iterator[tuple[ObjectKey, Advice]]:
    """References to objects that are not among `known`, in namespaces that are; not to those of the kinds `elsewhere`.
    What is broken is known, too. Where nothing is served or all is refused because of it, it is an error."""
    namespaces = {key.namespace for key in known}
    cures: dict[ObjectKey, str] = {}
    for owner, item in objects.items():
        for path, part in parts(item):
            key = reach.named(part, owner.namespace) if isinstance(part, _REFERENCES) else None
            if key is None or key in known or key.kind in elsewhere:
                continue
            if key.namespace in namespaces:
                if key not in cures:
                    cures[key] = _meant(key, part, known) if len(cures) < MOST_CURES else ""
                severity: Severity = "error" if isinstance(part, _NEEDED) else "warning"
                yield owner, Advice(path, f"target not found: no {key} in these files{cures[key]}", severity)


def _meant(key: ObjectKey, reference: Any, known: Collection[ObjectKey]) -> str:
    """What was probably meant: a backend of that name and the other kind, or one of the kind with a near name."""
    if isinstance(reference, BackendObjectReference):
        for kind in BACKEND_KINDS:
            other = key._replace(kind=kind)
            if other in known:
                return there_is(kind, f"{other.namespace}/{other.name}")
    near = near_name(key.name, [each.name for each in known if each[:2] == key[:2]], likeness=0.75)
    return f'; did you mean "{near}"?' if near else ""


def open_forwards(objects: Mapping[ObjectKey, KubeObject]) -> Iterator[tuple[ObjectKey, Advice]]:
    """GatewayBackends that forward to anywhere, reached by routes without an authorization policy."""
    forwards = [key for key, item in objects.items() if isinstance(item, GatewayBackend) and _forwards(item)]
    if not forwards:
        return
    protecting = [item for item in objects.values() if isinstance(item, GatewayPolicy) and _authorizes(item)]
    protected = _covered(protecting, objects)
    connections = _covered((each for each in protecting if _authorizes_connections(each)), objects)
    requests, streams = reach.leading(objects), reach.leading_connections(objects)
    for backend in forwards:
        leading = [(each, protected) for each in requests.get(backend, [])]
        through = [*leading, *((each, connections) for each in streams.get(backend, []))]
        bare = [route.key for route, by in through if not by & {route.key, *reach.parents(route)}]
        if bare or not (through or protected):
            yield backend, Advice(("spec", "dynamicForwardProxy"), _reached(bare))


def _reached(bare: list[ObjectKey]) -> str:
    """`bare`: the routes without an authorization policy; []: there is no route."""
    only_connections = bool(bare) and all(key.kind in STREAM_ROUTES for key in bare)
    through = f" through {', '.join(map(str, bare))}, which no authorization policy of these files protects"
    cure = "frontend.networkAuthorization" if only_connections else "traffic.authorization"
    return f"{REACHES_ALL}{through if bare else ''}; protect it by a GatewayPolicy with {cure}"


def _forwards(backend: GatewayBackend) -> bool:
    return backend.spec.dynamic_forward_proxy is not None


def _covered(policies: Iterable[GatewayPolicy], objects: Mapping[ObjectKey, KubeObject]) -> set[ObjectKey]:
    return {key for policy in policies for key, _ in reach.targets(policy, objects)}


def _authorizes(policy: GatewayPolicy) -> bool:
    traffic = policy.spec.traffic
    return (traffic is not None and traffic.authorization is not None) or _authorizes_connections(policy)


def _authorizes_connections(policy: GatewayPolicy) -> bool:
    frontend = policy.spec.frontend
    return frontend is not None and frontend.network_authorization is not None


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
                message = f"{REACHES_ALL}; protect this route by policies.authorization"
                yield Advice((*place.path, "backends", index), message)
    for stream in content.stream_routes():
        for index, backend in enumerate(stream.route.backends):
            if backend.dynamic_forward_proxy is not None or backend.backend in named:
                message = f"{REACHES_ALL}; protect its connections by frontendPolicies.networkAuthorization"
                yield Advice((*stream.path, "backends", index), message)
