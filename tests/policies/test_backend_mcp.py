"""`backend.mcp`: rules about each tool, prompt and resource (spec 2, BackendMCP; Authorization). Lists leave out what
they refuse, calls of it are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_mcp
from gatewright.wire.v1 import mcp_pb2, traffic_pb2
from tests.carriers import Carrier, Request
from tests.fakes.mcp_toys import Client, Toy, response

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      policies: {mcp: %s}
      backends:
      - mcp: {targets: [%s]}
        policies: {mcp: %s}
"""
TARGETS = (
    "{name: one, static: {host: 127.0.0.1, port: 9001}}",
    "{name: two, static: {host: 127.0.0.2, port: 9001}}",
)


def rule(*expressions: str, action: str = "Allow") -> str:
    quoted = ", ".join("'" + each.replace("'", "''") + "'" for each in expressions)
    return f"{{authorization: {{action: {action}, policy: {{matchExpressions: [{quoted}]}}}}}}"


def opened(carrier: Carrier, of_backend: str, of_route: str = "{}", several: bool = False, **headers: str) -> Client:
    targets = ", ".join(TARGETS if several else TARGETS[:1])
    toys = {
        "127.0.0.1:9001": Toy(["add", "sub", "drop"], resources=["file:///a", "file:///b"]),
        "127.0.0.2:9001": Toy(),
    }
    client = Client(carrier.proxy(TEXT % (of_route, targets, of_backend)), toys)
    client.headers = list(headers.items())
    client.initialize()
    return client


def uris(client: Client) -> list[str]:
    return [each["uri"] for each in client.all("resources/list", "resources")]


def test_lists_leave_out_what_no_rule_allows_and_calls_of_it_are_rejected(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name in ["add", "sub"]'))
    assert client.names() == ["add", "sub"]
    listed = client.run.log_lines()[-1]
    assert " mcp.method.name=tools/list " in listed and "gen_ai.tool.name" not in listed, "a list is about no item"
    assert client.result("tools/call", {"name": "add"})
    assert client.error("tools/call", {"name": "drop"}) == (200, -32602, "Unknown tool: drop")
    assert uris(client) == [], "a rule about tools matches no resource"
    assert client.error("resources/read", {"uri": "file:///a"}) == (200, -32602, "Unknown resource: file:///a")
    assert client.toys["127.0.0.1:9001"].methods_got().count("tools/call") == 1
    line = next(line for line in client.run.log_lines() if "McpDenied" in line)
    assert "no Allow rule matches" in line
    series = client.run.memory.metrics.series()
    found = {each.labels: values[0] for each, values in series if each.metric.name == "mcp_requests_total"}
    assert found[("tools/call", "one", "", "denied")] == 1, "names that clients make up are in no metric"


def test_a_server_without_a_stream_says_so_whatever_rules_there_are(carrier: Carrier) -> None:
    client = opened(carrier, rule("true"))
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405


def test_a_deny_counts_for_what_it_matches(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name == "drop"', action="Deny"))
    assert client.names() == ["add", "sub"] and uris(client) == ["file:///a", "file:///b"]
    assert client.error("tools/call", {"name": "drop"})[2] == "Unknown tool: drop"


def test_a_require_has_to_match_each_item(carrier: Carrier) -> None:
    client = opened(carrier, rule('has(mcp.tool) && mcp.tool.name != "drop"', action="Require"))
    assert client.names() == ["add", "sub"] and uris(client) == []


def test_rules_of_all_levels_add_up(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name != "sub"'), rule('mcp.tool.name == "drop"', action="Deny"))
    assert client.names() == ["add"]
    client = opened(carrier, rule('mcp.tool.name == "add"'), rule('mcp.tool.name == "sub"'))
    assert client.names() == ["add", "sub"], "any Allow allows"


def test_rules_know_target_method_and_headers(carrier: Carrier) -> None:
    of_target = rule('mcp.tool.target == "two" || mcp.tool.name == "sub"')
    assert opened(carrier, of_target, several=True).names() == ["one_sub", "two_add"]
    by_method = rule('mcp.methodName == "tools/list" || mcp.tool.name == "add"')
    client = opened(carrier, by_method)
    assert client.names() == ["add", "sub", "drop"] and client.error("tools/call", {"name": "sub"})[0] == 200
    by_header = rule('request.headers["x-team"] == "a"')
    assert opened(carrier, by_header, **{"x-team": "a"}).names() == ["add", "sub", "drop"]
    assert opened(carrier, by_header, **{"x-team": "b"}).names() == []


@pytest.mark.parametrize(
    ("action", "expressions", "listed", "works", "rejected"),
    [
        ("Allow", ["mcp.tool.arguments.a == 1"], ["add", "sub", "drop"], {"a": 1}, {"a": 2}),
        ("Allow", ['mcp.tool.name == "add"', "mcp.tool.arguments.a == 1"], ["add"], {"a": 1}, {"a": 2}),
        ("Deny", ["mcp.tool.arguments.a == 1"], ["add", "sub", "drop"], {"a": 2}, {"a": 1}),
        ("Require", ["mcp.tool.arguments.a == 1"], ["add", "sub", "drop"], {"a": 1}, {}),
    ],
)
def test_rules_that_read_arguments_may_match_in_lists(
    action: str, expressions: list[str], listed: list[str], works: Any, rejected: Any, carrier: Carrier
) -> None:
    client = opened(carrier, rule(*expressions, action=action))
    assert client.names() == listed
    assert client.result("tools/call", {"name": "add", "arguments": works})
    assert client.error("tools/call", {"name": "add", "arguments": rejected})[2] == "Unknown tool: add"


@pytest.mark.parametrize("arguments", [1.5, 1, "x", [1], [["a", 1]], True])
@pytest.mark.parametrize("action", ["Deny", "Allow"])
def test_arguments_that_are_no_object_are_refused_where_rules_read_them(
    action: str, arguments: Any, carrier: Carrier
) -> None:
    client = opened(carrier, rule("mcp.tool.arguments.a == 1 || mcp.tool.arguments.size() > 0", action=action))
    params = {"name": "add", "arguments": arguments}
    assert client.error("tools/call", params) == (400, -32602, "params.arguments: must be an object")
    assert "tools/call" not in client.toys["127.0.0.1:9001"].methods_got()


def test_arguments_that_are_null_are_none(carrier: Carrier) -> None:
    params = {"name": "add", "arguments": None}
    assert opened(carrier, rule("mcp.tool.arguments.a == 1", action="Deny")).result("tools/call", params)
    assert opened(carrier, rule("mcp.tool.arguments.a == 1")).error("tools/call", params)[2] == "Unknown tool: add"


LOOK_ALIKES = [
    ("tools/call", {"name": "add", "Name": "drop"}),
    ("tools/call", {"name": "add", "arguments": {"a": 1}, "Arguments": {"a": 2}}),
    ("prompts/get", {"name": "p", "NAME": "q"}),
    ("resources/read", {"uri": "file:///a", "\u0055ri": "file:///b"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "Ref": {"type": "ref/prompt", "name": "q"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p", "Name": "q"}}),
]


@pytest.mark.parametrize(("method", "params"), LOOK_ALIKES)
@pytest.mark.parametrize("several", [False, True])
def test_names_in_other_letters_do_not_get_past_rules(
    method: str, params: dict[str, Any], several: bool, carrier: Carrier
) -> None:
    """Readers of Go and .NET take `Name` for `name`, the later one."""
    client = opened(carrier, rule('!has(mcp.tool) || mcp.tool.name == "add"'), several=several)
    if several:
        params = {key: "one_add" if value == "add" else value for key, value in params.items()}
    before = [*client.toys["127.0.0.1:9001"].methods_got()]
    assert client.error(method, params)[1] == -32602
    assert client.toys["127.0.0.1:9001"].methods_got() == before


def test_a_message_whose_method_is_there_twice_is_sent_as_it_was_judged(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name == "add"'))
    client.post(b'{"jsonrpc":"2.0","id":9,"Method":"tools/call","params":{"name":"drop"},"method":"x/unknown"}')
    client.post(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"drop"},"method":"x/unknown"}')
    got = [each.received.body for each in client.run.arrivals if b"unknown" in each.received.body]
    assert len(got) == 2 and not any(b"tools/call" in body for body in got)


def test_arguments_that_are_too_large_to_be_judged_are_refused(carrier: Carrier) -> None:
    client = opened(carrier, rule("mcp.tool.arguments.a == 1", action="Deny"))
    assert client.error("tools/call", {"name": "add", "arguments": {"a": 1, "b": "x" * 70_000}})[:2] == (400, -32602)


def test_what_a_rule_saw_is_what_the_server_gets(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name == "add"'))
    body = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"drop","name":"add"}}'
    assert response(client.post(body))["result"]
    assert client.run.arrival.received.body.count(b'"name"') == 1 and b"drop" not in client.run.arrival.received.body


def test_a_failing_expression_does_not_match(carrier: Carrier) -> None:
    assert opened(carrier, rule("mcp.tool.arguments.a.b == 1")).error("tools/call", {"name": "add"})[0] == 200
    assert opened(carrier, rule("jwt.missing == 1", action="Deny")).names() == ["add", "sub", "drop"]


def test_completions_are_calls_of_what_they_are_about(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.prompt.name == "greet"'))
    client.toys["127.0.0.1:9001"].methods["completion/complete"] = lambda params: {"completion": {"values": []}}
    argument = {"name": "a", "value": "b"}
    assert client.result("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument})
    refused = client.error("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": argument})
    assert refused == (200, -32602, "Unknown reference: x")


def test_lists_of_one_server_keep_what_else_it_says(carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.tool.name != "sub"'))
    client.toys["127.0.0.1:9001"].page = 2
    first = client.result("tools/list")
    assert [tool["name"] for tool in first["tools"]] == ["add"] and first["nextCursor"] == "2"
    assert client.names() == ["add", "drop"]
    more = {"_meta": {"a": 1}, "ttlMs": 5}
    client.toys["127.0.0.1:9001"].methods["tools/list"] = lambda params: {**more, "tools": [{"name": "sub"}]}
    assert client.result("tools/list") == {**more, "tools": []}


def test_other_backends_know_nothing_of_it(carrier: Carrier) -> None:
    text = TEXT % (rule("false"), TARGETS[0], "{}")
    text = text[: text.index("      backends:")] + "      backends: [{host: '127.0.0.1:9000'}]\n"
    assert carrier.proxy(text).carry(Request("GET", "/")).answer.status == 200


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (mcp_pb2.BackendMcp(guardrails=mcp_pb2.McpGuardrails()), "guardrails: this proxy reaches no other services"),
        (
            mcp_pb2.BackendMcp(authorization=traffic_pb2.Authorization(action=traffic_pb2.ACTION_DENY)),
            "authorization.policy.matchExpressions: a rule needs an expression",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_its_field(config: mcp_pb2.BackendMcp, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        backend_mcp.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
    assert str(refused.value) == reason
