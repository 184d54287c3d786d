"""Retry from the standalone file to the plan."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import retry
from dataplane.table.plans import Retry
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import exchange


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{attempts: 3, codes: [503, 502], backoff: 100ms}", Retry(frozenset((502, 503)), 3, 0.1)),
        ("{codes: [500]}", Retry(frozenset((500,)), 1, 0.025)),  # decisions, Retry: the defaults
        ("{attempts: 0}", Retry(frozenset(), 0, 0.025)),
    ],
)
def test_retry(fields: str, expected: Retry) -> None:
    assert PolicyRun(f"policies: {{retry: {fields}}}").route(exchange()).policies.retry == expected


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.retry is None


def test_a_code_that_is_no_error_is_refused() -> None:
    with pytest.raises(Refused, match="code 200 is not between 400 and 599"):
        retry.build(traffic_pb2.Retry(codes=[200]), Env(clock=lambda: 0.0, random=lambda: 0.0))
