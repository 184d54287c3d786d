"""TRACE and OPTIONS that may go through so many intermediaries alone (RFC 9110 7.6.2)."""

from __future__ import annotations

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.policy_run import served

TRACED = "matches: [{path: {value: /}}, {method: TRACE}]"

LONG = "0" * 4000 + "x"
"""No number: to find that out costs one look at it."""


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    ("value", "onward"),
    [
        ("1", "0"),
        ("7", "6"),
        ("010", "9"),
        ("9" * 8, "99999998"),
        ("9" * 40, "999999999"),
        ("x", "x"),
        ("-1", "-1"),
        (LONG, LONG),
    ],
)
def test_each_intermediary_counts(carrier: Carrier, method: str, value: str, onward: str) -> None:
    seen = carrier.shared(served(TRACED)).carry(Request(method, headers=[("max-forwards", value)]))
    assert seen.received.headers["max-forwards"] == onward and seen.answer.status == 200


@pytest.mark.parametrize(("method", "status"), [("OPTIONS", 200), ("TRACE", 405)])
@pytest.mark.parametrize("value", ["0", "000"])
def test_what_may_go_no_further_is_answered(carrier: Carrier, method: str, status: int, value: str) -> None:
    seen = carrier.shared(served(TRACED)).carry(Request(method, headers=[("max-forwards", value)]))
    assert not seen.reached and seen.answer.status == status and seen.reason == "MaxForwardsReached"
    assert "OPTIONS" in seen.answer.headers["allow"] and seen.answer.body == b""


@pytest.mark.parametrize("method", ["OPTIONS", "GET"])
def test_none_is_made(carrier: Carrier, method: str) -> None:
    assert "max-forwards" not in carrier.shared(served(TRACED)).carry(Request(method)).received.headers


def test_it_means_nothing_of_another_method(carrier: Carrier) -> None:
    seen = carrier.shared(served(TRACED)).carry(Request("GET", headers=[("max-forwards", "0")]))
    assert seen.received.headers["max-forwards"] == "0"


def test_security_policies_come_first(carrier: Carrier) -> None:
    text = served("policies: {authorization: {action: Deny, policy: {matchExpressions: ['true']}}}")
    seen = carrier.shared(text).carry(Request("OPTIONS", headers=[("max-forwards", "0")]))
    assert seen.answer.status == 403
