"""The CRDs ask for nothing that Kubernetes 1.31 has not: functions of CEL, parts of rules, keywords of schemas.

SINCE gives the release whose API server first let CRDs use each of them (libraries of k8s.io/apiserver's base
environment, `IntroducedVersion`; the API reference of CustomResourceDefinition for the rest). A server of 1.36 stands
in tests/cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from gatewright.api.generate import crds
from gatewright.api.schema.names import OUR_KINDS
from gatewright.cel.parser import parse

OLDEST: Final = (1, 31)
SINCE: Final[dict[str, tuple[int, int]]] = {
    # the language, and macros of its first version
    **dict.fromkeys(
        ("has", "all", "exists", "filter", "map", "size", "matches", "startsWith", "endsWith", "type", "duration"),
        (1, 25),
    ),
    # strings (extension, version 0), lists
    **dict.fromkeys(("lowerAscii", "replace"), (1, 25)),
    # quantities
    **dict.fromkeys(("quantity", "compareTo"), (1, 29)),
}
PARTS_OF_RULES: Final = {"rule": (1, 25), "message": (1, 25), "messageExpression": (1, 27), "reason": (1, 28)}
KEYWORDS: Final = {
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}
"""All of apiextensions.k8s.io/v1 since 1.25 at the latest."""

TEXT: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")


def functions(rule: str) -> set[str]:
    """What a rule calls, by name; also optional selection, which is syntax."""
    parse(rule)  # else the pattern below would read something that is no expression
    bare = TEXT.sub("''", rule)
    found = set(re.findall(r"(\w+)\s*\(", bare))
    return found | ({"optional"} if re.search(r"\.\?|\[\?", bare) else set())


def keywords(node: Any) -> Iterator[tuple[str, Any]]:
    """Every extension of OpenAPI below a schema, with its value."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name.startswith("x-"):
                yield name, value
            yield from keywords(value)
    elif isinstance(node, list):
        for value in node:
            yield from keywords(value)


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_crds_need_nothing_newer(kind: str) -> None:
    found = list(keywords(crds.crd(kind)))
    assert {name for name, _ in found} <= KEYWORDS
    rules = [rule for name, value in found if name == "x-kubernetes-validations" for rule in value]
    assert rules
    for rule in rules:
        assert all(PARTS_OF_RULES[part] <= OLDEST for part in rule), rule
        for function in functions(rule["rule"]):
            assert SINCE.get(function, (9, 9)) <= OLDEST, f"{function} in {rule['rule']}"


def test_every_row_of_the_table_is_used() -> None:
    used = {
        function
        for kind in OUR_KINDS
        for name, value in keywords(crds.crd(kind))
        if name == "x-kubernetes-validations"
        for rule in value
        for function in functions(rule["rule"])
    }
    assert used == SINCE.keys()
