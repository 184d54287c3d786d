"""All rows of the verdict table: the shapes of the three kinds at their places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.rules.verdicts import backend, parameters, policy, spellings, status
from tests.rules.verdicts.table import OBJECTS, Row, Shape, place


def _all() -> Iterator[Row]:
    seen: set[Shape] = set()
    yield from place("GatewayPolicy", "spec", policy.SPEC, seen)
    yield from place("GatewayBackend", "spec", backend.SPEC, seen)
    yield from place("GatewayParameters", "spec", parameters.SPEC, seen)
    yield from spellings.rows()
    yield from place("GatewayPolicy", "status", status.POLICY_STATUS, seen)
    for kind in ("GatewayBackend", "GatewayParameters"):
        yield from place(kind, "status", status.CONDITIONS_STATUS, seen)
    for kind in OBJECTS:
        yield Row(kind, "unknownField", 1, "invalid", _ENVELOPE, known=False)
    for kind, (spec, of) in STATUSES.items():
        yield Row(kind, "status", of.least, "valid", spec)
        yield Row(kind, "status", [], "invalid", spec)


_ENVELOPE = "1-resources.md: All three resource kinds have the standard envelope"
STATUSES: Final = {
    "GatewayPolicy": (_ENVELOPE, status.POLICY_STATUS),
    "GatewayBackend": (_ENVELOPE, status.CONDITIONS_STATUS),
    "GatewayParameters": (_ENVELOPE, status.CONDITIONS_STATUS),
}

ROWS: Final = tuple({(row.kind, row.path, repr(row.value), repr(row.within), row.spec): row for row in _all()}.values())
"""The verdict table; a row that two areas write alike is one."""
