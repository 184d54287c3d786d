"""What clients send in any number of parts: read once for each request, and not at all above a limit."""

from __future__ import annotations

import pytest

from gatewright.cel import parameters
from gatewright.cel.functions import json_text
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
MOST_KEYS = 10_000
TOO_LARGE = b"json has too many keys or levels"


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


# --- bodies as JSON


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that were parsed as JSON."""
    found: list[bytes] = []
    decoded = json_text.parsed

    def noted(text: bytes) -> object:
        found.append(text)
        return decoded(text)

    monkeypatch.setattr(json_text, "parsed", noted)
    return found


def document(keys: int) -> bytes:
    """JSON of so many keys: `a`, and elements of `b`."""
    return b'{"a":"1","b":[%b]}' % b",".join([b'",{["'] * (keys - 2))


def is_too_large(seen: Carried) -> bool:
    """Refused for its body, or passed: nothing else."""
    answer = seen.answer.status, seen.answer.body, seen.reason, len(seen.reached)
    assert answer in ((400, TOO_LARGE, "JsonTooLarge", 0), (OK.status, OK.body, "", 1)), answer
    return bool(seen.reason)


def posted(body: bytes) -> Request:
    return Request("POST", "/", body=body)


DENIES = """
policies:
  authorization:
    action: Deny
    policy: {matchExpressions: [%s]}
  transformation:
    request: {set: [{name: x-a, value: 'json(request.body).a'}]}
"""
FORMS = ("json(request.body)", "json(string(request.body))", "json(request.bodyPrefix)")
SAME = ", ".join(f"'{form}.a == \"1\"'" for form in FORMS * 20)


def test_a_body_is_parsed_once_for_all_expressions(carrier: Carrier, parses: list[bytes]) -> None:
    run = carrier.shared(
        served(DENIES % (SAME + ", 'json(request.body).a == \"2\"'"), log="{a: 'json(request.body).a'}")
    )
    body = document(20)
    seen = run.carry(posted(body))
    assert (seen.answer.status, seen.received.headers["x-a"], parses) == (200, "1", [body])
    assert seen.line.endswith("ms a=1")


def test_one_that_is_no_json_is_looked_at_once(carrier: Carrier, parses: list[bytes]) -> None:
    run = carrier.shared(served(DENIES % '\'json(request.body).a == "1" || json(request.body).b == "1"\''))
    assert run.carry(posted(b'{"a":"1"')).answer.status == 200
    assert parses == [b'{"a":"1"']


def test_one_that_a_step_made_is_parsed_anew(carrier: Carrier, parses: list[bytes]) -> None:
    route = """
    policies:
      transformation:
        request: {body: '"{\\"a\\": \\"" + json(request.body).a + "2\\"}"'}
        response: {set: [{name: x-a, value: 'json(request.body).a'}, {name: x-b, value: 'json(request.body).a'}]}
    """
    seen = carrier.shared(served(route)).carry(posted(b'{"a":"1"}'))
    assert (seen.received.body, seen.answer.headers["x-a"]) == (b'{"a": "12"}', "12")
    assert parses == [b'{"a":"1"}', b'{"a": "12"}']


def test_a_large_one_is_not_held_while_the_response_comes(carrier: Carrier, parses: list[bytes]) -> None:
    route = DENIES % SAME + "    response: {set: [{name: x-b, value: 'json(request.body).a'}]}\n"
    body = document(MOST_KEYS)
    run = carrier.shared(served(route.replace('== "1"', '== "2"')))
    seen = run.carry(posted(body))
    assert (seen.answer.status, seen.answer.headers["x-b"], parses) == (200, "1", [body, body])


READS = {
    "deny": "policies: {authorization: {action: Deny, policy: {matchExpressions: ['json(request.body).a == \"2\"']}}}",
    "set": "policies: {transformation: {request: {set: [{name: x-a, value: 'json(request.body).a'}]}}}",
    "text": "policies: {transformation: {request: {set: [{name: x-a, value: 'json(string(request.body)).a'}]}}}",
    "condition": CONDITION.replace('request.uri.query("a")', "json(request.body).a"),
}


@pytest.mark.parametrize("route", READS.values(), ids=READS)
@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (document(MOST_KEYS), False),
        (document(MOST_KEYS + 1), True),
        (b"[" * 5000 + b"]" * 5000, True),
        (b"{" * 10_001, True),
        (b"[" + b"1," * 180_000 + b"1]", True),
        (b"no json", False),
    ],
    ids=["most", "more", "deep", "open", "many", "none"],
)
def test_more_keys_than_a_policy_reads(route: str, body: bytes, refused: bool, carrier: Carrier) -> None:
    run = carrier.shared(served(route))
    assert is_too_large(run.carry(posted(body))) is refused


def test_of_one_of_too_many_keys_nothing_is_parsed(carrier: Carrier, parses: list[bytes]) -> None:
    assert is_too_large(carrier.shared(served(READS["deny"])).carry(posted(document(MOST_KEYS + 1))))
    assert parses == []


def test_a_body_that_is_only_logged_is_no_reason_to_refuse(carrier: Carrier) -> None:
    reads = "policies: {transformation: {request: {metadata: {size: 'size(request.body)'}}}}"
    run = carrier.shared(served(reads, log="{a: 'json(request.body).a', b: '\"1\"'}"))
    assert run.carry(posted(document(MOST_KEYS))).line.endswith("ms a=1 b=1")
    seen = run.carry(posted(document(MOST_KEYS + 1)))
    assert not is_too_large(seen) and seen.line.endswith("ms b=1")


def test_nor_is_a_response(carrier: Carrier, parses: list[bytes]) -> None:
    sets = (
        ", ".join(f"{{name: x-{name}, value: 'json(response.body).a'}}" for name in "abc")
        + ", {name: x-p, value: 'json(response.bodyPrefix).a'}"
    )
    run = carrier.shared(served(f"policies: {{transformation: {{response: {{set: [{sets}]}}}}}}"))
    few, many = (run.carry(Request(), Response(200, (), document(keys))) for keys in (MOST_KEYS, MOST_KEYS + 1))
    assert [each.answer.headers.get("x-a") for each in (few, many)] == ["1", None]
    assert (many.answer.status, parses) == (200, [document(MOST_KEYS)])


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


def test_keys_of_a_listener(carrier: Carrier) -> None:
    limits = {"of_all": "{maxJsonKeys: 20}", "own": "{maxJsonKeys: 12000}", "route": READS["set"]}
    run = carrier.shared(LISTENERS.format(**limits))
    for host, most in (("a.test", 20), ("own.test", 12_000)):
        for count, refused in ((most, False), (most + 1, True)):
            request = Request("POST", "/", body=document(count), authority=host)
            assert is_too_large(run.carry(request)) is refused


SETS_HEADER = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: header, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: all}]
  traffic: {transformation: {request: {set: [{name: x-a, value: 'json(request.body).a'}]}}}
"""


def test_keys_of_a_gateway() -> None:
    planes = BothPlanes(GATEWAY + SHOP + ROUTE % "{path: {type: PathPrefix, value: /}}" + SETS_HEADER)
    few, many = document(20).decode(), document(21).decode()
    assert planes.ask(method="POST", body=many)[0] == 200
    planes.load(POLICY.replace("maxQueryParameters: 2", "maxJsonKeys: 20"))
    assert planes.ask(method="POST", body=few)[0] == 200
    assert planes.ask(method="POST", body=many) == (400, TOO_LARGE.decode())
