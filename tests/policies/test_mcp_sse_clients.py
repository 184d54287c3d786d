"""Clients that speak the older transport of two endpoints with us: a stream, and a place to post to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.backends.mcp import following
from dataplane.backends.mcp.legacy import client_streams, holder
from dataplane.http.sse import EventReader
from dataplane.mcp import dialogue
from dataplane.mcp.sessions import IDLE
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.carriers.contract import Conversation
from tests.fakes.mcp_sse_toys import EVENTS, SseClient, SseToy, event
from tests.fakes.mcp_toys import HELLO, Toy
from tests.policies.test_mcp import API_KEYS
from tests.policies.test_mcp import ONE as STREAMABLE
from tests.policies.test_mcp import TWO as SEVERAL
from tests.policies.test_mcp_sse_servers import FIRST, ONE, SECOND


class Legacy(SseClient):
    """A client: its stream, what came on it, and where it posts to."""

    def __init__(
        self, run: Run, toys: dict[str, Toy], sse: dict[str, SseToy] | None = None, path: str = "/sse"
    ) -> None:
        super().__init__(run, sse or {}, toys, path)
        self.stream: Any = None

    def connect(self) -> None:
        """Open the stream, as far as its first event."""
        self.stream = self.run.send(Request("GET", self.path, [("accept", "text/event-stream"), *self.headers]))
        assert self.stream.answer.headers["content-type"] == "text/event-stream"
        first = self.events[0]
        assert first.type == b"endpoint"
        self.where = first.data.decode()

    @property
    def events(self) -> list[Any]:
        answer = self.stream.answer
        assert answer.status == 200 and not answer.ended, answer
        return EventReader().feed(answer.body)

    @property
    def said(self) -> list[Any]:
        """Messages that came."""
        assert {each.type for each in self.events[1:]} <= {b"message"}
        return [json.loads(each.data) for each in self.events[1:]]

    def sends(self, message: Any) -> Conversation:
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        headers = [("content-type", "application/json"), ("accept", "*/*"), *self.headers]
        asked = self.run.send(Request("POST", self.where, headers, body))
        self.serve()
        return asked

    def posted(self, message: Any) -> Answer:
        asked = self.sends(message)
        assert asked.answer.ended, asked.answer
        return asked.answer

    def asks(self, method: str, params: Any = None) -> Any:
        """A request: its answer, which is the last that came."""
        self.number += 1
        answer = self.posted({"id": self.number, "method": method, "params": params or {}})
        assert (answer.status, answer.body) == (202, b""), answer
        assert self.said[-1]["id"] == self.number
        return self.said[-1]

    def starts(self) -> Any:
        hello = self.asks("initialize", HELLO)
        assert self.posted({"method": "notifications/initialized"}).status == 202
        return hello["result"]

    def leaves(self) -> None:
        self.stream.cancel()
        self.serve()


def opened(carrier: Carrier, toy: Toy | None = None, text: str = STREAMABLE % "", **headers: str) -> Legacy:
    client = Legacy(carrier.proxy(text), {FIRST: toy or Toy(["add", "sub"]), SECOND: Toy(["add"])})
    client.headers = list(headers.items())
    client.connect()
    return client


@pytest.mark.parametrize("streams", [False, True])
def test_messages_are_posted_and_answers_come_on_the_stream(streams: bool, carrier: Carrier) -> None:
    client = opened(carrier, toy := Toy(["add", "sub"], streams=streams))
    assert client.starts()["serverInfo"]["name"] == "toy"
    assert [tool["name"] for tool in client.asks("tools/list")["result"]["tools"]] == ["add", "sub"]
    assert client.asks("tools/call", {"name": "add"})["result"]["content"][0]["text"] == "add({})"
    assert client.asks("tools/call", {"name": "gone"})["error"]["code"] == -32601
    assert toy.methods_got()[:2] == ["initialize", "notifications/initialized"] and len(toy.sessions) == 1
    assert toy.sessions[0] not in client.where
    client.leaves()
    assert toy.sessions == [], "the session ends with the stream"
    assert client.posted({"id": 9, "method": "ping"}).status == 404


def test_a_session_is_used_as_long_as_its_stream_is_open(carrier: Carrier) -> None:
    client = opened(carrier, toy := Toy())
    client.starts()
    for _ in range(3):
        client.run.advance(IDLE - 1)
        client.serve()
    client.run.advance(2 * IDLE)
    client.serve()
    assert len(toy.sessions) == 1 and client.asks("tools/list")["result"]["tools"], "nobody has asked for long"
    client.leaves()
    assert toy.sessions == []
    assert any("http.path=/sse" in line and "mcp.method.name=stream" in line for line in client.run.log_lines())


def test_both_sides_may_speak_it(carrier: Carrier) -> None:
    server = SseToy()
    client = Legacy(carrier.proxy(ONE % ""), {}, {FIRST: server})
    client.connect()
    client.starts()
    assert client.asks("tools/call", {"name": "add"})["result"]
    server.says(method="notifications/tools/list_changed")
    assert client.said[-1] == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    server.says(id=8, method="roots/list")
    assert client.said[-1]["id"] == 8
    assert client.posted({"id": 8, "result": {"roots": []}}).status == 202
    assert server.toy.got[-1]["result"] == {"roots": []}
    client.leaves()
    assert server.stream.is_cancelled


def test_several_servers_are_one(carrier: Carrier) -> None:
    client = opened(carrier, text=SEVERAL % "")
    client.starts()
    names = [tool["name"] for tool in client.asks("tools/list")["result"]["tools"]]
    assert names == ["one_add", "one_sub", "two_add"]
    assert client.asks("tools/call", {"name": "two_add"})["result"]
    assert client.asks("tools/call", {"name": "three_add"})["error"]["message"] == "Unknown tool: three_add"
    client.leaves()
    assert all(toy.sessions == [] for toy in client.toys.values())


def test_without_sessions_it_is_the_same(carrier: Carrier) -> None:
    client = opened(carrier, text=STREAMABLE % ", sessionRouting: Stateless")
    client.starts()
    assert client.asks("tools/call", {"name": "add"})["result"]
    client.leaves()


def test_the_endpoint_has_the_path_and_the_query_of_the_stream(carrier: Carrier) -> None:
    client = Legacy(carrier.proxy(STREAMABLE % ""), {}, path="/team/sse?a=1&sessionId=mine&b=2")
    client.connect()
    path, _, query = client.where.partition("?")
    assert path == "/team/sse" and query.startswith("a=1&b=2&sessionId=") and "mine" not in query
    client.leaves()


@pytest.mark.parametrize("path", ["/mcp", "/sse/", "/ssex", "/sse/x"])
def test_other_paths_have_no_such_stream(path: str, carrier: Carrier) -> None:
    answer = carrier.shared(STREAMABLE % "").ask(Request("GET", path, [("accept", "text/event-stream")]))
    assert answer.status == 400, "GET of streamable HTTP, without a session"


def test_a_stream_has_to_be_asked_for_by_name(carrier: Carrier) -> None:
    answer = carrier.shared(STREAMABLE % "").ask(Request("GET", "/sse", [("accept", "*/*")]))
    assert answer.status == 406


# --- while a server works


def test_the_post_is_answered_before_the_server_has_answered(carrier: Carrier) -> None:
    client = opened(carrier)
    client.starts()
    body = {"id": 7, "method": "tools/call", "params": {"name": "add"}}
    client.toys = {}
    asked = client.run.send(_post(client, body))
    assert asked.answer.status == 202 and asked.answer.ended
    arrival = client.run.arrival
    assert not arrival.is_answered
    arrival.head(EVENTS)
    arrival.content(event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}))
    arrival.content(event("/evil?sessionId=1", "endpoint"))
    arrival.content(event({"jsonrpc": "2.0", "id": 7, "result": {}}))
    arrival.end()
    assert [each.get("id") for each in client.said[-2:]] == [None, 7]
    _off(client)


def _post(client: Legacy, message: Any) -> Request:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return Request("POST", client.where, [("content-type", "application/json"), *client.headers], body)


def _off(client: Legacy) -> None:
    client.toys = {FIRST: Toy(down=True), SECOND: Toy(down=True)}
    for each in client.run.arrivals:
        client._taken.add(id(each))
    client.leaves()
    for each in client.run.arrivals:
        if not (each.is_answered or each.is_cancelled):
            each.answer(Response(200))


def test_what_is_done_for_a_client_that_left_is_given_up(carrier: Carrier) -> None:
    client = opened(carrier)
    client.starts()
    client.run.send(_post(client, {"id": 7, "method": "tools/call", "params": {"name": "add"}}))
    arrival = client.run.arrival
    assert not arrival.is_cancelled
    _off(client)
    assert arrival.is_cancelled


def test_what_a_server_says_beside_answers_comes_too(carrier: Carrier) -> None:
    client = opened(carrier)
    client.asks("initialize", HELLO)
    before = len(client.run.arrivals)
    client.run.send(_post(client, {"method": "notifications/initialized"}))
    client.run.arrivals[before].answer(Response(202))
    arrival = client.run.arrival
    assert arrival.received.method == "GET" and arrival.received.headers["accept"] == "text/event-stream"
    arrival.head(EVENTS)
    arrival.content(event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}))
    assert client.said[-1]["params"] == {"data": "x"}
    arrival.end()
    count = len(client.run.arrivals)
    client.run.advance(following.FIRST_PAUSE + 0.1)
    assert len(client.run.arrivals) == count + 1 and client.run.arrival.received.method == "GET", "asked for again"
    _off(client)


def test_a_stream_says_that_it_is_alive(carrier: Carrier) -> None:
    client = opened(carrier)
    for _ in range(3):
        client.run.advance(client_streams.PING + 0.1)
    assert client.stream.answer.body.count(b": ping\n\n") == 3 and client.said == []
    client.leaves()
    client.run.advance(client_streams.PING + 0.1)


# --- what goes wrong


@pytest.mark.parametrize("status", [400, 429, 500])
def test_an_answer_that_is_no_success_is_an_error_on_the_stream(status: int, carrier: Carrier) -> None:
    client = opened(carrier)
    client.starts()
    asked = client.run.send(_post(client, {"id": "x", "method": "tools/call", "params": {"name": "add"}}))
    client.run.arrival.answer(Response(status, [("content-type", "text/plain")], b"no"))
    assert asked.answer.status == 202
    assert client.said[-1]["id"] == "x" and str(status) in client.said[-1]["error"]["message"]
    _off(client)


@pytest.mark.parametrize(("answered", "is_passed"), [("x", True), ("y", False), (None, False)])
def test_an_error_of_the_server_is_passed_when_it_answers_the_request(
    answered: str | None, is_passed: bool, carrier: Carrier
) -> None:
    """Another id would leave the client waiting."""
    client = opened(carrier)
    client.starts()
    client.run.send(_post(client, {"id": "x", "method": "tools/call", "params": {"name": "add"}}))
    said = {"jsonrpc": "2.0", "id": answered, "error": {"code": -32005, "message": "later"}}
    if answered is None:  # a request of this id is no answer to it
        said = {"jsonrpc": "2.0", "id": "x", "method": "ping"}
    client.run.arrival.answer(Response(429, [("content-type", "application/json")], json.dumps(said).encode()))
    found = client.said[-1]
    assert found["id"] == "x" and (found == said) is is_passed
    assert found["error"]["message"] == "later" if is_passed else "429" in found["error"]["message"]
    _off(client)


@pytest.mark.parametrize(
    ("status", "kind"), [(200, "application/json"), (405, "text/event-stream"), (405, "text/plain")]
)
def test_a_server_without_a_stream_of_its_own_is_not_asked_again(status: int, kind: str, carrier: Carrier) -> None:
    client = opened(carrier)
    client.asks("initialize", HELLO)
    before = len(client.run.arrivals)
    client.run.send(_post(client, {"method": "notifications/initialized"}))
    client.run.arrivals[before].answer(Response(202))
    assert client.run.arrival.received.method == "GET"
    said = event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}})
    count = len(client.said)
    client.run.arrival.answer(Response(status, [("content-type", kind)], said))
    client.run.advance(following.LONGEST_PAUSE)
    assert len(client.run.arrivals) == before + 2 and len(client.said) == count
    _off(client)


def test_a_server_that_breaks_off_is_an_error_on_the_stream(carrier: Carrier) -> None:
    client = opened(carrier)
    client.starts()
    client.run.send(_post(client, {"id": 3, "method": "tools/call", "params": {"name": "add"}}))
    client.run.arrival.head(EVENTS)
    client.run.arrival.reset()
    assert client.said[-1]["id"] == 3 and client.said[-1]["error"]["code"] == -32603
    _off(client)


def test_a_server_that_is_down_is_an_error_on_the_stream_and_in_the_log(carrier: Carrier) -> None:
    client = opened(carrier, text=SEVERAL % "")
    client.toys[FIRST].down = True
    assert client.asks("initialize", HELLO)["error"]["code"] == -32603
    client.leaves()
    client.run.log_lines()


def test_a_request_before_initialize_is_an_error_on_the_stream(carrier: Carrier) -> None:
    client = opened(carrier)
    assert client.asks("tools/list")["error"]["code"] == -32600
    assert "reason=McpSessionMissing" in client.run.log_lines()[-1]
    client.leaves()


@pytest.mark.parametrize(("body", "code"), [(b"{", -32700), (b"[]", -32600), (b"{}", -32600)])
def test_what_is_no_message_is_refused(body: bytes, code: int, carrier: Carrier) -> None:
    client = opened(carrier)
    answer = client.posted(body)
    assert answer.status == 400 and json.loads(answer.body)["error"]["code"] == code
    client.leaves()


def test_a_stream_is_nobody_elses(carrier: Carrier) -> None:
    text = (STREAMABLE % "").replace("    - name: mcp\n", f"    - name: mcp\n{API_KEYS}")
    client = opened(carrier, text=text, authorization="Bearer key-a")
    client.starts()
    client.headers = [("authorization", "Bearer key-b")]
    assert client.posted({"id": 5, "method": "ping"}).status == 404
    client.headers = []
    assert client.posted({"id": 5, "method": "ping"}).status == 401
    where, client.where = client.where, client.where[:-4] + "AAAA"
    client.headers = [("authorization", "Bearer key-a")]
    assert client.posted({"id": 5, "method": "ping"}).status == 404
    client.where = where
    assert client.asks("ping")["result"] == {}
    client.leaves()


def test_rules_hold(carrier: Carrier) -> None:
    rule = "{authorization: {action: Deny, policy: {matchExpressions: ['mcp.tool.name == \"sub\"']}}}"
    text = (STREAMABLE % "").replace("    - name: mcp\n", f"    - name: mcp\n      policies: {{mcp: {rule}}}\n")
    client = opened(carrier, toy := Toy(["add", "sub"]), text)
    client.starts()
    assert [tool["name"] for tool in client.asks("tools/list")["result"]["tools"]] == ["add"]
    assert client.asks("tools/call", {"name": "sub"})["error"]["message"] == "Unknown tool: sub"
    assert toy.methods_got().count("tools/call") == 0
    line = client.run.log_lines()[-1]
    assert "reason=McpDenied" in line and "mcp.method.name=tools/call" in line and "http.status=202" in line
    assert client.asks("tools/call", {"name": "add"})["result"]
    assert "gen_ai.tool.name=add" in client.run.log_lines()[-1]
    client.leaves()


def test_streams_and_messages_are_bounded(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "MOST", 2)
    monkeypatch.setattr(client_streams, "MAX_WAITING", 2)
    assert dialogue.MAX_WAITING > 2
    client = opened(carrier)
    client.starts()
    answer = client.run.ask(Request("GET", "/sse", [("accept", "text/event-stream")]))
    assert answer.status == 503 and "reason=McpBusy" in client.run.log_lines()[-1]
    statuses = []
    for number in range(3):
        message = {"id": f"n{number}", "method": "tools/call", "params": {"name": "add"}}
        statuses.append(client.run.send(_post(client, message)).answer.status)
    assert statuses == [202, 202, 503]
    _off(client)


def test_a_client_that_reads_slowly_stops_the_server(carrier: Carrier) -> None:
    client = opened(carrier)
    client.starts()
    client.run.send(_post(client, {"id": 7, "method": "tools/call", "params": {"name": "add"}}))
    arrival = client.run.arrival
    arrival.head(EVENTS)
    client.stream.pause()
    note = event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 60_000}})
    count = 0
    while arrival.is_read and count < 100:
        arrival.content(note)
        count += 1
    assert count < 20
    client.stream.resume()
    assert arrival.is_read
    _off(client)
