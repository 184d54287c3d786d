"""`http.requestTimeout` at the places of an MCP backend: how long a server may take to begin its answer to a call, and
what comes of one that takes longer."""

from __future__ import annotations

import json

import pytest

from tests.carriers import CARRIERS, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, Client, Toy, response

HTTP1 = CARRIERS["http1"]
"""Settings of `http` name no version here, so endpoints get that of this carrier's clients."""
TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      policies: {ROUTE}
      backends:
      - mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001, policies: {TARGET}}}MORE], failureMode: MODE}
        policies: {BACKEND}
"""
TWO = ", {name: two, static: {host: 127.0.0.2, port: 9001}}"


def http(seconds: int) -> str:
    return f"http: {{requestTimeout: {seconds}s}}"


def opened(mode: str = "FailClosed", more: str = "", **places: int) -> Client:
    text = TEXT.replace("MODE", mode).replace("MORE", more)
    for place in ("ROUTE", "BACKEND", "TARGET"):
        seconds = places.get(place.lower())
        text = text.replace(place, "" if seconds is None else http(seconds))
    client = Client(HTTP1.proxy(text), {"127.0.0.1:9001": Toy(), "127.0.0.2:9001": Toy(["sub"])})
    client.initialize()
    return client


def sent(client: Client, method: str, params: object) -> tuple[Conversation, list[Arrival]]:
    """A request that no server answers yet."""
    before = len(client.run.arrivals)
    headers = (("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session))
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
    asked = client.run.send(Request("POST", "/mcp", headers, message))
    return asked, client.run.arrivals[before:]


@pytest.mark.parametrize(
    "places",
    [{"target": 2}, {"backend": 2}, {"target": 2, "route": 1}, {"target": 2, "backend": 60, "route": 60}],
)
def test_the_nearest_setting_ends_a_call_that_no_server_answers(places: dict[str, int]) -> None:
    client = opened(**places)
    asked, (arrival,) = sent(client, "tools/call", {"name": "add"})
    client.run.advance(1.9)
    assert not asked.answer.ended
    client.run.advance(0.2)
    assert asked.answer.status == 504 and arrival.is_cancelled
    assert response(asked.answer)["error"]["code"] == -32603
    assert " reason=UpstreamTimeout " in client.run.log_lines()[-1]
    assert client.names() == ["add"], "the session goes on"


def test_an_answer_that_has_begun_is_not_ended() -> None:
    client = opened(target=2)
    asked, (arrival,) = sent(client, "tools/call", {"name": "add"})
    arrival.head(Response(200, [("content-type", "text/event-stream")]))
    client.run.advance(30)
    arrival.content(b'data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n')
    arrival.end()
    assert asked.answer.status == 200 and response(asked.answer)["result"] == {"content": []}


def test_without_a_setting_a_call_may_take_long() -> None:
    client = opened()
    asked, (arrival,) = sent(client, "tools/call", {"name": "add"})
    client.run.advance(3600)
    assert not asked.answer.ended
    arrival.answer(client.answering(arrival.received))
    assert asked.answer.status == 200


def test_one_slow_server_of_several_fails_alone() -> None:
    client = opened("FailOpen", TWO, target=2)
    asked, arrivals = sent(client, "tools/list", {})
    for each in arrivals:
        if each.received.authority == "127.0.0.2:9001":
            each.answer(client.answering(each.received))
    client.run.advance(2.1)
    assert asked.answer.status == 200
    assert [tool["name"] for tool in response(asked.answer)["result"]["tools"]] == ["two_sub"]


def test_a_call_that_took_too_long_does_not_end_the_session_of_several() -> None:
    client = opened("FailClosed", TWO, target=2)
    asked, _ = sent(client, "tools/call", {"name": "one_add"})
    client.run.advance(2.1)
    assert asked.answer.status == 504
    assert client.names() == ["one_add", "two_sub"]
