"""Verdicts on what the three kinds report (1-resources, status). A status is written through a subresource."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.common import (
    K,
    P,
    R,
    kind,
    port,
    section_name,
)
from tests.rules.verdicts.table import Rows, shape
from tests.rules.verdicts.words import (
    enum,
    first_of,
    integer,
    invalid,
    items,
    nested,
    required,
    text,
    valid,
)

_LIMIT = P + "| Status conditions | at most 8 per backend; 1 to 8 per policy ancestor |"
_CONDITION = K + "Condition"
_PARENT = K + "ParentReference"
_STATUS = (
    R
    + "Status (PolicyStatus): `conditions` (array of Condition); `ancestors` (array of PolicyAncestorStatus, required)"
)
LEAST: Final[dict[str, Any]] = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def condition(n: int) -> dict[str, Any]:
    """Conditions of different types."""
    return {**LEAST, "type": f"T{n}"}


CONDITION = shape(
    LEAST,
    required("type", _CONDITION),
    valid("type", "example.com/Ready", _CONDITION),
    valid("type", "x" * 316, _CONDITION),
    *(invalid("type", bad, _CONDITION) for bad in ("x" * 317, "a b", "", 1)),
    required("status", _CONDITION),
    enum("status", ("True", "False", "Unknown"), _CONDITION),
    required("reason", _CONDITION),
    text("reason", 1, 1024, _CONDITION),
    invalid("reason", "Not Valid", _CONDITION),
    required("message", _CONDITION),
    text("message", None, 32768, _CONDITION),
    required("lastTransitionTime", _CONDITION),
    valid("lastTransitionTime", "2026-01-01T00:00:00Z", _CONDITION),
    invalid("lastTransitionTime", 1, _CONDITION),
    integer("observedGeneration", 0, None, _CONDITION),
)
PARENT = shape(
    {"name": "edge"},
    invalid("group", "Not_A_Group", _PARENT),
    valid("group", "a" * 253, _PARENT),
    invalid("group", "a" * 254, _PARENT),
    kind("kind", _PARENT),
    valid("kind", "K", _PARENT),
    valid("kind", "K" * 63, _PARENT),
    text("namespace", 1, 63, _PARENT),
    invalid("namespace", "a.b", _PARENT),
    required("name", _PARENT),
    text("name", 1, 253, _PARENT),
    section_name("sectionName", _PARENT),
    port("port", _PARENT),
)
_ANCESTOR: Final[dict[str, Any]] = {
    "ancestorRef": {"name": "edge"},
    "controllerName": "gatewright.dev/controller",
    "conditions": [LEAST],
}
ANCESTOR = shape(
    _ANCESTOR,
    required("ancestorRef", _STATUS),
    nested("ancestorRef", PARENT, _STATUS),
    required("controllerName", _STATUS),
    *(valid("controllerName", good, _STATUS) for good in ("a/b", "a.b/c/d", "a/".ljust(253, "b"))),
    *(invalid("controllerName", bad, _STATUS) for bad in ("", "a", "A/b", "/b", "a/", 1, "a/".ljust(254, "b"))),
    required("conditions", _STATUS),
    items("conditions", 1, 8, _LIMIT, condition),
    first_of("conditions", CONDITION, _STATUS, ancestorRef={"name": "edge"}, controllerName="a/b"),
)


def _conditions() -> Rows:
    yield from items("conditions", 0, 8, _LIMIT, condition)


POLICY_STATUS = shape(
    {"ancestors": []},
    _conditions(),
    first_of("conditions", CONDITION, _STATUS, ancestors=[]),
    required("ancestors", _STATUS),
    items("ancestors", 0, 16, K + "PolicyStatus of Gateway API", _ANCESTOR),
    first_of("ancestors", ANCESTOR, _STATUS),
)
CONDITIONS_STATUS = shape(
    {},
    _conditions(),
    first_of("conditions", CONDITION, R + "`status.conditions`: array of Condition, at most 8."),
)
