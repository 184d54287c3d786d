"""Prompt guards that nobody means to lose: `ai` is merged as one field, so a more specific one replaces all of it.

Called by lint, for the objects of a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gatewright.api.backend.ai import BackendAI
from gatewright.api.checks.parts import Path
from gatewright.api.lint import reach
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice
from gatewright.attach.places import Level, PlaceKey, level_of


class _Level(NamedTuple):
    """One `ai` that applies to a backend: how specific it is, and where it stands."""

    rank: Level
    owner: ObjectKey
    path: Path
    ai: BackendAI


def dropped_guards(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """Where an `ai` without guard replaces one with a guard; each place is told once."""
    backends = [item for item in objects.values() if isinstance(item, GatewayBackend) and item.spec.ai is not None]
    if not backends:
        return
    policies = list(_policies(objects))
    routes = reach.leading(objects)
    told: set[tuple[ObjectKey, Path]] = set()
    for backend in backends:
        way = {key for route in routes.get(backend.key, ()) for key in (route.key, *reach.parents(route))}
        for levels in _chains(backend, [each for each in policies if each[0] in way or each[0] == backend.key]):
            found = _lost(levels)
            if found is None or (found[0].owner, found[0].path) in told:
                continue
            top, lost = found
            told.add((top.owner, top.path))
            place = "less specific one of this object" if lost.owner == top.owner else f"one of {lost.owner}"
            message = f"replaces the {place} as a whole, with its promptGuard: repeat the guard here"
            yield top.owner, Advice(top.path, message)


_Attached = tuple[ObjectKey, str, _Level]
"""A target of a policy, the section of it or "", and the policy's `ai`."""


def _policies(objects: reach.Objects) -> Iterator[_Attached]:
    for item in objects.values():
        if not isinstance(item, GatewayPolicy) or item.spec.backend is None or item.spec.backend.ai is None:
            continue
        for key, section in reach.targets(item, objects):
            yield (
                key,
                section or "",
                _Level(
                    level_of(PlaceKey(*key, section or "")), item.key, ("spec", "backend", "ai"), item.spec.backend.ai
                ),
            )


def _chains(backend: GatewayBackend, attached: list[_Attached]) -> Iterator[list[_Level]]:
    """Everything that applies to the backend as a whole, and to each provider with settings of its own."""
    shared = [level for key, section, level in attached if key != backend.key or not section]
    inline = backend.spec.policies
    if inline is not None and inline.ai is not None:
        shared.append(_Level(Level.BACKEND_INLINE, backend.key, ("spec", "policies", "ai"), inline.ai))
    yield shared
    assert backend.spec.ai is not None  # the caller has looked
    for index, group in enumerate(backend.spec.ai.groups or ()):
        for number, provider in enumerate(group.providers):
            own = [level for key, section, level in attached if key == backend.key and section == provider.name]
            if provider.policies is not None and provider.policies.ai is not None:
                path = ("spec", "ai", "groups", index, "providers", number, "policies", "ai")
                own.append(_Level(Level.SECTION_INLINE, backend.key, path, provider.policies.ai))
            yield shared + own if own else []


def _lost(levels: list[_Level]) -> tuple[_Level, _Level] | None:
    """The level that wins without a guard, and the one whose guard is lost by that."""
    if not levels:
        return None
    *lower, top = sorted(levels, key=lambda level: level.rank)
    lost = next((level for level in reversed(lower) if level.ai.prompt_guard is not None), None)
    return (top, lost) if lost is not None and top.ai.prompt_guard is None else None
