"""Runtimes of Amazon Bedrock AgentCore: one path for all requests, signed; what agents say stays as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gatewright.api.lint.lint import Document, lint
from gatewright.api.standalone import standalone
from tests.carriers import Carrier, Names, Request, Response
from tests.fakes.memory_proxy import MemoryProxy

ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/my_agent-AbC123"
PATH = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A123456789012%3Aruntime%2Fmy_agent-AbC123/invocations"
KEYS = "auth: {aws: {secretRef: {accessKey: {value: AKID}, secretKey: {value: secret}}}}"
TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: agent
      backends: [{aws: {agentRuntime: {agentRuntimeArn: 'ARN'}}, policies: {POLICIES}}]
"""
SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=AKID/\d{8}/(\S+)/(\S+)/aws4_request, SignedHeaders=(\S+), Signature=")


OBJECT = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: agent}
spec: {aws: {agentRuntime: {agentRuntimeArn: 'ARN'}}}
"""


def text(policies: str = KEYS, runtime: str = "") -> str:
    made = TEXT.replace("ARN'", f"{ARN}'{runtime and ', ' + runtime}")
    return made.replace("POLICIES", policies)


HOST = "bedrock-agentcore.eu-west-1.amazonaws.com"


def carried_by(carrier: Carrier, config: str, request: Request, answer: Response) -> Any:
    run = carrier.proxy(config)
    run.resolve(Names({HOST: ["10.0.0.9"]}))
    return run.carry(request, answer)


CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"big":12345678901234567890}}}'
EVENTS = [b"event: message\ndata: {", b'"jsonrpc":"2.0"}\n\n', b": ping\n\n"]
SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"


def test_all_requests_go_to_the_path_of_the_runtime_and_are_signed(carrier: Carrier) -> None:
    headers = (
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", "m1"),
        (SESSION.lower(), "s" * 33),
        ("authorization", "Bearer mine"),
    )
    answer = Response(headers=(("content-type", "text/event-stream"), ("mcp-session-id", "m1")), body=EVENTS)
    carried = carried_by(carrier, text(), Request("POST", "/mcp?a=b", headers=headers, body=CALL), answer)
    (received,) = carried.reached
    assert (received.method, received.target, received.authority, received.body) == ("POST", PATH, HOST, CALL)
    match = SIGNED.match(received.headers["authorization"])
    assert match is not None and match.groups()[:2] == ("eu-west-1", "bedrock-agentcore")
    assert (received.headers[SESSION.lower()], received.headers["mcp-session-id"]) == ("s" * 33, "m1")
    assert carried.answer.body == b"".join(EVENTS)
    assert carried.answer.headers["mcp-session-id"] == "m1"


def test_the_qualifier_is_the_only_parameter(carrier: Carrier) -> None:
    config = text(runtime="qualifier: 'v 1'")
    carried = carried_by(carrier, config, Request("GET", "/?qualifier=other&x=1"), Response(body=b"ok"))
    (received,) = carried.reached
    assert received.target == f"{PATH}?qualifier=v%201"


def test_a_token_of_the_client_s_identity_provider_can_take_the_place_of_the_signature(carrier: Carrier) -> None:
    carried = carried_by(carrier, text("auth: {key: a-token}"), Request("POST", "/", body=b"{}"), Response(body=b"ok"))
    (received,) = carried.reached
    assert (received.target, received.headers["authorization"]) == (PATH, "Bearer a-token")


def test_a_runtime_is_asked_with_the_ambient_credentials_over_tls() -> None:
    (plan,) = MemoryProxy(text("")).applier.current.table.backends.values()
    assert plan.finishers is not None and [type(each).__name__ for each in plan.finishers] == ["Retargeted", "Signed"]
    assert plan.transport is not None and plan.transport.server_name == HOST


@pytest.mark.parametrize(
    "arn",
    [
        "arn",
        "arn:aws:bedrock:eu-west-1:123456789012:runtime/a",
        "arn:aws:bedrock-agentcore:eu-west-1.evil.com:123456789012:runtime/a",
        "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/a/../b",
        "arn:aws:bedrock-agentcore:nowhere:123456789012:runtime/a",
    ],
)
def test_what_is_no_resource_name_of_a_runtime_is_an_error_of_lint(arn: str) -> None:
    text_of_file = text().replace(ARN, arn)
    (problem,) = standalone.load(text_of_file, "config.yaml").problems
    assert "agentRuntimeArn" in problem.message and "runtime/<id>" in problem.message
    (found,) = lint([Document("backend.yaml", OBJECT.replace("ARN", arn))])
    assert "agentRuntimeArn" in str(found.path) + found.message
