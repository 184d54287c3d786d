"""MCP servers behind one endpoint (spec 1, MCPBackend): one and several targets, sessions, lists, calls, errors."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Answer, Carrier, Request, Response
from tests.fakes.mcp_toys import BOTH, HELLO, MODERN, Client, Toy, messages, response

ONE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      backends: [{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001}}]%s}}]
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
          - {name: one, static: {host: 127.0.0.1, port: 9001}}
          - {name: two, static: {host: 127.0.0.2, port: 9001, path: /other}}
          %s
"""
FIRST, SECOND = "127.0.0.1:9001", "127.0.0.2:9001"


def of_one(carrier: Carrier, toy: Toy | None = None, more: str = "") -> tuple[Client, Toy]:
    toy = toy or Toy()
    return Client(carrier.proxy(ONE % more), {FIRST: toy}), toy


def of_two(carrier: Carrier, one: Toy | None = None, two: Toy | None = None, more: str = "") -> Client:
    return Client(carrier.proxy(TWO % more), {FIRST: one or Toy(["add"]), SECOND: two or Toy(["add", "sub"])})


def open_two(carrier: Carrier, one: Toy | None = None, two: Toy | None = None, more: str = "") -> Client:
    client = of_two(carrier, one, two, more)
    client.initialize()
    return client


def with_session(client: Client) -> Client:
    client.initialize()
    return client


# --- one target


@pytest.mark.parametrize("streams", [False, True])
def test_one_server_answers_as_if_it_were_asked_directly(streams: bool, carrier: Carrier) -> None:
    client, toy = of_one(carrier, Toy(["add", "sub"], streams=streams, page=1))
    hello = client.initialize()
    assert hello["serverInfo"]["name"] == "toy" and hello["protocolVersion"] == "2025-06-18"
    assert client.names() == ["add", "sub"]
    result = client.result("tools/call", {"name": "add", "arguments": {"a": 1}})
    assert result == {"content": [{"type": "text", "text": 'add({"a": 1})'}]}
    assert client.error("tools/call", {"name": "gone"})[1] == -32601
    assert toy.got[0]["params"] == HELLO, "client's own capabilities reach the server"
    assert toy.methods_got()[:2] == ["initialize", "notifications/initialized"]


def test_the_session_id_of_a_client_is_not_the_servers(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()
    assert client.session and toy.sessions[0] not in client.session
    assert client.session.isascii() and client.session.isprintable()
    (line,) = [line for line in client.run.log_lines() if "http.status=202" in line]
    assert client.session not in line and toy.sessions[0] not in line


def test_a_request_goes_to_the_path_and_under_the_name_of_its_server(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.headers = [("x-client", "1"), ("last-event-id", "7"), ("accept-encoding", "gzip")]
    client.request("initialize", HELLO)
    received = client.run.arrival.received
    assert (received.target, received.authority, received.headers["x-client"]) == ("/mcp", FIRST, "1")
    assert received.headers.get("last-event-id") is None and received.headers.get("accept-encoding") is None


def test_a_client_that_takes_no_json_gets_events(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}, "text/event-stream")
    assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream"
    assert response(answer)["result"]["serverInfo"]["name"] == "toy" and answer.headers["mcp-session-id"]


def test_deleting_a_session_ends_it_at_the_server_and_here(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()
    assert client.ask("DELETE").status == 200
    assert toy.sessions == []
    assert client.request("ping").status == 404


def test_what_was_opened_for_an_initialize_that_fails_is_ended(carrier: Carrier) -> None:
    one, two = Toy(), Toy(down=True)
    client = of_two(carrier, one, two)
    assert client.request("initialize", HELLO).status == 502
    assert one.methods_got() == ["initialize"]
    client.run.serve(client.answering)
    assert one.sessions == [], "its session was of no use to anybody"


def test_a_session_that_the_server_has_forgotten_is_opened_again_unnoticed(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()
    for _ in range(2):
        toy.sessions.clear()
        assert client.names() == ["add"]
    assert toy.methods_got().count("initialize") == 3
    assert [each["params"] for each in toy.got if each.get("method") == "initialize"] == [HELLO] * 3
    assert len(toy.sessions) == 1


def test_another_worker_or_a_restarted_proxy_goes_on_with_a_session(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()
    other = carrier.proxy(ONE % "")
    other.memory.context.session_key = client.run.memory.context.session_key
    client.run = other
    assert client.names() == ["add"] and toy.methods_got().count("initialize") == 1


def test_a_session_of_another_key_is_none(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    client.run = carrier.proxy(ONE % "")
    assert client.request("ping").status == 404


API_KEYS = "      policies: {apiKeyAuthentication: {secretRef: {a: {value: key-a}, b: {value: key-b}}}}\n"


def test_a_session_is_nobody_elses(carrier: Carrier) -> None:
    text = (ONE % "").replace("    - name: mcp\n", f"    - name: mcp\n{API_KEYS}")
    client = Client(carrier.proxy(text), {FIRST: Toy()})
    client.headers = [("authorization", "Bearer key-a")]
    client.initialize()
    assert client.names() == ["add"]
    client.headers = [("authorization", "Bearer key-b")]
    answer = client.request("tools/list")
    assert answer.status == 404 and answer.body == b"session not found"


def test_a_server_without_sessions_gets_none(carrier: Carrier) -> None:
    client, _ = of_one(carrier, Toy(gives_sessions=False))
    client.initialize()
    assert client.session and client.names() == ["add"]
    assert client.run.arrival.received.headers.get("mcp-session-id") is None


def test_events_pass_as_they_come_and_a_server_may_ask_the_client(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    call = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}).encode()
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("POST", "/mcp", headers, call))
    client.run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
    assert asked.answer.status == 200, "the head does not wait for the first event"
    event = b'id: 9\ndata: {"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}\n\n'
    client.run.arrival.content(event)
    assert asked.answer.body == event
    stream = client.run.arrival
    answer = client.post({"jsonrpc": "2.0", "id": 0, "result": {"role": "assistant"}})
    assert answer.status == 202
    assert json.loads(client.run.arrival.received.body) == {"jsonrpc": "2.0", "id": 0, "result": {"role": "assistant"}}
    stream.end()
    assert asked.answer.ended


def test_a_client_that_leaves_ends_the_call(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    call = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}).encode()
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("POST", "/mcp", headers, call))
    client.run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
    asked.cancel()
    assert client.run.arrival.is_cancelled


def test_a_slow_client_stops_the_server(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    call = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}).encode()
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("POST", "/mcp", headers, call))
    client.run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
    asked.pause()
    for _ in range(40):
        if not client.run.arrival.is_read:
            break
        client.run.arrival.content(b": " + bytes(50_000) + b"\n\n")
    assert not client.run.arrival.is_read
    asked.resume()
    assert client.run.arrival.is_read
    client.run.arrival.end()
    assert asked.answer.ended


def test_the_stream_of_a_get_is_the_servers(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    headers = [("accept", "text/event-stream"), ("mcp-session-id", client.session), ("last-event-id", "41")]
    asked = client.run.send(Request("GET", "/mcp", headers))
    received = client.run.arrival.received
    assert received.method == "GET" and received.headers["last-event-id"] == "41" and not received.body
    client.run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
    client.run.arrival.content(b'id: 42\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
    assert b"id: 42" in asked.answer.body
    client.run.arrival.end()


def test_an_answer_without_content_of_which_no_length_is_known_ends(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    asked = client.run.send(
        Request("GET", "/mcp", [("accept", "text/event-stream"), ("mcp-session-id", client.session)])
    )
    client.run.arrival.head(Response(403))
    assert not asked.answer.ended
    client.run.arrival.end()
    assert asked.answer.status == 403 and asked.answer.ended and not asked.answer.body


def test_a_server_that_offers_no_stream_says_so(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405


# --- stateless


def test_without_sessions_each_request_has_one_of_its_own_at_the_server(carrier: Carrier) -> None:
    client, toy = of_one(carrier, more=", sessionRouting: Stateless")
    client.initialize()
    assert client.session == "" and client.names() == ["add"]
    client.run.serve(client.answering)
    assert toy.methods_got()[-3:] == ["initialize", "notifications/initialized", "tools/list"]
    assert toy.sessions == [], "what was opened for a request ends with it"
    for method in ("GET", "DELETE"):
        assert client.ask(method, ("accept", "text/event-stream")).status == 405


# --- several targets


def test_several_servers_are_one(carrier: Carrier) -> None:
    one, two = Toy(["add"], version="2025-03-26", instructions="adds"), Toy(["add", "sub"], streams=True)
    client = of_two(carrier, one, two)
    hello = client.initialize()
    assert hello["protocolVersion"] == "2025-03-26" and hello["serverInfo"]["name"] == "gatewright"
    assert hello["capabilities"] == {"tools": {"listChanged": True}} and "[one]\nadds" in hello["instructions"]
    assert client.names() == ["one_add", "two_add", "two_sub"]
    result = client.result("tools/call", {"name": "two_sub", "arguments": {"a": 1}})
    assert result["content"][0]["text"] == 'sub({"a": 1})'
    assert two.got[-1]["params"]["name"] == "sub" and one.methods_got()[-1] == "tools/list"
    assert client.run.arrival.received.target == "/other"
    assert client.result("ping") == {} and one.methods_got()[-1] == two.methods_got()[-1] == "ping"


@pytest.mark.parametrize("name", ["add", "three_add", "_add", "", "one"])
def test_a_tool_of_no_server_is_unknown(name: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    assert client.error("tools/call", {"name": name}) == (200, -32602, f"Unknown tool: {name}")


def test_lists_are_paged_through_all_servers(carrier: Carrier) -> None:
    one, two = Toy([f"t{i}" for i in range(7)], page=3), Toy([f"t{i}" for i in range(4)], page=2)
    client = open_two(carrier, one, two)
    names = client.names()
    assert sorted(names) == sorted([f"one_t{i}" for i in range(7)] + [f"two_t{i}" for i in range(4)])
    assert len(names) == 11
    first = client.result("tools/list")
    assert client.error("tools/list", {"cursor": "3"}) == (400, -32602, "params.cursor is none of this list")
    assert client.error("prompts/list", {"cursor": first["nextCursor"]})[0] == 400


def test_resources_say_whose_they_are(carrier: Carrier) -> None:
    client = open_two(carrier, Toy(resources=["file:///a", "ui://b/c"]))
    uris = [each["uri"] for each in client.all("resources/list", "resources")]
    assert uris == ["one+file:///a", "ui://one+b/c"], "a server without resources has none, and is no failure"
    for uri in uris:
        assert client.result("resources/read", {"uri": uri})["contents"][0]["uri"] == uri
    assert client.error("resources/read", {"uri": "file:///a"})[2] == "Unknown resource: file:///a"


def test_completions_go_to_the_server_of_their_reference(carrier: Carrier) -> None:
    one = Toy(methods={"completion/complete": lambda params: {"completion": {"values": [params["ref"]["name"]]}}})
    client = open_two(carrier, one)
    params = {"ref": {"type": "ref/prompt", "name": "one_greet"}, "argument": {"name": "a", "value": "b"}}
    assert client.result("completion/complete", params) == {"completion": {"values": ["greet"]}}
    assert client.error("completion/complete", {"ref": {"type": "ref/tool"}})[0] == 400


def test_a_method_that_nobody_routes_is_not_found(carrier: Carrier) -> None:
    assert open_two(carrier).error("experimental/thing") == (200, -32601, "Method not found")


def test_requests_of_several_servers_are_told_apart(carrier: Carrier) -> None:
    client = open_two(carrier)
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "two_add"}}
    headers = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("POST", "/mcp", headers, json.dumps(call).encode()))
    stream = client.run.arrival
    stream.head(Response(200, [("content-type", "text/event-stream")]))
    stream.content(b'id: 7\ndata: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}\n\n')
    stream.content(b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n\n')
    stream.content(b'data: {"jsonrpc":"2.0","id":5,"result":{"content":[]}}\n\n')
    stream.end()
    request, progress, result = messages(asked.answer)
    assert request["id"] == "gw:two:n:0" and progress["params"] == {"progressToken": 1} and result["id"] == 5
    assert b"id: two:7\n" in asked.answer.body
    assert client.post({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "decline"}}).status == 202
    assert client.toys[SECOND].got[-1] == {"jsonrpc": "2.0", "id": 0, "result": {"action": "decline"}}
    assert client.post({"jsonrpc": "2.0", "id": "gw:three:n:0", "result": {}}).status == 400


def test_streams_of_several_servers_are_one_and_one_goes_on_alone(carrier: Carrier) -> None:
    client = open_two(carrier)
    headers = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("GET", "/mcp", headers))
    one, two = client.run.arrivals[-2:]
    one.answer(Response(405))
    two.head(Response(200, [("content-type", "text/event-stream")]))
    two.content(b'id: 1\ndata: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}\n\n')
    assert b"id: two:1\n" in asked.answer.body and b"two+a:b" in asked.answer.body
    two.end()
    assert asked.answer.ended
    before = len(client.run.arrivals)
    client.run.send(Request("GET", "/mcp", [*headers, ("last-event-id", "two:1")]))
    (alone,) = client.run.arrivals[before:]
    assert alone.received.headers["last-event-id"] == "1" and alone.received.authority == SECOND
    alone.reset()


def test_nobody_has_a_stream(carrier: Carrier) -> None:
    assert open_two(carrier).ask("GET", ("accept", "text/event-stream")).status == 405


def test_a_dead_server_fails_the_session(carrier: Carrier) -> None:
    one = Toy()
    client = of_two(carrier, one)
    one.down = True
    assert client.request("initialize", HELLO).status == 502
    one.down = False
    client.initialize()
    one.down = True
    assert client.error("tools/list")[:2] == (502, -32603)
    one.down = False
    assert client.toys[SECOND].sessions == [], "the session has ended with it, at the other one too"
    assert client.request("tools/list").status == 404


def test_with_fail_open_the_healthy_servers_go_on_and_the_lost_one_comes_back(carrier: Carrier) -> None:
    one, two = Toy(), Toy()
    client = of_two(carrier, one, two, "failureMode: FailOpen")
    one.down = True
    client.initialize()
    assert client.names() == ["two_add"]
    before = len(client.run.arrivals)
    assert client.post({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}).status == 202
    (told,) = client.run.arrivals[before:]
    assert told.received.authority == SECOND, "the lost one hears of it when it begins anew"
    assert client.error("tools/call", {"name": "one_add"})[:2] == (502, -32603)
    one.down = False
    assert client.names() == ["one_add", "two_add"]
    assert client.result("tools/call", {"name": "one_add"})
    one.down = two.down = True
    assert client.request("tools/list").status == 502
    assert of_two(carrier, one, two, "failureMode: FailOpen").request("initialize", HELLO).status == 502


def test_one_server_of_two_that_forgets_its_session_is_asked_again(carrier: Carrier) -> None:
    one, two = Toy(), Toy()
    client = open_two(carrier, one, two)
    two.sessions.clear()
    assert client.names() == ["one_add", "two_add"]
    assert (one.methods_got().count("initialize"), two.methods_got().count("initialize")) == (1, 2)


def test_what_one_server_says_beside_a_list_stays_where_a_rule_shortens_it(carrier: Carrier) -> None:
    listed = {"tools": [{"name": "add", "inputSchema": {}}, {"name": "sub", "inputSchema": {}}], "_meta": {"a": 1}}
    rule = "{authorization: {action: Deny, policy: {matchExpressions: ['mcp.tool.name == \"sub\"']}}}"
    text = (ONE % "").replace("    - name: mcp\n", f"    - name: mcp\n      policies: {{mcp: {rule}}}\n")
    client = Client(carrier.proxy(text), {FIRST: Toy(methods={"tools/list": lambda _: listed})})
    client.initialize()
    assert client.result("tools/list") == {"tools": listed["tools"][:1], "_meta": {"a": 1}}


# --- the revision without sessions

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}


def modern(
    client: Client, method: str, params: dict[str, object] | None = None, name: str = "", **headers: str
) -> Answer:
    """A request of that revision; `headers` in place of what belongs there."""
    lines = {"mcp-protocol-version": MODERN, "mcp-method": method, **({"mcp-name": name} if name else {})}
    client.headers = [*(lines | {key.replace("_", "-"): value for key, value in headers.items()}).items()]
    return client.request(method, {**META, **(params or {})})


def test_a_request_without_a_session_passes_to_one_server(carrier: Carrier) -> None:
    client, toy = of_one(carrier, Toy(is_modern=True))
    assert response(modern(client, "server/discover"))["result"]["supportedVersions"] == [MODERN]
    result = response(modern(client, "tools/call", {"name": "add"}, "add"))["result"]
    assert result["content"][0]["text"] == "add({})" and toy.methods_got() == ["server/discover", "tools/call"]


def test_several_servers_of_that_revision_are_one(carrier: Carrier) -> None:
    client = of_two(carrier, Toy(is_modern=True), Toy(["add", "s\u00e9"], is_modern=True))
    found = response(modern(client, "server/discover"))["result"]
    assert found["supportedVersions"] == [MODERN] and found["resultType"] == "complete" and found["ttlMs"] == 0
    listed = response(modern(client, "tools/list"))["result"]
    assert [tool["name"] for tool in listed["tools"]] == ["one_add", "two_add", "two_s\u00e9"]
    assert listed["resultType"] == "complete" and listed["cacheScope"] == "private"
    assert response(modern(client, "tools/call", {"name": "two_add"}, "two_add"))["result"]
    gone = modern(client, "tools/call", {"name": "x_add"}, "x_add")
    assert gone.status == 400 and response(gone)["error"]["message"] == "Unknown tool: x_add"


def test_a_server_of_older_revisions_sends_clients_back_to_them(carrier: Carrier) -> None:
    answer = modern(of_two(carrier, Toy(is_modern=True), Toy(gives_sessions=False)), "server/discover")
    assert answer.status == 400 and response(answer)["error"]["code"] == -32022
    assert MODERN not in response(answer)["error"]["data"]["supported"]


@pytest.mark.parametrize(
    ("method", "name", "headers", "status", "code"),
    [
        ("tools/call", "add", {"mcp_method": "tools/list"}, 400, -32020),
        ("tools/call", "other", {}, 400, -32020),
        ("tools/call", "=?base64?%%%?=", {}, 400, -32020),
        ("tools/call", "", {}, 400, -32020),
        ("ping", "", {}, 404, -32601),
        ("initialize", "", {}, 404, -32601),
        ("resources/subscribe", "", {}, 404, -32601),
    ],
)
def test_headers_and_body_have_to_agree(
    method: str, name: str, headers: dict[str, str], status: int, code: int, carrier: Carrier
) -> None:
    client, toy = of_one(carrier, Toy(is_modern=True))
    answer = modern(client, method, {"name": "add"}, name, **headers)
    assert (answer.status, response(answer)["error"]["code"], toy.got) == (status, code, [])


def test_a_name_may_be_encoded(carrier: Carrier) -> None:
    client, _ = of_one(carrier, Toy(is_modern=True))
    assert response(modern(client, "tools/call", {"name": "add"}, "=?base64?YWRk?="))["result"]


# --- telemetry


def test_the_log_and_the_metric_have_method_target_and_tool(carrier: Carrier) -> None:
    client = open_two(carrier)
    client.result("tools/call", {"name": "two_add"})
    client.result("tools/list")
    client.error("resources/read", {"uri": "one+file:///a"})
    client.error("tools/call", {"name": "gone"})
    call, listed, read, gone = client.run.log_lines()[-4:]
    assert " mcp.method.name=tools/call " in call and " mcp.target=two " in call and " gen_ai.tool.name=add " in call
    assert " mcp.session.id=" in call and client.session not in call
    assert " mcp.method.name=tools/list " in listed and "mcp.target" not in listed
    assert " mcp.resource.uri=file:///a " in read and "reason=McpDenied" in gone
    series = client.run.memory.metrics.series()
    found = {each.labels: values[0] for each, values in series if each.metric.name == "mcp_requests_total"}
    assert found[("tools/call", "two", "add", "answered")] == 1 and found[("tools/call", "", "", "denied")] == 1
    assert found[("initialize", "", "", "answered")] == 1 and found[("tools/list", "", "", "answered")] == 1


# --- errors


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "text"),
    [
        ("GET", [], b"", 406, "Not Acceptable: Client must accept text/event-stream"),
        ("GET", [("accept", "*/*")], b"", 406, "Not Acceptable: Client must accept text/event-stream"),
        (
            "GET",
            [("accept", "text/event-stream;q=0")],
            b"",
            406,
            "Not Acceptable: Client must accept text/event-stream",
        ),
        ("POST", [("accept", "application/json")], b"{}", 406, "Not Acceptable: Client must accept text/event-stream"),
        ("POST", [("accept", BOTH)], b"{}", 415, "content type must be application/json"),
        ("GET", [("accept", "text/event-stream")], b"", 400, "header Mcp-Session-Id is required"),
        ("DELETE", [], b"", 400, "header Mcp-Session-Id is required"),
        ("DELETE", [("mcp-session-id", "x")], b"", 404, "session not found"),
        ("GET", [("accept", "text/event-stream"), ("mcp-session-id", "A" * 400)], b"", 404, "session not found"),
        ("PUT", [], b"x", 405, "method must be GET, POST or DELETE"),
    ],
)
def test_requests_that_are_none_of_mcp(
    method: str, headers: list[tuple[str, str]], body: bytes, status: int, text: str, carrier: Carrier
) -> None:
    seen = carrier.shared(ONE % "").carry(Request(method, "/mcp", headers, body))
    assert (seen.answer.status, seen.answer.body.decode(), seen.reached) == (status, text, ())
    assert seen.answer.headers["content-type"] == "text/plain"


INVALID, PARSE = -32600, -32700


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSE),
        (b"{", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}}', PARSE),
        (b"[", PARSE),
        (b"[" * 100_000, PARSE),
        (b'[{"jsonrpc":"2.0"', PARSE),
        (b"5 x", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000, PARSE),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID),
        (b'"text"', INVALID),
        (b'{"id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', INVALID),
        (b'{"jsonrpc":"2.0","id":1}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', INVALID),
        (b'{"jsonrpc":"2.0","result":{}}', INVALID),
    ],
)
def test_bodies_that_are_no_message(body: bytes, code: int, carrier: Carrier) -> None:
    client = Client(carrier.shared(ONE % ""), {})
    answer = client.post(body)
    assert answer.status == 400 and response(answer)["error"]["code"] == code
    assert "reason=McpBadMessage" in client.run.log_lines()[-1]


def test_a_message_needs_a_session_and_a_version_that_is_known(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert client.post(ping).status == 400
    client.initialize()
    client.headers = [("mcp-protocol-version", "1999-01-01")]
    answer = client.post(ping)
    assert answer.status == 400 and response(answer)["error"]["code"] == -32022
    assert response(answer)["error"]["data"]["requested"] == "1999-01-01" and response(answer)["id"] == 1
    client.headers = [("mcp-protocol-version", "2025-06-18")]
    assert client.post(ping).status == 200


def test_a_tool_without_a_name_is_a_mistake(carrier: Carrier) -> None:
    client = with_session(of_one(carrier)[0])
    assert client.error("tools/call", {"name": 7})[:2] == (400, -32602)
    assert client.error("tools/call", [1])[:2] == (400, -32602)


def test_a_message_that_is_too_large_is_refused(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"x": "y" * 2_200_000}}).encode()
    headers = [("accept", BOTH), ("content-type", "application/json")]
    assert client.run.carry(Request("POST", "/mcp", headers, body)).answer.status == 413


def test_a_server_that_cannot_be_reached(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.run.refuse_connections()
    assert client.error("initialize", HELLO) == (502, -32603, "MCP server one is not available")
    (line,) = client.run.log_lines()
    assert "reason=McpTargetFailed" in line


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, [("content-type", "application/json")], b"{"),
        Response(200, [("content-type", "application/json")], b'{"jsonrpc":"2.0","id":1,"result":[]}'),
        Response(200, [("content-type", "text/event-stream")], b"data: x\n\n"),
        Response(200, [("content-type", "text/event-stream")], b": nothing\n\n"),
        Response(
            200, [("content-type", "application/json")], b'{"jsonrpc":"2.0","id":2,"result":{}}' + b" " * 5_000_000
        ),
        Response(500, [], b"no"),
    ],
)
def test_a_server_that_answers_nonsense_fails_alone(answer: Response, carrier: Carrier) -> None:
    two = Toy()
    client = of_two(carrier, Toy(), two, "failureMode: FailOpen")
    client.initialize()
    client.toys[FIRST] = lambda received: answer  # type: ignore[assignment]
    assert client.names() == ["two_add"]


def test_policies_of_others_cannot_call_mcp_servers(carrier: Carrier) -> None:
    text = ONE % "" + "      policies: {requestMirror: {backend: servers}}\n"
    text += "backends: [{name: servers, mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001}}]}}]\n"
    client = Client(carrier.proxy(text), {FIRST: Toy()})
    client.initialize()
    assert client.names() == ["add"]
