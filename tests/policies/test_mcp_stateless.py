"""`sessionRouting: Stateless` with revisions that have sessions: what a server asks of its client while it works on a
request (sampling, elicitation) finds the client, and the answer the server, whichever worker gets it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, Client, Toy, response
from tests.policies.test_mcp_notices import EVENTS, event, seen

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      %s
      backends: [{mcp: {targets: [%s], sessionRouting: Stateless}}]
"""
TARGETS = (
    "{name: one, static: {host: 127.0.0.1, port: 9001}}",
    "{name: two, static: {host: 127.0.0.2, port: 9001}}",
)
KEYS = "policies: {apiKeyAuthentication: {secretRef: {a: {value: key-a}, b: {value: key-b}}}}"
ADDRESSES = ("127.0.0.1:9001", "127.0.0.2:9001")


def client_of(carrier: Carrier, several: bool = False, policies: str = "", **toy: Any) -> Client:
    text = TEXT % (policies, ", ".join(TARGETS if several else TARGETS[:1]))
    return Client(carrier.proxy(text), {each: Toy(**toy) for each in ADDRESSES})


def call(client: Client, name: str = "add") -> tuple[Conversation, Arrival]:
    """A call whose server is to be answered for by the test."""
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": name}}).encode()
    lines = [("accept", BOTH), ("content-type", "application/json"), *client.headers]
    asked = client.run.send(Request("POST", "/mcp", lines, body))
    while (arrival := client.run.arrival) and json.loads(arrival.received.body)["method"] != "tools/call":
        arrival.answer(client.answering(arrival.received))
    arrival.head(EVENTS)
    return asked, arrival


def ask(arrival: Arrival, asked: Conversation, number: Any = 0) -> str:
    """A request of the server for the client; its id as the client has it."""
    arrival.content(event({"id": number, "method": "elicitation/create", "params": {}}))
    found = seen(asked.answer)[-1]["id"]
    assert isinstance(found, str)
    return found


def answer(client: Client, request_id: str) -> int | None:
    return client.post({"jsonrpc": "2.0", "id": request_id, "result": {"action": "accept"}}).status


def finish(client: Client, asked: Conversation, arrival: Arrival) -> None:
    arrival.content(event({"id": 5, "result": {"content": []}}))
    arrival.end()
    client.run.serve(client.answering)
    assert seen(asked.answer)[-1] == {"jsonrpc": "2.0", "id": 5, "result": {"content": []}}
    assert all(not toy.sessions for toy in client.toys.values()), "what was opened for the request ends with it"


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("number", [0, "zero"])
def test_an_answer_finds_the_server_that_asked(several: bool, number: Any, carrier: Carrier) -> None:
    client = client_of(carrier, several)
    asked, arrival = call(client, "two_add" if several else "add")
    request_id = ask(arrival, asked, number)
    assert answer(client, request_id) == 202
    toy = client.toys[ADDRESSES[several]]
    assert toy.got[-1] == {"jsonrpc": "2.0", "id": number, "result": {"action": "accept"}}
    assert client.run.arrival.received.headers["mcp-session-id"] == toy.sessions[-1], "in the session of the call"
    assert toy.methods_got().count("initialize") == 1
    finish(client, asked, arrival)


def test_any_worker_carries_it(carrier: Carrier) -> None:
    client = client_of(carrier)
    asked, arrival = call(client)
    request_id = ask(arrival, asked)
    first, other = client.run, carrier.proxy(TEXT % ("", TARGETS[0]))
    other.memory.context.session_key = first.memory.context.session_key
    client.run = other
    assert answer(client, request_id) == 202
    assert client.toys[ADDRESSES[0]].got[-1]["result"] == {"action": "accept"}
    client.run = first
    finish(client, asked, arrival)


def test_an_answer_of_another_caller_is_none(carrier: Carrier) -> None:
    client = client_of(carrier, policies=KEYS)
    client.headers = [("authorization", "Bearer key-a")]
    asked, arrival = call(client)
    request_id = ask(arrival, asked)
    client.headers = [("authorization", "Bearer key-b")]
    assert answer(client, request_id) == 400
    client.headers = [("authorization", "Bearer key-a")]
    assert answer(client, request_id) == 202
    finish(client, asked, arrival)


@pytest.mark.parametrize("request_id", ["x", "gw:one:n:0", "A" * 100, ""])
def test_an_answer_to_nothing_is_refused(request_id: str, carrier: Carrier) -> None:
    client = client_of(carrier)
    assert answer(client, request_id) == 400 and not client.run.arrivals


def test_a_request_that_the_server_withdraws_is_the_one_that_it_had(carrier: Carrier) -> None:
    client = client_of(carrier)
    asked, arrival = call(client)
    request_id = ask(arrival, asked, 7)
    arrival.content(event({"method": "notifications/cancelled", "params": {"requestId": 7, "reason": "late"}}))
    assert seen(asked.answer)[-1]["params"] == {"requestId": request_id, "reason": "late"}
    finish(client, asked, arrival)


def test_a_request_with_too_long_an_id_fails_the_call(carrier: Carrier) -> None:
    client = client_of(carrier)
    asked, arrival = call(client)
    arrival.content(event({"id": "x" * 2000, "method": "ping"}))
    assert asked.answer.reset and arrival.is_cancelled
    client.run.serve(client.answering)


@pytest.mark.parametrize(
    ("version", "spoken"), [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("", "2025-03-26")]
)
def test_servers_may_ask_and_speak_the_clients_revision(version: str, spoken: str, carrier: Carrier) -> None:
    client = client_of(carrier)
    client.headers = [("mcp-protocol-version", version)] if version else []
    asked, arrival = call(client)
    hello = client.toys[ADDRESSES[0]].got[0]["params"]
    assert hello["protocolVersion"] == spoken
    assert hello["capabilities"] == {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
    finish(client, asked, arrival)


def test_an_answer_as_json_passes_as_it_is(carrier: Carrier) -> None:
    client = client_of(carrier)
    result = client.result("tools/call", {"name": "add"})
    assert result == {"content": [{"type": "text", "text": "add({})"}]}
    assert response(client.request("tools/call", {"name": "gone"}))["error"]["code"] == -32601
    client.run.serve(client.answering)


def test_an_answer_that_is_no_stream_passes_as_it_is(carrier: Carrier) -> None:
    client = client_of(carrier)
    toy = client.toys[ADDRESSES[0]]
    client.toys[ADDRESSES[0]] = lambda received: (  # type: ignore[assignment]  # a server that answers text
        Response(200, [("content-type", "text/plain")], b"text") if b"tools/call" in received.body else toy(received)
    )
    found = client.request("tools/call", {"name": "add"})
    assert (found.status, found.body) == (200, b"text")
    client.run.serve(client.answering)
