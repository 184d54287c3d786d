"""Tests of policies run over each carrier (tests/carriers)."""

from __future__ import annotations

import pytest

from tests.carriers import CARRIERS
from tests.harness.lane_files import values_of_lane

ROWS = [
    # What each version has of its own shows in two pairs; the others, and the toy, need not be seen each time.
    pytest.param(row, id=name, marks=[pytest.mark.slow] if name not in ("http1", "http2") else [])
    for name, row in CARRIERS.items()
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`carrier`: what carries the exchanges of this test."""
    if "carrier" in metafunc.fixturenames:
        metafunc.parametrize("carrier", values_of_lane(metafunc, ROWS), scope="module")
