"""Authorization from the standalone file to the answer, and rules of several levels as one step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from dataplane.chain.filter import Env, Filter, Origin, Refused
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.steps import authorization
from dataplane.http.body import BodyBuffer
from gatewright.cel import budget
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import OK, Carried, Carrier, Request
from tests.fakes.memory_proxy import Pending
from tests.fakes.policy_run import served
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
def test_actions(action: str, path: str, passes: bool, carrier: Carrier) -> None:
    rules = f"{{action: {action}, policy: {{matchExpressions: [\"request.path == '/in'\"]}}}}"
    seen = carrier.shared(served(f"policies: {{authorization: {rules}}}")).carry(Request("GET", path))
    assert (is_denied(seen), len(seen.reached)) == (not passes, int(passes))


def is_denied(seen: Carried) -> bool:
    """Denied, or passed: nothing else."""
    denied = REPLIES["AuthorizationDenied"]
    answer = seen.answer.status, seen.answer.body, seen.reason, len(seen.reached)
    assert answer in ((denied.status, denied.body, denied.reason, 0), (OK.status, OK.body, "", 1))
    return bool(seen.reason)


def test_allow_is_the_default(carrier: Carrier) -> None:
    run = carrier.proxy(served("policies: {authorization: {policy: {matchExpressions: ['false']}}}"))
    assert is_denied(run.carry(Request()))


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("PUT", 403)])
def test_what_the_client_gets(method: str, status: int, carrier: Carrier) -> None:
    expressions = """["request.method == 'GET'", "source.address != ''"]"""
    run = carrier.proxy(served(f"policies: {{authorization: {{policy: {{matchExpressions: {expressions}}}}}}}"))
    answer = run.carry(Request(method, headers=[("content-length", "0")])).answer
    assert (answer.status, answer.body == b"authorization failed") == (status, status == 403)


@pytest.mark.parametrize(
    "cookie",
    [
        "role=admin",
        "a=1; role=admin",
        "a=1;role =admin",
        "role\t=\tadmin",
        "role= admin ;a=1",
        'role = "admin"',
        "role=admin; role=x",
    ],
)
def test_a_cookie_is_denied_in_each_spelling_that_origins_read(cookie: str, carrier: Carrier) -> None:
    rules = """{action: Deny, policy: {matchExpressions: ['request.headers.cookie("role") == "admin"']}}"""
    run = carrier.shared(served(f"policies: {{authorization: {rules}}}"))
    assert is_denied(run.carry(Request(headers=[("cookie", cookie)])))
    assert not is_denied(run.carry(Request(headers=[("cookie", cookie.replace("admin", "guest"))])))


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
def test_nobody_gets_past_a_rule_that_he_makes_cost_too_much(action: str, carrier: Carrier) -> None:
    """One query that the rule can look through, one that it cannot, within what a request line may have."""
    rules = f"{{action: {action}, policy: {{matchExpressions: ['{SLOW}']}}}}"
    run = carrier.proxy(served(f"policies: {{authorization: {rules}}}"))
    assert is_denied(run.carry(Request("GET", "/?x&a=1"))) is (action == "Deny")
    assert is_denied(run.carry(Request("GET", "/?" + "&" * 30_000 + "a=1")))


@pytest.mark.parametrize(
    "padding",
    ["[" * 5000 + "]" * 5000, f"[{'1,' * 300_000}1]"],
    ids=["nested too deeply for us", "too many values"],
)
@pytest.mark.parametrize("read", ["json(request.body).role == 'admin'", "toJson(json(request.body)).contains('admin')"])
def test_nobody_gets_past_a_deny_by_json_that_servers_read_and_we_do_not(
    read: str, padding: str, carrier: Carrier
) -> None:
    rules = f'policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ["{read}"]}}}}}}'
    run = carrier.shared(served(rules))
    assert is_denied(run.carry(Request("POST", body=b'{"role": "admin"}')))
    seen = run.carry(Request("POST", body=f'{{"role": "admin", "x": {padding}}}'.encode()))
    assert (seen.answer.status, seen.reason, len(seen.reached)) == (400, "JsonTooLarge", 0)


def test_the_log_tells_of_a_rule_that_costs_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its steps. One that takes too long ends the request before any rule decides (`test_costly_expressions`)."""
    monkeypatch.setattr(budget, "MAX_SECONDS", 1000.0)
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

    def answer(sent: bytes) -> Reply | None:
        x = exchange("POST")
        x.has_body, x.buffer = True, BodyBuffer.of(sent, Pending, lambda: None)
        return decide([step], x)

    assert answer(b"good") is None
    assert answer(b"bad") == REPLIES["AuthorizationDenied"]
    refused = answer(b"b" * 101)  # a Deny rule could not see it
    assert refused == REPLIES["BodyTooLarge"] and refused is not None
    assert refused.detail == "read by GatewayPolicy default/p authorization"


@pytest.mark.parametrize("variable", ["request.body", "request.bodyPrefix"])
def test_nobody_gets_past_a_deny_by_sending_the_body_behind_the_head(variable: str, carrier: Carrier) -> None:
    rules = f"{{action: Deny, policy: {{matchExpressions: [\"string({variable}).startsWith('bad')\"]}}}}"
    run = carrier.proxy(served(f"policies: {{authorization: {rules}}}"))
    assert is_denied(run.carry(Request("POST", body=[b"bad"])))
    assert run.connections == 0


def test_others_do_not() -> None:
    step = rule("Allow", "request.path == '/'")
    x = exchange("POST")
    x.has_body, x.buffer = True, BodyBuffer(Pending, lambda: None)
    assert decide([step], x) is None and x.body is None


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


@pytest.mark.parametrize("name", ["x-role", "X-Role", "x_role", "x.role"])
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["guest"], 403),
        (["a", "guest"], 403),
        (["guest", "a"], 403),
        (["a, guest"], 403),
        (["a,guest ,b"], 403),
        ([", ,guest"], 403),
        (["guests", "a guest"], 200),
        (["Guest"], 200),
        ([""], 200),
        ([], 200),
    ],
)
def test_a_deny_of_the_values_of_a_header_sees_each(carrier: Carrier, name: str, lines: list[str], status: int) -> None:
    """However often the client sends it, and whichever way the rule spells its name."""
    rule = f'{{action: Deny, policy: {{matchExpressions: [\'"guest" in request.headers.values("{name}")\']}}}}'
    run = carrier.shared(served(f"policies: {{authorization: {rule}}}"))
    headers = [("x-role", line) for line in lines]
    assert run.carry(Request(headers=headers)).answer.status == status
