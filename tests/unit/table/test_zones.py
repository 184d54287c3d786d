"""Endpoints of the proxy's own zone are preferred where hints say so, as kube-proxy has it."""

from __future__ import annotations

import pytest

from dataplane.upstream.backend_rules import Rules
from dataplane.upstream.health import Eviction, Health
from tests.fakes import rule_states
from tests.fakes.table_state import TableRun, endpoint, endpoint_gone, service

A, B, BOTH, NONE = ["a"], ["b"], ["a", "b"], list[str]()
ONE, TWO, THREE = "10.0.0.1", "10.0.0.2", "10.0.0.3"


@pytest.mark.parametrize(
    ("zone", "hints", "near", "far"),
    [
        ("a", (A, B, A), [ONE, THREE], [TWO]),
        ("b", (A, B, A), [TWO], [ONE, THREE]),
        ("a", (BOTH, B, BOTH), [ONE, THREE], [TWO]),
        ("a", (A, A, A), [ONE, TWO, THREE], []),
        ("c", (A, B, A), [ONE, TWO, THREE], []),  # nobody is there
        ("", (A, B, A), [ONE, TWO, THREE], []),  # nobody has said where we are
        ("a", (A, B, NONE), [ONE, TWO, THREE], []),  # hints that are not there for all count for none
        ("a", (NONE, NONE, NONE), [ONE, TWO, THREE], []),
    ],
)
def test_hints(zone: str, hints: tuple[list[str], ...], near: list[str], far: list[str]) -> None:
    run = TableRun(zone=zone)
    run.apply(service(), *(endpoint(each, zones=own) for each, own in zip((ONE, TWO, THREE), hints, strict=True)))
    plan = run.backend()
    assert plan is not None
    assert sorted(each.address for each in plan.endpoints) == near
    assert sorted(each.address for each in plan.far) == far


def test_hints_that_change() -> None:
    run = TableRun(zone="a")
    seen = []
    for step in (
        [service(), endpoint(ONE, zones=A), endpoint(TWO, zones=B)],
        [endpoint(ONE, zones=B)],
        [endpoint(TWO, zones=A)],
        [endpoint_gone(TWO)],
    ):
        run.apply(*step)
        plan = run.backend()
        assert plan is not None
        seen.append((sorted(each.address for each in plan.endpoints), [each.address for each in plan.far]))
    assert seen == [([ONE], [TWO]), ([ONE, TWO], []), ([TWO], [ONE]), ([ONE], [])]


def test_when_all_of_the_own_zone_are_evicted_those_of_others_are_used() -> None:
    run = TableRun(zone="a")
    run.apply(service(), endpoint(ONE, zones=A), endpoint(TWO, zones=B), endpoint(THREE, zones=B))
    plan = run.backend()
    assert plan is not None
    now = 0.0
    guard = rule_states.local(lambda: now).of(plan.key, Rules(Health(None, Eviction(3.0))))

    def usable() -> list[str]:
        return sorted(each.address for each in guard.usable(plan.endpoints, plan.far))

    assert usable() == [ONE]
    guard.failed(plan.endpoints[0])
    assert usable() == [TWO, THREE]
    for each in plan.far:
        guard.failed(each)
    assert usable() == [ONE]
    now = 3.0
    assert usable() == [ONE]
