"""Between the objects of a folder: references that lead nowhere in it, into another namespace without a ReferenceGrant,
or to what lacks a port or entry, and dynamic forward proxies that nobody guards.

Called by lint. It knows only the objects it is given. What lives elsewhere cannot be seen: the caller says of which
kinds that is to be expected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from gatewright.api.checks.parts import parts
from gatewright.api.lint import reach
from gatewright.api.objects import grants
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_policy import GatewayPolicy, TargetReference
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.kinds import KINDS, there_is
from gatewright.api.objects.reference_grant import ReferenceGrant
from gatewright.api.objects.secret import Secret
from gatewright.api.objects.service import Service
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
from gatewright.api.traffic.basic_authentication import USERS_ENTRY, BasicAuthentication

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

REACHES_ALL: Final = "can reach anything that the gateway can"


def dangling(
    objects: reach.Objects, known: Collection[ObjectKey], elsewhere: Collection[str] = ()
) -> Iterator[tuple[ObjectKey, Advice]]:
    """References to objects that are not among `known`, in namespaces that are; not to those of the kinds `elsewhere`.
    What is broken is known, too. Where nothing is served or all is refused because of it, it is an error."""
    namespaces = {key.namespace for key in known}
    cures: dict[ObjectKey, str] = {}  # a folder may name one missing object ten thousand times
    for owner, item in objects.items():
        for path, part in parts(item):
            key = reach.named(part, owner.namespace) if isinstance(part, _REFERENCES) else None
            if key is None or key in known or key.kind in elsewhere:
                continue
            if key.namespace in namespaces:
                if key not in cures:
                    cures[key] = _meant(key, part, known)
                severity: Severity = "error" if isinstance(part, _NEEDED) else "warning"
                yield owner, Advice(path, f"leads nowhere: no {key} in these files{cures[key]}", severity)


def _meant(key: ObjectKey, reference: Any, known: Collection[ObjectKey]) -> str:
    """What was probably meant: a backend of that name and the other kind, or one of the kind with a near name."""
    if isinstance(reference, BackendObjectReference):
        for kind in BACKEND_KINDS:
            other = key._replace(kind=kind)
            if other in known:
                return there_is(kind, f"{other.namespace}/{other.name}")
    near = near_name(key.name, [each.name for each in known if each[:2] == key[:2]], likeness=0.75)
    return f'; did you mean "{near}"?' if near else ""


def ungranted(objects: reach.Objects, known: Collection[ObjectKey]) -> Iterator[tuple[ObjectKey, Advice]]:
    """Backends of other namespaces that no ReferenceGrant lets an object name. Of namespaces without an object among
    `known`, or with a grant that could not be read, nothing can be told."""
    grants_there = [item for item in objects.values() if isinstance(item, ReferenceGrant)]
    given = {each for item in grants_there for each in grants.permissions(item.key.namespace, item)}
    unread = {key.namespace for key in known if key.kind == "ReferenceGrant" and key not in objects}
    told = {key.namespace for key in known} - unread
    for owner, item in objects.items():
        for path, part in parts(item):
            if isinstance(part, BackendObjectReference) and part.namespace in told:
                wanted = _permission(owner, part)
                if not grants.permitted(wanted, given.__contains__):
                    yield owner, Advice(path, f"is not permitted: {grants.lacking(wanted)}")


def _permission(owner: ObjectKey, reference: BackendObjectReference) -> Permission:
    """What the reference needs."""
    kind, namespace, _ = owner
    to = (reference.group, reference.kind, reference.namespace or namespace, reference.name)
    return Permission(KINDS[kind].group, kind, namespace, *to)


def lacking(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """References to objects that are there, and have not the port or the entry that is meant."""
    for owner, item in objects.items():
        for path, part in parts(item):
            if isinstance(part, BackendObjectReference):
                found = _without_port(part, _named(part, owner, objects))
            elif isinstance(part, BasicAuthentication) and part.secret_ref is not None:
                found = _without_users(_named(part.secret_ref, owner, objects))
            else:
                continue
            yield from ((owner, Advice((*path, *each.path), each.message)) for each in found)


def _named(reference: BackendObjectReference | LocalSecretObjectRef, owner: ObjectKey, objects: reach.Objects) -> Any:
    """What a reference leads to, if it is there (Any: callers look at its kind)."""
    key = reach.named(reference, owner.namespace)
    return objects.get(key) if key is not None else None


def _without_port(reference: BackendObjectReference, target: Any) -> Iterator[Advice]:
    ports = [each.port for each in target.spec.ports] if isinstance(target, Service) else [reference.port]
    if reference.port not in ports:
        has = f"it has {', '.join(map(str, ports))}" if ports else "it has none"
        yield Advice(("port",), f"{target.key} has no port {reference.port}; {has}")


def _without_users(target: Any) -> Iterator[Advice]:
    if isinstance(target, Secret) and USERS_ENTRY not in {*target.data, *target.string_data}:
        yield Advice(("secretRef",), f"{target.key} has no entry {USERS_ENTRY}, in which the users would be")


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
