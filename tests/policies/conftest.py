"""Tests of policies run over each carrier (tests/carriers)."""

from __future__ import annotations

import pytest

from tests.carriers import CARRIERS, Carrier

ROWS = [
    # What each version has of its own shows in two pairs; the others, and the toy, need not be seen each time.
    pytest.param(row, id=name, marks=[pytest.mark.slow] if name not in ("http1", "http2") else [])
    for name, row in CARRIERS.items()
]


@pytest.fixture(scope="session", params=ROWS)
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """What carries the exchanges of this test."""
    found = request.param
    assert isinstance(found, Carrier)
    return found
