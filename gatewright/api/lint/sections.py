"""What policies name or select in vain: sections of objects (listeners, rules, ports, providers, targets), and labels.

Called by the checks of lint that look between objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gatewright.api.checks.parts import Path, parts
from gatewright.api.lint import reach
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.service import Service
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.near_names import did_you_mean
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.api_key_authentication import SecretSelector


def _listeners(item: Any) -> Iterator[str]:  # Any: of each kind, the caller has looked
    yield from (listener.name for listener in item.spec.listeners)


def _rules(item: Any) -> Iterator[str]:
    yield from (rule.name for rule in item.spec.rules if rule.name is not None)


def _ports(item: Service) -> Iterator[str]:
    for port in item.spec.ports:
        yield str(port.port)
        if port.name:
            yield port.name


def _parts(item: GatewayBackend) -> Iterator[str]:
    ai, mcp = item.spec.ai, item.spec.mcp
    for group in (ai.groups or ()) if ai is not None else ():
        yield from (provider.name for provider in group.providers)
    if mcp is not None:
        yield from (target.name for target in mcp.targets)


_ROUTES: Final = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")
_SECTIONS: Final[dict[str, tuple[str, Callable[[Any], Iterator[str]]]]] = {
    "Gateway": ("listener", _listeners),
    "ListenerSet": ("listener", _listeners),
    **dict.fromkeys(_ROUTES, ("rule", _rules)),
    "Service": ("port", _ports),
    "GatewayBackend": ("provider or target", _parts),
}
"""Kind to what its sections are and how to find their names."""


def sections(item: KubeObject) -> list[str]:
    """Names of the sections of an object, in its order. A port of a Service has its number and may have a name."""
    _, find = _SECTIONS[item.kind]
    return list(find(item))


def port_number(item: KubeObject, section: str) -> str:
    """A section by the one name that all its names come to: the number of a Service's port."""
    if isinstance(item, Service):
        return next((str(port.port) for port in item.spec.ports if section == port.name), section)
    return section


def unknown_sections(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """Policies that name a section which their target does not have. Targets that are absent are `links.dangling`'s."""
    for policy in objects.values():
        if not isinstance(policy, GatewayPolicy):
            continue
        for index, reference in enumerate(policy.spec.target_refs or ()):
            key = ObjectKey(reference.kind, policy.key.namespace, reference.name)
            yield from _missing(policy, ("targetRefs", index), reference.section_name, [key], objects)
        for index, selector in enumerate(policy.spec.target_selectors or ()):
            keys = list(reach.selected(selector, policy.key.namespace, objects))
            yield from _missing(policy, ("targetSelectors", index), selector.section_name, keys, objects)


def _missing(
    policy: GatewayPolicy, path: tuple[str, int], name: str | None, keys: list[ObjectKey], objects: reach.Objects
) -> Iterator[tuple[ObjectKey, Advice]]:
    for key in keys if name is not None else ():
        item = objects.get(key)
        if item is None or name in sections(item):
            continue
        what, _ = _SECTIONS[key.kind]
        known = did_you_mean(str(name), sections(item), label="it has") or f"; its {what}s have no names"
        yield policy.key, Advice(("spec", *path, "sectionName"), f'{key} has no {what} "{name}"{known}')


def empty_selections(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """Selectors of policies, for targets and for Secrets, that select nothing among these objects."""
    for policy in objects.values():
        if not isinstance(policy, GatewayPolicy):
            continue
        for index, selector in enumerate(policy.spec.target_selectors or ()):
            path = ("spec", "targetSelectors", index)
            yield from _empty(policy.key, path, selector.kind, selector.match_labels, objects)
        for place, part in parts(policy):
            if isinstance(part, SecretSelector):
                yield from _no_secret(policy.key, place, part.match_labels, objects)


def _no_secret(
    policy: ObjectKey, path: Path, labels: Mapping[str, str], objects: reach.Objects
) -> Iterator[tuple[ObjectKey, Advice]]:
    if labels:
        yield from _empty(policy, path, "Secret", labels, objects)
    else:  # docs/conditions.md, Policies
        yield policy, Advice(path, "selects nothing: name a label, or any Secret of the namespace would let clients in")


def _empty(
    policy: ObjectKey, path: Path, kind: str, labels: Mapping[str, str], objects: reach.Objects
) -> Iterator[tuple[ObjectKey, Advice]]:
    if next(reach.labelled(kind, policy.namespace, labels, objects), None) is None:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
        which = f" has the labels {wanted}" if wanted else ""
        message = f"selects nothing: no {kind} of namespace {policy.namespace} in these files{which}"
        yield policy, Advice(path, message)
