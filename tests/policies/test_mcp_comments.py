"""What is in the streams of MCP servers beside messages reaches the client, whatever is rewritten."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Carrier
from tests.policies.test_backend_mcp import opened, rule
from tests.policies.test_mcp_notices import EVENTS, call, event, get

RESULT = event({"id": 5, "result": {"content": []}})


@pytest.mark.parametrize("policy", ["{}", rule("true")], ids=["as it is", "with rules"])
@pytest.mark.parametrize("several", [False, True])
def test_comments_pass_at_once(several: bool, policy: str, carrier: Carrier) -> None:
    client = opened(carrier, policy, several=several)
    asked = call(client, "tools/call", {"name": "one_add" if several else "add"})
    arrived = client.run.arrival
    arrived.head(EVENTS)
    for count in (1, 2):
        arrived.content(b": ping\n\n")
        assert asked.answer.body.count(b": ping\n\n") == count
    arrived.content(RESULT)
    arrived.end()
    assert json.loads(asked.answer.body.rpartition(b"data: ")[2])["result"] == {"content": []}


@pytest.mark.parametrize("policy", ["{}", rule("true")], ids=["as it is", "with rules"])
@pytest.mark.parametrize("several", [False, True])
def test_so_they_do_on_streams_of_notices(several: bool, policy: str, carrier: Carrier) -> None:
    client = opened(carrier, policy, several=several)
    asked, arrived = get(client), client.run.arrivals[-2 if several else -1 :]
    for each in arrived:
        each.head(EVENTS)
        each.content(b": here\n\nid: 7\nretry: 10\n\n")
    body = asked.answer.body
    assert body.count(b": here\n\n") == len(arrived) and body.count(b"retry: 10\n") == len(arrived)
    assert (b"id: one:7\n" in body and b"id: two:7\n" in body) if several else b"id: 7\n" in body
    asked.leave()
