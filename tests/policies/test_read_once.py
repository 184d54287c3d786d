"""What clients send in any number of parts: read once for each request, and not at all above a limit."""

from __future__ import annotations

import pytest

from gatewright.cel import parameters
from tests.carriers import OK, Carried, Carrier, Request, Response
from tests.fakes.both_planes import BothPlanes
from tests.fakes.policy_run import served
from tests.outside.dialects.objects import GATEWAY, SHOP

LISTENERS = """
frontendPolicies: {{http: {of_all}}}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: a.test
    routes: [{{name: r, {route}, backends: [{{host: "127.0.0.1:9000"}}]}}]
  - name: own
    hostname: own.test
    http: {own}
    routes: [{{name: own, {route}, backends: [{{host: "127.0.0.1:9000"}}]}}]
"""

MOST = 1000
TOO_MANY = b"too many query parameters"


def query(count: int, *first: str) -> str:
    """A query of so many parameters."""
    return "&".join([*first, *(f"k{number}=" for number in range(count - len(first)))])


def matches(count: int) -> str:
    """Matches of a rule, of which the last takes `?last=yes`."""
    rows = [f"k{number}" for number in range(count - 1)] + ["last"]
    return ", ".join(f"{{queryParams: [{{name: {name}, value: 'yes'}}]}}" for name in rows)


def is_refused(seen: Carried) -> bool:
    """Refused for its parameters, or passed: nothing else."""
    answer = seen.answer.status, seen.answer.body, seen.reason, len(seen.reached)
    assert answer in ((400, TOO_MANY, "TooManyParameters", 0), (OK.status, OK.body, "", 1)), answer
    return bool(seen.reason)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The queries that were read."""
    found: list[bytes] = []
    read = parameters.read

    def noted(query: bytes, *limits: int) -> dict[bytes, bytes]:
        found.append(query)
        return read(query, *limits)

    monkeypatch.setattr(parameters, "read", noted)
    return found


# --- routes


def test_a_query_is_read_once_for_all_matches(carrier: Carrier, reads: list[bytes]) -> None:
    run = carrier.shared(served(f"matches: [{matches(64)}]"))
    text = query(900, "x=" + "%41" * 600) + "&last=yes"
    assert run.carry(Request(target=f"/?{text}")).answer.status == 200
    assert reads == [text.encode()]


def test_a_query_that_nothing_asks_for_is_not_read(carrier: Carrier, reads: list[bytes]) -> None:
    run = carrier.shared(served("matches: [{path: {type: PathPrefix, value: /a}}]"))
    assert not is_refused(run.carry(Request(target=f"/a?{query(MOST + 1)}")))
    assert reads == []


@pytest.mark.parametrize(("count", "refused"), [(MOST, False), (MOST + 1, True)])
def test_more_parameters_than_a_route_reads(count: int, refused: bool, carrier: Carrier) -> None:
    run = carrier.shared(served(f"matches: [{matches(2)}]"))
    assert is_refused(run.carry(Request(target=f"/?{query(count, 'last=yes')}"))) is refused


# --- expressions


def test_expressions_and_matches_read_a_query_once(carrier: Carrier, reads: list[bytes]) -> None:
    denies = """
    matches: [{queryParams: [{name: a, value: '1'}]}]
    policies:
      authorization:
        action: Deny
        policy: {matchExpressions: ['request.uri.query("a") == "1"', 'request.pathAndQuery.query("b") == "2"']}
    """
    run = carrier.shared(served(denies))
    seen = run.carry(Request(target="/p?a=1&b=3"))
    assert (seen.answer.status, reads) == (200, [b"a=1&b=3"])
    assert run.carry(Request(target="/p?a=1&b=2")).reason == "AuthorizationDenied"


DENY = 'policies: {authorization: {action: Deny, policy: {matchExpressions: [\'request.uri.query("a") == "1"\']}}}'
SETS = "policies: {transformation: {request: {set: [{name: x-a, value: 'request.uri.query(\"a\")'}]}}}"
CONDITION = """
policies:
  transformation:
    conditional:
    - condition: 'request.uri.query("a") == "1"'
      policy: {request: {set: [{name: x-a, value: '"1"'}]}}
"""
WITH_BODY = DENY.replace("query(", 'query(size(request.body) == 9 ? "b" : ')


@pytest.mark.parametrize("route", [DENY, SETS, CONDITION, WITH_BODY], ids=["deny", "set", "condition", "body"])
@pytest.mark.parametrize(("count", "refused"), [(MOST, False), (MOST + 1, True)])
def test_more_parameters_than_a_policy_reads(route: str, count: int, refused: bool, carrier: Carrier) -> None:
    run = carrier.shared(served(route))
    request = Request("POST", f"/?{query(count)}", body=[b"a", b"b"] if route is WITH_BODY else b"ab")
    assert is_refused(run.carry(request)) is refused


def test_a_query_that_is_only_logged_is_no_reason_to_refuse(carrier: Carrier) -> None:
    run = carrier.shared(served("", log="{a: 'request.uri.query(\"a\")', b: '\"1\"'}"))
    assert run.carry(Request(target=f"/?{query(MOST, 'a=1')}")).line.endswith("ms a=1 b=1")
    seen = run.carry(Request(target=f"/?{query(MOST + 1, 'a=1')}"))
    assert not is_refused(seen) and seen.line.endswith("ms b=1")


def test_nor_is_one_that_is_read_for_the_response(carrier: Carrier) -> None:
    sets = "policies: {transformation: {response: {set: [{name: x-a, value: 'request.uri.query(\"a\")'}]}}}"
    run = carrier.shared(served(sets))
    answering = Response(200, [("x-a", "of the endpoint")], b"ok")
    few, many = (run.carry(Request(target=f"/?{query(count, 'a=1')}"), answering) for count in (MOST, MOST + 1))
    assert (few.answer.headers.get("x-a"), many.answer.headers.get("x-a")) == ("1", None)
    assert (many.answer.status, many.reason) == (200, "")


def test_a_query_that_a_step_wrote_is_read_anew(carrier: Carrier, reads: list[bytes]) -> None:
    rewrites = """
    policies:
      transformation:
        request:
          set:
          - {name: x-before, value: 'request.uri.query("a")'}
          - {name: ":path", value: '"/p?a=" + request.uri.query("b")'}
          - {name: x-after, value: 'request.uri.query("a")'}
    """
    seen = carrier.shared(served(rewrites)).carry(Request(target="/p?a=1&b=2"))
    assert (seen.received.headers["x-before"], seen.received.headers["x-after"]) == ("1", "2")
    assert reads == [b"a=1&b=2", b"a=2"]


def test_response_steps_of_policies_before_see_the_refusal(carrier: Carrier) -> None:
    route = """
    policies:
      cors: {allowOrigins: ["https://a.test"]}
      transformation:
        request: {set: [{name: x-a, value: 'request.uri.query("a")'}]}
        response: {set: [{name: x-own, value: '"1"'}]}
    """
    request = Request(target=f"/?{query(MOST + 1)}", headers=[("origin", "https://a.test")])
    seen = carrier.shared(served(route)).carry(request)
    assert is_refused(seen)
    assert seen.answer.headers.get("access-control-allow-origin") == "https://a.test"
    assert seen.answer.headers.get("x-own") is None


# --- from a folder

ROUTE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules:
  - matches: [%s]
    backendRefs: [{name: shop, port: 80}]
"""


def test_of_a_folder(reads: list[bytes]) -> None:
    planes = BothPlanes(GATEWAY + SHOP + ROUTE % matches(64))
    text = query(MOST, "x=" + "%41" * 6000, "last=yes")
    assert planes.ask(f"/?{text}")[0] == 200
    assert reads == [text.encode()]
    assert planes.ask(f"/?{text}&one=more") == (400, TOO_MANY.decode())


@pytest.mark.parametrize(
    ("of_all", "own", "host", "most"),
    [
        ("{maxQueryParameters: 2}", "{}", "a.test", 2),
        ("{maxQueryParameters: 2}", "{}", "own.test", 2),
        ("{maxQueryParameters: 2}", "{maxQueryParameters: 1200}", "own.test", 1200),
        ("{}", "{requestId: Replace}", "own.test", MOST),
    ],
)
def test_the_limit_of_a_listener(of_all: str, own: str, host: str, most: int, carrier: Carrier) -> None:
    run = carrier.shared(LISTENERS.format(of_all=of_all, own=own, route=f"matches: [{matches(1)}]"))
    for count, refused in ((most, False), (most + 1, True)):
        assert is_refused(run.carry(Request(target=f"/?{query(count, 'last=yes')}", authority=host))) is refused


POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: http, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  frontend: {http: {maxQueryParameters: 2}}
"""


def test_the_limit_of_a_gateway() -> None:
    planes = BothPlanes(GATEWAY + SHOP + ROUTE % matches(1))
    assert planes.ask("/?last=yes&b&c")[0] == 200
    planes.load(POLICY)
    assert planes.ask("/?last=yes&b")[0] == 200
    assert planes.ask("/?last=yes&b&c") == (400, TOO_MANY.decode())
