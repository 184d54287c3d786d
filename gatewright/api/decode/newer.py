"""Objects of newer CRDs than Gatewright knows, as an API server gives them: read as far as that is safe.

Called by decoding for sources whose schema has accepted the object already. What is unknown there is no typing
error but a field, or a value of an enumeration, that this version does not know. Where it stands decides:

- inside `matches` it drops its rule: without it the rule would match more than was meant;
- inside `filters` its rule answers 500: without it the rule would open what the filter protects;
- where a listener says who may attach, or how it is encrypted, the object is invalid: it would admit more;
- elsewhere it has no effect, and its name is said in the status of the object.

Only kinds of Gateway API that are served are read so. Our own kinds come with the same release as this code; of grants
and BackendTLSPolicies every field narrows.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import ValidationError

from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import UnreadRule
from gatewright.api.text.problem import path_text

LENIENT: Final = frozenset({"GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute"})
"""Kinds that are read so."""

_UNKNOWN: Final = frozenset({"extra_forbidden", "literal_error"})
"""What pydantic calls an unknown field, and an unknown value of an enumeration."""
_CLOSED: Final = frozenset({"allowedRoutes", "tls", "allowedListeners"})
"""Fields of a Gateway and its listeners in which nothing may be overlooked."""
_MOST_ROUNDS: Final = 16
"""Taking something out can bring up what was hidden behind it."""

ModelT = TypeVar("ModelT", bound=KubeObject)


def read(document: dict[str, Any], model: type[ModelT]) -> ModelT | None:
    """The model of what is known; None where something is wrong that no newer version explains, or must not be
    overlooked."""
    found = _Newer()
    for _ in range(_MOST_ROUNDS):
        try:
            item = model.model_validate(document)
        except ValidationError as failure:
            paths = [tuple(each["loc"]) for each in failure.errors(include_url=False) if each["type"] in _UNKNOWN]
            if not paths or any(_is_closed(path) for path in paths):
                return None
            try:
                document = found.without(document, paths)
            except (KeyError, IndexError, TypeError):
                return None
        else:
            found.mark(item)
            return item
    return None


def _is_closed(path: Path) -> bool:
    return path[:1] == ("spec",) and not _CLOSED.isdisjoint(path)


class _Newer:
    """What was found in one object."""

    def __init__(self) -> None:
        self._named: dict[str, None] = {}
        self._rules: dict[int, UnreadRule] = {}

    def without(self, document: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
        """A copy without what is unknown; rules that it stands in keep their place, empty."""
        for path in paths:
            rule = _rule_of(path)
            if rule is None:
                self._named[f"{path_text(path)} is unknown to this version and has no effect"] = None
                document = _removed(document, path)
            else:
                position, drops = rule
                self._note(position, drops, path)
        rules = document["spec"]["rules"] if self._rules else ()
        emptied = [_emptied(each, self._rules.get(index)) for index, each in enumerate(rules)]
        return {**document, "spec": {**document["spec"], "rules": emptied}} if self._rules else document

    def _note(self, position: int, drops: bool, path: Path) -> None:
        known = self._rules.get(position)
        message = f"{path_text(path)} is unknown to this version"
        if known is None or (drops and not known.drops):
            self._rules[position] = UnreadRule(drops, message)

    def mark(self, item: KubeObject) -> None:
        for position, unread in self._rules.items():
            getattr(item, "spec").rules[position]._unread = unread  # noqa: B009 - only routes have rules
        item._newer = (*self._named,)


def _rule_of(path: Path) -> tuple[int, bool] | None:
    """The rule that something unknown makes useless, and whether it drops it; None elsewhere."""
    match path:
        case ("spec", "rules", int(position), "matches", *_):
            return position, True
        case ("spec", "rules", int(position), *below) if "filters" in below:
            return position, False
    return None


def _emptied(rule: dict[str, Any], unread: UnreadRule | None) -> dict[str, Any]:
    """What is left of a rule: one that answers 500 still has to match."""
    if unread is None:
        return rule
    kept = ("name",) if unread.drops else ("name", "matches")
    return {name: part for name, part in rule.items() if name in kept}


def _removed(value: Any, path: Path) -> Any:
    """A copy without what is at `path`."""
    first, *rest = path
    if not rest:
        if isinstance(value, list):
            return [each for index, each in enumerate(value) if index != first]
        return {name: part for name, part in value.items() if name != first}
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[first] = _removed(value[first], tuple(rest))
    return copy
