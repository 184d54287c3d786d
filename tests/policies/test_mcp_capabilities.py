"""What clients and servers of MCP tell each other through us beside calls: revisions, levels of logs, changes of lists,
cancellations, what the servers of one endpoint can do; and the order in which a request is found wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.mcp import versions
from tests.carriers import Carrier, Request, Response
from tests.fakes.mcp_toys import BOTH, HELLO, MODERN, Client, Toy, response
from tests.policies.test_mcp import FIRST, ONE, SECOND, modern, of_one, of_two, open_two
from tests.policies.test_mcp_notices import EVENTS, event, seen

JSON = [("content-type", "application/json")]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("several", [False, True])
def test_each_revision_with_sessions_is_spoken(version: str, several: bool, carrier: Carrier) -> None:
    toys = Toy(["add"], version=version), Toy(["add"], version="2025-11-25")
    client = of_two(carrier, *toys) if several else of_one(carrier, toys[0])[0]
    answer = client.request("initialize", {**HELLO, "protocolVersion": version})
    assert response(answer)["result"]["protocolVersion"] == version
    assert all(toy.got[0]["params"]["protocolVersion"] == version for toy in toys[: 1 + several])
    client.session = answer.headers["mcp-session-id"] or ""
    client.headers = [("mcp-protocol-version", version)]
    name = "two_add" if several else "add"
    assert client.result("tools/call", {"name": name})["content"]
    assert client.run.arrival.received.headers["mcp-protocol-version"] == version
    assert client.ask("DELETE").status == 200


def test_no_other_revision_with_sessions_is_known() -> None:
    assert versions.LEGACY == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", "2099-01-01", "x"])
def test_a_revision_that_initialize_does_not_have_is_none_that_it_is_answered_with(
    asked: str, carrier: Carrier
) -> None:
    client = of_two(carrier, Toy(version="2025-06-18"), Toy(version="2025-11-25"))
    answer = client.request("initialize", {**HELLO, "protocolVersion": asked})
    assert response(answer)["result"]["protocolVersion"] == "2025-06-18"


def test_the_level_of_logs_is_for_all_servers_and_their_logs_come_back(carrier: Carrier) -> None:
    client = open_two(carrier)
    assert client.result("logging/setLevel", {"level": "debug"}) == {}
    for address in (FIRST, SECOND):
        assert client.toys[address].got[-1]["params"] == {"level": "debug"}
    lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
    listens = client.run.send(Request("GET", "/mcp", lines))
    for number, each in enumerate(client.run.arrivals[-2:]):
        each.head(EVENTS)
        params = {"level": "debug", "logger": "x", "data": {"n": number}}
        each.content(event({"method": "notifications/message", "params": params}))
        assert seen(listens.answer)[-1] == {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        each.end()


def test_one_server_that_has_no_logs_does_not_fail_the_level(carrier: Carrier) -> None:
    client = open_two(carrier)

    def refusing(received: Any) -> Response:
        error = {"jsonrpc": "2.0", "id": json.loads(received.body)["id"], "error": {"code": -32601, "message": "no"}}
        return Response(200, JSON, json.dumps(error).encode())

    first, client.toys[FIRST] = client.toys[FIRST], refusing  # type: ignore[assignment]
    assert client.result("logging/setLevel", {"level": "debug"}) == {}
    client.toys[SECOND] = refusing  # type: ignore[assignment]
    assert client.error("logging/setLevel", {"level": "debug"}) == (200, -32601, "no")
    client.toys[FIRST] = first


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_changes_of_lists_come_from_every_server(kind: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
    listens = client.run.send(Request("GET", "/mcp", lines))
    for count, each in enumerate(client.run.arrivals[-2:], 1):
        each.head(EVENTS)
        each.content(event({"method": f"notifications/{kind}/list_changed"}))
        found = [one["method"] for one in seen(listens.answer)]
        assert found == [f"notifications/{kind}/list_changed"] * count
    client.run.arrivals[-1].end()
    client.run.arrivals[-2].end()


@pytest.mark.parametrize("several", [False, True])
def test_a_cancellation_reaches_the_servers(several: bool, carrier: Carrier) -> None:
    client = open_two(carrier) if several else of_one(carrier)[0]
    if not several:
        client.initialize()
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "late"}}
    assert client.post(notice).status == 202
    for address in (FIRST, SECOND) if several else (FIRST,):
        assert client.toys[address].got[-1] == notice


def test_what_any_server_can_do_the_endpoint_can_do(carrier: Carrier) -> None:
    abilities = [
        {"tools": {"listChanged": False}, "logging": {}, "experimental": {"a": {"x": 1}}, "unknown": {}},
        {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": False},
            "resources": {"subscribe": True},
            "completions": {},
            "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
            "experimental": {"b": {}},
        },
    ]
    merged = {
        "tools": {"listChanged": True},
        "logging": {},
        "experimental": {"a": {"x": 1}, "b": {}},
        "prompts": {"listChanged": False},
        "resources": {"subscribe": True},
        "completions": {},
        "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
    }
    for more, expected in (
        ("", merged),
        ("sessionRouting: Stateless", {**merged, "tools": {}, "prompts": {}, "resources": {}}),
    ):
        client = of_two(carrier, more=more)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
        asked = client.run.send(Request("POST", "/mcp", [("accept", BOTH), *JSON], body))
        for each, able in zip(client.run.arrivals[-2:], abilities, strict=True):
            result = {"protocolVersion": "2025-06-18", "capabilities": able}
            each.answer(Response(200, JSON, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()))
        assert response(asked.answer)["result"]["capabilities"] == expected


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*", "application/json"),
        ("application/*;q=0.5,text/event-stream", "application/json"),
        ("text/event-stream, application/json;q=0", "text/event-stream"),
        ("text/event-stream, text/*", "text/event-stream"),
        ("TEXT/Event-Stream ;q=0.1, Application/JSON", "application/json"),
    ],
)
def test_an_answer_is_json_where_the_client_takes_it(accept: str, kind: str, carrier: Carrier) -> None:
    client = open_two(carrier)
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, accept)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert len(response(answer)["result"]["tools"]) == 3


def test_of_servers_of_two_revisions_those_that_both_have_are_named(carrier: Carrier) -> None:
    client = of_two(carrier, Toy(is_modern=True), Toy(is_modern=True))
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}).encode()
    lines = [("accept", BOTH), *JSON, ("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]
    asked = client.run.send(Request("POST", "/mcp", lines, body))
    for each, spoken in zip(client.run.arrivals, ([MODERN, "2027-01-01"], [MODERN, "2026-12-01"]), strict=True):
        result = {"supportedVersions": spoken, "capabilities": {}, "instructions": "use it"}
        each.answer(Response(200, JSON, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()))
    found = response(asked.answer)["result"]
    assert found["supportedVersions"] == [MODERN] and "[one]\nuse it\n\n[two]\nuse it" in found["instructions"]


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": "2025-06-18"}, -32020),
        ({"io.modelcontextprotocol/protocolVersion": 7}, -32020),
        ({}, -32602),
        (None, -32602),
        ([], -32602),
    ],
)
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "experimental/thing"])
def test_a_body_says_the_revision_of_its_header(method: str, meta: Any, code: int, carrier: Carrier) -> None:
    client = of_two(carrier, Toy(is_modern=True), Toy(is_modern=True))
    client.headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)]
    answer = client.request(method, {} if meta is None else {"_meta": meta})
    assert (answer.status, response(answer)["error"]["code"]) == (400, code)
    assert response(answer)["id"] == client.number and not client.run.arrivals


def test_params_that_a_server_refuses_are_no_sign_of_its_revision(carrier: Carrier) -> None:
    client = of_two(carrier, Toy(is_modern=True), Toy(is_modern=True))
    answers = [
        {"result": {"supportedVersions": [MODERN], "capabilities": {}}},
        {"error": {"code": -32602, "message": "no clientInfo"}},
    ]
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": meta}).encode()
    lines = [("accept", BOTH), *JSON, ("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]
    asked = client.run.send(Request("POST", "/mcp", lines, body))
    for each, answer in zip(client.run.arrivals, answers, strict=True):
        each.answer(Response(200, JSON, json.dumps({"jsonrpc": "2.0", "id": 1, **answer}).encode()))
    assert asked.answer.status == 400 and response(asked.answer)["error"]["code"] == -32602


@pytest.mark.parametrize(("several", "status"), [(True, 404), (False, 200)])
def test_a_method_that_nobody_routes_in_the_revision_without_sessions(
    several: bool, status: int, carrier: Carrier
) -> None:
    toys = Toy(is_modern=True), Toy(is_modern=True)
    client = of_two(carrier, *toys) if several else of_one(carrier, toys[0])[0]
    answer = modern(client, "experimental/thing")
    assert (answer.status, response(answer)["error"]["code"]) == (status, -32601)
    assert bool(toys[0].got) is not several, "the only server may know it"


STEPS: list[tuple[list[tuple[str, str]], bytes, int, str]] = [
    # each mends what the one before was refused for
    ([], b"{", 406, "Not Acceptable: Client must accept text/event-stream"),
    ([("accept", BOTH)], b"{", 415, "content type must be application/json"),
    ([("accept", BOTH), *JSON], b"{", 400, "-32700"),
    ([("accept", BOTH), *JSON], b"[]", 400, "-32600"),
    ([("accept", BOTH), *JSON], b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 400, "-32022"),
]


def test_what_is_wrong_is_said_in_this_order(carrier: Carrier) -> None:
    run = carrier.proxy(ONE % "")
    wrong = [("mcp-protocol-version", "1999-01-01"), ("mcp-session-id", "x")]
    for headers, body, status, text in STEPS:
        answer = run.carry(Request("POST", "/mcp", [*headers, *wrong], body)).answer
        assert (answer.status, text in answer.body.decode()) == (status, True), answer
    headers, body, _, _ = STEPS[-1]
    answer = run.carry(Request("POST", "/mcp", [*headers, wrong[1]], body)).answer
    assert (answer.status, answer.body) == (404, b"session not found"), "the session comes before the params"
    client = Client(run, {FIRST: Toy()})
    client.initialize()
    assert client.error("tools/call")[:2] == (400, -32602)
