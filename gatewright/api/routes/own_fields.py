"""What a rule of an HTTPRoute says itself that policies can say, too, and lock by an `Override`.

Called by lint and by the control plane's status of routes, so that both name the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gatewright.api.checks.parts import Path
from gatewright.api.routes.http_route import HTTPRouteRule
from gatewright.api.schema.camel import to_camel
from gatewright.attach.outcome import Setting
from gatewright.attach.places import Phase
from gatewright.attach.policies import POLICIES

_LOCKED: Final = [row for row in POLICIES if row.may_be_locked]
_FIELDS: Final = [
    (row.rule_attribute, Setting(Phase.POST_ROUTING, row.name)) for row in _LOCKED if row.inline == "field"
]
_FILTERS: Final = [
    (row.rule_attribute, Setting(Phase.POST_ROUTING, row.name)) for row in _LOCKED if row.inline == "filter"
]


def own_fields(rule: HTTPRouteRule) -> Iterator[tuple[Path, Setting]]:
    """The path of each within the rule, and the setting of policies that it is (`may_be_locked`
    of the table of policies)."""
    for name, setting in _FIELDS:
        if getattr(rule, name) is not None:
            yield (to_camel(name),), setting
    for index, each in enumerate(rule.filters):
        for name, setting in _FILTERS:
            if getattr(each, name) is not None:
                yield ("filters", index), setting
