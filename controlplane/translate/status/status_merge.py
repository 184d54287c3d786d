"""What we say of an object, put into the status that it has: pure.

Several controllers write one status. Gatewright owns the condition types of `OWN_TYPES`, and in lists of entries those
that carry our controller name; everything else is somebody else's and stays as it is, in its place (Gateway API: status
of routes and policies is shared). Where nothing was written before, the result is what we say.

The laws, which `tests/unit/translate/test_status_merge.py` draws examples of:

- merging again changes nothing: `merged(own, None, merged(own, None, previous, now), later)` is the same;
- what is foreign is in the result as it was, in the order that it had, and nothing foreign is added;
- `lastTransitionTime` is that of the status before where the status of a condition is the same, else now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from controlplane.translate.conditions import ENTRY_IDENTITIES, KEEP, Keeps, StatusBody
from controlplane.translate.status import claims
from gatewright.api.schema.names import CONTROLLER_NAME

OWN_TYPES: Final = frozenset(
    {
        "Accepted",
        "Attached",
        "CertificateExpiring",
        "Conflicted",
        "InsecureFrontendValidationMode",
        "Overridden",
        "PartiallyInvalid",
        "Programmed",
        "ResolvedRefs",
        "SupportedVersion",
        claims.TYPE,
    }
)
"""Condition types that this controller writes, wherever."""

MOST_ENTRIES: Final = {"parents": 32, "ancestors": 16}
"""As Gateway API's CRDs say. Others' entries are not driven out."""
_OWN_LISTS: Final = {
    **dict.fromkeys(MOST_ENTRIES, ("controllerName", CONTROLLER_NAME)),
    "conditions": ("type", claims.TYPE),
}
"""By list: a field of its entries, and the value that only own entries have."""
MOST_CONDITIONS: Final = 8
"""The same. Here own entries come first: a status that cannot be written says nothing at all."""

Json = Mapping[str, Any]  # Any: JSON


def merged(own: StatusBody | None, known: Json | None, previous: Json | None, now: str) -> StatusBody | None:
    """The whole status of an object: `own` is what we say now, `known` what we said last in this process, `previous`
    what the object has. None when there is nothing to say: then the status is not touched."""
    if own is None:
        return _withdrawn(previous)
    return _merged(own, (previous or {}, known or {}), now)


def _merged(own: StatusBody, before: Sequence[Json], now: str) -> StatusBody:
    """`before`: statuses to find times in, the first of which is what was written and may have foreign parts."""
    foreign = before[0]
    result = {**{name: value for name, value in foreign.items() if name not in own}, **own}
    if "conditions" in own:
        result["conditions"] = _conditions(own["conditions"], [_entries(each, "conditions") for each in before], now)
    for field, identity in ENTRY_IDENTITIES.items():
        if field in own:
            result[field] = _list(field, identity, own[field], [_entries(each, field) for each in before], now)
    return result


def _conditions(own: Sequence[Json], before: Sequence[Sequence[Json]], now: str) -> list[Json]:
    stamped = [_stamped(each, before, now) for each in own]
    woven = [*_woven(stamped, before[0], lambda each: each.get("type") not in OWN_TYPES)]
    over = len(woven) - MOST_CONDITIONS
    own_types = {each["type"] for each in stamped}
    for each in [each for each in reversed(woven) if each.get("type") not in own_types][: max(0, over)]:
        woven.remove(each)
    return woven


def _stamped(condition: Json, before: Sequence[Sequence[Json]], now: str) -> Json:
    """With the time of its last change; one that is to be kept is as it was, where it was."""
    found = [each for conditions in before for each in conditions if each.get("type") == condition["type"]]
    if found and _stays(condition, found[0]):
        return dict(found[0])
    written = {name: value for name, value in condition.items() if name != KEEP}
    times = (each.get("lastTransitionTime") for each in found if each.get("status") == condition["status"])
    return written | {"lastTransitionTime": next(filter(None, times), now)}


def _stays(condition: Json, former: Json) -> bool:
    """Whether what was said is better than what is known now."""
    keeps = condition.get(KEEP, Keeps.NONE)
    if keeps is Keeps.TRUE:
        generation = condition.get("observedGeneration")
        return former.get("status") == "True" and former.get("observedGeneration") == generation
    return keeps is Keeps.ANY


def _list(field: str, identity: str, own: Sequence[Json], before: Sequence[Sequence[Json]], now: str) -> list[Json]:
    """Entries with conditions of their own. Those of `listeners` are all own ones."""
    is_shared = field in MOST_ENTRIES

    def is_foreign(entry: Json) -> bool:
        return is_shared and entry.get("controllerName") != CONTROLLER_NAME

    def same(entry: Json) -> list[Json]:
        """The same entry in each status before."""
        return [
            next((each for each in entries if each.get(identity) == entry[identity] and not is_foreign(each)), {})
            for entries in before
        ]

    most = MOST_ENTRIES.get(field, len(own)) - (sum(map(is_foreign, before[0])) if is_shared else 0)
    merged = [_merged(dict(entry), same(entry), now) for entry in own[: max(0, most)]]
    return [*_woven(merged, before[0] if is_shared else (), is_foreign)]


def _woven(own: Sequence[Json], before: Sequence[Json], is_foreign: Callable[[Json], bool]) -> Iterator[Json]:
    """Own ones in their order, in the places that own ones had; what is foreign where it was."""
    left = iter(own)
    for entry in before:
        if is_foreign(entry):
            yield entry
        elif (each := next(left, None)) is not None:
            yield each
    yield from left


def _withdrawn(previous: Json | None) -> StatusBody | None:
    """Of an object that concerns us no longer: its status without what is its own, if there is any."""
    status, changed = previous or {}, {}
    for field, (name, value) in _OWN_LISTS.items():
        entries = _entries(status, field)
        left = [each for each in entries if each.get(name) != value]
        if len(left) < len(entries):
            changed[field] = left
    return {**status, **changed} if changed else None


def _entries(status: Json, field: str) -> list[Json]:
    """The entries of a list as far as they are some: what others wrote is not trusted."""
    value = status.get(field)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
