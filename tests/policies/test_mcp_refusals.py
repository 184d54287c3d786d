"""What the route's policies refuse of MCP's clients is a JSON-RPC error with the id of its message, where that was
read; the status and the headers are those of any other request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.mcp_toys import HELLO, Client, Toy
from tests.harness import yamls

MCP: Any = {"mcp": {"targets": [{"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}]}}
HEADERS = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
CALL = {"jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": {"name": "add"}}


def asked(carrier: Carrier, expression: str, message: Any, *backends: Any) -> Any:
    """The answer where a rule of this expression denies."""
    denies = {"authorization": {"action": "Deny", "policy": {"matchExpressions": [expression]}}}
    client = served(carrier, denies, *backends)
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return client.run.ask(Request("POST", "/mcp", HEADERS, body))


def served(carrier: Carrier, policies: dict[str, Any], *backends: Any, early: dict[str, Any] | None = None) -> Client:
    """A client of a route with these policies; `early`: those of its listener before routing."""
    route = {"name": "r", "policies": policies, "backends": list(backends or (MCP,))}
    listener: dict[str, Any] = {"name": "http", "routes": [route]}
    if early is not None:
        listener["policies"] = {"phase": "PreRouting", **early}
    text = yamls.dump({"binds": [{"port": 8080, "listeners": [listener]}]})
    return Client(carrier.proxy(text), {"127.0.0.1:9001": Toy(["add"])})


BY_BODY = "size(request.body) > 0"
AS_EVER = (403, b"authorization failed")


def test_a_message_that_rules_of_the_route_refuse_is_answered_by_its_id(carrier: Carrier) -> None:
    answer = asked(carrier, BY_BODY, CALL)
    assert answer.status == 403 and answer.headers["content-type"] == "application/json"
    error = json.loads(answer.body)
    assert error == {"jsonrpc": "2.0", "id": "seven", "error": {"code": -32003, "message": "authorization failed"}}


@pytest.mark.parametrize("message", [b"{}", b"not json", {"jsonrpc": "2.0", "method": "notifications/initialized"}])
def test_what_has_no_id_is_refused_as_any_other_request(message: Any, carrier: Carrier) -> None:
    answer = asked(carrier, BY_BODY, message)
    assert (answer.status, answer.body) == AS_EVER


def test_a_body_that_nobody_has_read_is_not_read_for_the_answer(carrier: Carrier) -> None:
    answer = asked(carrier, 'request.method == "POST"', CALL)
    assert (answer.status, answer.body) == AS_EVER


def test_beside_a_backend_of_another_kind_the_answer_is_as_ever(carrier: Carrier) -> None:
    answer = asked(carrier, BY_BODY, CALL, {**MCP, "weight": 1}, {"host": "127.0.0.1:9001", "weight": 1})
    assert (answer.status, answer.body) == AS_EVER


READS = {"transformation": {"request": {"set": [{"name": "x-size", "value": "string(size(request.body))"}]}}}
ALLOWS = {"authorization": {"action": "Require", "policy": {"matchExpressions": [BY_BODY]}}}


@pytest.mark.parametrize(
    ("policies", "early", "before", "status", "code", "words"),
    [
        ({"apiKeyAuthentication": {"secretRef": {"ann": {"value": "k"}}}}, READS, 0, 401, -32001, "authentication"),
        ({**ALLOWS, "buffer": {"request": {"maxBytes": 8}}}, None, 0, 413, -32600, "large"),
        ({**ALLOWS, "rateLimit": {"local": [{"requests": 1, "unit": "Hours"}]}}, None, 1, 429, -32000, "rate limit"),
    ],
)
def test_each_status_has_its_code_and_keeps_its_headers(
    policies: Any, early: Any, before: int, status: int, code: int, words: str, carrier: Carrier
) -> None:
    client = served(carrier, policies, early=early)
    for _ in range(before):
        client.request("initialize", HELLO)
    answer = client.run.ask(Request("POST", "/mcp", HEADERS, json.dumps(CALL).encode()))
    error = json.loads(answer.body)
    assert (answer.status, error["id"], error["error"]["code"]) == (status, "seven", code)
    assert words in error["error"]["message"]
    assert ("www-authenticate" in answer.headers, "retry-after" in answer.headers) == (status == 401, status == 429)
