"""What several scenarios start once for a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.conformance import Suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """A controller for the replays of Gateway API's conformance tests."""
    made = Suite(tmp_path_factory.mktemp("suite"))
    yield made
    made.close()
