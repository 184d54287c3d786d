"""Nothing that a rule or a guardrail refuses reaches a server in another spelling: of keys, methods, names, envelopes.
The servers here read what lenient ones read: the first of two keys, keys in any case, URIs made normal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.carriers import Carrier
from tests.policies.test_backend_mcp import opened, rule

DENY = rule('mcp.tool.name == "drop" || mcp.resource.name == "file:///a/b"', action="Deny")
ENVELOPE = '"jsonrpc":"2.0","id":7'
CALL = '"method":"tools/call","params":{"name":"drop"}'


def first_of_two(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found.setdefault(key.casefold(), value)
    return found


def last_of_two(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key.casefold(): value for key, value in pairs}


READERS = (first_of_two, last_of_two)


@pytest.mark.parametrize(
    "body",
    [
        f"{{{ENVELOPE},{CALL}}}",
        f'{{{ENVELOPE},{CALL},"method":"ping"}}',
        f'{{{ENVELOPE},"method":"ping",{CALL}}}',
        f'{{{ENVELOPE},{CALL},"method":"tools/list"}}',
        f'{{{ENVELOPE},{CALL},"method":"notifications/initialized"}}',
        f'{{{ENVELOPE},{CALL},"params":{{"name":"add"}}}}',
        f'{{{ENVELOPE},"method":"ping","Method":"tools/call","params":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"METHOD":"tools/call","params":{{"name":"drop"}},"result":{{}}}}',
        f'{{{ENVELOPE},"method":"ping","PARAMS":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tools/call","params":{{"name":"add"}},"Params":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tools/call","params":{{"name":"drop","name":"add"}}}}',
        f'{{{ENVELOPE},"method":"tools/call","params":{{"name":"add","Name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tools/call","params":{{"NAME":"drop","name":"add"}}}}',
        f'{{{ENVELOPE},"method":"tools/call","params":{{"\\u006eame":"drop"}}}}',
        f'{{{ENVELOPE},"m\\u0065thod":"tools\\/call","params":{{"name":"dro\\u0070"}}}}',
        f'{{{ENVELOPE},"method":"Tools/Call","params":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tools/call ","params":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tools/call\\u0000","params":{{"name":"drop"}}}}',
        f'{{{ENVELOPE},"method":"tool\\u017f/call","params":{{"name":"drop"}}}}',
        f'{{"jsonrpc":"2.0",{CALL}}}',
        f'{{"jsonrpc":"2.0","id":null,{CALL}}}',
        f'{{"jsonrpc":"2.0",{CALL},"id":7,"ID":8}}',
        f"[{{{ENVELOPE},{CALL}}}]",
        f"\ufeff{{{ENVELOPE},{CALL}}}",
    ],
)
def test_a_tool_that_is_denied_is_called_in_no_spelling(body: str, carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    before = len(client.run.arrivals)
    client.post(body.encode())
    for arrival in client.run.arrivals[before:]:
        sent = arrival.received.body
        for reader in READERS:
            message = json.loads(sent, object_pairs_hook=reader)
            method = message.get("method", "").casefold().strip("\0 ")
            assert method != "tools/call" or message["params"]["name"] != "drop", sent
    assert client.result("tools/call", {"name": "sub"}), "what is not denied still works"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///a/b",
        "FILE:///a/b",
        "file:///a/./b",
        "file:///a/c/../b",
        "file:///x/../../a/b",
        "file:///a/%62",
        "file:///%61/b",
        "file:///a/%2e/b",
        "file:///a/c/%2E%2e/b",
        "file:///a/\nb",
        " file:///a/b",
        "fi\tle:///a/b",
        "file:/a/b",
        "file:a/b",
        "file://localhost/a/b",
        "FILE://LocalHost/a/b",
        "file:\\\\\\a\\b",
        "file:///x\\..\\a\\b",
        "\u0001file:///a/b\u001f",
        "file:///x%2f..%2fa%2Fb",
        "file:///a/b?x=y",
        "file:///a/b#part",
        "file:///a/b%3Fx",
        "file:///a/b?",
        "file:////a/b",
        "file:///a//b",
        "file:///a/b/",
        "file:///a/b/.",
        "file://host.example/a/b",
        "file://127.0.0.1/a/b",
        "file://user@host/a/b",
        "file://localhost//a/b",
        "file://a/b",
        "//host/a/b",
        "/a/b",
        "a/b",
        "./a/b",
        "\\a\\b",
        "/a/b?x",
        "/a/%2562",
        "file:///a/b%00.txt",
        "file:///pub/x?/../../a/b",
        "file:///pub/x#/../../a/b",
        # the delimiters of RFC 3986 C, which Python's `urlopen` takes off, and Java's `URL`
        "URL:file:///a/b",
        "url:file:///a/b",
        "<file:///a/b>",
        " <URL: file:///a/b >",
        "<url:/a/b>",
        # what some trim, cut off or pass over
        "\ufefffile:///a/b",
        "file:///a/b\u3000",
        "file:///a/b\0",
        "file:///a/b;v=1",
        "/a/b;v=1",
        "file:///a;x/b",
        "file:///a/x/..;y/b",
        "file:///a/b.",
        "file:///a/b%20",
        "file:///a./b. .",
        "file:///a/b:stream",
        "file:///a/b::$DATA",
        "file://[::1]/a/b",
        "file:/\\a/b",
        "file:///%61%2F%62",
    ],
)
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_a_resource_that_is_denied_is_read_in_no_spelling(method: str, uri: str, carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    assert client.error(method, {"uri": uri})[:2] == (200, -32602)
    assert method not in client.toys["127.0.0.1:9001"].methods_got()


SAME = [
    # what a rule names, and what some servers read as that
    ("http://h.example/x", "HTTP://H.Example:80/x"),
    ("https://h.example/x", "https:h.example/x"),
    ("https://h.example/x", "https:\\\\h.example\\x"),
    ("https://h.example/x", "https:////h.example:443/x"),
    ("http://h.example/", "http://h.example"),
    ("http://h.example/?a=b", "http://h.example?a=b"),
    ("note://a/b%20c", "note://a/b c"),
    ("note://a/b c", "note://a/b%20c"),
    ("note://a/%E6%97%A5", "note://a/\u65e5"),
    ("note://a/\u65e5", "note://a/%e6%97%a5"),
    ("note://a/b%2Fc", "note://a/b%2fc"),
    ("note://a/b", "NOTE://A/c/%2E%2E/b"),
    ("note://a/b", "note://a/b#part"),
    ("http://h.example/x", "http://h.example/x#part"),
    ("http://h.example/x", "http://user:word@h.example/x"),
    ("http://h.example/x", "http://h.example./x"),
    ("http://h.example/x", "http://h.example:/x"),
    ("http://h.example/x", "http://h.example:00080/x"),
    ("http://h.example/x", "http://\uff48.example/x"),
    ("http://h.example/x", "http://h\u3002example/x"),
    ("http://h.example:8080/x", "http://h.example:08080/x"),
    ("file:///C:/a", "file:///c|/a"),
    ("file:///C:/a", "C:\\a"),
    ("file:///C:/a", "file:///c:/a::$DATA"),
    ("file:///caf\u00e9", "file:///cafe\u0301"),
    ("file:///cafe\u0301", "file:///caf%C3%A9"),
    ("http://h.example/x", "URL:http://h.example/x"),
    ("note://a/b", "<note://a/b>"),
    ("note://a/b", "note://a/b?"),
    ("http://h.example/x", "http://h.example/x?"),
    ("http://h.example/x", "http://h.example/x;v=1"),
    ("http://h.example/x", "http://h.example/y/..;/x"),
    ("http://h.example/x?a=b", "http://h.example/x;v?a=b#c"),
    ("http://h.example/x", "http://other@user@h.example/x"),
    ("http://h.example/x", "http://other.example\\@h.example/x"),
    ("http://h.example/x", "http://other.example#@h.example/x"),
    ("http://h.example/x", "http://other.example?@h.example/x"),
    ("http://h.example/x", "http://h\u00ad.exam\u200bple/x"),
    ("http://b\u00fccher.example/x", "http://xn--bcher-kva.example/x"),
    ("http://xn--bcher-kva.example/x", "http://B\u00dccher.example/x"),
    ("http://xn--bcher-kva.example/x", "http://bu\u0308cher.example/x"),
    ("http://stra\u00dfe.example/x", "http://xn--strae-oqa.example/x"),
    ("http://strasse.example/x", "http://stra\u00dfe.example/x"),
    ("http://127.0.0.1/x", "http://127.1/x"),
    ("http://127.0.0.1/x", "http://2130706433/x"),
    ("http://127.0.0.1/x", "http://0x7f.0.0.1/x"),
    ("http://127.0.0.1/x", "http://0177.0.0.0x1:80/x"),
    ("http://[::1]/x", "http://[0:0::0001]:80/x"),
]


@pytest.mark.parametrize(("named", "asked"), SAME)
@pytest.mark.parametrize("action", ["Deny", "Require"])
def test_whoever_reads_two_uris_as_one_gets_neither(action: str, named: str, asked: str, carrier: Carrier) -> None:
    operator = "==" if action == "Deny" else "!="
    client = opened(carrier, rule(f'mcp.resource.name {operator} "{named}"', action=action))
    for uri in (named, asked):
        assert client.error("resources/read", {"uri": uri}) == (200, -32602, f"Unknown resource: {uri}")
    assert "resources/read" not in client.toys["127.0.0.1:9001"].methods_got()


@pytest.mark.parametrize(
    "asked",
    [
        "file:///pub/../a",
        "file:///pub/x?/../../a",
        "file:///pub/x#\\..\\..\\a",
        "file:///pub/..\\a",
        "file:///pub/%2e%2e/a",
        "file:///pub/..%2fa",
    ],
)
def test_what_is_allowed_leads_nowhere_else(asked: str, carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.resource.name.startsWith("file:///pub/")'))
    assert client.error("resources/read", {"uri": asked})[:2] == (200, -32602)


@pytest.mark.parametrize(
    "uri",
    ["file:///a", "note://a/\u65e5\u672c", "note://a/b c", "http://h.example", "toy:a\\b", "file:///a?b", "/a", "note"],
)
def test_what_is_allowed_by_its_own_name_is_read(uri: str, carrier: Carrier) -> None:
    client = opened(carrier, rule("mcp.resource.name == r'%s'" % uri))  # noqa: UP031  # quotes within
    client.toys["127.0.0.1:9001"].resources = [uri]
    assert client.result("resources/read", {"uri": uri})["contents"][0]["uri"] == uri


@pytest.mark.parametrize("asked", ["http://h.example\\@other.example/x", "http:\\\\h.example\\@other.example"])
def test_a_host_that_is_allowed_is_no_user_of_another(asked: str, carrier: Carrier) -> None:
    client = opened(carrier, rule('mcp.resource.name.contains("//h.example/")'))
    assert client.error("resources/read", {"uri": asked})[:2] == (200, -32602)


NOBODY_KNOWS = [
    # what a rule names, what some server may read as that, and where the page says so
    ("file:///a/b", "file:///A/B", "file systems that take `B` for `b`"),
    ("file:///a/b", "file:///link/b", "symbolic and hard links"),
    ("file:///a/b", "file:///a/b%25252562", "escapes resolved three times"),
    ("http://h.example/x", "http://h.example//x", "doubled slashes"),
    ("http://h.example/x", "http://h.example/x/", "a slash at the end"),
    ("http://h.example/x", "http://alias.example/x", "redirects and aliases of HTTP"),
    ("note://a/b", "note://a/b/", "a scheme of its own"),
    ("note://a/b", "note:a/b", "a scheme of its own"),
]


@pytest.mark.parametrize(("named", "asked", "words"), NOBODY_KNOWS)
def test_what_no_rule_can_know_is_said_on_the_page(
    named: str, asked: str, words: str, carrier: Carrier, root: Path
) -> None:
    client = opened(carrier, rule(f'mcp.resource.name == "{named}"', action="Deny"))
    client.toys["127.0.0.1:9001"].resources = [asked]
    assert client.result("resources/read", {"uri": asked})["contents"][0]["uri"] == asked
    assert words in " ".join((root / "docs/mcp/authorization.md").read_text().split())


def test_the_log_has_the_name_that_the_client_gave(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    client.request("resources/read", {"uri": "FILE:///a/./c"})
    assert " mcp.resource.uri=FILE:///a/./c " in client.run.log_lines()[-1]


def test_a_method_that_is_too_long_to_be_compared_is_refused(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    before = len(client.run.arrivals)
    assert client.error("x/" + "y" * 8190)[1] == -32601 and len(client.run.arrivals) == before + 1
    assert client.error("x/" + "y" * 8191) == (404, -32601, "Method not found")
    assert len(client.run.arrivals) == before + 1


def test_a_completion_about_it_neither(carrier: Carrier) -> None:
    client = opened(carrier, DENY)
    ref = {"type": "ref/resource", "uri": "FILE:///a/b"}
    assert client.error("completion/complete", {"ref": ref, "argument": {}})[:2] == (200, -32602)
    twice = {"type": "ref/resource", "uri": "file:///a", "URI": "file:///a/b"}
    assert client.error("completion/complete", {"ref": twice, "argument": {}})[:2] == (400, -32602)


ARGUMENTS = rule('mcp.tool.arguments.path == "/etc"', action="Deny")


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path":"/etc"}',
        '{"path":"/etc","path":"/ok"}',
        '{"path":"/ok","Path":"/etc"}',
        '{"path":"/ok"},"Arguments":{"path":"/etc"}',
        '{"path":"/etc"},"arguments":{"path":"/ok"}',
    ],
)
def test_arguments_that_are_denied_arrive_in_no_spelling(arguments: str, carrier: Carrier) -> None:
    client = opened(carrier, ARGUMENTS)
    before = len(client.run.arrivals)
    client.post(f'{{{ENVELOPE},"method":"tools/call","params":{{"name":"add","arguments":{arguments}}}}}'.encode())
    assert all(b"/etc" not in arrival.received.body for arrival in client.run.arrivals[before:])
    assert client.result("tools/call", {"name": "add", "arguments": {"path": "/ok", "n": 123456789012345678901234}})
    sent = json.loads(client.run.arrivals[-1].received.body)["params"]["arguments"]
    assert sent == {"path": "/ok", "n": 123456789012345678901234}


def test_without_policies_messages_pass_as_they_were_written(carrier: Carrier) -> None:
    client = opened(carrier, "{}")
    body = b'{ "jsonrpc":"2.0", "id":7, "method":"ping", "x":1 }'
    client.post(body)
    assert client.run.arrivals[-1].received.body == body
