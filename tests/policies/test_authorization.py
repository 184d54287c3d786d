"""Authorization from the standalone file to the answer, and rules of several levels as one step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from dataplane.chain.filter import WHOLE, Env, Filter, Origin, Refused
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters import authorization
from dataplane.http.body import Body
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import MemoryProxy, Pending
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange

FAILING = "int(request.headers['x-absent']) == 1"


def rule(action: str, *expressions: str, source: str = "default/p", limit: int = 100) -> Filter:
    """A policy with one rule."""
    config = traffic_pb2.Authorization(
        policy=traffic_pb2.AuthorizationRule(match_expressions=expressions),
        action=f"ACTION_{action.upper()}",
    )
    origin = Origin(f"GatewayPolicy {source}", "authorization")
    env = Env(clock=lambda: 0.0, random=lambda: 0.0, origin=origin, buffer_limit=limit)
    return authorization.build(config, env)


def decide(filters: Sequence[Filter], x: Exchange | None = None) -> Reply | None:
    hook = authorization.combine(filters).request
    assert hook is not None
    answer = hook(x or exchange())
    assert answer is None or isinstance(answer, Reply)
    return answer


# --- one rule, in YAML


@pytest.mark.parametrize(
    ("action", "path", "passes"),
    [
        ("Allow", "/in", True),
        ("Allow", "/out", False),
        ("Deny", "/in", False),
        ("Deny", "/out", True),
        ("Require", "/in", True),
        ("Require", "/out", False),
    ],
)
def test_actions(action: str, path: str, passes: bool) -> None:
    run = PolicyRun(
        f"policies: {{authorization: {{action: {action}, policy: {{matchExpressions: [\"request.path == '/in'\"]}}}}}}"
    )
    answer = run.request(exchange(path=path))
    assert answer == (None if passes else REPLIES["AuthorizationDenied"])


def test_allow_is_the_default() -> None:
    run = PolicyRun("policies: {authorization: {policy: {matchExpressions: ['false']}}}")
    assert run.request(exchange()) == REPLIES["AuthorizationDenied"]


@pytest.mark.parametrize(("method", "status"), [("GET", b"200"), ("PUT", b"403")])
def test_what_the_client_gets(method: str, status: bytes) -> None:
    proxy = MemoryProxy(
        text_of(
            """
            policies: {authorization: {policy: {matchExpressions: ["request.method == 'GET'", "source.address != ''"]}}}
            backends: [{host: "127.0.0.1:9000"}]
            """
        )
    )
    client = proxy.connect()
    client.send(method.encode() + b" / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    for upstream in proxy.connector.upstreams:
        upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert client.received.split()[1] == status
    assert client.received.endswith(b"\r\n\r\nauthorization failed") is (status == b"403")


# --- rules of all levels are one set


def naive(denies: Sequence[bool], requires: Sequence[bool], allows: Sequence[bool]) -> bool:
    """decisions, Authorization, sentence by sentence."""
    if True in denies or False in requires:
        return False
    return True in allows or not allows


CHOICES = [(), (False,), (True,), (False, True)]


@pytest.mark.parametrize(("denies", "requires", "allows"), list(product(CHOICES, CHOICES, CHOICES))[1:])
def test_rules_add_up(denies: tuple[bool, ...], requires: tuple[bool, ...], allows: tuple[bool, ...]) -> None:
    rules = [("Allow", value) for value in allows]  # the order of policies means nothing
    rules += [("Deny", value) for value in denies]
    rules += [("Require", value) for value in requires]
    answer = decide([rule(action, "request.path == '/'" if value else FAILING) for action, value in rules])
    assert (answer is None) is naive(denies, requires, allows)


def test_all_expressions_of_a_rule_must_hold() -> None:
    for first, second in product(("true", "false", FAILING), repeat=2):
        holds = (first, second) == ("true", "true")
        assert (decide([rule("Allow", first, second)]) is None) is holds
        assert (decide([rule("Deny", first, second)]) is None) is not holds
        assert (decide([rule("Require", first, second)]) is None) is holds


@pytest.mark.parametrize("text", [FAILING, "1 / 0 == 1", "jwt.sub == 'me'"])
def test_what_fails_does_not_match(text: str) -> None:
    assert decide([rule("Deny", text)]) is None
    assert decide([rule("Require", text)]) is not None
    assert decide([rule("Allow", text)]) is not None


@pytest.mark.parametrize(
    ("filters", "detail"),
    [
        (
            [rule("Deny", "false", source="a/first"), rule("Deny", "true", source="a/second")],
            "a Deny rule matches: GatewayPolicy a/second authorization",
        ),
        (
            [rule("Allow", "true"), rule("Require", "false", source="b/third")],
            "a Require rule does not match: GatewayPolicy b/third authorization",
        ),
        (
            [rule("Allow", "false", source="a/x"), rule("Allow", FAILING, source="a/y")],
            "no Allow rule matches: GatewayPolicy a/x authorization, GatewayPolicy a/y authorization",
        ),
    ],
)
def test_the_log_names_who_decided(filters: list[Filter], detail: str) -> None:
    answer = decide(filters)
    assert answer is not None and answer.detail == detail


SLOW = """request.pathAndQuery.split("&").exists(p, ["a=", "b=", "c=", "d=", "e="].exists(q, p.startsWith(q)))"""


@pytest.mark.parametrize("action", ["Deny", "Require", "Allow"])
def test_nobody_gets_past_a_rule_that_he_makes_cost_too_much(action: str) -> None:
    """One query that the rule can look through, one that it cannot, within what a request line may have."""
    run = PolicyRun(f"policies: {{authorization: {{action: {action}, policy: {{matchExpressions: ['{SLOW}']}}}}}}")
    short, long = exchange(query="x&a=1"), exchange(query="&" * 30_000 + "a=1")
    assert (run.request(short) is None) is (action != "Deny")
    answer = run.request(long)
    assert answer is not None and answer.reason == "AuthorizationDenied"


@pytest.mark.parametrize(
    "padding",
    ["[" * 5000 + "]" * 5000, f"[{'1,' * 300_000}1]"],
    ids=["nested too deeply for us", "too many values"],
)
@pytest.mark.parametrize("read", ["json(request.body).role == 'admin'", "toJson(json(request.body)).contains('admin')"])
def test_nobody_gets_past_a_deny_by_json_that_servers_read_and_we_do_not(read: str, padding: str) -> None:
    rules = f'policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ["{read}"]}}}}}}'
    proxy = MemoryProxy(text_of(rules + "\nbackends: [{host: 127.0.0.1:9000}]"))
    for body in ('{"role": "admin"}', f'{{"role": "admin", "x": {padding}}}'):
        client = proxy.connect()
        client.send(f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        assert client.received.startswith(b"HTTP/1.1 403 ")


def test_the_log_tells_of_a_rule_that_costs_too_much() -> None:
    filters = [
        rule("Deny", "false", source="default/a"),
        rule("Deny", SLOW, source="default/b"),
        rule("Require", "true"),
    ]
    answer = decide(filters, exchange(query="&" * 30_000))
    assert answer is not None
    assert answer.detail == "a Deny rule costs too much to evaluate: GatewayPolicy default/b authorization"


def test_combining_twice() -> None:
    both = authorization.combine([rule("Allow", "false"), rule("Allow", "false")])
    assert decide([both, rule("Allow", "true")]) is None


def test_a_rule_of_many_expressions() -> None:
    texts = [f"request.path != '/{index}'" for index in range(256)]
    step = rule("Require", *texts)
    assert decide([step]) is None
    assert decide([step], exchange(path="/255")) is not None


# --- bodies


def test_expressions_that_read_the_body_wait_for_it() -> None:
    step = authorization.combine([rule("Allow", "request.path == '/'"), rule("Deny", "string(request.body) == 'bad'")])
    assert (step.may_wait, step.body) == (True, WHOLE)

    def answer(sent: bytes) -> Reply | None:
        x = exchange("POST")
        x.has_body, x.body = True, Body.of(sent, Pending, lambda: None)
        return decide([step], x)

    assert answer(b"good") is None
    assert answer(b"bad") == REPLIES["AuthorizationDenied"]
    refused = answer(b"b" * 101)  # a Deny rule could not see it
    assert refused == REPLIES["BodyTooLarge"] and refused is not None
    assert refused.detail == "read by GatewayPolicy default/p authorization"


BAD_BODIES = """
policies:
  authorization: {{action: Deny, policy: {{matchExpressions: ["string({variable}).startsWith('bad')"]}}}}
backends: [{{host: "127.0.0.1:9000"}}]
"""


@pytest.mark.parametrize("variable", ["request.body", "request.bodyPrefix"])
def test_nobody_gets_past_a_deny_by_sending_the_body_behind_the_head(variable: str) -> None:
    proxy = MemoryProxy(text_of(BAD_BODIES.format(variable=variable)))
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
    client.send(b"bad")
    assert client.take().startswith(b"HTTP/1.1 403 ")
    assert proxy.connector.upstreams == []


def test_others_do_not() -> None:
    step = rule("Allow", "request.path == '/'")
    assert (step.may_wait, step.body) == (False, 0)


# --- what cannot be built


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (traffic_pb2.Authorization(), "policy.matchExpressions: a rule needs an expression"),
        (
            traffic_pb2.Authorization(policy={"match_expressions": ["true", "request.pth == ''"]}),
            r"policy.matchExpressions\[1\]: .*pth",
        ),
        (traffic_pb2.Authorization(policy={"match_expressions": ["true"]}, action=9), "action 9 is not known"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_built_is_refused(config: traffic_pb2.Authorization, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        authorization.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
