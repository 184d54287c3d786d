"""What the route's policies refuse of MCP's clients is a JSON-RPC error with the id of its message, where that was
read; the status and the headers are those of any other request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.mcp_toys import Client, Toy
from tests.harness import yamls

MCP: Any = {"mcp": {"targets": [{"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}]}}
HEADERS = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
CALL = {"jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": {"name": "add"}}


def asked(carrier: Carrier, expression: str, message: Any, *backends: Any) -> Any:
    """The answer where a rule of this expression denies."""
    denies = {"authorization": {"action": "Deny", "policy": {"matchExpressions": [expression]}}}
    route = {"name": "r", "policies": denies, "backends": list(backends or (MCP,))}
    text = yamls.dump({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": [route]}]}]})
    client = Client(carrier.proxy(text), {"127.0.0.1:9001": Toy(["add"])})
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return client.run.ask(Request("POST", "/mcp", HEADERS, body))


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
