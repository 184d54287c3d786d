"""Expressions in objects: found wherever a model has one, checked at their moment, told with both positions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gatewright.api.checks import expressions
from gatewright.api.checks.expressions import broken_expressions, expression_fields
from gatewright.api.decode.documents import decode, decode_object
from gatewright.api.objects.kinds import KINDS
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.standalone.standalone import load

POLICY = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
"""


def told(text: str) -> list[str]:
    return [str(problem) for found in decode(text, "p.yaml") for problem in found.problems if not problem.unsupported]


def traffic(**fields: Any) -> list[str]:
    """What is said of a policy with these traffic fields, without its place."""
    return section("traffic", fields)


def section(name: str, fields: dict[str, Any]) -> list[str]:
    spec = {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "a"}], name: fields}
    document = {"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy", "metadata": {"name": "p"}}
    found = decode_object({**document, "spec": spec}, "api")
    problems = [problem for problem in found.problems if not problem.unsupported]
    waits = "unsupported" if found.problems else "valid"
    assert found.verdict == ("invalid" if problems else waits)
    return [f"{problem.path.removeprefix(f'spec.{name}.')}: {problem.message}" for problem in problems]


def test_both_positions_and_all_mistakes() -> None:
    text = f"""{POLICY}\
  traffic:
    authorization:
      policy:
        matchExpressions:
          - request.path == "/"
          - requset.path == "/" && nope()
          - |
            request.method == "GET" &&
              request.pth == "/"
    buffer: {{request: {{maxBytes: -1}}}}
"""
    rules = "p.yaml:{}: GatewayPolicy default/p: spec.traffic.authorization.policy.matchExpressions[{}]: "
    lines = told(text)
    assert lines[:3] == [
        rules.format(11, 1) + 'column 1 of the expression: unknown variable "requset"; did you mean "request"?',
        rules.format(11, 1) + 'column 24 of the expression: unknown function "nope"',
        rules.format(12, 2) + 'line 2, column 11 of the expression: request has no field "pth"; did you mean "path"?',
    ]
    assert lines[3].startswith("p.yaml:15: GatewayPolicy default/p: spec.traffic.buffer.request.maxBytes: ")


def rule(expression: str) -> dict[str, Any]:
    return {"policy": {"matchExpressions": [expression]}}


REF = {"name": "s", "port": 1}
CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"authorization": rule("request.path")}, ["authorization.policy.matchExpressions[0]: must give true or"
      " false, gives string"]),
    ({"authorization": rule("jwt.isAdmin")}, []),
    ({"authorization": rule("request.path.matches('[')")}, ["authorization.policy.matchExpressions[0]: column 22 of the"
      " expression: not a regular expression"]),
    ({"authorization": rule("response.code == 1")}, ["authorization.policy.matchExpressions[0]: column 1 of the"
      ' expression: "response" does not exist yet: this is evaluated with the request, it exists with the response']),
    ({"transformation": {"request": {"set": [{"name": "a", "value": "jwt"}]}}}, ["transformation.request.set[0].value:"
      " must give a string, a number, true or false, or bytes, gives jwt"]),
    ({"transformation": {"request": {"set": [{"name": "a", "value": "1 + 1"}]}}}, []),
    ({"transformation": {"response": {"body": "response.headers"}}}, []),
    ({"transformation": {"request": {"body": "response.headers"}}}, ['transformation.request.body: column 1 of the'
      ' expression: "response" does not exist yet: this is evaluated with the request, it exists with the response']),
    ({"transformation": {"request": {"metadata": {"a": "1 +", "b": "[request.path]"}}}},
     ["transformation.request.metadata.a: column 4 of the expression: expected a value before the end of the"
      " expression"]),
    ({"transformation": {"conditional": [{"condition": "1", "policy": {}}]}},
     ["transformation.conditional[0].condition: must give true or false, gives int"]),
    ({"retry": {"precondition": "request.method == 'GET'", "condition": "response.code == 503"}}, []),
    ({"retry": {"condition": "response.code"}}, ["retry.condition: must give true or false, gives int"]),
    ({"directResponse": {"status": 200, "bodyExpression": "variables()"}}, []),
    ({"jwtAuthentication": {"providers": [{"issuer": "a", "jwks": {"inline": "{}"}}],
      "location": {"expression": "request.headers"}}},
     ["jwtAuthentication.location.expression: must give a string, gives map(string, string)"]),
    ({"extAuth": {"backendRef": REF, "http": {"responseMetadata": {"a": "json(response.body).b"}}}}, []),
    ({"extAuth": {"backendRef": REF, "http": {"path": "1"}}}, ["extAuth.http.path: must give a string, gives int"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "messages"), CASES)
def test_traffic(fields: dict[str, Any], messages: list[str]) -> None:
    assert traffic(**fields) == messages


@pytest.mark.parametrize(
    ("ttl", "is_good"),
    [
        ("5m", True),
        ("1h30m", True),
        ("duration('5m')", True),
        ("extauthz.expires", True),
        ("request.startTime", True),
        ("5 m", False),
        ("true", False),
    ],
)
def test_how_long_an_answer_counts(ttl: str, is_good: bool) -> None:
    cache = {"key": ["source.address"], "ttl": ttl}
    assert (traffic(extAuth={"backendRef": REF, "http": {}, "cache": cache}) == []) is is_good


@pytest.mark.parametrize(
    ("descriptor", "is_good"),
    [
        ({"cost": "llm.totalTokens", "unit": "Tokens"}, True),
        ({"cost": "llm.totalTokens", "unit": "Requests"}, False),
        ({"cost": "llm.totalTokens"}, False),
        ({"cost": "size(request.path)"}, True),
        ({"cost": "request.path"}, False),
    ],
)
def test_the_cost_of_requests_is_known_early(descriptor: dict[str, Any], is_good: bool) -> None:
    entries = [{"name": "a", "expression": "source.address"}]
    limit = {"backendRef": REF, "domain": "d", "descriptors": [{"entries": entries, **descriptor}]}
    assert (traffic(rateLimit={"global": limit}) == []) is is_good


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        ("source.address", []),
        ("ip(source.address)", []),
        ("cidr(source.address + '/64').masked()", []),
        ("jwt.sub", []),
        ("json(request.body).user", []),
        ("size(request.path)", []),
        ("request.headers", ["must give a string, a number, true or false, bytes, or an address, gives map(string"]),
        ("response.code", ["response"]),
        ("llm.totalTokens", ["exists with the response"]),
    ],
)
def test_what_buckets_are_told_apart_by(key: str, messages: list[str]) -> None:
    found = traffic(rateLimit={"local": [{"requests": 1, "unit": "Hours", "key": key}]})
    assert len(found) == len(messages)
    for text, message in zip(found, messages, strict=True):
        assert text.startswith("rateLimit.local[0].key: ") and message in text


@pytest.mark.parametrize(
    ("fields", "is_good"),
    [
        ({"networkAuthorization": rule('cidr("10.0.0.0/8").containsIP(source.address)')}, True),
        ({"networkAuthorization": rule('request.path == "/"')}, False),
        ({"accessLog": {"filter": "response.code >= 400"}}, True),
        ({"accessLog": {"filter": "response.code"}}, False),
        ({"accessLog": {"attributes": {"add": [{"name": "a", "expression": "request.endTime"}]}}}, True),
        ({"tracing": {"backendRef": REF, "randomSampling": "0.1"}}, True),
        ({"tracing": {"backendRef": REF, "randomSampling": "true"}}, True),
        ({"tracing": {"backendRef": REF, "randomSampling": "'0.1'"}}, False),
        ({"tracing": {"backendRef": REF, "clientSampling": "response.code == 1"}}, False),
    ],
)
def test_frontend(fields: dict[str, Any], is_good: bool) -> None:
    assert (section("frontend", fields) == []) is is_good


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("response.code == 500", ""),
        ("response.headers['x-health'] == 'bad'", ""),
        ("response.body == b'x'", "response.body"),
        ("json(response.body).ok", "response.body"),
        ("response.bodyPrefix.size() > 1", "response.bodyPrefix"),
        ("variables().size() == 0", "response.body"),
    ],
)
def test_health_is_judged_without_a_body(condition: str, message: str) -> None:
    """As the proxy builds it: what it would refuse is invalid."""
    why = f"cannot read {message}: it is asked when the head of the response has come"
    assert section("backend", {"health": {"unhealthyCondition": condition}}) == (
        [f"health.unhealthyCondition: {why}"] if message else []
    )


def test_values_of_other_shapes_are_left_to_the_model() -> None:
    for wrong in (5, [1], {}, None, [None], "x"):
        (problem, *_) = traffic(authorization={"policy": {"matchExpressions": wrong}})
        assert "of the expression" not in problem or wrong == "x"


def test_a_long_expression_has_one_problem() -> None:
    (problem,) = traffic(authorization=rule("a" * 16385))
    assert "characters" in problem


def test_thousands_of_mistakes_are_not_all_told() -> None:
    lines = traffic(authorization=rule(" && ".join(["nope"] * 500)))
    assert len(lines) == expressions.MOST_MISTAKES + 1
    assert lines[-1] == "authorization.policy.matchExpressions[0]: 492 more like these"


def test_the_language_is_loaded_when_it_is_needed() -> None:
    code = f"""
import sys, controlplane.app
from gatewright.api.decode.documents import decode
heavy = lambda: sorted({{"gatewright.cel.program", "gatewright.cel.functions"}} & set(sys.modules))
decode({POLICY!r} + "  traffic: {{buffer: {{}}}}", "p")
print(heavy())
decode({POLICY!r} + "  traffic: {{retry: {{condition: 'true'}}}}", "p")
print(heavy())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "['gatewright.cel.functions', 'gatewright.cel.program']"]


def test_kinds_without_expressions_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {kind for kind, info in KINDS.items() if expression_fields(info.model)} == {
        "GatewayBackend", "GatewayPolicy",
    }  # fmt: skip
    monkeypatch.setattr(expressions, "_found", None)
    assert broken_expressions(HTTPRoute, {"spec": {"rules": []}}) == []


def test_a_text_is_looked_at_once() -> None:
    expressions.mistakes.cache_clear()
    for _ in range(5):
        assert traffic(authorization=rule("request.path == '/once'")) == []
    assert (expressions.mistakes.cache_info().misses, expressions.mistakes.cache_info().hits) == (1, 4)


def test_the_standalone_file() -> None:
    text = """\
binds:
  - port: 8080
    listeners:
      - routes:
          - backends: [{host: "127.0.0.1:9000"}]
            policies:
              authorization: {policy: {matchExpressions: [request.nope]}}
"""
    problem = next(problem for problem in load(text, "f.yaml").errors if not problem.unsupported)
    assert (problem.line, problem.path) == (
        7,
        "binds[0].listeners[0].routes[0].policies.authorization.policy.matchExpressions[0]",
    )
    assert problem.message.startswith('column 9 of the expression: request has no field "nope"; fields: method, uri')


@pytest.mark.parametrize(("length", "told_of"), [(16_383, True), (16_384, True), (16_385, False)])
def test_expressions_as_long_as_they_may_be_are_looked_at(length: int, told_of: bool) -> None:
    """Of one that is too long nothing but that is said."""
    found = traffic(authorization=rule("nope" + " " * (length - 4)))
    assert [("unknown variable" in each, "16384" in each) for each in found] == [(told_of, not told_of)]


@pytest.mark.parametrize(
    ("text", "is_so"),
    [("1 + 1", True), ("'a'", True), ("request.path", False), ("variables()", False), ("nope", False), ("1 +", False)],
)
def test_an_expression_that_reads_nothing(text: str, is_so: bool) -> None:
    """One that cannot work is none: it has an error of its own."""
    assert expressions.is_constant(text, "request") is is_so
