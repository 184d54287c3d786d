"""A message that needs no rewriting is forwarded: with one server, a session that is known and nothing to judge in its
answer, bytes pass as they come and nobody waits in a coroutine."""

from __future__ import annotations

import json

import pytest

from dataplane.backends.terminating.terminator import Terminator
from dataplane.mcp.policies import MCP
from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, Client, response
from tests.policies.test_backend_mcp import opened, rule
from tests.policies.test_mcp_notices import event

ANSWER = b'{ "jsonrpc":"2.0", "id": 5, "result": {"content":[]} }'
CALL = b'{ "id": 5, "jsonrpc":"2.0", "method":"tools/call", "params": {"name":"add", "name":"add", "arguments":{}} }'
BY_NAME = rule('mcp.tool.name == "add"')


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[Terminator]:
    """What is served by a coroutine from now on."""
    found: list[Terminator] = []
    run = Terminator.run

    def noted(out: Terminator, served: object) -> None:
        found.append(out)
        run(out, served)  # type: ignore[arg-type]

    monkeypatch.setattr(Terminator, "run", noted)
    return found


def sent(client: Client, body: bytes = CALL, accept: str = BOTH) -> tuple[Conversation, Arrival]:
    headers = (("accept", accept), ("content-type", "application/json"), ("mcp-session-id", client.session))
    return client.run.send(Request("POST", "/mcp", headers, body)), client.run.arrivals[-1]


def at_work(client: Client) -> int:
    return sum(each.at_work for each in client.run.memory.context.of_kind(MCP).memory.remembered.values())


def counted(client: Client) -> list[tuple[str, ...]]:
    """Labels of the messages that were counted, without those that began the session."""
    found = client.run.memory.metrics.series()
    rows = [series.labels for series, _ in found if series.metric.name == "mcp_requests_total"]
    return [labels for labels in rows if labels[0] == "tools/call"]


@pytest.mark.parametrize("policy", ["{}", BY_NAME], ids=["as it is", "by name"])
def test_a_call_and_its_answer_pass_and_nobody_waits(policy: str, carrier: Carrier, waits: list[Terminator]) -> None:
    client = opened(carrier, policy, several=False)
    waits.clear()
    asked, arrival = sent(client)
    received = arrival.received
    assert (received.body == CALL) is (policy == "{}"), "what was judged is written anew"
    assert json.loads(received.body)["params"]["name"] == "add"
    assert received.headers["mcp-session-id"] != client.session and received.headers["accept"] == BOTH
    assert at_work(client) == 1
    arrival.answer(Response(200, (("content-type", "application/json"), ("x-own", "1")), ANSWER))
    assert (asked.answer.status, asked.answer.body, asked.answer.headers["x-own"]) == (200, ANSWER, "1")
    assert not waits and at_work(client) == 0 and counted(client) == [("tools/call", "one", "add", "answered")]
    assert client.run.memory.context.body_memory.used == 0


def test_an_answer_passes_as_it_comes_whatever_it_is(carrier: Carrier, waits: list[Terminator]) -> None:
    client = opened(carrier, "{}", several=False)
    waits.clear()
    asked, arrival = sent(client)
    arrival.head(Response(207, (("content-type", "text/event-stream"), ("mcp-session-id", "theirs"))))
    assert asked.answer.status == 207 and "mcp-session-id" not in asked.answer.headers
    arrival.content(b"no event ")
    assert asked.answer.body == b"no event " and not asked.answer.ended
    arrival.content(b"at all")
    arrival.end()
    assert asked.answer.body == b"no event at all" and asked.answer.ended and not waits


@pytest.mark.parametrize("method", ["ping", "tools/list", "x/own", "completion/complete", "resources/read"])
def test_so_do_others_than_calls(method: str, carrier: Carrier, waits: list[Terminator]) -> None:
    client = opened(carrier, "{}", several=False)
    waits.clear()
    params = {"uri": "u", "ref": {"type": "ref/prompt", "name": "p"}}
    asked, arrival = sent(client, json.dumps({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}).encode())
    arrival.answer(Response(200, (("content-type", "application/json"),), ANSWER))
    assert asked.answer.body == ANSWER and not waits


def test_what_a_rule_refuses_is_answered_at_once(carrier: Carrier, waits: list[Terminator]) -> None:
    client = opened(carrier, rule('mcp.tool.name == "other"'), several=False)
    before = len(client.run.arrivals)
    waits.clear()
    headers = (("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session))
    asked = client.run.send(Request("POST", "/mcp", headers, CALL))
    assert response(asked.answer)["error"]["message"] == "Unknown tool: add"
    assert len(client.run.arrivals) == before and not waits and at_work(client) == 0
    assert [labels[-1] for labels in counted(client)] == ["denied"]


def test_events_are_judged_where_there_are_rules(carrier: Carrier, waits: list[Terminator]) -> None:
    client = opened(carrier, BY_NAME, several=False)
    waits.clear()
    asked, arrival = sent(client)
    arrival.head(Response(200, (("content-type", "text/event-stream"),)))
    hidden = {"method": "notifications/resources/updated", "params": {"uri": "secret"}}
    arrival.content(event(hidden) + event({"id": 5, "result": {}}))
    arrival.end()
    assert b"secret" not in asked.answer.body and response(asked.answer)["id"] == 5
    assert waits and at_work(client) == 0


def test_a_client_that_takes_no_json_gets_an_event(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    asked, arrival = sent(client, accept="text/event-stream")
    arrival.answer(Response(200, (("content-type", "application/json"),), ANSWER))
    assert asked.answer.headers["content-type"] == "text/event-stream" and response(asked.answer)["id"] == 5


@pytest.mark.parametrize("policy", ["{}", BY_NAME], ids=["as it is", "by name"])
def test_a_client_that_leaves_gives_the_call_up(policy: str, carrier: Carrier) -> None:
    for begun in (False, True):
        client = opened(carrier, policy, several=False)
        asked, arrival = sent(client)
        if begun:
            arrival.head(Response(200, (("content-type", "application/json"),)))
            arrival.content(b"{")
        asked.cancel()
        assert arrival.is_cancelled and at_work(client) == 0
        assert [labels[-1] for labels in counted(client)] == ["failed"]
        assert client.run.memory.context.body_memory.used == 0


def test_a_server_that_breaks_off_is_an_error_before_its_answer_and_a_break_behind(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    asked, arrival = sent(client)
    arrival.reset()
    assert response(asked.answer)["error"] == {"code": -32603, "message": "MCP server one is not available"}
    assert response(asked.answer)["id"] == 5
    asked, arrival = sent(client)
    arrival.head(Response(200, (("content-type", "application/json"),)))
    arrival.content(b"{")
    arrival.reset()
    assert asked.answer.reset and at_work(client) == 0
    assert {labels[-1] for labels in counted(client)} == {"failed"}
    assert client.request("ping").status == 200, "its session is there"


@pytest.mark.parametrize("size", [10, 20_000, 300_000])
def test_messages_of_all_sizes_pass_in_pieces(size: int, carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    body = CALL.replace(b"{}", b'{"a":"%b"}' % (b"x" * size))
    headers = (("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session))
    asked = client.run.begin(Request("POST", "/mcp", headers))
    for start in range(0, len(body), 7000):
        asked.content(body[start : start + 7000])
    asked.end()
    arrival = client.run.arrivals[-1]
    assert arrival.received.body == body
    arrival.answer(Response(200, (("content-type", "application/json"),), ANSWER))
    assert asked.answer.body == ANSWER and client.run.memory.context.body_memory.used == 0


def test_a_slow_client_stops_the_server(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    asked, arrival = sent(client)
    arrival.head(Response(200, (("content-type", "text/event-stream"),)))
    asked.pause()
    for _ in range(40):
        arrival.content(bytes(100_000))
    assert not arrival.is_read
    asked.resume()
    assert arrival.is_read
    arrival.end()
    assert len(asked.answer.body) == 4_000_000 and asked.answer.ended


def test_trailers_of_a_server_do_not_pass(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    asked, arrival = sent(client)
    arrival.head(Response(200, (("content-type", "application/json"),)))
    arrival.content(ANSWER)
    arrival.end((("mcp-session-id", "theirs"),))
    assert asked.answer.body == ANSWER and asked.answer.ended and "mcp-session-id" not in asked.answer.trailers


def test_a_client_that_leaves_before_anybody_reads_leaves_no_call(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=False)
    asked, arrival = sent(client)
    memory = client.run.memory
    later = memory.context.call_soon
    begun: list[object] = []
    memory.context.call_soon = begun.append  # type: ignore[assignment]
    arrival.head(Response(404, (("content-type", "application/json"),)))
    asked.cancel()
    memory.context.call_soon = later  # type: ignore[method-assign]
    assert begun and arrival.is_cancelled and at_work(client) == 0
