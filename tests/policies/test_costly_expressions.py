"""All expressions of one request have the time of one: whoever sends what takes long to look at gets past nothing by
making those that come first slow. No clock of the machine is read: each evaluation takes 3 ms."""

from __future__ import annotations

import pytest

from gatewright.cel import budget
from tests.carriers import Carrier, Request
from tests.fakes.policy_run import served

pytestmark = pytest.mark.usefixtures("seconds_of_an_evaluation", "clock")

EACH = 0.003
FEW, MANY = 4, 10
"""Evaluations that fit into the time of one, and that do not."""
WALK = "request.path.split('').all(c, c != '~')"
"""Builds as much as makes an evaluation look at the clock."""
LONG = "/" + "a" * 8000 + "z"
TOO_COSTLY = (400, "ExpressionsTooCostly", b"request takes too long to look at", 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the thread goes on when it is looked at, and the other one with it."""
    now = 0.0

    def look() -> float:
        nonlocal now
        now += EACH
        return now

    monkeypatch.setattr(budget, "thread_time", look)
    monkeypatch.setattr(budget, "monotonic", lambda: now)


def walks(number: int, last: str = WALK) -> str:
    """Expressions as a list of YAML."""
    return "[" + ", ".join(f'"{text}"' for text in [WALK] * (number - 1) + [last]) + "]"


def rule(action: str, expressions: str) -> str:
    return f"policies: {{authorization: {{action: {action}, policy: {{matchExpressions: {expressions}}}}}}}"


MATCHES = "request.path.endsWith('z') && " + WALK


@pytest.mark.parametrize(("action", "status"), [("Deny", 403), ("Allow", 200), ("Require", 200)])
def test_rules_decide_in_time_or_the_request_is_refused(carrier: Carrier, action: str, status: int) -> None:
    for number in (FEW, MANY):
        seen = carrier.shared(served(rule(action, walks(number, MATCHES)))).carry(Request(target=LONG))
        if number == FEW:
            assert seen.answer.status == status
        else:
            assert (seen.answer.status, seen.reason, seen.answer.body, len(seen.reached)) == TOO_COSTLY


@pytest.mark.parametrize(("action", "status"), [("Deny", 403), ("Allow", 403), ("Require", 403)])
def test_a_rule_whose_pattern_costs_too_much_for_so_long_a_path_lets_nothing_through(
    carrier: Carrier, action: str, status: int
) -> None:
    """It is not looked for, so nobody knows whether it is there."""
    sought = "request.path.matches('a[^b]{0,999}b')"
    carrier = carrier.shared(served(rule(action, f'["{sought if action == "Deny" else "!" + sought}"]')))
    assert carrier.carry(Request(target="/aaa")).answer.status == 200
    assert carrier.carry(Request(target=LONG)).answer.status == status


def headers(number: int) -> str:
    """Headers that a step sets."""
    return ", ".join(f'{{name: x-{each}, value: "string({WALK})"}}' for each in range(number))


FIRST = f"authorization: {{policy: {{matchExpressions: {walks(FEW)}}}}}"
"""Passes, and takes a good part of the time."""


@pytest.mark.parametrize(
    "policy",
    [
        f"transformation: {{request: {{set: [{headers(FEW)}]}}}}",
        "transformation: {conditional: ["
        + ", ".join(f'{{condition: "!{WALK}", policy: {{request: {{remove: [x-{n}]}}}}}}' for n in range(FEW))
        + "]}",
        "rateLimit: {local: ["
        + ", ".join(f"{{requests: 9, unit: Seconds, key: \"string({WALK}) + '{n}'\"}}" for n in range(FEW))
        + "]}",
    ],
    ids=["transformation", "conditional", "rate limit"],
)
def test_no_policy_goes_without_its_expressions(carrier: Carrier, policy: str) -> None:
    alone = carrier.shared(served(f"policies: {{{policy}}}")).carry(Request(target=LONG))
    assert alone.answer.status == 200
    both = carrier.shared(served(f"policies: {{{FIRST}, {policy}}}")).carry(Request(target=LONG))
    assert (both.answer.status, both.reason, both.answer.body, len(both.reached)) == TOO_COSTLY
    short = carrier.shared(served(f"policies: {{{FIRST}, {policy}}}")).carry(Request(target="/a"))
    assert short.answer.status == 200, "a short path costs nothing"


def test_each_request_has_its_own_time(carrier: Carrier) -> None:
    run = carrier.shared(served(f"policies: {{{FIRST}}}"))
    assert [run.carry(Request(target=LONG)).answer.status for _ in range(4)] == [200] * 4


def test_what_reads_a_response_has_no_value_when_time_is_over(carrier: Carrier) -> None:
    route = f"policies: {{transformation: {{response: {{set: [{headers(MANY)}]}}}}}}"
    seen = carrier.shared(served(route)).carry(Request(target=LONG))
    assert (seen.answer.status, seen.reason) == (200, "")
    assert "x-0" in seen.answer.headers and f"x-{MANY - 1}" not in seen.answer.headers


def test_a_body_that_cannot_be_made_in_time_is_not_the_old_one(carrier: Carrier) -> None:
    response = f'response: {{set: [{headers(MANY)}], body: "string({WALK})"}}'
    seen = carrier.shared(served(f"policies: {{transformation: {{{response}}}}}")).carry(Request(target=LONG))
    assert (seen.answer.status, seen.reason) == (502, "ResponseTransformationFailed")


def test_the_log_leaves_out_what_takes_too_long(carrier: Carrier) -> None:
    fields = ", ".join(f'a{number}: "{WALK}"' for number in range(MANY))
    seen = carrier.shared(served("", log=f"{{{fields}}}")).carry(Request(target=LONG))
    assert seen.answer.status == 200
    assert " a0=true" in seen.line and f" a{MANY - 1}=" not in seen.line
