"""Label selectors as values, and the groups of labelled things that they are made of (`derive.selected`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from controlplane.derive import Members
from gatewright.api.schema.label_selector import LabelSelector


class Rule(NamedTuple):
    """One requirement of a label selector."""

    label: str
    operator: str
    values: tuple[str, ...]


Rules = tuple[Rule, ...]
"""All that must hold, sorted, so that selectors that say the same are equal."""


def rules_of(selector: LabelSelector | None) -> Rules:
    """Those of a selector; None selects everything."""
    if selector is None:
        return ()
    equal = (Rule(label, "In", (value,)) for label, value in selector.match_labels.items())
    others = (Rule(each.key, each.operator, tuple(sorted(each.values))) for each in selector.match_expressions)
    return tuple(sorted({*equal, *others}))


def groups_of(whose: str, labels: Iterable[tuple[str, str]]) -> Iterator[Hashable]:
    """Those of something with labels: each label with and without its value. `whose`: where a thing is selected by
    labels of several."""
    for label, value in labels:
        yield whose, label
        yield whose, label, value


def all_of(rules: Rules, whose: str, members: Members, everything: int) -> int:
    """Of `everything` what has labels that satisfy all rules."""
    return reduce(and_, (_members_of(each, whose, members, everything) for each in rules), everything)


def hold(rules: Rules, labels: Iterable[tuple[str, str]]) -> bool:
    """Whether labels satisfy all rules."""
    groups = {*groups_of("", labels)}
    return all_of(rules, "", lambda group: int(group in groups), 1) == 1


def _members_of(rule: Rule, whose: str, members: Members, everything: int) -> int:
    if rule.operator in ("Exists", "DoesNotExist"):
        found = members((whose, rule.label))
    else:
        found = reduce(or_, (members((whose, rule.label, value)) for value in rule.values), 0)
    return found if rule.operator in ("Exists", "In") else everything & ~found
