"""Notices of MCP servers: what rules refuse is in none of them, on whatever stream they come; `subscriptions/listen` of
one server and of several as one (MCP 2026-07-28)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Answer, Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, HELLO, MODERN, Client, response
from tests.policies.test_backend_mcp import TARGETS, TEXT, opened, rule

EVENTS = Response(200, [("content-type", "text/event-stream")])
DENY = rule('mcp.resource.name == "file:///secret"', action="Deny")
CALLABLE = rule('mcp.tool.name == "add"')
"""An Allow: what is no tool is allowed to nobody."""
ID = "io.modelcontextprotocol/subscriptionId"
RESULT = b'{"jsonrpc":"2.0","id":5,"result":{}}'
SECRET = "file:///secret"


def event(message: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps({"jsonrpc": "2.0", **message}).encode()


def updated(uri: str) -> bytes:
    return event({"method": "notifications/resources/updated", "params": {"uri": uri}})


def get(client: Client, *headers: tuple[str, str]) -> Conversation:
    lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session), *headers]
    return client.run.send(Request("GET", "/mcp", lines))


def call(client: Client, method: str, params: dict[str, Any]) -> Conversation:
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}).encode()
    lines = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    return client.run.send(Request("POST", "/mcp", lines, body))


# --- streams of revisions with sessions


@pytest.mark.parametrize("several", [False, True])
def test_a_notice_of_a_resource_that_is_denied_is_not_seen(several: bool, carrier: Carrier) -> None:
    client = opened(carrier, DENY, several=several)
    asked = get(client)
    first = client.run.arrivals[-2 if several else -1]
    if several:
        client.run.arrival.answer(Response(405))
    first.head(EVENTS)
    for uri in (SECRET, "FILE:///./%73ecret", "file:///a"):
        first.content(updated(uri))
    first.content(event({"method": "notifications/resources/updated", "params": {"uri": 7}}))
    first.content(event({"method": "notifications/tools/list_changed"}))
    body = asked.answer.body
    assert b"ecret" not in body and b"7" not in body
    assert (b"one+file:///a" if several else b'"file:///a"') in body and b"tools/list_changed" in body
    first.end()


def test_a_key_that_is_there_twice_passes_as_it_was_judged(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(updated(SECRET).replace(b'{"uri"', b'{"uri": "file:///b", "uri"', 1))
    client.run.arrival.content(updated("file:///a").replace(b'{"uri"', b'{"uri": "%b", "uri"' % SECRET.encode(), 1))
    assert b"secret" not in asked.answer.body and b"file:///b" not in asked.answer.body
    assert b"file:///a" in asked.answer.body
    client.run.arrival.end()


def test_a_notice_beside_an_answer_is_judged_and_is_not_what_was_called(carrier: Carrier) -> None:
    client = opened(carrier, CALLABLE)
    asked = call(client, "tools/call", {"name": "add"})
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(updated("file:///a"))
    client.run.arrival.content(event({"method": "notifications/tasks/status", "params": {"taskId": "t"}}))
    client.run.arrival.content(event({"id": 5, "result": {"content": []}}))
    client.run.arrival.end()
    assert response(asked.answer)["result"] == {"content": []}
    assert b"file:///a" not in asked.answer.body and b"taskId" not in asked.answer.body
    line = client.run.log_lines()[-1]
    assert " gen_ai.tool.name=add " in line and "mcp.resource" not in line, "the log has what was called"
    series = client.run.memory.metrics.series()
    found = {each.labels: values[0] for each, values in series if each.metric.name == "mcp_requests_total"}
    assert found[("tools/call", "one", "add", "answered")] == 1, "and so has the metric"


@pytest.mark.parametrize("status", [200, 201, 206])
@pytest.mark.parametrize("method", ["tools/call", "ping", "experimental/thing"])
def test_no_answer_of_whatever_status_has_a_notice_of_what_is_denied(
    method: str, status: int, carrier: Carrier
) -> None:
    client = opened(carrier, DENY)
    asked = call(client, method, {"name": "add"})
    client.run.arrival.head(Response(status, EVENTS.headers))
    client.run.arrival.content(updated(SECRET) + updated("file:///a"))
    client.run.arrival.content(event({"id": 5, "result": {}}))
    client.run.arrival.end()
    assert b"secret" not in asked.answer.body and b"file:///a" in asked.answer.body
    assert response(asked.answer)["result"] == {}


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "application/xml", ""])
def test_an_answer_that_cannot_be_judged_is_none(kind: str, carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = call(client, "tools/call", {"name": "add"})
    client.run.arrival.answer(Response(200, [("content-type", kind)] if kind else (), updated(SECRET)))
    assert asked.answer.status == 502 and b"secret" not in asked.answer.body


def test_an_error_passes_as_it_is(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = call(client, "tools/call", {"name": "add"})
    client.run.arrival.answer(Response(503, [("content-type", "text/plain")], b"busy"))
    assert (asked.answer.status, asked.answer.body) == (503, b"busy")


def test_what_a_server_says_before_it_has_a_session_is_judged(carrier: Carrier) -> None:
    client = Client(carrier.proxy(TEXT % ("{}", TARGETS[0], DENY)), {})
    asked = call(client, "initialize", HELLO)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(updated(SECRET) + event({"id": 5, "result": {"protocolVersion": "2025-06-18"}}))
    client.run.arrival.end()
    assert b"secret" not in asked.answer.body and asked.answer.headers["mcp-session-id"]
    assert response(asked.answer)["result"] == {"protocolVersion": "2025-06-18"}


def test_a_resource_that_is_too_long_to_be_judged_is_in_no_notice(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(updated("file:///" + "x" * 8192) + updated("file:///a"))
    assert b"xxx" not in asked.answer.body and b"file:///a" in asked.answer.body
    client.run.arrival.end()


def test_a_request_that_the_only_server_withdraws_keeps_its_id(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(event({"id": 3, "method": "roots/list"}))
    client.run.arrival.content(event({"method": "notifications/cancelled", "params": {"requestId": 3}}))
    asking, withdrawn = seen(asked.answer)
    assert asking["id"] == 3 and withdrawn["params"] == {"requestId": 3}
    client.run.arrival.end()


def test_resources_of_several_servers_are_subscribed_to_where_they_are(carrier: Carrier) -> None:
    client = opened(carrier, DENY, several=True)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        asked = call(client, method, {"uri": "two+file:///a"})
        received = client.run.arrival.received
        assert received.authority == "127.0.0.2:9001" and json.loads(received.body)["params"] == {"uri": "file:///a"}
        client.run.arrival.answer(Response(200, [("content-type", "application/json")], RESULT))
        assert response(asked.answer) == {"jsonrpc": "2.0", "id": 5, "result": {}}
        assert client.error(method, {"uri": f"one+{SECRET}"}) == (200, -32602, f"Unknown resource: one+{SECRET}")


def test_without_rules_a_stream_passes_as_it_is(carrier: Carrier) -> None:
    client = opened(carrier, "{}")
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(b": hello\n\n" + updated(SECRET))
    assert asked.answer.body == b": hello\n\n" + updated(SECRET)
    client.run.arrival.end()


def test_an_id_of_an_event_stays_the_servers_where_it_is_alone(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(b"id: 8\n" + updated("file:///a"))
    assert b"id: 8\n" in asked.answer.body
    client.run.arrival.end()
    get(client, ("last-event-id", "8"))
    assert client.run.arrival.received.headers["last-event-id"] == "8"
    client.run.arrival.answer(EVENTS)


@pytest.mark.parametrize(
    "answer", [Response(200, [("content-type", "application/json")], b"{}"), Response(202), Response(200, (), b"x")]
)
def test_what_is_no_stream_of_events_is_none_for_rules(answer: Response, carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    asked = get(client)
    client.run.arrival.answer(answer)
    assert asked.answer.status == 502


def test_two_streams_that_wait_for_a_slow_client_both_go_on(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=True)
    asked = get(client)
    streams = client.run.arrivals[-2:]
    for each in streams:
        each.head(EVENTS)
    asked.pause()
    filler = event({"method": "notifications/message", "params": {"data": "x" * 50_000}})
    for each in streams:
        for _ in range(40):
            if not each.is_read:
                break
            each.content(filler)
        assert not each.is_read
    asked.resume()
    for number, each in enumerate(streams):
        assert each.is_read, "each of them was woken"
        each.content(event({"method": "notifications/message", "params": {"data": f"last of {number}"}}))
        each.end()
    assert asked.answer.ended and b"last of 0" in asked.answer.body and b"last of 1" in asked.answer.body


# --- subscriptions/listen


def listening(carrier: Carrier, policies: str = "{}", several: bool = True, more: str = "") -> Client:
    targets = ", ".join(TARGETS if several else TARGETS[:1])
    text = (TEXT % ("{}", targets, policies)).replace("]}\n        policies", f"]{more}}}\n        policies")
    return Client(carrier.proxy(text), {})


def listen(client: Client, **notifications: Any) -> Conversation:
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    params = {"notifications": notifications, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": "listen-1", "method": "subscriptions/listen", "params": params})
    lines = [("accept", BOTH), ("content-type", "application/json")]
    lines += [("mcp-protocol-version", MODERN), ("mcp-method", "subscriptions/listen")]
    return client.run.send(Request("POST", "/mcp", lines, body.encode()))


def wanted(arrival: Arrival) -> Any:
    return json.loads(arrival.received.body)["params"]["notifications"]


def grant(arrival: Arrival, **notifications: Any) -> None:
    arrival.head(EVENTS)
    params = {"notifications": notifications, "_meta": {ID: "listen-1"}}
    arrival.content(event({"method": "notifications/subscriptions/acknowledged", "params": params}))


def seen(answer: Answer) -> list[Any]:
    """Messages so far."""
    parts = answer.body.split(b"\n\n")[:-1]
    return [json.loads(part.partition(b"data: ")[2]) for part in parts]


def end(arrival: Arrival) -> None:
    arrival.content(event({"id": "listen-1", "result": {"_meta": {ID: "listen-1"}, "resultType": "complete"}}))
    if not arrival.is_cancelled:
        arrival.end()


def test_several_servers_are_listened_to_as_one(carrier: Carrier) -> None:
    client = listening(carrier)
    asked = listen(client, toolsListChanged=True, resourceSubscriptions=["two+file:///a", "three+file:///b", "x"])
    one, two = client.run.arrivals[-2:]
    assert wanted(one) == {"toolsListChanged": True}
    assert wanted(two) == {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
    assert one.received.headers["mcp-method"] == "subscriptions/listen"
    grant(one, toolsListChanged=True)
    assert not asked.answer.body, "the acknowledgement is of all"
    grant(two, toolsListChanged=True, resourceSubscriptions=["file:///a", "file:///other"], promptsListChanged=True)
    (first,) = seen(asked.answer)
    assert first["method"] == "notifications/subscriptions/acknowledged"
    granted = {"toolsListChanged": True, "resourceSubscriptions": ["two+file:///a"]}
    assert first["params"] == {"notifications": granted, "_meta": {ID: "listen-1"}}
    one.content(event({"method": "notifications/tools/list_changed", "params": {"_meta": {ID: "listen-1"}}}))
    one.content(updated("file:///a"))
    one.content(event({"method": "notifications/prompts/list_changed"}))
    one.content(event({"id": 1, "method": "sampling/createMessage", "params": {}}))
    two.content(updated("file:///a"))
    _, changed, last = seen(asked.answer)
    assert changed["method"] == "notifications/tools/list_changed" and changed["params"]["_meta"] == {ID: "listen-1"}
    assert last["params"]["uri"] == "two+file:///a", "what was not asked for is not passed"
    end(one)
    assert asked.answer.ended and seen(asked.answer)[-1]["result"]["_meta"] == {ID: "listen-1"}
    assert two.is_cancelled, "the client asks anew, of all"


@pytest.mark.parametrize("several", [False, True])
def test_what_rules_refuse_is_neither_asked_for_nor_granted_nor_seen(several: bool, carrier: Carrier) -> None:
    client = listening(carrier, DENY, several)
    mark = "one+" if several else ""
    uris = [f"{mark}{SECRET}", f"{mark}FILE:///x/../secret", f"{mark}file:///a"]
    asked = listen(client, resourceSubscriptions=uris)
    (arrival,) = client.run.arrivals
    assert wanted(arrival) == {"resourceSubscriptions": ["file:///a"]}
    grant(arrival, resourceSubscriptions=[SECRET, "file:///a"])
    arrival.content(updated(SECRET))
    arrival.content(updated("file:///a/part"))
    first, notice = seen(asked.answer)
    assert first["params"]["notifications"] == {"resourceSubscriptions": [f"{mark}file:///a"]}
    assert notice["params"]["uri"] == f"{mark}file:///a/part"
    end(arrival)
    assert b"secret" not in asked.answer.body


def test_one_server_without_rules_answers_itself(carrier: Carrier) -> None:
    client = listening(carrier, several=False)
    asked = listen(client, toolsListChanged=True, taskIds=["t"])
    (arrival,) = client.run.arrivals
    assert wanted(arrival) == {"toolsListChanged": True, "taskIds": ["t"]}
    arrival.head(EVENTS)
    arrival.content(b": as it is\n\n")
    assert asked.answer.body == b": as it is\n\n"
    arrival.end()


def test_events_that_come_with_the_acknowledgement_are_kept(carrier: Carrier) -> None:
    client = listening(carrier, DENY, several=False)
    asked = listen(client, resourceSubscriptions=["file:///a"])
    (arrival,) = client.run.arrivals
    arrival.head(EVENTS)
    params = {"notifications": {"resourceSubscriptions": ["file:///a"]}}
    ack = event({"method": "notifications/subscriptions/acknowledged", "params": params})
    arrival.content(b"id: 1\ndata:\n\n" + ack + updated("file:///a") + updated(SECRET))
    assert [each["method"] for each in seen(asked.answer)][1:] == ["notifications/resources/updated"]
    end(arrival)
    assert asked.answer.ended


def test_with_fail_open_the_others_go_on(carrier: Carrier) -> None:
    client = listening(carrier, more=", failureMode: FailOpen")
    asked = listen(client, toolsListChanged=True)
    one, two = client.run.arrivals
    one.answer(Response(503))
    grant(two, toolsListChanged=True)
    assert seen(asked.answer)[0]["params"]["notifications"] == {"toolsListChanged": True}
    two.content(event({"method": "notifications/tools/list_changed"}))
    assert len(seen(asked.answer)) == 2
    two.reset()
    assert not asked.answer.ended and asked.answer.reset, "the last one broke off, and so does this"


def test_with_fail_open_the_end_of_one_is_not_the_end(carrier: Carrier) -> None:
    client = listening(carrier, more=", failureMode: FailOpen")
    asked = listen(client, toolsListChanged=True)
    one, two = client.run.arrivals
    grant(one, toolsListChanged=True)
    grant(two, toolsListChanged=True)
    two.content(event({"id": "other", "result": {}}))
    end(one)
    assert not asked.answer.ended and not two.is_cancelled
    two.content(event({"method": "notifications/tools/list_changed"}))
    end(two)
    assert [each.get("method", "result") for each in seen(asked.answer)][1:] == [
        "notifications/tools/list_changed",
        "result",
    ]
    assert asked.answer.ended


@pytest.mark.parametrize("is_there", [False, True])
def test_with_fail_open_a_part_that_is_lost_is_asked_for_again(is_there: bool, carrier: Carrier) -> None:
    client = listening(carrier, more=", failureMode: FailOpen")
    asked = listen(client, toolsListChanged=True)
    one, two = client.run.arrivals
    grant(one, toolsListChanged=True)
    if is_there:
        grant(two, toolsListChanged=True)
        two.reset()
    else:
        two.answer(Response(503))
    for pause in (1, 2):
        client.run.advance(pause - 0.1)
        before = len(client.run.arrivals)
        client.run.advance(0.2)
        assert len(client.run.arrivals) == before + 1
        again = client.run.arrival
        assert wanted(again) == {"toolsListChanged": True}
        if pause == 1:
            again.answer(Response(503))
    grant(again, toolsListChanged=True)
    again.content(event({"method": "notifications/tools/list_changed"}))
    assert [each["method"].rpartition("/")[2] for each in seen(asked.answer)] == ["acknowledged", "list_changed"]
    end(again)
    client.run.advance(4.1)
    refusing(client.run.arrival)
    client.run.advance(60)
    assert len(client.run.arrivals) == before + 2, "it is not asked when it says that it has none"
    end(one)
    assert asked.answer.ended


def test_with_fail_closed_a_dead_server_fails_it(carrier: Carrier) -> None:
    client = listening(carrier)
    asked = listen(client, toolsListChanged=True)
    one, two = client.run.arrivals
    grant(one, toolsListChanged=True)
    two.answer(Response(503))
    assert asked.answer.status == 502 and one.is_cancelled


def test_a_server_that_does_not_acknowledge_fails_in_time(carrier: Carrier) -> None:
    client = listening(carrier)
    asked = listen(client, toolsListChanged=True)
    for arrival in client.run.arrivals:
        arrival.head(EVENTS)
    client.run.advance(31)
    assert asked.answer.status == 502


NO_METHOD = {"jsonrpc": "2.0", "id": "listen-1", "error": {"code": -32601, "message": "Method not found"}}


def refusing(arrival: Arrival, error: dict[str, Any] = NO_METHOD) -> None:
    arrival.answer(Response(404, [("content-type", "application/json")], json.dumps(error).encode()))


def test_a_server_without_the_method_has_nothing_to_say(carrier: Carrier) -> None:
    client = listening(carrier)
    asked = listen(client, toolsListChanged=True)
    one, two = client.run.arrivals
    refusing(one)
    grant(two, toolsListChanged=True)
    assert seen(asked.answer)[0]["params"]["notifications"] == {"toolsListChanged": True}
    end(two)
    asked = listen(client, toolsListChanged=True)
    for each in client.run.arrivals[-2:]:
        refusing(each)
    assert asked.answer.status == 404 and response(asked.answer)["error"]["code"] == -32601


@pytest.mark.parametrize(
    "first",
    [
        event({"method": "notifications/tools/list_changed"}),
        event({"id": "listen-1", "result": {}}),
        event({"id": "other", "error": {"code": 1, "message": "x"}}),
        event({"method": "notifications/subscriptions/acknowledged"}),
        b"data: {\n\n",
    ],
)
def test_a_stream_that_begins_with_anything_else_is_none(first: bytes, carrier: Carrier) -> None:
    client = listening(carrier, DENY, several=False)
    asked = listen(client, toolsListChanged=True)
    (arrival,) = client.run.arrivals
    arrival.head(EVENTS)
    arrival.content(first)
    assert asked.answer.status == 502 and arrival.is_cancelled


@pytest.mark.parametrize("has_begun", [False, True])
def test_an_event_above_the_bound_ends_a_stream_with_an_error_that_names_it(has_begun: bool, carrier: Carrier) -> None:
    client = listening(carrier, DENY, several=False)
    asked = listen(client, toolsListChanged=True)
    (arrival,) = client.run.arrivals
    if has_begun:
        grant(arrival, toolsListChanged=True)
    else:
        arrival.head(EVENTS)
    for data in (b"data: ", *[b"x" * 65_536] * 80):
        if not arrival.is_cancelled:
            arrival.content(data)
    last = seen(asked.answer)[-1] if has_begun else response(asked.answer)
    assert last["id"] == "listen-1" and "maxAnswerSize" in last["error"]["message"]
    assert asked.answer.status == 200 and asked.answer.ended and arrival.is_cancelled


@pytest.mark.parametrize(
    "notifications",
    [
        {"resourceSubscriptions": "file:///a"},
        {"resourceSubscriptions": [7]},
        {"resourceSubscriptions": [f"file:///{number}" for number in range(1025)]},
        {"ResourceSubscriptions": [SECRET]},
        {"resourceSubscriptions": [], "RESOURCESUBSCRIPTIONS": [SECRET]},
    ],
)
def test_what_cannot_be_judged_is_refused(notifications: dict[str, Any], carrier: Carrier) -> None:
    client = listening(carrier, DENY, several=False)
    answer = listen(client, **notifications).answer
    assert answer.status == 400 and response(answer)["error"]["code"] == -32602 and not client.run.arrivals


def test_older_revisions_have_no_such_method_for_several(carrier: Carrier) -> None:
    client = opened(carrier, "{}", several=True)
    assert client.error("subscriptions/listen", {"notifications": {}}) == (200, -32601, "Method not found")


def test_capabilities_say_that_lists_may_change(carrier: Carrier) -> None:
    client = listening(carrier)
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})
    lines = [("accept", BOTH), ("content-type", "application/json")]
    lines += [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]
    asked = client.run.send(Request("POST", "/mcp", lines, body.encode()))
    result = {"supportedVersions": [MODERN], "capabilities": {"resources": {"subscribe": True, "listChanged": True}}}
    for arrival in client.run.arrivals:
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
        arrival.answer(Response(200, [("content-type", "application/json")], text))
    found = response(asked.answer)["result"]["capabilities"]
    assert found == {"resources": {"subscribe": True, "listChanged": True}}
