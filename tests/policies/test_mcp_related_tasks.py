"""Tasks of several servers: messages that belong to one name it as clients see it, in `_meta` as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Request, Response
from tests.fakes.mcp_toys import BOTH, Client, Toy, messages
from tests.policies.test_mcp import FIRST, ONE, SECOND, open_two

RELATED = "io.modelcontextprotocol/related-task"
EVENTS = Response(200, [("content-type", "text/event-stream")])


def asked(client: Client, method: str, params: Any) -> Any:
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    body = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
    return client.run.send(Request("POST", "/mcp", headers, json.dumps(body).encode()))


def of_task(name: str, **more: Any) -> dict[str, Any]:
    return {**more, "_meta": {"own": [1], RELATED: {"taskId": name, "more": 2}}}


def event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


def test_every_message_of_a_task_names_it_as_clients_see_it(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tasks/result", {"taskId": "two+t1"})
    stream = client.run.arrival
    assert json.loads(stream.received.body)["params"] == {"taskId": "t1"} and stream.received.authority == SECOND
    stream.head(EVENTS)
    stream.content(event({"id": 3, "method": "elicitation/create", "params": of_task("t1", message="?")}))
    stream.content(event({"method": "notifications/message", "params": of_task("t1", level="info")}))
    stream.content(event({"method": "notifications/tasks/status", "params": of_task("t1", taskId="t1")}))
    stream.content(event({"id": 5, "result": of_task("t1", content=[])}))
    stream.end()
    question, log, status, result = messages(waits.answer)
    shown = of_task("two+t1")["_meta"]
    assert question["params"] == {"message": "?", "_meta": shown} and log["params"]["_meta"] == shown
    assert status["params"] == {"taskId": "two+t1", "_meta": shown}
    assert result["result"] == {"content": [], "_meta": shown}
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": of_task("two+t1", action="accept")}
    assert client.post(answer).status == 202
    assert client.toys[SECOND].got[-1] == {"jsonrpc": "2.0", "id": 3, "result": of_task("t1", action="accept")}


@pytest.mark.parametrize("meta", ["[]", f'{{"{RELATED}": 7}}', f'{{"{RELATED}": {{"taskId": 7}}}}'])
def test_what_names_no_task_fails_or_passes_and_breaks_nothing(meta: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tasks/result", {"taskId": "two+t1"})
    body = b'{"jsonrpc":"2.0","id":5,"result":{"note":"%b","_meta":%b}}' % (RELATED.encode(), meta.encode())
    client.run.arrival.answer(Response(200, [("content-type", "application/json")], body))
    assert waits.answer.ended and waits.answer.status in (200, 502)
    if waits.answer.status == 200:
        assert json.loads(waits.answer.body) == json.loads(body)
    client.run.serve(client.answering)


def test_with_one_server_it_passes_as_it_is(carrier: Carrier) -> None:
    client = Client(carrier.proxy(ONE % ""), {FIRST: Toy()})
    client.initialize()
    waits = asked(client, "tasks/result", {"taskId": "t1"})
    stream = client.run.arrival
    stream.head(EVENTS)
    said = event({"id": 5, "result": of_task("t1", content=[])})
    stream.content(said)
    stream.end()
    assert waits.answer.body == said
