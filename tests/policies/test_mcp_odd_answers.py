"""Answers and messages that are odd and not wrong: names of resources wherever servers say them, halves of surrogate
pairs, results above the bound. What cannot pass fails alone; the session goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.mcp import halves
from tests.carriers import Carrier, Response
from tests.fakes.mcp_toys import MODERN, Client, Toy, messages, response
from tests.policies.test_mcp import FIRST, ONE, SECOND, TWO, of_one, of_two, open_two
from tests.policies.test_mcp_hostile_servers import JSON, asked, result, stream
from tests.policies.test_mcp_notices import EVENTS, event

PAGE = "ui://weather/page"
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}


# --- names of resources (MCP Apps, SEP-1865; resource links and embedded resources, MCP 2025-06-18)


def with_page() -> Toy:
    toy = Toy(["show"], resources=[PAGE, "file:///a"])
    meta = {"ui": {"resourceUri": PAGE}, "ui/resourceUri": PAGE}
    toy.methods["tools/list"] = lambda _: {"tools": [{"name": "show", "inputSchema": {}, "_meta": meta}]}
    embedded = {"type": "resource", "resource": {"uri": PAGE, "text": "x"}}
    toy.methods["tools/call"] = lambda _: {"content": [LINK, embedded]}
    toy.methods["prompts/get"] = lambda _: {"messages": [{"role": "user", "content": LINK}]}
    return toy


def test_the_page_of_a_tool_can_be_read(carrier: Carrier) -> None:
    client = open_two(carrier, with_page())
    (tool, *_) = client.all("tools/list", "tools")
    uris = {tool["_meta"]["ui"]["resourceUri"], tool["_meta"]["ui/resourceUri"]}
    assert uris == {"ui://one+weather/page"}
    assert client.result("resources/read", {"uri": uris.pop()})["contents"][0]["text"] == "content"


@pytest.mark.parametrize("streams", [False, True])
def test_what_a_result_names_can_be_read(streams: bool, carrier: Carrier) -> None:
    toy = with_page()
    toy.streams = streams
    client = open_two(carrier, toy)
    link, embedded = client.result("tools/call", {"name": "one_show"})["content"]
    (said,) = client.result("prompts/get", {"name": "one_x"})["messages"]
    for uri in (link["uri"], embedded["resource"]["uri"], said["content"]["uri"]):
        assert client.result("resources/read", {"uri": uri})["contents"][0]["uri"] == uri


def test_the_only_server_has_its_own_names(carrier: Carrier) -> None:
    client, _ = of_one(carrier, with_page())
    client.initialize()
    (tool,) = client.all("tools/list", "tools")
    assert tool["_meta"]["ui"]["resourceUri"] == PAGE
    assert client.result("tools/call", {"name": "show"})["content"][0] == LINK


def test_what_a_server_asks_the_client_names_resources_as_the_client_sees_them(carrier: Carrier) -> None:
    client = open_two(carrier)
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    two.answer(Response(405))
    one.head(EVENTS)
    asks = {"messages": [{"role": "user", "content": [LINK]}], "maxTokens": 1}
    one.content(event({"id": 3, "method": "sampling/createMessage", "params": asks}))
    assert b'"one+file:///a"' in listens.answer.body
    one.end()


def test_a_target_whose_name_begins_with_a_digit_has_uris(carrier: Carrier) -> None:
    text = (TWO % "").replace("name: one,", "name: 7notes,")
    client = Client(carrier.proxy(text), {FIRST: with_page(), SECOND: Toy()})
    client.initialize()
    uris = [each["uri"] for each in client.all("resources/list", "resources")]
    assert uris == ["ui://7notes+weather/page", "t.7notes+file:///a"]
    for uri in uris:
        assert client.result("resources/read", {"uri": uri})["contents"][0]["uri"] == uri
    assert client.error("resources/read", {"uri": "7notes+file:///a"})[2] == "Unknown resource: 7notes+file:///a"


# --- half a surrogate pair (RFC 8259 8.2)

ODD = "a\ud800b\udc00\ud800\\ud800"


@pytest.mark.parametrize("streams", [False, True])
def test_half_a_surrogate_pair_passes(streams: bool, carrier: Carrier) -> None:
    one = Toy(["echo"], streams=streams)
    tool = {"name": "echo", "description": ODD, "inputSchema": {}}
    one.methods["tools/list"] = lambda _: {"tools": [tool, {"name": ODD}], "_meta": {"odd": ODD}}
    one.methods["tools/call"] = lambda params: {"content": [{"type": "text", "text": ODD}, params["arguments"]]}
    client = open_two(carrier, one)
    (listed, *others) = client.all("tools/list", "tools")
    assert listed["description"] == ODD and [each["name"] for each in others] == ["two_add", "two_sub"]
    found = client.result("tools/call", {"name": "one_echo", "arguments": {"x": ODD, ODD: 1}})
    assert found == {"content": [{"type": "text", "text": ODD}, {"x": ODD, ODD: 1}]}


RULES = """
      policies:
        mcp: {authorization: {action: Deny, policy: {matchExpressions: [%s]}}}
      backends:"""


def test_with_rules_as_well_unless_they_read_it(carrier: Carrier) -> None:
    toy = Toy(["add"])
    text = ONE % ""
    client = Client(carrier.proxy(text.replace("      backends:", RULES % "mcp.tool.name == 'sub'")), {FIRST: toy})
    client.initialize()
    assert client.result("tools/call", {"name": "add", "arguments": {"x": ODD}})
    assert toy.got[-1]["params"]["arguments"] == {"x": ODD}
    reads = RULES % "mcp.tool.arguments.x == 'y'"
    client = Client(carrier.proxy(text.replace("      backends:", reads)), {FIRST: toy})
    client.initialize()
    assert client.error("tools/call", {"name": "add", "arguments": {"x": ODD}})[:2] == (400, -32602)
    assert client.result("tools/call", {"name": "add", "arguments": {"x": "z"}}), "the session goes on"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": f"one_{ODD}"}),
        ("resources/read", {"uri": f"one+{ODD}"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": ODD}}),
        ("tools/list", {"cursor": ODD}),
        (ODD, {}),
    ],
)
def test_a_name_that_is_no_text_is_refused_alone(method: str, params: Any, carrier: Carrier) -> None:
    client = open_two(carrier)
    assert client.request(method, params).status == 400
    assert client.names() == ["one_add", "two_add", "two_sub"]


# --- answers that fail alone

DEEP = b'{"jsonrpc":"2.0","id":5,"result":{"content":' + b"[" * 5000 + b"]" * 5000 + b"}}"
MANY = json.dumps({"jsonrpc": "2.0", "id": 5, "result": {"content": ["\ud800"] * (halves.MOST + 1)}}).encode()
REFUSED: list[tuple[bytes, str]] = [
    (DEEP, "the message has too many levels"),
    (MANY, "the message has too many halves of surrogate pairs"),
    (b'{"jsonrpc":"2.0","id":5,"result":{"content":"\xff"}}', "the message is not UTF-8"),
    (b'{"jsonrpc":"2.0","id":5,"result":{"\\ud800":1,"content":"resource"}}', "a key of an object is no text"),
    (result(content=["x" * 2000]), "its answer has more than 1024 bytes (mcp.maxAnswerSize)"),
]


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("body", "why"), REFUSED, ids=["deep", "halves", "utf-8", "key", "large"])
def test_an_answer_that_is_not_passed_on_fails_alone(
    body: bytes, why: str, streams: bool, method: str, carrier: Carrier
) -> None:
    client = open_two(carrier, more="maxAnswerSize: 1Ki" if "1024" in why else "")
    waits = asked(client, method, {"name": "one_add"})
    one, *others = client.run.arrivals[-2:] if method == "tools/list" else client.run.arrivals[-1:]
    for each in others:
        each.answer(client.toys[SECOND](each.received))
    one.answer(Response(200, EVENTS.headers, b"data: " + body + b"\n\n") if streams else Response(200, JSON, body))
    found = messages(waits.answer)[-1]
    assert (waits.answer.status, found["id"], found["error"]["code"]) == (200, 5, -32603)
    assert found["error"]["message"].startswith("MCP server one: ") and why in found["error"]["message"]
    assert client.names() == ["one_add", "two_add", "two_sub"], "the session goes on"
    assert any("reason=McpAnswerRefused" in line for line in client.run.log_lines())


def test_the_bound_is_a_setting(carrier: Carrier) -> None:
    large = Toy(["add"])
    large.methods["tools/call"] = lambda _: {"content": ["x" * 5_000_000]}
    assert open_two(carrier, large, more="maxAnswerSize: 8Mi").result("tools/call", {"name": "one_add"})["content"]
    error = open_two(carrier, large).error("tools/call", {"name": "one_add"})
    assert error == (200, -32603, "MCP server one: its answer has more than 4194304 bytes (mcp.maxAnswerSize)")


# --- servers that do not know the revision without sessions


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_that_refuses_it_in_a_text_sends_clients_back(status: int, carrier: Carrier) -> None:
    client = of_two(carrier, Toy(is_modern=True))
    client.headers = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]
    client.toys[SECOND] = lambda _: Response(status, (), b"Bad Request: no session")  # type: ignore[assignment]
    answer = client.request("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}})
    error = response(answer)["error"]
    assert (answer.status, error["code"]) == (400, -32022) and "2025-11-25" in error["data"]["supported"]


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
@pytest.mark.parametrize("other", ["stdio: {cmd: 'true'}", "static: {host: 127.0.0.2, port: 9001, protocol: SSE}"])
def test_behind_a_process_or_the_older_transport_nobody_knows_it(other: str, method: str, carrier: Carrier) -> None:
    text = (TWO % "").replace("static: {host: 127.0.0.2, port: 9001, path: /other}", other)
    client = Client(carrier.proxy(text), {FIRST: Toy(is_modern=True)})
    client.headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)]
    answer = client.request(method, {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}})
    error = response(answer)["error"]
    assert (answer.status, error["code"]) == (400, -32022) and MODERN not in error["data"]["supported"]
    assert not client.toys[FIRST].got
