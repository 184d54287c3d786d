"""Guards that are lost by accident: the policy for backends of one kind is merged as one field, so a more specific one
replaces all of it but for the rules of its `authorization`, which add up.

Called by lint, for the objects of a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.checks.parts import Path, parts
from gatewright.api.lint import reach
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.model import Model, model_in
from gatewright.api.text.problem import Advice
from gatewright.attach.places import Level, PlaceKey, level_of


class _Level(NamedTuple):
    """A policy for one kind of backends that applies to one: how specific it is, and where it stands."""

    rank: Level
    owner: ObjectKey
    path: Path
    setting: Model


def dropped_guards(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """Where a setting without a guard replaces one with it; each place is named once for each guard."""
    for kind in KINDS.values():
        backends = [each for each in objects.values() if isinstance(each, GatewayBackend) and _is(each, kind)]
        for guard in kind.security if backends else ():
            yield from _dropped(objects, backends, kind, guard)


def _is(backend: GatewayBackend, kind: BackendKind) -> bool:
    return getattr(backend.spec, kind.name) is not None


def _dropped(
    objects: reach.Objects, backends: list[GatewayBackend], kind: BackendKind, guard: str
) -> Iterator[tuple[ObjectKey, Advice]]:
    policies = list(_policies(objects, kind.policy))
    routes = reach.leading(objects)
    reported: set[tuple[ObjectKey, Path]] = set()
    for backend in backends:
        way = {key for route in routes.get(backend.key, ()) for key in (route.key, *reach.parents(route))}
        for levels in _chains(backend, kind, [each for each in policies if each[0] in way or each[0] == backend.key]):
            found = _lost(levels, guard)
            if found is None or (found[0].owner, found[0].path) in reported:
                continue
            top, lost = found
            reported.add((top.owner, top.path))
            place = "less specific one of this object" if lost.owner == top.owner else f"one of {lost.owner}"
            message = f"replaces the {place} as a whole, with its {to_camel(guard)}: repeat it here"
            yield top.owner, Advice(top.path, message)


_Attached = tuple[ObjectKey, str, _Level]
"""A target of a policy, the section of it or "", and the policy's setting."""


def _policies(objects: reach.Objects, kind: str) -> Iterator[_Attached]:
    for item in objects.values():
        setting = getattr(item.spec.backend, kind, None) if isinstance(item, GatewayPolicy) else None
        if setting is None or not isinstance(item, GatewayPolicy):
            continue
        for key, section in reach.targets(item, objects):
            yield (
                key,
                section or "",
                _Level(level_of(PlaceKey(*key, section or "")), item.key, ("spec", "backend", kind), setting),
            )


def _chains(backend: GatewayBackend, kind: BackendKind, attached: list[_Attached]) -> Iterator[list[_Level]]:
    """Everything that applies to the backend as a whole, and to each part with settings of its own."""
    shared = [level for key, section, level in attached if key != backend.key or not section]
    inline = getattr(backend.spec.policies, kind.policy, None)
    if inline is not None:
        shared.append(_Level(Level.BACKEND_INLINE, backend.key, ("spec", "policies", kind.policy), inline))
    yield shared
    for path, part in _parts(backend, kind):
        own = [level for key, section, level in attached if key == backend.key and section == part.name]
        setting = getattr(part.policies, kind.policy, None)
        if setting is not None:
            own.append(_Level(Level.SECTION_INLINE, backend.key, (*path, "policies", kind.policy), setting))
        yield shared + own if own else []


def _parts(backend: GatewayBackend, kind: BackendKind) -> Iterator[tuple[Path, Any]]:
    """Those that may have a policy of the kind, which is not so of every kind: parts may have none.
    Any: named, with `policies`."""
    for path, part in parts(getattr(backend.spec, kind.name), ("spec", kind.name)):
        field = type(part).model_fields.get("policies")
        subset = model_in(field.annotation) if field is not None else None
        if subset is not None and kind.policy in subset.model_fields:
            yield path, part


def _lost(levels: list[_Level], guard: str) -> tuple[_Level, _Level] | None:
    """The level that wins without a guard, and the one whose guard is lost by that."""
    if not levels:
        return None
    *lower, top = sorted(levels, key=lambda level: level.rank)
    lost = next((level for level in reversed(lower) if getattr(level.setting, guard) is not None), None)
    return (top, lost) if lost is not None and getattr(top.setting, guard) is None else None
