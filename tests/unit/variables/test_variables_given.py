"""Expressions on plain documents: values, what follows from other values, what is not there, what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.cel.errors import CelError
from gatewright.cel.program import compile_expression
from gatewright.cel.values import Duration, Timestamp
from gatewright.variables.environments import environment
from gatewright.variables.given import Given
from gatewright.variables.reading import mistakes

DOCUMENT: dict[str, Any] = {
    "request": {
        "method": "POST",
        "uri": "https://shop.example.com:8443/v1/orders?dry=1",
        "headers": {"X-Team": "blue", "cookie": ["session=abc", "theme=dark"]},
        "body": {"item": "book", "amount": 2},
        "startTime": "2026-01-31T12:00:00Z",
    },
    "response": {"code": 200, "body": "plain"},
    "source": {"address": "10.1.2.3", "port": 5, "identity": {"trustDomain": "a", "namespace": "b"}},
    "jwt": {"sub": "alice", "groups": ["staff"], "rawToken": "token"},
    "apiKey": {"key": "secret", "group": "partners"},
    "proxy": {"upstreamDuration": "150ms"},
    "llm": {"cost": {"total": 1}, "prompt": [{"role": "system", "content": "hi"}]},
    "extauthz": {"node": {"name": "laptop"}},
}


def value(text: str, document: dict[str, Any] = DOCUMENT) -> Any:
    assert mistakes(document) == []
    return compile_expression(text, environment("end")).evaluate(Given(document))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("request.method", "POST"),
        ("request.path", "/v1/orders"),
        ("request.pathAndQuery", "/v1/orders?dry=1"),
        ("request.scheme + ' ' + request.host", "https shop.example.com:8443"),
        ('request.headers["x-TEAM"]', "blue"),
        ('request.headers.cookie("theme")', "dark"),
        ("request.headers.cookie", "session=abc, theme=dark"),
        ('"X-Team" in request.headers', True),
        ('request.uri.query("dry")', "1"),
        ('default(request.uri.query("wet"), "none")', "none"),
        ('"X-Other" in request.headers', False),
        ("has(request.headers.nope)", False),
        ("json(request.body).amount + 1", 3),
        ("request.body", b'{"item":"book","amount":2}'),
        ("request.bodyPrefix == request.body", True),
        ("string(response.body)", "plain"),
        ("request.startTime", Timestamp(1769860800 * 10**9)),
        ("proxy.upstreamDuration", Duration(150_000_000)),
        ("source.rawAddress", "10.1.2.3"),
        ('cidr("10.0.0.0/8").containsIP(source.address)', True),
        ("source.identity", {"trustDomain": "a", "namespace": "b"}),
        ("has(source.identity.serviceAccount)", False),
        ("has(source.unverifiedWorkload)", False),
        ("jwt.sub", "alice"),
        ("jwt.rawToken", "<redacted>"),
        ("jwt.rawToken.unredacted()", "token"),
        ("jwt", {"rawToken": "<redacted>", "sub": "alice", "groups": ["staff"]}),
        ("apiKey.key", "<redacted>"),
        ("apiKey.group", "partners"),
        ("llm.cost.total", 1.0),
        ("llm.prompt[0].role", "system"),
        ("extauthz.node.name", "laptop"),
        ("metadata", {}),
        ('default(basicAuth.username, "nobody")', "nobody"),
        ("has(jwt.email)", False),
        ("response", {"code": 200, "body": b"plain", "bodyPrefix": b"plain"}),
        ("variables().size()", 8),
    ],
)
def test_values(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected) or isinstance(found, type(expected))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("request.version", "no such value: request.version"),
        ("basicAuth.username", "no such key: basicAuth.username"),
        ("response.headers.x", "no such key: x"),
        ("json(response.body)", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("metadata.tenant", "no such key: tenant"),
        ("mcp.tool.name", "no such key: mcp.tool.name"),
        ("extproc.tenant", "no such key: tenant"),
    ],
)
def test_what_is_not_there(text: str, message: str) -> None:
    with pytest.raises(CelError) as failure:
        value(text)
    assert failure.value.message == message


@pytest.mark.parametrize(
    ("request_", "path", "host", "uri"),
    [
        ({"path": "/a"}, "/a", None, None),
        ({"pathAndQuery": "/a?b=c"}, "/a", None, None),
        ({"path": "/a", "headers": {"Host": "h"}}, "/a", "h", "http://h/a"),
        ({"pathAndQuery": "/a?b", "host": "h", "scheme": "https"}, "/a", "h", "https://h/a?b"),
    ],
)
def test_parts_of_the_uri_follow_from_each_other(
    request_: dict[str, Any], path: str, host: str | None, uri: str | None
) -> None:
    document = {"request": request_}
    assert value("request.path", document) == path
    assert value('default(request.host, "")', document) == (host or "")
    assert value('default(request.uri, "")', document) == (uri or "")


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ([], (), "must be an object with "),
        ({"reqest": {}}, ("reqest",), 'unknown variable; did you mean "request"?'),
        ({"request": {"methd": "GET"}}, ("request", "methd"), 'unknown field; did you mean "method"?'),
        ({"request": {"method": 5}}, ("request", "method"), "must be text: put it in quotes"),
        ({"request": []}, ("request",), "must be an object"),
        ({"request": {"headers": {"a": 1}}}, ("request", "headers", "a"), "must be text: put it in quotes"),
        ({"request": {"headers": {"a": ["b", {}]}}}, ("request", "headers", "a"), "must be text"),
        ({"request": {"headers": []}}, ("request", "headers"), "must be an object of header names and values"),
        ({"request": {"body": 4}}, ("request", "body"), "must be text, or an object or list to be written as JSON"),
        ({"request": {"startTime": "noon"}}, ("request", "startTime"), "not a timestamp (RFC 3339); write "),
        ({"proxy": {"upstreamDuration": "12"}}, ("proxy", "upstreamDuration"), "not a duration; write 150ms or 1.5s"),
        ({"response": {"code": "200"}}, ("response", "code"), "must be an integer of 64 bits"),
        ({"response": {"code": True}}, ("response", "code"), "must be an integer of 64 bits"),
        ({"response": {"code": 2**63}}, ("response", "code"), "must be an integer of 64 bits"),
        ({"llm": {"streaming": "yes"}}, ("llm", "streaming"), "must be true or false"),
        ({"llm": {"cost": {"total": "1"}}}, ("llm", "cost", "total"), "must be a number"),
        ({"llm": {"prompt": {}}}, ("llm", "prompt"), "must be a list"),
        ({"llm": {"prompt": [{}, "a"]}}, ("llm", "prompt", 1), "must be an object"),
        ({"jwt": {1: 2}}, ("jwt", "1"), "must be a name: put it in quotes"),
        ({"jwt": {"a": {1: 2}}}, ("jwt", "a", "1"), "must have names as keys: put them in quotes"),
        ({"response": {"code": -(2**63) - 1}}, ("response", "code"), "must be an integer of 64 bits"),
        ({"jwt": {"rawToken": None, "a": 2**63}}, ("jwt", "a"), "must be an integer of 64 bits"),
        (
            {"request": {"headers": {1: "a"}}},
            ("request", "headers", "1"),
            "must have names as keys: put them in quotes",
        ),
        ({"request": {"headers": {"a": [1.5]}}}, ("request", "headers", "a"), "must be text: put it in quotes"),
        ({"llm": {"cost": {"total": True}}}, ("llm", "cost", "total"), "must be a number"),
        ({"llm": {"completion": ["a", 1]}}, ("llm", "completion", 1), "must be text: put it in quotes"),
        ({"jwt": 1}, ("jwt",), "must be an object"),
        ({"basicAuth": "alice"}, ("basicAuth",), "must be an object"),
        ({"proxy": {"upstreamDuration": 12}}, ("proxy", "upstreamDuration"), "must be text: put it in quotes"),
        ({"request": {"body": {"a": [2**64]}}}, ("request", "body", "a", 0), "must be an integer of 64 bits"),
        ({1: 2}, ("1",), "must be a name: put it in quotes"),
        ({"source": {"identity": {"name": "a"}}}, ("source", "identity", "name"), "unknown field"),
        ({"metadata": {"a": [2**70]}}, ("metadata", "a", 0), "must be an integer of 64 bits"),
    ],
)
def test_mistakes(document: Any, path: tuple[str | int, ...], message: str) -> None:
    (found,) = mistakes(document)
    assert found.path == path
    assert found.message.startswith(message)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "must be text"),
        ([], "must be text"),
        (5, "must be text: put it in quotes"),
        (1.5, "must be text: put it in quotes"),
    ],
)
def test_quotes_are_the_cure_for_numbers_only(raw: Any, message: str) -> None:
    assert [found.message for found in mistakes({"request": {"method": raw}})] == [message]
    assert [found.message for found in mistakes({"request": {"headers": {"a": [raw]}}})] == [message]


@pytest.mark.parametrize("document", [
    {"response": {"code": 2**63 - 1}}, {"response": {"code": -(2**63)}},
    {"metadata": {"a": [2**63 - 1, -(2**63), True]}},
    {"llm": {"cost": {"total": 1}, "streaming": False}}, {"jwt": None}, {"request": {"method": None}}, {},
    {"jwt": {"a": None, "b": {"c": [None]}}}, {"request": {"headers": {"a": ["b", "c"], "d": ""}, "body": ["é"]}},
])  # fmt: skip
def test_what_is_right(document: dict[str, Any]) -> None:
    assert mistakes(document) == []


def test_what_may_be_named_at_the_top() -> None:
    (none,) = mistakes([])
    (unknown,) = mistakes({"zzz": 1})
    names = [name.split(".")[0] for name in ("request", "response", "source", "jwt", "llm", "mcp", "a2a", "metadata")]
    for name in names:
        assert f" {name}," in f"{none.message}," and f" {name}," in f"{unknown.message},"
    assert unknown.message.startswith("unknown variable; known: ") and "request.method" not in none.message


def test_a_uri_that_is_none() -> None:
    with pytest.raises(CelError, match=r"request\.uri: Invalid IPv6 URL"):
        value("request.path", {"request": {"uri": "http://[::1"}})


def test_all_mistakes_at_once() -> None:
    document = {"request": {"method": 1, "host": 2}, "response": {"cod": 1}}
    assert [found.path for found in mistakes(document)] == [
        ("request", "method"), ("request", "host"), ("response", "cod"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["jwt.sub", "jwt.rawToken", "apiKey.group", "basicAuth.username", "extauthz.a", "llm.cost.total", "mcp.tool.name",
     "source.identity", "source.identity.namespace", "backend.name", "proxy.route.name", "metadata.a"],
)  # fmt: skip
def test_has_may_be_asked_where_nothing_is_there(text: str) -> None:
    """A Deny rule with `!has(jwt.sub)` must match where there is no token at all."""
    assert value(f"!has({text})", {}) is True
    assert value(f"default({text}, 'none')", {}) == "none"


@pytest.mark.parametrize("name", ["uri", "scheme", "host", "path", "pathAndQuery", "method", "headers.host"])
def test_of_a_request_of_which_nothing_is_said_nothing_follows(name: str) -> None:
    documents: list[dict[str, Any]] = [{}, {"request": {}}, {"request": {"uri": None}}]
    for document in documents:
        assert value(f"default(request.{name}, 'none')", document) == "none"


def test_a_body_that_is_not_there_is_no_json() -> None:
    with pytest.raises(CelError, match=r"no such value: request\.body"):
        value("json(request.body).a", {})
    assert value("json(request.body).a", {"request": {"body": {"a": 1}}}) == 1


def test_null_is_absent() -> None:
    assert value("has(source.identity)", {"source": {"identity": None}}) is False


def test_only_what_is_read_is_made() -> None:
    given = Given(DOCUMENT)
    compile_expression("request.method", environment("end")).evaluate(given)
    assert set(vars(given)) == {"_document", "request_method"}
