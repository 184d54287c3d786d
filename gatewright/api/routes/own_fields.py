"""What a rule of an HTTPRoute says itself that policies can say, too, and lock by an `Override`.

Called by lint and by the control plane's status of routes, so that both name the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatewright.api.checks.parts import Path
from gatewright.api.routes.http_route import HTTPRouteRule
from gatewright.attach.outcome import Setting
from gatewright.attach.places import Phase


def own_fields(rule: HTTPRouteRule) -> Iterator[tuple[Path, Setting]]:
    """The path of each within the rule, and the setting of policies that it is (decisions, HTTPRoute's own filter or
    field). Header modifiers are none of these: a policy's and the rule's both act."""
    if rule.timeouts is not None:
        yield ("timeouts",), Setting(Phase.POST_ROUTING, "timeouts")
    if rule.retry is not None:
        yield ("retry",), Setting(Phase.POST_ROUTING, "retry")
    for index, each in enumerate(rule.filters):
        if each.cors is not None:
            yield ("filters", index), Setting(Phase.POST_ROUTING, "cors")
