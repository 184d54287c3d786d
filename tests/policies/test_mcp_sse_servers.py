"""MCP servers that speak the older transport of two endpoints (`mcp.targets[].static.protocol: SSE`): what is sent is
posted, what they say comes on one stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.legacy import holder
from dataplane.mcp import dialogue, endpoints, plans
from dataplane.mcp.sessions import IDLE
from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Conversation
from tests.fakes.both_planes import BothPlanes
from tests.fakes.mcp_sse_toys import SseClient, SseToy, event
from tests.fakes.mcp_toys import BOTH, HELLO, MODERN, Toy, messages, response
from tests.fakes.web_objects import CLASS

ONE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      backends: [{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001, protocol: SSE}}]%s}}]
"""
TWO = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      backends:
      - mcp:
          targets:
          - {name: one, static: {host: 127.0.0.1, port: 9001, protocol: SSE, path: /old/sse}}
          - {name: two, static: {host: 127.0.0.2, port: 9001}}
          %s
"""
FIRST, SECOND = "127.0.0.1:9001", "127.0.0.2:9001"


def of_one(carrier: Carrier, server: SseToy | None = None, more: str = "") -> tuple[SseClient, SseToy]:
    server = server or SseToy()
    return SseClient(carrier.proxy(ONE % more), {FIRST: server}), server


def opened(carrier: Carrier, server: SseToy | None = None, more: str = "") -> tuple[SseClient, SseToy]:
    client, server = of_one(carrier, server, more)
    client.initialize()
    return client, server


def leave(client: SseClient) -> None:
    """The session ends, and its stream with it."""
    assert client.ask("DELETE").status == 200
    streams = [each for server in client.sse.values() for each in server.streams.values()]
    assert all(each.is_cancelled or each.is_answered for each in streams)


def call(client: SseClient, number: Any = 7, method: str = "tools/call", **params: Any) -> Conversation:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {"name": "add", **params}})
    return client.begin("POST", ("accept", BOTH), ("content-type", "application/json"), body=body.encode())


def test_a_session_is_one_stream_and_what_is_asked_is_posted_where_it_says(carrier: Carrier) -> None:
    client, server = of_one(carrier, SseToy(Toy(["add", "sub"], gives_sessions=False)))
    client.headers = [("x-client", "1")]
    hello = client.initialize()
    assert hello["serverInfo"]["name"] == "toy" and client.session
    assert client.names() == ["add", "sub"]
    assert client.result("tools/call", {"name": "add", "arguments": {"a": 1}})["content"][0]["text"] == 'add({"a": 1})'
    assert client.error("tools/call", {"name": "gone"})[1] == -32601
    assert server.made == 1 and {each.received.target for each in server.posted} == {"/messages/?session_id=s1"}
    assert {each.received.headers["x-client"] for each in (server.stream, *server.posted)} == {"1"}
    assert server.toy.got[0]["params"] == HELLO
    assert server.toy.methods_got()[:2] == ["initialize", "notifications/initialized"]
    leave(client)
    assert client.request("ping").status == 404


def test_an_answer_that_is_all_that_is_said_is_json_and_other_messages_make_it_a_stream(carrier: Carrier) -> None:
    client, server = opened(carrier, SseToy())
    answer = client.request("tools/list")
    assert answer.headers["content-type"] == "application/json"
    server.holds = True
    asked = call(client, _meta={"progressToken": "t"})
    server.says(method="notifications/progress", params={"progressToken": "t", "progress": 1})
    assert asked.answer.headers["content-type"] == "text/event-stream"
    server.says(id="q", method="sampling/createMessage", params={})
    server.says(id=7, result={"content": []})
    assert [each.get("method") for each in messages(asked.answer)] == [
        *("notifications/progress", "sampling/createMessage", None)
    ]
    reply = {"jsonrpc": "2.0", "id": "q", "result": {"role": "user"}}
    assert client.post(reply).status == 202 and server.toy.got[-1] == reply
    leave(client)


def test_answers_find_whoever_asked_whatever_their_order(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.holds = True
    asked = {number: call(client, number) for number in (1, "1", 2)}
    for number in (2, "1", 1):
        server.says(id=number, result={"of": repr(number)})
    for number, conversation in asked.items():
        assert response(conversation.answer)["result"] == {"of": repr(number)}
    first = call(client, 5)
    second = call(client, 5)
    assert second.answer.status == 400 and response(second.answer)["error"]["code"] == -32600
    server.says(id=5, result={})
    assert response(first.answer)["result"] == {}
    leave(client)


def test_get_has_what_the_server_says_beside_answers(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.says(method="notifications/tools/list_changed")
    asked = client.begin("GET", ("accept", "text/event-stream"))
    server.says(method="notifications/message", params={"data": "x"})
    server.stream.content(event("/elsewhere?session_id=s9", "other"))
    body = asked.answer.body
    assert b"list_changed" in body and b'"x"' in body and b"elsewhere" not in body
    newer = client.begin("GET", ("accept", "text/event-stream"))
    assert asked.answer.ended, "the newest stream of a session is the one that counts"
    leave(client)
    assert newer.answer.status == 200 and newer.answer.reset


def test_a_request_that_is_withdrawn_is_answered_by_nobody(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.holds = True
    asked = call(client, 3)
    withdrawn = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    assert client.post(withdrawn).status == 202
    assert asked.answer.ended and messages(asked.answer) == []
    assert server.toy.got[-1]["method"] == "notifications/cancelled"
    leave(client)


# --- the end of a stream


def test_a_stream_that_was_lost_fails_who_waits_and_is_opened_anew_unnoticed(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.holds = True
    asked = call(client)
    server.stream.reset()
    assert asked.answer.status == 502 and response(asked.answer)["error"]["code"] == -32603
    server.holds = False
    assert client.names() == ["add"] and server.made == 2
    assert server.toy.methods_got().count("initialize") == 2
    assert [each["params"] for each in server.toy.got if each.get("method") == "initialize"] == [HELLO] * 2
    leave(client)


def test_a_stream_that_is_lost_while_an_answer_has_begun_breaks_that_off(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.holds = True
    asked = call(client, _meta={"progressToken": "t"})
    server.says(method="notifications/progress", params={"progressToken": "t", "progress": 1})
    server.stream.end()
    assert asked.answer.status == 200 and asked.answer.reset


def test_a_session_that_the_server_has_forgotten_is_opened_anew_unnoticed(carrier: Carrier) -> None:
    client, server = opened(carrier)
    before = server.streams.pop("s1")
    assert client.names() == ["add"] and server.made == 2
    assert before.is_cancelled
    leave(client)


def test_the_end_of_a_session_is_no_end_of_others(carrier: Carrier) -> None:
    client, server = opened(carrier)
    first = client.session
    client.session = ""
    client.initialize()
    assert client.ask("DELETE").status == 200
    assert [each.is_cancelled for each in server.streams.values()] == [False, True]
    client.session = first
    assert client.names() == ["add"] and server.made == 2
    assert client.ask("DELETE").status == 200


def test_another_replica_opens_a_stream_of_its_own(carrier: Carrier) -> None:
    client, _ = opened(carrier)
    other = SseClient(carrier.proxy(ONE % ""), {FIRST: SseToy()})
    other.run.memory.context.session_key = client.run.memory.context.session_key
    other.session = client.session
    assert other.names() == ["add"] and other.sse[FIRST].made == 1
    leave(other)
    leave(client)


def test_a_stream_that_nobody_uses_is_ended_in_time(carrier: Carrier) -> None:
    client, server = opened(carrier)
    client.run.advance(IDLE - 1)
    client.request("ping")
    client.run.advance(IDLE - 1)
    assert not server.stream.is_cancelled
    client.run.advance(holder.SWEEP + 1)
    assert server.stream.is_cancelled


def test_a_stream_that_a_client_listens_to_is_used(carrier: Carrier) -> None:
    client, server = opened(carrier)
    asked = client.begin("GET", ("accept", "text/event-stream"))
    for _ in range(3):
        client.run.advance(IDLE + holder.SWEEP)
    assert not server.stream.is_cancelled
    server.says(method="notifications/message", params={"data": "late"})
    assert b"late" in asked.answer.body
    leave(client)


# --- hostile and broken servers


@pytest.mark.parametrize(
    "said",
    [
        "http://127.0.0.9:9001/messages/?session_id={}",
        "https://127.0.0.1:9001/messages/?session_id={}",
        "http://127.0.0.1:9002/messages/?session_id={}",
        "//127.0.0.9:9001/messages/?session_id={}",
        "http://127.0.0.1:9001@127.0.0.9/messages/?session_id={}",
        "http://127.0.0.1:99999999/messages/?session_id={}",
        "javascript:alert(1)",
        "/messages/ ?session_id={}",
        "/m\u00e4ssages?session_id={}",
        "/" + "a" * endpoints.MAX_ENDPOINT,
    ],
)
def test_an_endpoint_elsewhere_is_refused(said: str, carrier: Carrier) -> None:
    client, server = of_one(carrier, SseToy(endpoint=said.format))
    answer = client.request("initialize", HELLO)
    assert answer.status == 502 and "127.0.0.9" not in answer.body.decode()
    assert server.stream.is_cancelled and server.posted == []
    assert "endpoint event" in client.run.log_lines()[-1]


@pytest.mark.parametrize("said", ["http://127.0.0.1:9001/messages/?session_id={}", "messages/?session_id={}"])
def test_an_endpoint_of_the_same_origin_counts_however_it_is_written(said: str, carrier: Carrier) -> None:
    client, server = opened(carrier, SseToy(endpoint=said.format))
    assert server.posted[0].received.target == "/messages/?session_id=s1"
    leave(client)


def test_a_second_endpoint_ends_the_stream(carrier: Carrier) -> None:
    client, server = opened(carrier)
    server.stream.content(event(server.endpoint("s1"), "endpoint"))
    assert client.names() == ["add"] and server.made == 1, "the same one changes nothing"
    server.stream.content(event("/other?session_id=s1", "endpoint"))
    assert server.streams["s1"].is_cancelled
    assert client.names() == ["add"] and server.made == 2
    leave(client)


def test_a_server_that_names_no_endpoint_is_not_waited_for_without_end(carrier: Carrier) -> None:
    client, _server = of_one(carrier)
    asked = client.run.send(_hello())
    arrival = client.run.arrival
    arrival.head(Response(200, [("content-type", "text/event-stream")]))
    arrival.content(b": nothing\n\n" * 1000)
    assert asked.answer.status is None
    client.run.advance(calls.HELLO_SECONDS + 1)
    assert asked.answer.status == 502 and arrival.is_cancelled


def _hello() -> Request:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    return Request("POST", "/mcp", [("accept", BOTH), ("content-type", "application/json")], body)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Response(401, [("www-authenticate", "Bearer")], b"who?"), 401),
        (Response(404, (), b"not here"), 404),
        (Response(200, [("content-type", "text/html")], b"<p>"), 502),
    ],
)
def test_an_answer_to_get_that_is_no_stream_ends_initialize(answer: Response, status: int, carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    asked = client.run.send(_hello())
    client.run.arrival.answer(answer)
    assert asked.answer.status == status and "mcp-session-id" not in asked.answer.headers


def test_a_server_that_refuses_initialize_keeps_no_stream(carrier: Carrier) -> None:
    client, server = of_one(carrier, SseToy(holds=True))
    asked = client.run.send(_hello())
    client.serve()
    server.says(id=1, error={"code": -32000, "message": "no"})
    assert response(asked.answer)["error"]["code"] == -32000
    assert server.stream.is_cancelled


def test_a_server_that_does_not_answer_initialize_keeps_no_stream(carrier: Carrier) -> None:
    client, server = of_one(carrier, SseToy(holds=True))
    asked = client.run.send(_hello())
    client.serve()
    client.run.advance(calls.HELLO_SECONDS + 1)
    assert asked.answer.status == 502 and server.stream.is_cancelled


def test_a_client_that_leaves_before_initialize_is_answered_keeps_no_stream(carrier: Carrier) -> None:
    client, server = of_one(carrier, SseToy(holds=True))
    asked = client.run.send(_hello())
    client.serve()
    assert not server.stream.is_cancelled
    asked.cancel()
    assert server.stream.is_cancelled


def test_a_message_that_is_too_large_ends_the_stream(carrier: Carrier) -> None:
    _client, server = opened(carrier)
    for _ in range(plans.MAX_ANSWER // 65_536 + 2):
        if not server.stream.is_cancelled:
            server.stream.content(b"data: x" + b"x" * 65_536 + b"\n")
    assert server.stream.is_cancelled


def test_a_server_that_talks_nonsense_is_ended(carrier: Carrier) -> None:
    client, server = opened(carrier)
    for number in range(dialogue.MAX_NOISE + 1):
        server.stream.content(event({"jsonrpc": "2.0", "id": f"n{number}", "result": {}}))
    assert server.stream.is_cancelled
    assert client.names() == ["add"] and server.made == 2
    leave(client)


def test_what_nobody_hears_stops_the_server(carrier: Carrier) -> None:
    client, server = opened(carrier)
    for number in range(dialogue.MAX_UNHEARD + 100):
        if server.stream.is_read:
            server.says(method="notifications/message", params={"data": "x" * 1000, "n": number})
    assert not server.stream.is_read
    asked = client.begin("GET", ("accept", "text/event-stream"))
    assert server.stream.is_read and b'"n": 0' in asked.answer.body
    leave(client)


def test_streams_are_bounded_and_those_that_are_idle_make_place(carrier: Carrier, monkeypatch: Any) -> None:
    monkeypatch.setattr(holder, "MOST", 3)
    client, server = of_one(carrier)
    sessions = []
    for _ in range(3):
        client.session = ""
        client.initialize()
        sessions.append(client.session)
        client.run.advance(1)
    assert [each.is_cancelled for each in server.streams.values()] == [True, False, False]
    streams = []
    for client.session in sessions[1:]:
        streams.append(client.begin("GET", ("accept", "text/event-stream")))
    client.session = ""
    answer = client.request("initialize", HELLO)
    assert answer.status == 502 and "as many streams" in client.run.log_lines()[-1]
    for client.session in sessions[1:]:
        leave_one = client.ask("DELETE")
        assert leave_one.status == 200


# --- beside others


def test_one_of_several_servers_may_speak_the_older_transport(carrier: Carrier) -> None:
    server = SseToy(path="/old/sse")
    client = SseClient(carrier.proxy(TWO % ""), {FIRST: server}, {SECOND: Toy(["sub"])})
    client.initialize()
    assert client.names() == ["one_add", "two_sub"]
    assert client.result("tools/call", {"name": "one_add"})["content"]
    server.holds = True
    asked = call(client, name="one_add")
    server.says(id=4, method="elicitation/create", params={})
    server.says(id=7, result={"content": []})
    (asking, _) = messages(asked.answer)
    assert client.post({"jsonrpc": "2.0", "id": asking["id"], "result": {}}).status == 202
    assert server.toy.got[-1] == {"jsonrpc": "2.0", "id": 4, "result": {}}
    leave(client)


def test_a_failed_initialize_of_several_keeps_no_stream(carrier: Carrier) -> None:
    server = SseToy(path="/old/sse")
    client = SseClient(carrier.proxy(TWO % ""), {FIRST: server}, {SECOND: Toy(down=True)})
    assert client.request("initialize", HELLO).status == 502
    assert server.stream.is_cancelled


def test_without_sessions_each_request_has_a_stream_of_its_own(carrier: Carrier) -> None:
    client, server = of_one(carrier, more=", sessionRouting: Stateless")
    assert client.names() == ["add"]
    assert client.result("tools/call", {"name": "add"})["content"]
    assert server.made == 2 and all(each.is_cancelled for each in server.streams.values())


def test_the_revision_without_sessions_is_refused_as_a_server_of_older_ones_does(carrier: Carrier) -> None:
    client, server = of_one(carrier)
    client.headers = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]
    answer = client.request("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}})
    assert answer.status == 400 and response(answer)["error"]["code"] == -32022
    assert "2025-11-25" in response(answer)["error"]["data"]["supported"] and server.made == 0


OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec: {gatewayClassName: gatewright, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: old, namespace: default, labels: {kind: mcp}}
spec: {ports: [{name: mcp, port: 8001, appProtocol: gatewright.dev/mcp-sse}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: old-1, namespace: default, labels: {kubernetes.io/service-name: old}}
addressType: IPv4
ports: [{name: mcp, port: 9001}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools, namespace: default}
spec: {mcp: {targets: [{name: all, selector: {services: {matchLabels: {kind: mcp}}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tools, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: tools}]}]
"""
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_a_service_of_the_older_transport_and_a_client_of_it_beside_a_control_plane() -> None:
    proxy = BothPlanes(OBJECTS)
    listening, posting = proxy.connect(), proxy.connect()
    listening.send(b"GET /sse HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n")
    where = listening.take().partition(b"data: ")[2].partition(b"\n")[0]
    assert where.startswith(b"/sse?sessionId=")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    lines = b"host: a\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    posting.send(b"POST %b HTTP/1.1\r\n%b%b" % (where, lines, body))
    (stream,) = proxy.connector.upstreams
    assert stream.take().startswith(b"GET /sse HTTP/1.1\r\n")
    stream.answer(HEAD + chunk(event("/messages?s=1", "endpoint")))
    post = proxy.connector.upstreams[1]
    assert post.take().startswith(b"POST /messages?s=1 HTTP/1.1\r\n")
    assert posting.take().startswith(b"HTTP/1.1 202 Accepted\r\n")
    post.answer(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
    result = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2024-11-05", "capabilities": {}}}
    stream.answer(chunk(event(result)))
    assert json.loads(listening.take().partition(b"data: ")[2].partition(b"\n")[0]) == result
    listening.lose()
    assert not stream.open, "the session ends with its client"
