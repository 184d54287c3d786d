"""Routes that no listener takes, and policies that name or select in vain: read from the collections of attachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.lint.world import World
from controlplane.translate.gateway.attachment import Parent
from controlplane.translate.keys import ObjectKey as Key
from controlplane.translate.policy import policy_targets
from controlplane.translate.policy.policy_targets import Missing, Target
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from gatewright.api.lint.lint import Found
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import UNSUPPORTED, Advice


def unattached(world: World) -> Iterator[Found]:
    """What `Accepted` and `Programmed` say of a route's parents."""
    for key, item in world.objects.items():
        if key.kind not in ROUTE_KINDS:
            continue
        route: Any = item  # the model of its kind
        if not route.spec.parent_refs and world.folder.whole:
            message = "names no parent (parentRefs), so no Gateway takes it"
            yield "not-attached", key, Advice(("spec",), message)
        attachments = world.graph.routes.by_kind[key.kind].attachments
        for parent in attachments.get(_plain(key)) or ():
            why = _why(world, key, parent)
            if why:
                yield "not-attached", key, Advice(("spec", "parentRefs", parent.position), why, "error")


def _plain(key: ObjectKey) -> Key:
    return Key(key.namespace, key.name)


def _why(world: World, key: ObjectKey, parent: Parent) -> str:
    """Why a parent does not take the route; "" where it does, or where that is not known."""
    owner = parent.named.owner
    holder = world.objects.get(ObjectKey(owner.kind, owner.namespace, owner.name))
    if not isinstance(holder, Gateway | ListenerSet):
        return ""  # it comes from elsewhere
    if parent.refused is None:
        return f"no listener serves it: {parent.unserved}" if parent.unserved else ""
    is_known = world.is_there(ObjectKey("Namespace", "", key.namespace))
    if parent.refused.reason == "NotAllowedByListeners" and _selects_namespaces(holder) and not is_known:
        return ""  # the labels of its namespace are in none of the files
    return parent.refused.message


def _selects_namespaces(holder: Gateway | ListenerSet) -> bool:
    return any(each.allowed_routes.namespaces.from_ == "Selector" for each in holder.spec.listeners)


def targets(world: World) -> Iterator[Found]:
    """What `Attached` says of a policy's targets that are there, and of its selectors."""
    for key, item in world.objects.items():
        if not isinstance(item, GatewayPolicy):
            continue
        for index, reference in enumerate(item.spec.target_refs or ()):
            target = Target(reference.group, reference.kind, reference.name, reference.section_name)
            yield from _target(world, key, ("spec", "targetRefs", index), target)
        for index, selector in enumerate(item.spec.target_selectors or ()):
            yield from _selector(world, key, ("spec", "targetSelectors", index), selector)


def _target(world: World, policy: ObjectKey, path: tuple[str | int, ...], target: Target) -> Iterator[Found]:
    found = policy_targets.look_up(world.context(), world.graph.policies.targets, policy.namespace, target)
    owner = ObjectKey(target.kind, policy.namespace, target.name)
    if not isinstance(found, Missing) or (owner.kind == "GatewayBackend" and owner in world.folder.erroneous):
        return  # parts of a backend of a kind that is not served yet are not known; that is said of the backend
    if found.is_section:
        yield "unknown-section", policy, Advice((*path, "sectionName"), found.message)
    elif found.message.startswith(UNSUPPORTED):
        yield "unsupported", policy, Advice(path, found.message)


def _selector(world: World, policy: ObjectKey, path: tuple[str | int, ...], selector: Any) -> Iterator[Found]:
    if (selector.group, selector.kind) not in policy_targets.KINDS:
        yield "unsupported", policy, Advice(path, f"{UNSUPPORTED}{selector.kind} as a target")
        return
    names = policy_targets.selected(world.context(), world.graph.policies.targets, policy.namespace, selector)
    if not names and world.is_complete(ObjectKey(selector.kind, policy.namespace, "")):
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(selector.match_labels.items()))
        which = f" has the labels {wanted}" if wanted else ""
        message = f"selects nothing: no {selector.kind} of namespace {policy.namespace} in these files{which}"
        yield "selects-nothing", policy, Advice(path, message)
    for name in names if selector.section_name is not None else ():
        yield from _target(world, policy, path, Target(selector.group, selector.kind, name, selector.section_name))
