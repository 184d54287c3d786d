"""Clients of MCP servers that mean no good: ids and cursors that were not given to them, names that look like others,
answers to what was not asked, headers that say two things."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from dataplane.mcp import sessions
from tests.carriers import Carrier, Request, Response
from tests.fakes.mcp_toys import BOTH, HELLO, Client, Toy, response
from tests.fakes.policy_run import problems
from tests.policies.test_mcp import FIRST, SECOND, modern, of_one, open_two
from tests.policies.test_mcp_notices import EVENTS, event

BACKENDS = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      matches: [{path: {type: PathPrefix, value: /mcp}}]
      policies: {apiKeyAuthentication: {secretRef: {a: {value: key-a}, b: {value: key-b}}}}
      backends: [{backend: tools}]
    - name: other
      matches: [{path: {type: PathPrefix, value: /other}}]
      policies: {apiKeyAuthentication: {secretRef: {a: {value: key-a}, b: {value: key-b}}}}
      backends: [{backend: others}]
backends:
- {name: tools, mcp: {targets: [TARGETS]}}
- {name: others, mcp: {targets: [TARGETS]}}
""".replace(
    "TARGETS",
    "{name: one, static: {host: 127.0.0.1, port: 9001}}, {name: two, static: {host: 127.0.0.2, port: 9001}}",
)


def spoiled(text: str) -> list[str]:
    """A sealed text, changed in ways that a client could try."""
    places = (0, 1, 15, 16, len(text) // 2, len(text) - 1)
    flipped = [text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :] for at in places]
    cut = [text[:at] for at in (1, 15, 16, 17, 40, len(text) // 2, len(text) - 4)]
    spelled = [f"{text}=", f"{text}==", f"{text}!", f"{text[:9]}.{text[9:]}", f"{text}A", text + text]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    flipped += [text[:-1] + each for each in alphabet if each != text[-1]]
    return [*flipped, *cut, *spelled, text.swapcase(), text[::-1], "A" * len(text), "A" * 9000]


def keyed(carrier: Carrier, key: str = "key-a") -> Client:
    toys = {FIRST: Toy(["a", "b"], page=1), SECOND: Toy(["c"])}
    toys["127.0.0.2:9001"] = toys[SECOND]
    client = Client(carrier.proxy(BACKENDS), toys)
    client.headers = [("authorization", f"Bearer {key}")]
    client.initialize()
    return client


def reached(client: Client) -> int:
    return len(client.run.arrivals)


def test_a_session_id_that_was_changed_is_none(carrier: Carrier) -> None:
    client = keyed(carrier)
    good, before = client.session, reached(client)
    for text in spoiled(good):
        client.session = text
        answer = client.request("tools/list")
        assert (answer.status, answer.body) == (404, b"session not found"), text
    assert reached(client) == before
    client.session = good
    assert client.request("ping").status == 200


def test_an_id_of_another_purpose_backend_or_caller_is_no_session(carrier: Carrier) -> None:
    client = keyed(carrier)
    good, cursor = client.session, client.result("tools/list")["nextCursor"]
    before = reached(client)
    client.session = cursor
    assert client.request("ping").status == 404
    client.session, client.path = good, "/other"
    assert client.request("ping").status == 404, "the same servers, and another backend"
    client.path, client.headers = "/mcp", [("authorization", "Bearer key-b")]
    for method in ("GET", "DELETE"):
        assert client.ask(method, ("accept", "text/event-stream")).status == 404
    assert reached(client) == before
    client.headers = [("authorization", "Bearer key-a")]
    assert client.request("ping").status == 200


def test_a_cursor_that_was_changed_or_is_somebody_elses_is_none(carrier: Carrier) -> None:
    client = keyed(carrier)
    cursor = client.result("tools/list")["nextCursor"]
    before = reached(client)
    wrong: list[Any] = [*spoiled(cursor), client.session, 7, None, ["x"], ""]
    for text in wrong:
        assert client.error("tools/list", {"cursor": text}) == (400, -32602, "params.cursor is none of this list")
    assert client.error("prompts/list", {"cursor": cursor})[:2] == (400, -32602)
    assert reached(client) == before
    client.headers, client.session = [("authorization", "Bearer key-b")], ""
    client.initialize()
    assert client.error("tools/list", {"cursor": cursor})[:2] == (400, -32602)
    client.path, client.session = "/other", ""
    client.headers = [("authorization", "Bearer key-a")]
    client.initialize()
    assert client.error("tools/list", {"cursor": cursor})[:2] == (400, -32602)


def test_a_cursor_that_is_used_again_gives_the_same_page(carrier: Carrier) -> None:
    client = keyed(carrier)
    cursor = client.result("tools/list")["nextCursor"]
    pages = [client.result("tools/list", {"cursor": cursor}) for _ in range(2)]
    assert pages[0] == pages[1] and [each["name"] for each in pages[0]["tools"]] == ["one_b"]


def test_a_cursor_goes_on_without_servers_that_are_gone(carrier: Carrier) -> None:
    client = keyed(carrier)
    client.toys[SECOND].tools, client.toys[SECOND].page = ["c", "d"], 1
    cursor = client.result("tools/list")["nextCursor"]
    for names, expected in ((("one", "three"), ["one_b"]), (("three", "four"), [])):
        text = BACKENDS.replace("name: one,", f"name: {names[0]},").replace("name: two,", f"name: {names[1]},")
        other = carrier.proxy(text)
        other.memory.context.session_key = client.run.memory.context.session_key
        client.run = other
        found = client.result("tools/list", {"cursor": cursor})
        assert found == {"tools": [{"name": name, "inputSchema": {}} for name in expected]}


@pytest.mark.parametrize(("size", "kept"), [(4_000, True), (sessions.MAX_HELLO + 1, False)])
def test_what_a_client_says_of_itself_may_be_too_long_to_be_kept(size: int, kept: bool, carrier: Carrier) -> None:
    """It has a session all the same; a server that forgets it hears nothing of it then."""
    client, toy = of_one(carrier)
    hello = {**HELLO, "more": random.Random(1).randbytes(size // 2).hex()}
    answer = client.request("initialize", hello)
    assert answer.status == 200 and toy.got[0]["params"] == hello
    client.session = answer.headers["mcp-session-id"] or ""
    toy.sessions.clear()
    assert client.names() == ["add"]
    (again,) = [each for each in toy.got[1:] if each["method"] == "initialize"]
    assert again["params"] == (hello if kept else {})


# --- messages


@pytest.mark.parametrize(
    "message",
    [
        {"id": 0, "result": {}},
        {"id": "gw:three:n:0", "result": {}},
        {"id": "gw:one:x:0", "result": {}},
        {"id": "gw:one:n:", "result": {}},
        {"id": "gw:one:n:1e3", "result": {}},
        {"id": "gw:one:n:\u0661", "result": {}},
        {"id": "gw:one:n:" + "1" * 21, "result": {}},
        {"id": "gw::n:0", "result": {}},
        {"id": "gw:one", "error": {"code": 1, "message": "x"}},
        {"id": None, "error": {"code": 1, "message": "x"}},
    ],
)
def test_an_answer_to_what_no_server_could_ask_reaches_nobody(message: dict[str, Any], carrier: Carrier) -> None:
    client = open_two(carrier)
    before = reached(client)
    answer = client.post({"jsonrpc": "2.0", **message})
    assert answer.status == 400 and response(answer)["error"]["code"] == -32602
    assert reached(client) == before


@pytest.mark.parametrize(
    ("params", "method"), [(7, "tools/call"), (None, "tools/list"), ([1], "completion/complete"), ("x", "initialize")]
)
def test_an_error_has_the_id_of_its_request(params: Any, method: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    answer = client.post({"jsonrpc": "2.0", "id": "mine", "method": method, "params": params})
    found = response(answer)
    assert (answer.status, found["id"], found["error"]["code"]) == (400, "mine", -32602)


@pytest.mark.parametrize(
    "number", ["1.0", "1e3", "[1]", "{}", "[[[[1]]]]", "true", "null", "1" + "0" * 5000, '"\\ud800"']
)
def test_an_id_that_is_none_is_refused(number: str, carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    before = reached(client)
    answer = client.post(f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}'.encode())
    assert answer.status == 400 and response(answer)["error"]["code"] in (-32600, -32700)
    assert response(answer)["id"] is None and reached(client) == before


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**64, 10**300, "", "0", "a\nb", "\u0000", "x" * 5000])
def test_an_id_of_any_other_form_comes_back_as_it_was(number: Any, carrier: Carrier) -> None:
    client = open_two(carrier)
    for method, params in (("tools/list", {}), ("tools/call", {"name": "two_add"}), ("ping", {})):
        answer = client.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert response(answer)["id"] == number and "result" in response(answer)
        assert json.loads(client.run.arrival.received.body)["id"] == number


def test_a_notification_with_an_id_is_a_request_for_nobody(carrier: Carrier) -> None:
    client = open_two(carrier)
    before = reached(client)
    assert client.error("notifications/initialized") == (200, -32601, "Method not found")
    assert client.error("notifications/cancelled", {"requestId": 1})[1] == -32601
    assert reached(client) == before


def test_a_call_without_an_id_is_for_nobody(carrier: Carrier) -> None:
    client = open_two(carrier, one := Toy(["add"]), Toy())
    client.post({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "one_add"}})
    got = [each for each in one.got if each["method"] == "tools/call"]
    assert all(each["params"]["name"] == "one_add" for each in got), "no server has a tool of this name"


@pytest.mark.parametrize("body", [b"[]", b"[1]", b"[[]]", b' [{"jsonrpc":"2.0","method":"ping"}]', b"\n[\n]\n"])
def test_batches_of_any_form_are_refused(body: bytes, carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    before = reached(client)
    answer = client.post(body)
    assert (answer.status, response(answer)["error"]["code"], reached(client)) == (400, -32600, before)


def test_progress_is_for_the_server_that_asked(carrier: Carrier) -> None:
    """Tokens of servers may be alike: those of the SDK are numbers of requests."""
    client = open_two(carrier)
    toys = [client.toys[FIRST], client.toys[SECOND]]
    asked = client.run.send(
        Request("GET", "/mcp", [("accept", "text/event-stream"), ("mcp-session-id", client.session)])
    )
    streams = client.run.arrivals[-2:]
    tokens = []
    for stream in streams:
        stream.head(EVENTS)
        params = {"messages": [], "_meta": {"progressToken": 0, "own": 1}}
        stream.content(event({"id": 0, "method": "sampling/createMessage", "params": params}))
        shown = json.loads(asked.answer.body.split(b"\n\n")[-2].partition(b"data: ")[2])
        assert shown["params"]["messages"] == [] and shown["params"]["_meta"]["own"] == 1
        tokens.append(shown["params"]["_meta"]["progressToken"])
    assert len(set(tokens)) == 2
    for index, token in enumerate(tokens):
        before = [len(toy.got) for toy in toys]
        params = {"progressToken": token, "progress": 1}
        assert client.post({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).status == 202
        assert toys[index].got[-1]["params"] == {"progressToken": 0, "progress": 1}
        assert len(toys[1 - index].got) == before[1 - index], "the other one is not concerned"
    before = [len(toy.got) for toy in toys]
    for wrong in (0, "x", "gw:three:n:0", None, {}):
        params = {"progressToken": wrong, "progress": 1}
        assert client.post({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).status == 202
    assert [len(toy.got) for toy in toys] == before
    for stream in streams:
        stream.end()


def test_an_answer_is_for_the_server_that_asked_though_both_use_one_id(carrier: Carrier) -> None:
    client = open_two(carrier)
    asked = client.run.send(
        Request("GET", "/mcp", [("accept", "text/event-stream"), ("mcp-session-id", client.session)])
    )
    streams = client.run.arrivals[-2:]
    for stream in streams:
        stream.head(EVENTS)
    for number in (0, "0", "", "gw:two:n:0"):
        ids = []
        for stream in streams:
            stream.content(event({"id": number, "method": "roots/list"}))
            ids.append(json.loads(asked.answer.body.split(b"\n\n")[-2].partition(b"data: ")[2])["id"])
        for index, (address, text) in enumerate(zip((FIRST, SECOND), ids, strict=True)):
            assert client.post({"jsonrpc": "2.0", "id": text, "result": {"roots": [index]}}).status == 202
            assert client.toys[address].got[-1] == {"jsonrpc": "2.0", "id": number, "result": {"roots": [index]}}
    for stream in streams:
        stream.end()


def test_a_notification_of_a_session_whose_servers_are_all_others_now_is_taken(carrier: Carrier) -> None:
    client = keyed(carrier)
    other = carrier.proxy(BACKENDS.replace("name: one,", "name: three,").replace("name: two,", "name: four,"))
    other.memory.context.session_key = client.run.memory.context.session_key
    client.run = other
    assert client.post({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}).status == 202


# --- names


@pytest.mark.parametrize(
    "name",
    [
        "ONE_add",
        " one_add",
        "one__add",
        "one-add",
        "one.add",
        "\u043ene_add",
        "one\uff3fadd",
        "one\u200b_add",
        "o\u0001ne_add",
    ],
)
def test_a_name_that_looks_like_another_is_another(name: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    answer = client.error("tools/call", {"name": name})
    if name == "one__add":
        assert client.toys[FIRST].got[-1]["params"]["name"] == "_add" and answer[1] == -32601
    else:
        assert answer == (200, -32602, f"Unknown tool: {name}")
        assert "tools/call" not in client.toys[FIRST].methods_got()


def test_a_tool_named_like_one_of_another_server_stays_where_it_is(carrier: Carrier) -> None:
    one, two = Toy(["two_add", "a_b", "_"]), Toy(["add", "b"])
    client = open_two(carrier, one, two)
    assert client.names() == ["one_two_add", "one_a_b", "one__", "two_add", "two_b"]
    client.result("tools/call", {"name": "one_two_add"})
    assert one.got[-1]["params"]["name"] == "two_add" and "tools/call" not in two.methods_got()
    client.result("tools/call", {"name": "one__"})
    assert one.got[-1]["params"]["name"] == "_"


@pytest.mark.parametrize("name", ["a_b", "a+b", "a:b", "A", "-a", "a" * 254, ""])
def test_no_target_has_a_name_that_could_be_read_in_two_ways(name: str) -> None:
    """`a_b` with a tool `c` would be `a` with a tool `b_c`."""
    target = "backends: [{mcp: {targets: [{name: '%s', static: {host: a.example, port: 80}}]}}]"
    assert not problems(target % "a-b.c-d")
    (problem,) = problems(target % name)
    assert "name" in problem or "character" in problem or "must" in problem


@pytest.mark.parametrize(
    "uri", ["ONE+file:///a", "one%2Bfile:///a", "one file:///a", "file:///a", "+file:///a", "ui://a"]
)
def test_a_resource_of_no_server_is_unknown(uri: str, carrier: Carrier) -> None:
    client = open_two(carrier, Toy(resources=["file:///a"]))
    assert client.error("resources/read", {"uri": uri}) == (200, -32602, f"Unknown resource: {uri}")


def test_both_ways_to_write_a_ui_resource_lead_to_it(carrier: Carrier) -> None:
    client = open_two(carrier, Toy(resources=["ui://b/c"]))
    for uri in ("ui://one+b/c", "one+ui://b/c"):
        assert client.result("resources/read", {"uri": uri})["contents"][0]["uri"] == "ui://one+b/c"


# --- headers and logs


def test_two_versions_are_none(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    before = reached(client)
    client.headers = [("mcp-protocol-version", "2025-06-18"), ("mcp-protocol-version", "2026-07-28")]
    for method in ("tools/list", "initialize"):
        answer = client.request(method, HELLO)
        assert answer.status == 400 and response(answer)["error"]["code"] == -32022
    assert client.ask("DELETE").status == 400 and reached(client) == before


@pytest.mark.parametrize(
    "kind", ["application/jsonp", "application/json-seq", "text/plain", "text/plain;application/json", ""]
)
def test_other_types_of_content_are_refused(kind: str, carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    assert client.post(message, content_type=kind).status == 415 and not client.run.arrivals
    for good in ("application/json", "Application/JSON ; charset=utf-8"):
        assert client.post(message, content_type=good).status == 200


NAMES = ["a\r\nx-evil: 1", "a\nlevel=error", "a\x1b[31m", 'a" b="c', "\u202ea", "a\x00", "=?base64?YQ==?=", " a "]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_header_and_no_line_of_a_log(name: str, carrier: Carrier) -> None:
    toy = Toy([name], is_modern=True)
    client, _ = of_one(carrier, toy)
    encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    client.toys[FIRST] = lambda received: Response(200, [("content-type", "application/json")], b"{}")  # type: ignore[assignment]
    assert modern(client, "tools/call", {"name": name}, encoded).status == 200
    received = client.run.arrival.received
    shown = received.headers["mcp-name"]
    assert shown in (encoded, name) and received.headers.get("x-evil") is None
    assert shown == encoded or name == 'a" b="c', "what could be read otherwise is encoded"
    lines = client.run.log_lines()
    assert len(lines) == 1 and "\n" not in lines[0] and "\x1b" not in lines[0] and "\r" not in lines[0]
    assert ' b="c' not in lines[0].replace('\\" b=\\"c', "")


def test_an_event_id_is_for_the_session_of_the_request_and_names_a_target_or_nothing(carrier: Carrier) -> None:
    client = open_two(carrier)
    sessions = [client.toys[each].sessions[0] for each in (FIRST, SECOND)]
    for last, expected in (
        ("two:9", [None, "9"]),
        ("three:9", [None, None]),
        ("9", [None, None]),
        (":9", [None, None]),
    ):
        before = reached(client)
        lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session), ("last-event-id", last)]
        asked = client.run.send(Request("GET", "/mcp", lines))
        arrivals = client.run.arrivals[before:]
        if last == "two:9":
            assert [each.received.authority for each in arrivals] == [SECOND]
        else:
            assert [each.received.authority for each in arrivals] == [FIRST, SECOND]
        for each in arrivals:
            of = [FIRST, SECOND].index(each.received.authority)
            assert each.received.headers["mcp-session-id"] == sessions[of]
            assert each.received.headers.get("last-event-id") == expected[of]
            each.answer(Response(405))
        assert asked.answer.status == 405


def test_metrics_of_names_that_clients_make_up_are_bounded(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    for number in range(1100):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": f"x{number}"}})
        lines = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
        client.run.send(Request("POST", "/mcp", lines, body.encode()))
        client.run.arrival.answer(client.answering(client.run.arrival.received))
    series = [each for each, _ in client.run.memory.metrics.series() if each.metric.name == "mcp_requests_total"]
    assert len(series) <= 1024 + 1
