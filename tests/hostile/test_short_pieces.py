"""What the controller decodes in place holds it for a moment only, whatever is in it: the worst documents of the length
at which another process takes over."""

from __future__ import annotations

import time

import pytest

from controlplane.sources import aside
from controlplane.sources.decode import decode
from tests.harness import yardstick

ALLOWED = 0.15
"""CPU seconds on the machine of the yardstick. At four times the length the worst took half a second."""

ROUTE = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, namespace: b}\nspec:\n"
POLICY = (
    "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {name: a, namespace: b}\nspec:\n"
    "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]\n"
)
CONDITIONS = POLICY + "  traffic: {authorization: {policy: {matchExpressions: ["


def full(begin: str, part: str, end: str = "") -> str:
    """As often `part` as fits; `%` in it stands for the number of the part."""
    count = (aside.LONG - len(begin) - len(end)) // (len(part) + 2 * part.count("%"))
    return begin + "".join(part.replace("%", str(number)[-3:]) for number in range(count)) + end


WORST = {
    "rules with unknown fields": full(ROUTE + "  rules: [", "{a: 1},", "]"),
    "empty rules": full(ROUTE + "  rules: [", "{},", "]"),
    "matches": full(ROUTE + "  rules: [{matches: [", "{path: {value: /a}},", "]}]"),
    "aliases of a rule": full(
        ROUTE + "  rules:\n  - &r {matches: [{path: {value: /a}}], backendRefs: [{name: x, port: 80}]}\n",
        "  - *r\n",
    ),
    "as many aliases as may be": "a: &a [" + "1," * 1000 + "]\nb: [" + "*a," * 9 + "]\n" + ROUTE,
    "expressions": full(CONDITIONS, "'1==%',", "]}}}"),
    "an expression of many terms": full(CONDITIONS + "'", '"%"==request.path || ', "true']}}}"),
    "an expression of many operators": full(CONDITIONS + "'", "1+", "1 == 1']}}}"),
    "unknown fields": full(ROUTE, "  f%: 1\n"),
    "numbers": full(ROUTE + "  x: [", "1,", "]"),
    "digits": full(ROUTE + "  x: ", "9", "\n"),
    "levels": full(ROUTE + "  x: " + "[" * 60, "a,", "]" * 60),
    "duplicate keys": full(ROUTE, "  f: 1\n"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """The first expression loads the language."""
    decode(CONDITIONS + "'true']}}}")


@pytest.mark.parametrize("name", WORST)
def test_what_is_decoded_in_place_holds_the_controller_for_a_moment(name: str) -> None:
    text = WORST[name]
    assert len(text) <= aside.LONG
    seconds = min(_seconds(text.replace("name: a,", f"name: a{turn},", 1)) for turn in range(5))
    scale = max(1.0, min(yardstick.measure() for _ in range(3)) / yardstick.REFERENCE)
    assert seconds <= ALLOWED * scale


def _seconds(text: str) -> float:
    begun = time.thread_time()
    decoded = decode(text)
    assert decoded.objects or decoded.problems
    return time.thread_time() - begun
