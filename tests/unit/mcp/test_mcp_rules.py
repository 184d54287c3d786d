"""Small tables of MCP: how URIs are spelled, what a client listens to, whom a browser was made to ask, which errors
clients read, which rules count where; and which backends a request may go to."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends import registry
from dataplane.chain import expressions
from dataplane.chain.rules import ALLOW, DENY, Rule
from dataplane.mcp import errors, messages, methods, rebinding, spellings, subscriptions
from dataplane.mcp.messages import Malformed
from dataplane.mcp.policies import NO_POLICIES, McpPolicies
from dataplane.mcp.spellings import Spelling
from dataplane.mcp.subscriptions import Filter


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("HTTP://Host:80/A/%7e", "http://host/A/~"),
        ("http://host:8080/", "http://host:8080/"),
        ("https:host/x", "https://host/x"),
        ("https:////host:443/x", "https://host/x"),
        ("ws:\\\\h:80\\a", "ws://h/a"),
        ("wss://h:443/a", "wss://h/a"),
        ("ftp://h:21/a", "ftp://h/a"),
        ("https://h:80/a", "https://h:80/a"),
        ("file:/a/b", "file:///a/b"),
        ("file:a", "file:///a"),
        ("file://localhost/a", "file:///a"),
        ("file://other/a", "file://other/a"),
        ("file:\\\\\\a\\b", "file:///a/b"),
        ("x://LocalHost/a", "x://localhost/a"),
        ("x:a/./b", "x:a/b"),
        ("x:/a/./b/..", "x:/a/"),
        ("x://h/../../a", "x://h/a"),
        ("x://h/a/.", "x://h/a/"),
        ("x://h/a/..?b=..#c", "x://h/?b=..#c"),
        ("x://h/a.b", "x://h/a.b"),
        ("x://h/%2f%41", "x://h/%2FA"),
        (" \tx://h/a\r\n\u0001", "x://h/a"),
        ("no uri", "no uri"),
        ("1x://h", "1x://h"),
        ("x+y.z-1:a", "x+y.z-1:a"),
        ("urn:A:%41", "urn:A:A"),
    ],
)
def test_uris_made_normal(uri: str, normal: str) -> None:
    assert spellings.normal(uri) == normal


@pytest.mark.parametrize(
    ("kind", "name", "found"),
    [
        ("tool", "a b", [("a b", False)]),
        ("tool", "x" * 9000, [("x" * 9000, False)]),
        ("resource", "file:///a/b", [("file:///a/b", False)]),
        ("resource", "https://h.example/a/b.c", [("https://h.example/a/b.c", False)]),
        ("resource", "file:/a", [("file:/a", False), ("file:///a", False)]),
        ("resource", "note://a/b c", [("note://a/b c", False), ("note://a/b%20c", True)]),
        (
            "resource",
            "note://a/b%20c",
            [("note://a/b%20c", False), ("note://a/b c", False)],
        ),
        ("resource", "https://h", [("https://h", False), ("https://h/", True)]),
        ("resource", "https://h?a", [("https://h?a", False), ("https://h/?a", True)]),
        ("resource", "x://h/%ff", [("x://h/%ff", False), ("x://h/%FF", False)]),
        ("resource", "x://h/\u00e9", [("x://h/\u00e9", False), ("x://h/%C3%A9", True)]),
    ],
)
def test_names_that_a_server_may_read(kind: str, name: str, found: list[tuple[str, bool]]) -> None:
    assert list(spellings.spelled(kind, name)) == [Spelling(*each) for each in found]


def test_a_uri_that_is_judged_is_bounded() -> None:
    longest = "file:///" + "a" * (8192 - 8)
    assert list(spellings.spelled("resource", longest)) == [Spelling(longest)]
    for uri in (longest + "a", "x:" + "b" * 8191):
        with pytest.raises(Malformed, match="a URI has more than 8192 characters") as refused:
            spellings.spelled("resource", uri)
        assert refused.value.code == -32602
    assert spellings.spelled("resource", "x:" + "b" * 8190)


# --- what a client listens to


def wanted(**fields: Any) -> Filter:
    return subscriptions.read({"notifications": messages.raw(fields)})


def test_a_stream_is_about_so_many_resources() -> None:
    assert len(wanted(resourceSubscriptions=[str(each) for each in range(1024)]).uris) == 1024
    with pytest.raises(Malformed, match="has more than 1024 URIs"):
        wanted(resourceSubscriptions=[str(each) for each in range(1025)])


# --- browsers


@pytest.mark.parametrize(
    ("local", "is_loopback"),
    [
        *((b"127.0.0.1:80", True), (b"127.9.9.9:80", True), (b"[::1]:80", True), (b"10.0.0.1:80", False)),
        *((b"[::]:80", False), (b"", False), (b"unix", False), (b"127.0.0.1", False), (b"\xff:80", False)),
    ],
)
def test_what_is_reached_from_this_machine_alone(local: bytes, is_loopback: bool) -> None:
    assert rebinding.is_loopback(local) is is_loopback


@pytest.mark.parametrize(
    ("host", "origin", "is_tricked"),
    [
        *((b"localhost", None, False), (b"127.0.0.1", None, False), (b"::1", None, False), (b"[::1]", None, False)),
        *((b"evil.test", None, True), (b"127.0.0.2", None, True), (b"", None, True)),
        *((b"localhost", b"http://localhost:3000", False), (b"localhost", b"https://[::1]", False)),
        *((b"localhost", b"http://evil.test", True), (b"localhost", b"null", True), (b"localhost", b"\xff", True)),
        *((b"localhost", b"http://[", True), (b"localhost", b"", True), (b"evil.test", b"http://localhost", True)),
    ],
)
def test_who_was_tricked_into_asking(host: bytes, origin: bytes | None, is_tricked: bool) -> None:
    assert rebinding.is_tricked(host, origin) is is_tricked


# --- errors


@pytest.mark.parametrize(
    ("asked", "is_modern", "supported"),
    [
        ("1999-01-01", False, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        ("2026-07-28", False, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]),
        ("1999-01-01", True, ["2026-07-28"]),
        ("x" * 65, True, ["2026-07-28"]),
    ],
)
def test_a_client_reads_which_revisions_there_are(asked: str, is_modern: bool, supported: list[str]) -> None:
    reply = errors.wrong_version(asked, 7, is_modern)
    assert (reply.status, reply.reason, reply.content_type) == (400, "McpBadVersion", b"application/json")
    assert json.loads(reply.body) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32022,
            "message": "unsupported protocol version",
            "data": {"supported": supported, "requested": asked[:64]},
        },
    }


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [(-32601, "McpMethodUnknown", 404), (-32602, "McpBadMessage", 400), (-32700, "McpBadMessage", 400)],
)
def test_a_mistake_has_its_status(code: int, reason: str, status: int) -> None:
    reply = errors.malformed(Malformed(code, "text", "id"))
    assert (reply.reason, reply.status, reply.content_type) == (reason, status, b"application/json")
    assert json.loads(reply.body) == {"jsonrpc": "2.0", "id": "id", "error": {"code": code, "message": "text"}}


# --- methods


@pytest.mark.parametrize(
    ("method", "is_idempotent"),
    [
        *(("tools/call", False), ("tasks/update", False), ("mine", False), ("notifications/x", True), ("", True)),
        *(("initialize", True), ("server/discover", True), ("notification", False)),
        *((each, True) for each in methods.METHODS if each not in ("tools/call", "tasks/update")),
    ],
)
def test_what_a_server_may_get_twice(method: str, is_idempotent: bool) -> None:
    assert methods.is_idempotent(method) is is_idempotent


# --- policies


def rule(action: str, *texts: str) -> Rule:
    programs = tuple(expressions.compiled(text, "request", "here") for text in texts)
    return Rule(action, programs, f"the {action} rule", 0)


def test_policies_of_a_backend_stand_over_those_of_its_route() -> None:
    own, route = (
        McpPolicies((rule(DENY, "true"),), "own"),
        McpPolicies((rule(ALLOW, "true"),), "of the route", None, "bad"),
    )
    both = own.over(route)
    assert both.rules == (*route.rules, *own.rules) and (both.guardrails, both.refused) == ("own", "bad")
    assert own.over(route) is both and own.over(None) is own and NO_POLICIES.over(route) is route
    assert both._decisions is not own._decisions and McpPolicies(refused="own").over(route).refused == "own"


def test_what_was_made_of_many_routes_is_bounded() -> None:
    own = McpPolicies(guardrails="own")
    routes = [McpPolicies(refused=str(number)) for number in range(65)]
    made = [own.over(each) for each in routes[:64]]
    assert [own.over(each) for each in routes[:64]] == made and own.over(routes[0]) is made[0]
    own.over(routes[64])
    assert own.over(routes[0]) is not made[0] and len(own._above) == 2


def test_only_what_reads_arguments_waits_for_them() -> None:
    assert not NO_POLICIES.reads_arguments
    for text, reads in (
        ("mcp.tool.arguments.a == 1", True),
        ("mcp.tool.name == 'a'", False),
        ("has(mcp.tool)", True),
    ):
        assert McpPolicies((rule(DENY, text),)).reads_arguments is reads


# --- backends


class Leases:
    """`Leases`, and who asks for one."""

    def __init__(self, admits: bool = True, resolved: Any = ("resolved",)) -> None:
        self.did: list[Any] = []
        self._admits, self._resolved = admits, resolved

    def take(self, holder: Any, endpoints: Any, plan: Any) -> None:
        self.did.append(("take", endpoints))

    def lease_failed(self, cause: str, detail: str) -> None:
        self.did.append((cause, detail))

    def resolved(self, holder: Any, plan: Any, again: Any) -> Any:
        self.did.append(("resolved", again))
        return self._resolved

    def rule_state(self, plan: Any, rules: Any) -> Any:
        return SimpleNamespace(choosable=lambda _holder, _key, endpoints, far: (*endpoints, far))

    def admits(self, holder: Any, plan: Any, guard: Any) -> bool:
        return self._admits


@pytest.mark.parametrize(
    ("kind", "plan", "leases", "did"),
    [
        ("service", {"endpoints": ("a",)}, Leases(), [("take", ("a",))]),
        ("service", {}, Leases(), [("endpoints", "b: it has no endpoints")]),
        ("static", {"endpoints": ("a",)}, Leases(), [("take", ("a",))]),
        ("static", {}, Leases(), []),
        ("static", {"host": b"h"}, Leases(), ["resolved", ("take", ("resolved",))]),
        ("static", {"host": b"h"}, Leases(resolved=None), ["resolved"]),
        ("with_rules", {"endpoints": ("a",)}, Leases(), [("take", ("a", "far"))]),
        ("with_rules", {"endpoints": ("a",)}, Leases(admits=False), []),
        ("with_rules", {}, Leases(), [("endpoints", "b: it has no endpoints")]),
        ("with_rules", {"host": b"h"}, Leases(), ["resolved", ("take", ("resolved", ()))]),
        ("with_rules", {"host": b"h"}, Leases(resolved=()), ["resolved"]),
        ("refused", {"refused": "why"}, Leases(), [("refused", "b: why")]),
        ("mcp", {}, Leases(), [("refused", "b: MCP servers answer requests of clients, no calls of policies")]),
    ],
)
def test_which_endpoints_a_backend_gives(kind: str, plan: Any, leases: Leases, did: list[Any]) -> None:
    made: Any = SimpleNamespace(
        **{"key": "b", "endpoints": (), "host": b"", "far": "far", "rules": "r", "steps": None, **plan}
    )
    row: Any = registry.ROWS[kind]
    row.begin(leases, made, leases)
    assert [each[0] if each[0] == "resolved" else each for each in leases.did] == did
    assert all(each[1] is row for each in leases.did if each[0] == "resolved"), "it is asked again then"


def test_a_kind_is_loaded_in_steps_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(registry, "import_module", loaded.append)
    monkeypatch.setattr(registry, "LOADED_LATE", {"mcp": ("not there", "sys", "nor there")})
    steps = registry.load("mcp")
    assert not loaded
    next(steps)
    assert loaded == ["not there"]
    assert list(steps) == [None] and loaded == ["not there", "nor there"]
    assert list(registry.load("service")) == [] and "sys" in sys.modules
