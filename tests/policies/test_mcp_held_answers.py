"""Answers of MCP servers that are read whole take room of the worker's held bodies (`maxHeldBytes`), as long as their
request is served."""

from __future__ import annotations

import pytest

from dataplane.backends.mcp.answers import COPIES
from tests.carriers import Carrier, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import Client, Toy, messages
from tests.policies.test_mcp import FIRST, SECOND, TWO
from tests.policies.test_mcp_hostile_servers import JSON, asked, result
from tests.policies.test_mcp_notices import EVENTS

ROOM = 100_000
SIZE = 20_000
"""Of an answer: one takes three fifths of the room, and two more than the share of one client."""
LARGE = "x" * SIZE


def opened(carrier: Carrier) -> Client:
    text = TWO % "" + f"frontendPolicies: {{limits: {{maxHeldBytes: {ROOM}}}}}\n"
    client = Client(carrier.proxy(text), {FIRST: Toy(["add"]), SECOND: Toy(["add", "sub"])})
    client.initialize()
    return client


def used(client: Client) -> int:
    return client.run.memory.context.body_memory.used


def listing(client: Client) -> tuple[Conversation, Arrival, Arrival]:
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    return waits, one, two


def large(streams: bool) -> Response:
    body = result(tools=[{"name": LARGE}])
    return Response(200, EVENTS.headers, b"data: " + body + b"\n\n") if streams else Response(200, JSON, body)


@pytest.mark.parametrize("streams", [False, True])
def test_a_list_for_which_there_is_no_room_fails_alone(streams: bool, carrier: Carrier) -> None:
    client = opened(carrier)
    waits, one, two = listing(client)
    one.answer(large(streams))
    assert used(client) >= COPIES * SIZE
    two.answer(large(streams))
    found = messages(waits.answer)[-1]
    assert (waits.answer.status, found["id"], found["error"]["code"]) == (200, 5, -32603)
    assert found["error"]["message"] == "MCP server two: there is no memory for its answer (maxHeldBytes)"
    assert used(client) == 0 and client.run.counted("limits_exceeded_total") == {"maxHeldBytes": 1}
    assert any("reason=McpAnswerRefused" in line for line in client.run.log_lines())
    assert client.names() == ["one_add", "two_add", "two_sub"], "the session goes on"


def test_answers_of_several_requests_share_the_room(carrier: Carrier) -> None:
    client = opened(carrier)
    first, one, two = listing(client)
    one.answer(large(False))
    waits = asked(client, "tools/call", {"name": "one_add"}, 6)
    client.run.arrival.answer(Response(200, JSON, result(6, content=[LARGE])))
    assert "maxHeldBytes" in messages(waits.answer)[-1]["error"]["message"]
    two.answer(Response(200, JSON, result(tools=[])))
    assert messages(first.answer)[-1]["result"]["tools"] == [{"name": "one_" + LARGE}] and used(client) == 0


@pytest.mark.parametrize("ending", ["answered", "cancelled by the client", "reset by a server", "not readable"])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_the_room_of_answers_is_given_back(method: str, ending: str, carrier: Carrier) -> None:
    client = opened(carrier)
    before = len(client.run.arrivals)
    waits = asked(client, method, {"name": "one_add"})
    one, *others = client.run.arrivals[before:]
    for each in others:
        each.answer(client.toys[SECOND](each.received))
    whole = result(tools=[], content=[LARGE])
    one.head(Response(200, JSON))
    one.content(whole[:SIZE])
    assert used(client) >= COPIES * SIZE
    if ending == "answered":
        one.content(whole[SIZE:])
        one.end()
        assert messages(waits.answer)[-1]["result"]
    elif ending == "cancelled by the client":
        waits.cancel()
        assert one.is_cancelled
    else:
        if ending == "not readable":
            one.end()
        else:
            one.reset()
        assert waits.answer.status == 502
    client.run.serve(client.answering)
    assert used(client) == 0
