"""A regular expression of a route that takes long for a value which a client chose: the request is refused, whatever
else would take it. One that takes long for any value is refused when it is read."""

from __future__ import annotations

import pytest

from dataplane.table import regexes
from tests.carriers import OK, Carrier, Request
from tests.fakes.policy_run import problems, served

COSTLY = "a.{0,100}b.{0,100}c"
ANY = r".*\pL{60}.*x"
LONG, HALF = "a" * 7000, "a" * 3000
TOO_COSTLY = (400, "PatternTooCostly", b"request takes too long to look at", 0)
PASSED = (OK.status, "", OK.body, 1)
OTHERS = "{path: {type: PathPrefix, value: /}}"
CONDITIONS = {
    "header": f"headers: [{{name: x, type: RegularExpression, value: '{COSTLY}'}}]",
    "query": f"queryParams: [{{name: x, type: RegularExpression, value: '{COSTLY}'}}]",
    "path": f"path: {{type: RegularExpression, value: '/{COSTLY}'}}",
}


def request(place: str, value: str) -> Request:
    if place == "header":
        return Request(headers=(("x", value),))
    return Request(target=f"/?x={value}" if place == "query" else f"/{value}")


def answer(carrier: Carrier, route: str, asked: Request) -> tuple[int, str, bytes, int]:
    seen = carrier.shared(served(route)).carry(asked)
    return seen.answer.status, seen.reason, seen.answer.body, len(seen.reached)


@pytest.mark.parametrize("place", CONDITIONS)
def test_a_value_that_is_too_long_for_a_pattern_is_refused(carrier: Carrier, place: str) -> None:
    """Also where another match would take the request: what the pattern guards must not be got around."""
    route = f"matches: [{{{CONDITIONS[place]}}}, {OTHERS}]"
    assert answer(carrier, route, request(place, "aabc")) == PASSED
    assert answer(carrier, route, request(place, "a" * 200)) == PASSED
    assert answer(carrier, route, request(place, LONG)) == TOO_COSTLY


@pytest.mark.parametrize(("count", "expected"), [(3, PASSED), (12, TOO_COSTLY)])
def test_all_patterns_of_routes_have_the_time_of_one_request(
    carrier: Carrier, count: int, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No clock of the machine is read: between two looks 3 ms pass."""
    now = 0.0

    def look() -> float:
        nonlocal now
        now += 0.003
        return now

    monkeypatch.setattr(regexes, "thread_time", look)
    rows = [f"{{headers: [{{name: x, type: RegularExpression, value: '{COSTLY}{each}'}}]}}" for each in range(count)]
    assert answer(carrier, f"matches: [{', '.join([*rows, OTHERS])}]", request("header", HALF)) == expected


def test_many_paths_of_a_rule_are_asked_one_by_one_where_together_they_take_too_long(carrier: Carrier) -> None:
    rows = [f"{{path: {{type: RegularExpression, value: '/{each}/[a-z]+/.*x'}}}}" for each in range(64)]
    route = f"matches: [{', '.join(rows)}]"
    assert answer(carrier, route, Request(target="/7/a/" + LONG + "x")) == PASSED
    assert answer(carrier, route, Request(target="/7/a/x")) == PASSED


@pytest.mark.parametrize(
    ("match", "field"),
    [
        ("path: {type: RegularExpression, value: '%s'}", "path.value"),
        ("headers: [{name: x, type: RegularExpression, value: '%s'}]", "headers[0].value"),
        ("queryParams: [{name: x, type: RegularExpression, value: '%s'}]", "queryParams[0].value"),
    ],
)
def test_a_pattern_that_takes_long_for_any_value_is_refused_when_it_is_read(match: str, field: str) -> None:
    (problem,) = problems(f"matches: [{{{match % ANY}}}]\nbackends: [{{host: '127.0.0.1:9000'}}]")
    assert "takes too long to be looked for in 256 bytes" in problem
    assert problems(f"matches: [{{{match % COSTLY}}}]\nbackends: [{{host: '127.0.0.1:9000'}}]") == []
