"""Timeouts from the standalone file to the plan; `proxy/attempts` carries them out (tests/unit/proxy)."""

from __future__ import annotations

import pytest

from dataplane.table.plans import Timeouts
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import exchange


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{request: 10s}", Timeouts(10.0, None)),
        ("{request: 1m, backendRequest: 250ms}", Timeouts(60.0, 0.25)),
        ("{backendRequest: 1s500ms}", Timeouts(None, 1.5)),
        ("{request: 0s}", Timeouts()),  # Gateway API: zero disables
    ],
)
def test_timeouts(fields: str, expected: Timeouts) -> None:
    plan = PolicyRun(f"policies: {{timeouts: {fields}}}").route(exchange())
    assert plan.policies.timeouts == expected
    assert plan.policies.chain.request is None


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.timeouts == Timeouts(None, None)
