"""A resource that takes long is made in slices, and comes to what it would at once.

Slices are measured in CPU time of the process, since such work has a thread of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest

from dataplane.table import applier
from dataplane.table.applier import Applier
from dataplane.table.store import Change
from gatewright.wire.v1 import policy_pb2, traffic_pb2
from tests.fakes.table_state import SERVICE, TableRun, bind, endpoint, listener, match, route, route_key, service

LONGEST = 0.045
"""CPU seconds of a slice at most; what is demanded of others' requests is 0.050."""

SIZE = 16_300

EXPRESSIONS = {
    "conditions": ('request.path=="/%d"', "||", ""),
    "sums": ("(true?1:%d)", "+", "==1"),
    "unknown types": ('dyn("%d").a==1', "||", ""),
    "loops": ("[%d].map(x,[x].map(y,y))", "+", "==[]"),
    "JSON": ("json(request.body).a==%d", "||", ""),
    "lists": ("[[],[%d]]==[]", "||", ""),
}
"""A unit, what is between two of them, and the end."""


@pytest.fixture
def run() -> TableRun:
    table = TableRun()
    table.applier.clock = time.monotonic
    table.apply(endpoint(), service(), bind(), listener(), guarded("first", "true"))
    return table


def guarded(name: str, *expressions: str) -> Change:
    """A route that lets in for whom all of these are true."""
    policy = policy_pb2.Policy()
    policy.authorization.action = traffic_pb2.ACTION_ALLOW
    policy.authorization.policy.match_expressions.extend(expressions)
    return route(name, prefix=f"/{name}", policies=[policy], backends=[SERVICE])


def long_text(kind: str, number: int) -> str:
    unit, between, end = EXPRESSIONS[kind]
    unit %= number
    return between.join([unit] * (SIZE // (len(unit) + len(between)))) + end


def slices(applier: Applier, changes: Iterable[Change]) -> Iterator[float]:
    """CPU seconds of each."""
    began = time.process_time()
    for _ in applier.apply(iter(changes)):
        yield time.process_time() - began
        began = time.process_time()
    yield time.process_time() - began


def longest_of(run: TableRun, *changes: Change) -> float:
    """The longest slice; where it is long, once more: another process may have taken the caches or the core."""
    return max(slices(run.applier, changes))


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_an_expression_as_long_as_may_be_holds_up_nobody(run: TableRun, kind: str) -> None:
    longest = min(longest_of(run, guarded("r", long_text(kind, number))) for number in range(2))
    assert run.refused == {}
    assert longest < LONGEST


def test_many_expressions_of_one_rule_hold_up_nobody(run: TableRun) -> None:
    changes = [guarded("r", *(f'request.path == "/{number}/{index}"' for index in range(2_000))) for number in range(2)]
    assert min(longest_of(run, each) for each in changes) < LONGEST


def test_thousands_of_header_edits_hold_up_nobody(run: TableRun) -> None:
    policies = [policy_pb2.Policy(), policy_pb2.Policy()]
    for number, policy in enumerate(policies):
        for index in range(15_000):
            policy.header_modifiers.request.set.add(name=f"x-{index}", value=str(number))
    changes = [route("r", prefix="/", policies=[policy], backends=[SERVICE]) for policy in policies]
    assert min(longest_of(run, each) for each in changes) < LONGEST


def test_regular_expressions_that_are_as_large_as_may_be_hold_up_nobody(run: TableRun) -> None:
    def one(number: int) -> Change:
        large = rf"/{number}/%d/\pL{{20}}"
        headers = ({f"x-{each}": f"~{large % (100 * index + each)}" for each in range(4)} for index in range(16))
        return route("r", *(match(prefix=f"/{index}", headers=each) for index, each in enumerate(headers)))

    longest = min(longest_of(run, one(number)) for number in range(2))
    assert run.refused == {}
    assert longest < LONGEST


def test_what_is_made_in_slices_is_what_is_made_at_once(run: TableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every resource that pauses at all is made in slices."""
    monkeypatch.setattr(applier, "AT_ONCE", -1.0)
    run.tick = 1.0
    run.apply(guarded("r", *(f'request.path == "/{index}"' for index in range(50))))
    run.apply(route("p", *(match(regex=f"/p/{index}/[a-z]+") for index in range(3)), backends=[SERVICE]))
    assert run.refused == {}
    assert run.find(path="/p/2/x") == "p" and run.find(path="/p/2/X") is None and run.find(path="/r") == "r"


def test_a_long_resource_that_is_refused_leaves_its_last_good_version(run: TableRun) -> None:
    run.apply(guarded("r", "true"))
    bad = long_text("conditions", 1)
    run.apply(route("r", *(match(regex=f"/{index}/a{{1,900}}") for index in range(40)), match(regex="(")))
    assert "missing )" in run.refused[route_key("r")] and run.find(path="/r") == "r"
    run.apply(guarded("s", bad, "unknown.name"))
    assert run.find(path="/s") == "s" and "unknown variable" in run.refused[route_key("s")]  # it refuses what it covers


def test_a_state_that_is_given_up_leaves_no_thread(run: TableRun) -> None:
    state = run.applier.apply(iter([guarded("r", *(long_text("loops", number) for number in range(4)))]))
    for _ in range(30):
        next(state)
    state.close()  # type: ignore[attr-defined]  # tests/harness/leaks.py looks for threads
