"""Of a route whose mistakes are in rules alone: the route, its other rules as they are written.

Called by decoding. Gateway API wants validity judged for each rule (RouteConditionPartiallyInvalid): one that cannot be
honoured is dropped and named, the others act. A filter must not be skipped, though (HTTPRouteFilter: requests that
would have been processed by it get an error response). So a rule whose mistake is in its filters, or in a field that
is unknown and may have been meant as filters, still matches and answers 500.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from gatewright.api.checks.errors import Finding, findings
from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import UnreadRule
from gatewright.api.text.problem import mark_join, path_text
from gatewright.attach.policies import POLICIES

KINDS: Final = frozenset({"HTTPRoute", "GRPCRoute"})
"""Kinds of routes that may have several rules."""

_HARMLESS: Final = frozenset({"name", "backendRefs"}) | {
    to_camel(row.attribute) for row in POLICIES if row.drops_its_rule
}
"""Fields of a rule that protect nothing: without them, and without the rule, no client gets what filters would keep."""
_MOST_ROUNDS: Final = 4
"""What a rule hides can come up when it is gone, as that a name is there twice."""
_MOST_SHOWN: Final = 4
"""Mistakes of one rule that its status names."""

Document = dict[str, Any]  # Any: JSON


class Partly(NamedTuple):
    """What is left of a route."""

    route: KubeObject
    works: bool
    """Whether a rule of it does what it says."""


def partly(document: Document, model: type[KubeObject], found: Iterable[Finding]) -> Partly | None:
    """None for mistakes outside of rules. `found`: the mistakes."""
    unread: dict[int, list[Finding]] = {}
    for _ in range(_MOST_ROUNDS):
        if not _noted(unread, found):
            return None
        spec = document["spec"]
        rules = [_emptied(rule, unread.get(index)) for index, rule in enumerate(spec["rules"])]
        try:
            route = model.model_validate({**document, "spec": {**spec, "rules": rules}})
        except ValidationError as failure:
            found = findings(failure, model, document)
        else:
            for index, each in unread.items():
                getattr(route, "spec").rules[index]._unread = UnreadRule(_drops(each), _summary(each))  # noqa: B009
            return Partly(route, len(unread) < len(rules))
    return None


def _noted(unread: dict[int, list[Finding]], found: Iterable[Finding]) -> bool:
    """Add mistakes to those of their rules; False when one is elsewhere, or they are known already."""
    news = False
    for each in found:
        match each.path:
            case ("spec", "rules", int(index), *_):
                mistakes = unread.setdefault(index, [])
                news |= each not in mistakes
                mistakes.append(each)
            case _:
                return False
    return news


def _below(mistake: Finding) -> Path:
    return tuple(mistake.path[3:])


def _drops(mistakes: Iterable[Finding]) -> bool:
    """Whether the rule matches nothing any more: it is not known what it would match, or it protects nothing."""
    paths = [_below(each) for each in mistakes]
    if any(path[:1] in ((), ("matches",)) for path in paths):
        return True
    return all(path[0] in _HARMLESS and "filters" not in path for path in paths)


def _emptied(rule: Any, mistakes: list[Finding] | None) -> Any:  # Any: JSON
    if mistakes is None:
        return rule
    kept = () if _drops(mistakes) else ("name", "matches")
    return {name: part for name, part in rule.items() if name in kept} if kept else {}


def _summary(mistakes: list[Finding]) -> str:
    texts = dict.fromkeys(mark_join(path_text(each.path), each.message) for each in mistakes)
    more = len(texts) - _MOST_SHOWN
    return "; ".join([*texts][:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
