"""Answers of MCP servers that are read whole take room of the worker's held bodies (`maxHeldBytes`), as long as their
request is served."""

from __future__ import annotations

import json

import pytest

from dataplane.backends.mcp.answers import COPIES
from dataplane.backends.mcp.memory_queue import SECONDS
from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, Client, Toy, messages
from tests.policies.test_mcp import FIRST, SECOND, TWO
from tests.policies.test_mcp_hostile_servers import JSON, asked, result
from tests.policies.test_mcp_notices import EVENTS

ROOM = 100_000
SIZE = 20_000
"""Of an answer: one takes three fifths of the room, and two more than the share of one client."""
LARGE = "x" * SIZE
ELSEWHERE = ("192.0.2.77", 40_000)
"""Another client."""


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


def listed(client: Client) -> Request:
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}).encode()
    return Request("POST", "/mcp", [("accept", BOTH), *JSON, ("mcp-session-id", client.session)], body)


def large(streams: bool, size: int = SIZE) -> Response:
    body = result(tools=[{"name": LARGE[:size]}])
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


def calling(client: Client) -> Conversation:
    waits = asked(client, "tools/call", {"name": "one_add"}, 6)
    client.run.arrival.answer(Response(200, JSON, result(6, content=[LARGE])))
    return waits


def test_an_answer_waits_for_the_room_of_another_one(carrier: Carrier) -> None:
    client = opened(carrier)
    first, one, two = listing(client)
    one.answer(large(False))
    waits = calling(client)
    assert waits.answer.status is None and used(client) < 2 * COPIES * SIZE
    two.answer(Response(200, JSON, result(tools=[])))
    assert messages(first.answer)[-1]["result"]["tools"] == [{"name": "one_" + LARGE}]
    client.run.serve(client.answering)
    assert messages(waits.answer)[-1]["result"]["content"] == [LARGE]
    assert used(client) == 0 and not client.run.counted("limits_exceeded_total")


def test_an_answer_that_finds_no_room_in_time_fails_with_503_and_may_be_asked_for_again(carrier: Carrier) -> None:
    client = opened(carrier)
    first, one, two = listing(client)
    one.answer(large(False))
    waits = calling(client)
    client.run.advance(SECONDS - 1)
    assert waits.answer.status is None
    client.run.advance(2)
    assert (waits.answer.status, waits.answer.headers.get("retry-after")) == (503, "1")
    error = messages(waits.answer)[-1]["error"]
    assert error["message"] == "MCP server one: there is no memory for its answer (maxHeldBytes)"
    assert any("reason=TooManyResponses" in line for line in client.run.log_lines())
    assert client.run.counted("limits_exceeded_total") == {"maxHeldBytes": 1}
    two.answer(Response(200, JSON, result(tools=[])))
    assert messages(first.answer)[-1]["result"], "what waits for the memory has no part in what others do"
    again = calling(client)
    assert messages(again.answer)[-1]["result"] and used(client) == 0, "the session goes on"


def lists_at_once(client: Client, answer: Response) -> list[Conversation]:
    """Eight that come piece by piece at the same time."""
    lists = [listing(client) for _ in range(8)]
    arrivals = [arrival for _, *both in lists for arrival in both]
    for arrival in arrivals:
        arrival.head(Response(200, answer.headers))
    for start in range(0, len(answer.body), 200):
        for arrival in arrivals:
            if not arrival.is_cancelled:
                arrival.content(answer.body[start : start + 200])
            assert used(client) <= ROOM * 3 // 4
    for arrival in arrivals:
        if not arrival.is_cancelled:  # of a stream nothing is read behind the answer
            arrival.end()
    return [waits for waits, _, _ in lists]


@pytest.mark.parametrize("streams", [False, True])
def test_lists_that_come_piece_by_piece_at_the_same_time_are_all_answered(streams: bool, carrier: Carrier) -> None:
    """There is room for three of them."""
    client = opened(carrier)
    lists = lists_at_once(client, large(streams, 4000))
    client.run.advance(1)
    assert [waits.answer.status for waits in lists] == [200] * 8
    assert used(client) == 0 and not client.run.counted("limits_exceeded_total")


def test_of_lists_that_take_nearly_all_memory_one_is_answered_and_the_newest_give_way(carrier: Carrier) -> None:
    client = opened(carrier)
    lists = lists_at_once(client, large(False, 12_000))
    for _ in range(10):
        client.run.advance(1)
    assert {waits.answer.status for waits in lists} == {200, 503}
    assert used(client) == 0 and client.names() == ["one_add", "two_add", "two_sub"], "the session goes on"


def test_another_client_has_its_turn_while_one_waits_with_64(carrier: Carrier) -> None:
    """Each of their lists takes so much that the other one has to wait; the server `two` says when one is over."""
    client = opened(carrier)
    many = [listing(client) for _ in range(64)]
    for _, one, _ in many:
        one.answer(large(False))
    before = len(client.run.arrivals)
    waits = client.run.client(ELSEWHERE).send(listed(client))
    one, two = client.run.arrivals[before:]
    one.answer(large(False, SIZE * 3 // 4))
    two.answer(Response(200, JSON, result(tools=[])))
    for answered, (first, _, two) in enumerate(many, 1):
        assert waits.answer.status is None and first.answer.status is None
        two.answer(Response(200, JSON, result(tools=[])))
        client.run.advance(0)
        assert messages(first.answer)[-1]["result"]
        if answered == 2:
            break
    assert messages(waits.answer)[-1]["result"]["tools"], "it waits for one that had its turn before, and for no other"
    for first, _, two in many[2:5]:
        assert first.answer.status is None
        two.answer(Response(200, JSON, result(tools=[])))
        client.run.advance(0)
        assert messages(first.answer)[-1]["result"], "they go on in their order"


def test_what_an_answer_waits_is_no_time_of_its_server(carrier: Carrier) -> None:
    client = opened(carrier)
    held, one, two = listing(client)
    one.answer(large(False))
    client.run.advance(14)
    waits, *others = listing(client)
    for each in others:
        each.head(Response(200, JSON))
        each.content(result(tools=[{"name": LARGE[: SIZE // 4]}])[:-1])
    client.run.advance(14)
    two.answer(Response(200, JSON, result(tools=[])))
    assert messages(held.answer)[-1]["result"]
    client.run.advance(20)
    assert waits.answer.status is None
    for each in others:
        each.content(b"}")
        each.end()
    client.run.advance(1)
    assert len(messages(waits.answer)[-1]["result"]["tools"]) == 2


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
