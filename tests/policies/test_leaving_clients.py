"""Clients that leave a stream: whoever speaks on it learns of it at once, over each carrier, whatever is between."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.mcp_toys import BOTH, MODERN, Toy
from tests.fakes.policy_run import text_of
from tests.policies.test_a2a import proxy as of_agent
from tests.policies.test_backend_mcp import opened, rule
from tests.policies.test_mcp import META, of_one
from tests.policies.test_mcp_notices import EVENTS, get

BACKEND = "backends: [{host: '127.0.0.1:9000'}]"
STREAMING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}}).encode()
PLAIN = Request("GET", "/")
AGENTS = Request("POST", "/", [("content-type", "application/json")], STREAMING)


@pytest.mark.parametrize(
    ("route", "request_"),
    [
        (BACKEND, PLAIN),
        (f"policies: {{headerModifiers: {{response: {{set: [{{name: a, value: b}}]}}}}}}\n{BACKEND}", PLAIN),
        (f"policies: {{requestMirror: {{host: '127.0.0.1:9009'}}}}\n{BACKEND}", PLAIN),
        ("", AGENTS),
    ],
    ids=["plain", "with a response step", "with a mirror", "A2A"],
)
def test_the_origin_of_a_stream_learns_of_it(route: str, request_: Request, carrier: Carrier) -> None:
    run = carrier.proxy(text_of(route)) if route else of_agent(carrier)
    asked = run.send(request_)
    (arrived,) = (each for each in run.arrivals if each.endpoint.port == 9000)
    arrived.head(EVENTS)
    arrived.content(b": here\n\n")
    assert asked.answer.body == b": here\n\n"
    asked.leave()
    assert arrived.is_cancelled
    assert "reason=ClientGone" in run.log_lines()[-1]
    run.serve()  # a mirror gets its copy whatever becomes of the client


@pytest.mark.parametrize("policy", ["{}", rule("true")], ids=["as it is", "with rules"])
@pytest.mark.parametrize("several", [False, True])
def test_servers_of_mcp_learn_of_it(several: bool, policy: str, carrier: Carrier) -> None:
    """So the next stream of the same session is taken by a server that has one for each."""
    client = opened(carrier, policy, several=several)
    asked, arrived = get(client), client.run.arrivals[-2 if several else -1 :]
    for each in arrived:
        each.head(EVENTS)
        each.content(b": here\n\n")
    asked.leave()
    assert all(each.is_cancelled for each in arrived)
    assert "reason=ClientGone" in client.run.log_lines()[-1]


@pytest.mark.parametrize("has_begun", [False, True])
def test_leaving_a_request_without_a_session_cancels_it(has_begun: bool, carrier: Carrier) -> None:
    """MCP 2026-07-28: closing the stream of a request is its cancellation."""
    client, _ = of_one(carrier, Toy(is_modern=True))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}, **META}}
    lines = [("accept", BOTH), ("content-type", "application/json"), ("mcp-protocol-version", MODERN)]
    lines += [("mcp-method", "tools/call"), ("mcp-name", "add")]
    asked = client.run.send(Request("POST", "/mcp", lines, json.dumps(body).encode()))
    if has_begun:
        client.run.arrival.head(EVENTS)
    asked.leave()
    assert client.run.arrival.is_cancelled
