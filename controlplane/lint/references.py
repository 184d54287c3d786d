"""References of routes and policies that lead to something which cannot be used: asked of the functions that translate.

References to what is in none of the files are not judged here (`gatewright.api.lint.links.dangling`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from pydantic import BaseModel

from controlplane.lint.world import World
from controlplane.translate import keys
from controlplane.translate.backend import secrets
from controlplane.translate.backend.backend_auth import AuthSecret
from controlplane.translate.backend.backends import Referrer, resolve
from controlplane.translate.conditions import Condition
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from gatewright.api.backend.auth import SECRET_ENTRIES
from gatewright.api.checks.parts import Path, parts
from gatewright.api.lint import reach
from gatewright.api.lint.lint import Found
from gatewright.api.lower import to_wire
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.inference_pool import InferencePool
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.references import BackendObjectReference, LocalSecretObjectRef
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.basic_authentication import USERS_ENTRY, BasicAuthentication
from gatewright.api.traffic.jwt_authentication import SHARED_SECRET_ENTRY, JWTProvider


def unusable(world: World) -> Iterator[Found]:
    """What `ResolvedRefs` says, at the fields that it is about."""
    for owner, item in world.objects.items():
        if isinstance(item, GatewayBackend):
            yield from _parts(world, owner)
        if isinstance(item, InferencePool):
            yield from _picker(world, owner)
        if owner.kind not in ROUTE_KINDS and owner.kind != "GatewayPolicy":
            continue
        for path, part in parts(item):
            for model, look in _LOOKS:
                if isinstance(part, model):
                    yield from ((code, owner, advice) for code, advice in look(world, owner, path, part))


def _parts(world: World, owner: ObjectKey) -> Iterator[Found]:
    """Parts of a backend that are not there, or cannot be used: the others work, so it is a warning."""
    key = keys.ObjectKey(owner.namespace, owner.name)
    view = world.context().fetch(world.graph.views.gateway_backends, key)
    kind = view.kind if view is not None else None
    if view is not None and view.unresolved is not None and kind is not None and kind.parts is not None:
        yield "bad-condition", owner, Advice(("spec", to_camel(kind.name), kind.parts.path), view.unresolved.message)


def _picker(world: World, owner: ObjectKey) -> Iterator[Found]:
    """The picker of a pool cannot be asked: all requests to the pool are refused."""
    view = world.graph.views.pools.get(keys.ObjectKey(owner.namespace, owner.name))
    if view is None or view.unresolved is None:
        return
    is_elsewhere = not world.is_complete(ObjectKey("Service", owner.namespace, ""))
    if not (is_elsewhere and view.unresolved.message.endswith("does not exist")):
        yield "bad-condition", owner, Advice(("spec", "endpointPickerRef"), view.unresolved.message, "error")


def withheld(world: World) -> Iterator[Found]:
    """Secrets that are kept from Gateways of other namespaces, at what needs them and at what leads there."""
    for owner, path, text, namespaces in (*_of_policies(world), *_of_backends(world), *_of_routes(world)):
        if world.is_there(owner) and all(map(world.sees_grants, namespaces)):
            yield "not-granted", owner, Advice(path, text)


def leading_back(world: World) -> Iterator[Found]:
    """References of connections and datagrams that come back to where they began."""
    of_gateways = (found for _, found in world.graph.leading_back.found.items())
    for found in dict.fromkeys(each for all_of in of_gateways for each in all_of):
        where = found.where
        path = ("spec", "rules", where.rule, "backendRefs", where.reference)
        yield "leads-back", ObjectKey(where.kind, *where.route), Advice(path, found.text, "error")


Withheld = tuple[ObjectKey, Path, str, Collection[str]]
"""Who lacks a Secret, the field, why, and the namespaces whose grants count."""


def _of_policies(world: World) -> Iterator[Withheld]:
    for key, policy in world.graph.policies.placed.items():
        for closed in policy.closed.values():
            for name, text in closed.items():
                owner = ObjectKey("GatewayPolicy", *key)
                yield owner, _field(name), text.removeprefix(f"{NOT_PERMITTED}: "), [key.namespace]


def _of_backends(world: World) -> Iterator[Withheld]:
    for (_, backend), text in world.graph.policies.consents.closed.items():
        if text and not backend.part:
            yield ObjectKey("GatewayBackend", *backend.object), ("spec",), text, [backend.namespace]


def _of_routes(world: World) -> Iterator[Withheld]:
    for kind, routes in world.graph.routes.by_kind.items():
        for key, route in routes.placed.items():
            namespaces = {backend.namespace for backend in route.translation.named}
            for gateway in route.gateways:
                for text in world.graph.policies.lacking(world.context(), key.namespace, route, gateway):
                    yield ObjectKey(kind, *key), ("spec", "rules"), text, namespaces


def _field(name: str) -> Path:
    """Where a setting of a policy is written that stands under this name on the wire."""
    written = to_wire.backend_name(name) or f"traffic.{to_camel(name)}"
    return ("spec", *written.split("."))


Findings = Iterator[tuple[str, Advice]]


def _backend(world: World, owner: ObjectKey, path: Path, reference: BackendObjectReference) -> Findings:
    found = resolve(world.context(), world.graph.views.backends, _referrer(owner), reference)
    target = reach.named(reference, owner.namespace)
    if not isinstance(found, Condition):
        return
    if target is None:
        yield "bad-condition", Advice(path, found.message, "error")
    elif found.reason == NOT_PERMITTED:
        if world.sees_grants(target.namespace):
            yield "not-granted", Advice(path, f"is not permitted: {found.message}")
    elif world.is_there(target):
        if found.reason == "BackendNotFound" and target.kind == "Service":
            yield "lacks-part", Advice((*path, "port"), found.message)
        else:
            yield "bad-condition", Advice(path, found.message, "error")


def _referrer(owner: ObjectKey) -> Referrer:
    row = ROUTE_KINDS.get(owner.kind)
    return row.referrer(owner.namespace) if row else Referrer(KINDS[owner.kind].group, owner.kind, owner.namespace)


def _users(world: World, owner: ObjectKey, path: Path, basic: BasicAuthentication) -> Findings:
    if basic.secret_ref is not None and basic.users is None:
        yield from _secret(world, owner, (*path, "secretRef"), basic.secret_ref, USERS_ENTRY)


def _secret(world: World, owner: ObjectKey, path: Path, reference: LocalSecretObjectRef, *entries: str) -> Findings:
    found = secrets.named(world.context(), world.graph.views.secrets, owner.namespace, reference, *entries)
    if isinstance(found, Condition) and found.reason == "InvalidSecret":
        yield "lacks-part", Advice(path, found.message)
    elif isinstance(found, Condition) and found.reason == "InvalidKind":
        yield "bad-condition", Advice(path, found.message, "error")


def _shared_secret(world: World, owner: ObjectKey, path: Path, provider: JWTProvider) -> Findings:
    if provider.shared_secret_ref is not None:
        reference = provider.shared_secret_ref
        yield from _secret(world, owner, (*path, "sharedSecretRef"), reference, SHARED_SECRET_ENTRY)


def _keys(world: World, owner: ObjectKey, path: Path, policy: APIKeyAuthentication) -> Findings:
    if policy.secret_ref is not None:
        yield from _secret(world, owner, (*path, "secretRef"), policy.secret_ref)
    if policy.secret_selector is None or not world.is_complete(ObjectKey("Secret", owner.namespace, "")):
        return
    labels = policy.secret_selector.match_labels
    found = secrets.selected(world.context(), world.graph.views.secrets, owner.namespace, labels)
    if isinstance(found, Condition):
        yield "selects-nothing", Advice((*path, "secretSelector"), f"selects nothing: {found.message}")


def _credential(world: World, owner: ObjectKey, path: Path, auth: AuthSecret) -> Findings:
    if auth.secret_ref is not None:
        yield from _secret(world, owner, (*path, "secretRef"), auth.secret_ref, *SECRET_ENTRIES[type(auth)])


_LOOKS: Final[tuple[tuple[type[BaseModel], Callable[[World, ObjectKey, Path, Any], Findings]], ...]] = (
    (BackendObjectReference, _backend),
    (BasicAuthentication, _users),
    (JWTProvider, _shared_secret),
    (APIKeyAuthentication, _keys),
    *((model, _credential) for model in SECRET_ENTRIES),
)
"""What refers to something that may be there and be of no use, and how that is found out."""
