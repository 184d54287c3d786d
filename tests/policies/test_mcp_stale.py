"""A connection to a server that was kept, and that the server has closed when the next message goes out on it: what may
come twice is sent again on a new one, a call of a tool is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import CARRIERS, Carrier, Request
from tests.fakes.mcp_toys import BOTH, Client, Toy
from tests.policies.test_mcp import FIRST, HELLO, ONE

AGAIN: list[tuple[str, Any]] = [
    ("tools/list", None),
    ("prompts/get", {"name": "greet"}),
    ("resources/read", {"uri": "toy://a"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": "b"}}),
    ("tasks/get", {"taskId": "1"}),
    ("ping", None),
    ("initialize", HELLO),
    ("notifications/roots/list_changed", None),
]
ONCE: list[tuple[str, Any]] = [
    ("tools/call", {"name": "add", "arguments": {}}),
    ("tasks/update", {"taskId": "1"}),
    ("own/method", None),
]


def refused(client: Client, method: str, params: Any) -> Any:
    """A message whose connection was closed by the server in the meantime."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if not method.startswith("notifications/"):
        message["id"] = 7
    if params is not None:
        message["params"] = params
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("POST", client.path, headers, json.dumps(message).encode()))
    client.run.arrival.refuse()
    return asked


def of(carrier: Carrier) -> Client:
    client = Client(carrier.proxy(ONE % ""), {FIRST: Toy()})
    client.initialize()
    return client


@pytest.mark.parametrize(("method", "params"), AGAIN, ids=lambda value: value if isinstance(value, str) else "")
def test_what_may_come_twice_is_sent_again(method: str, params: Any, carrier: Carrier) -> None:
    client = of(carrier)
    before = len(client.run.arrivals)
    asked = refused(client, method, params)
    first, second = client.run.arrivals[before:]
    assert second.received.body == first.received.body
    second.answer(client.answering(second.received))
    assert asked.answer.ended and asked.answer.status in (200, 202)


@pytest.mark.parametrize(("method", "params"), ONCE, ids=lambda value: value if isinstance(value, str) else "")
def test_what_acts_is_not(method: str, params: Any) -> None:
    """Over HTTP/1.1: of HTTP/2 a refused stream is one that nobody has seen."""
    client = of(CARRIERS["http1"])
    before = len(client.run.arrivals)
    asked = refused(client, method, params)
    assert len(client.run.arrivals) == before + 1
    assert asked.answer.ended and asked.answer.status == 502
