"""Names that clients see: of items and requests of several servers, of places to post to, of types that are taken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw

from dataplane.http.heads import Head
from dataplane.mcp import accept, endpoints, merging, messages, modern, names, renaming, spellings
from dataplane.mcp.accept import Taken
from dataplane.mcp.endpoints import MAX_ENDPOINT, WrongEndpoint
from dataplane.mcp.messages import Malformed


def test_a_uri_has_one_name() -> None:
    assert names.joined("resource", "7notes", "file:///a") == "t.7notes+file:///a"
    for other in ("7notes+file:///a", "t.one+file:///a", "t.+file:///a", "t.t.7notes+file:///a"):
        assert names.parted("resource", other) == ("", other)


@pytest.mark.parametrize(
    ("request_id", "seen"),
    [
        *((7, "gw:one:n:7"), (0, "gw:one:n:0"), (-7, "gw:one:n:-7"), ("7", "gw:one:s:7"), ("", "gw:one:s:")),
        *(("a:b", "gw:one:s:a:b"), (10**20 - 1, "gw:one:n:99999999999999999999")),
    ],
)
def test_the_id_of_a_servers_request_is_found_again(request_id: Any, seen: str) -> None:
    assert names.tagged("one", request_id) == seen
    assert names.untagged(seen) == ("one", request_id)


@pytest.mark.parametrize(
    "text",
    [
        *(None, 7, "", "gw", "gw:", "gw:one", "gw:one:", "gw:one:n", "gw:one:n:", "gw:one:n:-", "gw:one:n:--1"),
        *("gw:one:n:+1", "gw:one:n:1a", "gw:one:n:\u0661", "gw:one:n:\u00b2", "gw:one:n:" + "1" * 21),
        *("gw:one:x:1", "gw:one:s", "GW:one:n:1", "xgw:one:n:1"),
    ],
)
def test_an_id_of_others_is_none_of_ours(text: Any) -> None:
    assert names.untagged(text) is None


# --- Accept


@pytest.mark.parametrize(
    ("values", "stream", "json"),
    [
        ([], False, False),
        ([b""], False, False),
        ([b"application/json, text/event-stream"], True, True),
        ([b"Application/JSON;q=0.5\t, Text/Event-Stream ;x=1"], True, True),
        ([b"text/event-stream", b"application/json"], True, True),
        ([b"text/event-stream"], True, False),
        ([b"*/*"], False, True),
        ([b"application/*"], False, True),
        ([b"text/*"], False, False),
        ([b"application/json;q=0"], False, False),
        ([b"application/json; q = 0.000, text/event-stream;q=0.001"], True, False),
        ([b"text/event-stream;q=0.1;q=0"], False, False),
        ([b"text/event-stream;q=0x"], True, False),
        ([b"text/event-stream;aq=0"], True, False),
        ([b"text/event-stream;x=1;q=0"], False, False),
        ([b"text/event-stream,," + b" " * 200 + b"application/json"], True, True),
    ],
)
def test_types_are_taken_by_name(values: list[bytes], stream: bool, json: bool) -> None:
    assert accept.taken(values) == Taken(stream, json)


def test_what_many_clients_send_is_remembered_and_nothing_long() -> None:
    accept.remembered.cache_clear()
    for size in (128, 129):
        value = b"text/event-stream".ljust(size, b" ")
        assert accept.taken([value]) == accept.taken([value]) == Taken(True, False)
    assert accept.taken([b"a", b"b"]) == Taken(False, False)
    assert accept.remembered.cache_info()[:4:3] == (1, 1), "the value of 128 bytes, the second time"


# --- where messages are posted


@pytest.mark.parametrize(
    ("said", "target"),
    [
        (b"/messages?id=1", b"/messages?id=1"),
        (b" /messages ", b"/messages"),
        (b"messages?", b"/a/messages"),
        (b"?id=1", b"/a/sse?id=1"),
        (b"http://HOST:80", b"/"),
        (b"//host/x", b"/x"),
        (b"http://user@host/x", b"/x"),
        (b"/" + b"a" * (MAX_ENDPOINT - 1), b"/" + b"a" * (MAX_ENDPOINT - 1)),
    ],
)
def test_an_endpoint_is_a_path_of_its_own_server(said: bytes, target: bytes) -> None:
    assert endpoints.posted_to(said, "http", "host", "/a/sse") == target


@pytest.mark.parametrize(
    ("said", "why"),
    [
        *((b"", "no URI"), (b"  ", "no URI"), (b"/a b", "no URI"), (b"/\xe9", "no URI"), (b"/a\tb", "no URI")),
        *((b"/" + b"a" * MAX_ENDPOINT, "no URI"), (b"http://host:port/", "no URI"), (b"http://[/", "no URI")),
        *((b"https://host/x", "another origin"), (b"http://host:443/", "another origin")),
        *((b"http://other/x", "another origin"), (b"ftp://host/x", "another origin")),
    ],
)
def test_an_endpoint_elsewhere_is_none(said: bytes, why: str) -> None:
    with pytest.raises(WrongEndpoint, match=rf"^its endpoint event .*{why}$"):
        endpoints.posted_to(said, "http", "host", "/a/sse")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_usual_port_need_not_be_named(scheme: str) -> None:
    port = {"http": 80, "https": 443}[scheme]
    assert endpoints.posted_to(b"%b://host:%d/x" % (scheme.encode(), port), scheme, "host", "/") == b"/x"
    assert endpoints.posted_to(b"/x", scheme, f"host:{port}", "/") == b"/x"


def test_a_query_names_a_stream_once() -> None:
    assert endpoints.stream_of(b"a=1&sessionId=x=y&sessionId=z") == b"x=y"
    assert endpoints.stream_of(b"a=1&sessionid=x&b") is None
    assert endpoints.stream_of(b"sessionId") == b""
    assert endpoints.endpoint_of(b"/sse", "new") == b"/sse?sessionId=new"
    assert endpoints.endpoint_of(b"/sse?a=1&&sessionId=old&b", "new") == b"/sse?a=1&b&sessionId=new"


# --- several answers as one


def hello(capabilities: Any = None, **more: Any) -> Raw:
    return messages.raw({**({} if capabilities is None else {"capabilities": capabilities}), **more})


def value(raw: Any) -> Any:
    return messages.value_of(raw, 1_000_000)


def test_the_oldest_revision_that_is_known_is_spoken() -> None:
    def spoken(asked: str, *theirs: str) -> Any:
        answers = [("t", hello(protocolVersion=each) if each else hello()) for each in theirs]
        return value(merging.hello(asked, answers, False, "9"))["protocolVersion"]

    assert spoken("2025-06-18", "2025-06-18", "2025-03-26") == "2025-03-26"
    assert spoken("2024-11-05", "2025-06-18") == "2024-11-05"
    assert spoken("2025-06-18", "", "1999-01-01") == "2025-06-18"
    assert spoken("1999-01-01", "2025-06-18") == "2025-06-18"
    assert spoken("1999-01-01", "") == spoken("1999-01-01") == "2025-11-25"


def test_capabilities_are_those_of_all() -> None:
    first = {"tools": {"listChanged": False, "x": 1}, "logging": {}, "unknown": {}, "resources": {"subscribe": True}}
    second = {"tools": {"listChanged": True, "x": 2}, "extensions": {"a": {}}, "experimental": {"b": {}}, "tasks": {}}
    merged = value(merging.hello("2025-06-18", [("a", hello(first)), ("b", hello(second)), ("c", hello())], False, "9"))
    assert merged == {
        "protocolVersion": "2025-06-18",
        "capabilities": {
            "tools": {"listChanged": True, "x": 1},
            "logging": {},
            "resources": {"subscribe": True},
            "extensions": {"a": {}},
            "experimental": {"b": {}},
            "tasks": {},
        },
        "serverInfo": {"name": "gatewright", "version": "9"},
    }
    alone = value(merging.hello("2025-06-18", [("a", hello(first)), ("b", hello(second))], True, "9"))["capabilities"]
    assert alone["tools"] == {"x": 1} and alone["resources"] == {}, "without sessions there is nobody to notify"
    discovered = value(merging.discovered([("a", hello(first))], "9"))["capabilities"]
    assert discovered["tools"] == {"listChanged": False, "x": 1} and discovered["resources"] == {"subscribe": True}


@pytest.mark.parametrize("feature", ["tools", "prompts", "resources", "logging", "completions", "tasks"])
def test_each_capability_of_mcp_is_passed(feature: str) -> None:
    assert value(merging.hello("2025-06-18", [("a", hello({feature: {"x": 1}}))], False, "9"))["capabilities"] == {
        feature: {"x": 1}
    }


def test_a_token_of_progress_is_named_anew() -> None:
    given = messages.raw({"a": 1, "_meta": {"progressToken": 7, "x": 1}})
    changed = merging.token_renamed(given, lambda token: f"<{token}>")
    assert value(changed) == {"a": 1, "_meta": {"progressToken": "<7>", "x": 1}}
    none: list[Any] = [{}, {"_meta": {}}, {"_meta": {"progressToken": None}}]
    for each in none:
        raw = messages.raw(each)
        assert merging.token_renamed(raw, str) is raw
    assert merging.token_renamed(UNSET, str) is UNSET


LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
SEEN_LINK = {**LINK, "uri": "one+file:///a"}
EMBEDDED = {"type": "resource", "resource": {"uri": "ui://a", "text": "x"}}
SEEN_EMBEDDED = {"type": "resource", "resource": {"uri": "ui://one+a", "text": "x"}}
OTHER = {"type": "text", "text": "file:///a", "uri": "file:///a"}


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"contents": [{"uri": "file:///a"}, {"text": "x"}]}, {"contents": [{"uri": "one+file:///a"}, {"text": "x"}]}),
        ({"content": [LINK, OTHER, EMBEDDED, 7]}, {"content": [SEEN_LINK, OTHER, SEEN_EMBEDDED, 7]}),
        (
            {"messages": [{"role": "user", "content": EMBEDDED}, {"content": [LINK]}]},
            {"messages": [{"role": "user", "content": SEEN_EMBEDDED}, {"content": [SEEN_LINK]}]},
        ),
        ({"task": {"taskId": "t", "x": 1}}, {"task": {"taskId": "one+t", "x": 1}}),
        ({"taskId": "t", "result": {"content": [LINK]}}, {"taskId": "one+t", "result": {"content": [SEEN_LINK]}}),
        (
            {"inputRequests": {"a": {"method": "sampling/createMessage", "params": {"messages": [{"content": LINK}]}}}},
            {
                "inputRequests": {
                    "a": {"method": "sampling/createMessage", "params": {"messages": [{"content": SEEN_LINK}]}}
                }
            },
        ),
        (
            {"messages": [{"content": [{"type": "tool_result", "content": [LINK]}]}]},
            {"messages": [{"content": [{"type": "tool_result", "content": [SEEN_LINK]}]}]},
        ),
        ({"_meta": {"ui": {"resourceUri": "ui://a"}}}, {"_meta": {"ui": {"resourceUri": "ui://one+a"}}}),
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_a_result_names_is_named_as_clients_see_it(given: Any, seen: Any) -> None:
    assert value(renaming.result(messages.raw({**given, "x": 1}), "one")) == {**seen, "x": 1}


@pytest.mark.parametrize(
    "given",
    [
        *({"x": 1}, {"content": "resource"}, {"content": None, "uri": "a:b"}, {"structuredContent": LINK}),
        *({"content": [OTHER]}, {"content": [{"type": "resource_link", "uri": 7}]}, {"messages": 7}, [LINK]),
        *({"content": [{"type": "resource", "resource": []}]}, {"contents": [[], 7]}, {"inputRequests": {"a": {}}}),
        *({"_meta": None}, {"_meta": {"ui": True}}, {"task": None}, {"result": 7}),
    ],
    ids=str,
)
def test_what_names_nothing_is_the_same(given: Any) -> None:
    raw = messages.raw(given)
    assert renaming.result(raw, "one") is raw


def test_a_result_that_names_too_many_resources_is_not_read() -> None:
    assert renaming.result(messages.raw({"content": [LINK] * renaming.MOST}), "one")
    with pytest.raises(messages.Beyond, match="names more than 10000 resources"):
        renaming.result(messages.raw({"content": [LINK] * (renaming.MOST + 1)}), "one")


# --- the revision without sessions


def request(method: str = "tools/call", **params: Any) -> messages.Message:
    return messages.read(messages.request(method, 5, messages.raw(params)))


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def head(*lines: bytes) -> Head:
    return Head(b"\r\n" + b"".join(line + b"\r\n" for line in lines))


@pytest.mark.parametrize(
    "name", ["add", "a b", "caf\u00e9", "=?base64?YQ==?=", " a", "a ", "\u65e5", "", "a\tb", "=?base64?x", "a?="]
)
def test_an_item_is_named_in_a_header_as_its_server_reads_it(name: str) -> None:
    line = modern.name_line(name)
    assert line.startswith(b"mcp-name: ") and line.endswith(b"\r\n") and line.isascii()
    asked = request(name=name, _meta=META)
    modern.check(asked, head(b"mcp-method: tools/call", line.removesuffix(b"\r\n")))
    other = request(name=name + "x", _meta=META)
    with pytest.raises(Malformed, match="Mcp-Name"):
        modern.check(other, head(b"mcp-method: tools/call", line.removesuffix(b"\r\n")))


@pytest.mark.parametrize(
    ("message", "lines", "code", "text"),
    [
        (request(name="a", _meta=META), [b"mcp-method: tools/call"], -32020, "Mcp-Name"),
        (request(name="a", _meta=META), [b"mcp-name: a"], -32020, "Mcp-Method"),
        (request(name="a", _meta=META), [b"mcp-method: tools/list", b"mcp-name: a"], -32020, "Mcp-Method"),
        (
            request(name="a", _meta=META),
            [b"mcp-method: tools/call", b"mcp-name: a", b"mcp-name: a"],
            -32020,
            "Mcp-Name",
        ),
        (request(name="a", _meta=META), [b"mcp-method: tools/call", b"mcp-name: =?base64?%?="], -32020, "Mcp-Name"),
        (request(name="a", _meta=META), [b"mcp-method: tools/call", b"mcp-name: =?base64?/w==?="], -32020, "Mcp-Name"),
        (request(name="a", _meta=META), [b"mcp-method: tools/call", b"mcp-name: =?base64?Y!Q==?="], -32020, "Mcp-Name"),
        (request(name="a"), [], -32602, "params._meta must have"),
        (request(_meta={**META, "io.modelcontextprotocol/protocolVersion": "2025-06-18"}), [], -32020, "as the header"),
        (request("ping", _meta=META), [b"mcp-method: ping"], -32601, "ping is none of revision 2026-07-28"),
        (messages.read(b'{"jsonrpc":"2.0","id":5,"result":{}}'), [], -32600, "no requests of servers"),
    ],
)
def test_headers_and_body_have_to_agree(message: messages.Message, lines: list[bytes], code: int, text: str) -> None:
    with pytest.raises(Malformed, match=text) as refused:
        modern.check(message, head(*lines))
    assert (refused.value.code, refused.value.request_id) == (code, 5)


def test_what_agrees_is_right() -> None:
    modern.check(request("tools/list", _meta=META), head(b"mcp-method: tools/list"))
    modern.check(request("resources/read", uri="u", _meta=META), head(b"mcp-method: resources/read", b"mcp-name: u"))
    modern.check(messages.read(messages.notification("notifications/cancelled")), head())


def test_a_request_says_its_revision_by_itself() -> None:
    assert modern.is_meant(request(_meta=META))
    assert not modern.is_meant(request(_meta={}))
    assert not modern.is_meant(request())
    assert not modern.is_meant(messages.read(messages.notification("x", messages.raw({"_meta": META}))))


# --- other spellings


@pytest.mark.parametrize(
    ("method", "is_disguised"),
    [
        *(("Tools/Call", True), ("tools/call ", True), ("t-o_o.l s/call", True), ("tools/calls", False)),
        *(("", False), ("x" * spellings.MAX_NAME, False), ("x" * (spellings.MAX_NAME + 1), True)),
    ],
)
def test_a_known_method_in_disguise(method: str, is_disguised: bool) -> None:
    assert spellings.is_disguised(method) is is_disguised


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [
        *(({"a": 1, "A": 2}, True), ({"a": {"b": [{"c": 1, "C": 1}]}}, True), ([[{"a": 1, "A": 1}]], True)),
        *(({"a": {"A": 1}}, False), ([{"a": 1}, {"A": 1}], False), (None, False), ("x", False), ({}, False)),
        ([{"b": {"x": 1, "X": 2}}, 1], True),
    ],
)
def test_arguments_have_one_spelling_of_a_name(found: Any, is_refused: bool) -> None:
    if not is_refused:
        spellings.check_values(found)
        return
    with pytest.raises(Malformed, match="one name in two spellings") as refused:
        spellings.check_values(found)
    assert refused.value.code == -32602
