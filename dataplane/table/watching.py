"""Which health policies are in force, so that what was shown by one that is gone can be taken back. Pure; asked by
`serving` behind a swap that dropped policies, while an endpoint is shown as unhealthy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from dataplane.table.plans import BackendPlan
from dataplane.table.policies import BACKEND_KINDS

if TYPE_CHECKING:
    from dataplane.table.intern import Interns
    from dataplane.table.store import Store
    from dataplane.upstream.backend_rules import Rules
    from dataplane.upstream.health import Health

FIELD: Final = "health"


def watches(store: Store, interns: Interns, backends: Mapping[str, BackendPlan]) -> Callable[[str, Health], bool]:
    """Whether requests to a backend may be judged by these rules: its own, or some of a rule, route, listener or
    Gateway, of which it is not asked whether they lead to it."""
    above = {*_attached(store), *_inline(interns), *_of_parts(backends)}

    def is_watched(backend: str, rules: Health) -> bool:
        plan = backends.get(backend)
        if plan is None:
            return False
        return rules in above or (plan.rules is not None and plan.rules.health == rules)

    return is_watched


def _attached(store: Store) -> Iterator[Health]:
    for record in store.policies.values():
        if record.field == FIELD:
            for place, built in record.built.items():
                if place.kind not in BACKEND_KINDS and built.made is not None:
                    yield built.made


def _inline(interns: Interns) -> Iterator[Health]:
    for built in interns.inline_policies():
        if built.row.name == FIELD and built.made is not None:
            yield built.made


def _of_parts(backends: Mapping[str, BackendPlan]) -> Iterator[Health]:
    """Of parts: they count for the backends that these name."""
    for plan in backends.values():
        for part in plan.parts:
            for rules in (part.rules, part.rules_above):
                yield from _health(rules)


def _health(rules: Rules | None) -> Iterator[Health]:
    if rules is not None and rules.health is not None:
        yield rules.health
