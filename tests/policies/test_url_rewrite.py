"""URL rewrite from the standalone file to the target that goes upstream."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import url_rewrite
from dataplane.http.uri import canonical_path
from gatewright.api.routes import http_filters
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Request
from tests.fakes.policy_run import problems, served
from tests.fakes.table_state import exchange


def rewrite(carrier: Carrier, prefix: str, path: str, target: str) -> str:
    """The target that goes upstream from a route that matches a prefix and has a path modifier, in YAML; the log keeps
    the client's."""
    run = carrier.shared(
        served(
            f"""
            matches: [{{path: {{type: PathPrefix, value: "{prefix}"}}}}]
            policies: {{urlRewrite: {{path: {path}}}}}
            """,
            log="{path: request.path, query: 'request.pathAndQuery.split(\"?\").size() > 1'}",
        )
    )
    seen = run.carry(Request("GET", target))
    assert f" http.path={target} " in seen.line
    path, query, _ = seen.received.target.partition("?")
    assert seen.line.endswith(f"ms path={path} query={str(bool(query)).lower()}")
    return seen.received.target


# The table in the description of HTTPPathModifier.replacePrefixMatch, and what it leaves open.
PREFIXES = [
    ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
    ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
    ("/foo/bar", "/foo/", "/xyz", "/xyz/bar"),
    ("/foo/bar", "/foo/", "/xyz/", "/xyz/bar"),
    ("/foo", "/foo", "/xyz", "/xyz"),
    ("/foo/", "/foo", "/xyz", "/xyz/"),
    ("/foo/bar", "/foo", "", "/bar"),
    ("/foo/", "/foo", "", "/"),
    ("/foo", "/foo", "", "/"),
    ("/foo/", "/foo", "/", "/"),
    ("/foo", "/foo", "/", "/"),
    ("/foo", "/foo", "/xyz/", "/xyz/"),
    ("/foo/", "/foo", "/xyz/", "/xyz/"),
    ("/foo/bar", "/", "/xyz", "/xyz/foo/bar"),
    ("/", "/", "/xyz", "/xyz/"),
    ("/foo//bar/", "/foo", "/xyz", "/xyz//bar/"),
    ("/foo/foo", "/foo", "/a%20b", "/a%20b/foo"),
]


@pytest.mark.parametrize(("path", "prefix", "replacement", "expected"), PREFIXES)
@pytest.mark.parametrize("query", ["", "?a=/foo&b"])
def test_replace_prefix(path: str, prefix: str, replacement: str, expected: str, query: str, carrier: Carrier) -> None:
    modifier = f'{{type: ReplacePrefixMatch, replacePrefixMatch: "{replacement}"}}'
    assert rewrite(carrier, prefix, modifier, path + query) == expected + query


@pytest.mark.parametrize("query", ["", "?a=1?b", "?"])
def test_replace_full_path(query: str, carrier: Carrier) -> None:
    modifier = "{type: ReplaceFullPath, replaceFullPath: /all/new}"
    assert rewrite(carrier, "/foo", modifier, "/foo/bar" + query) == "/all/new" + query


def test_hostname(carrier: Carrier) -> None:
    run = carrier.proxy(served("policies: {urlRewrite: {hostname: inner.example}}", log="{host: request.host}"))
    seen = run.carry(Request("GET", "/p?q", [("x", "1")], authority="outer.example"))
    assert (seen.received.authority, seen.received.target) == ("inner.example", "/p?q")
    assert seen.received.passed == {"x": "1"}
    assert seen.line.endswith("ms host=inner.example") and " http.host=outer.example " in seen.line


def test_hostname_and_path(carrier: Carrier) -> None:
    run = carrier.proxy(
        served("policies: {urlRewrite: {hostname: inner.example, path: {type: ReplaceFullPath, replaceFullPath: /x}}}")
    )
    received = run.carry(Request()).received
    assert (received.authority, received.target) == ("inner.example", "/x")


@pytest.mark.parametrize("path", ["new", "/a?b", "/a#b", "/%zz", "/%00", "/a\\\\b", "/\u00e9"])
@pytest.mark.parametrize("kind", ["ReplaceFullPath", "ReplacePrefixMatch"])
def test_the_author_is_told(kind: str, path: str) -> None:
    field = kind[0].lower() + kind[1:]
    route = f"""
    matches: [{{path: {{type: PathPrefix, value: /p}}}}]
    policies: {{urlRewrite: {{path: {{type: {kind}, {field}: "{path}"}}}}}}
    """
    (problem,) = problems(route)
    assert problem == "must begin with / and hold only what a path may (no query, no broken escape)"


def test_reader_and_filter_agree_on_every_character() -> None:
    for code in range(33, 256):
        path = "/" + chr(code)
        told = bool(http_filters.NEW_PATH(path))
        assert told is (canonical_path(path.encode()) is not None), path


def build(hostname: str = "", full: str | None = None, prefix: str | None = None) -> object:
    config = traffic_pb2.UrlRewrite(hostname=hostname)
    if full is not None:
        config.path.replace_full_path = full
    if prefix is not None:
        config.path.replace_prefix_match = prefix
    return url_rewrite.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"hostname": "a b"}, "hostname 'a b' is not a host"),
        ({"hostname": "a\r\nx: 1"}, "is not a host"),
        ({"full": "a"}, "path 'a' must begin with /"),
        ({"full": "/a?b"}, "path '/a?b' must begin with / and hold only what a path may"),
        ({"prefix": "/a\r\n"}, "must begin with /"),
        ({"prefix": "/%zz"}, "must begin with /"),
    ],
)
def test_refused(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        build(**fields)
    assert reason in str(refused.value)


def test_nothing_to_do_is_no_filter() -> None:
    assert build() is None


def test_without_a_matched_prefix_there_is_nothing_to_replace() -> None:
    made = build(prefix="/x")
    x = exchange(path="/a")
    reply = made.request(x)  # type: ignore[attr-defined]
    assert (reply.status, reply.reason, x.target) == (503, "PolicyUnusable", b"/a")


def test_an_empty_full_path_is_the_root() -> None:
    made = build(full="")
    x = exchange(path="/a", query="b")
    assert made.request(x) is None and x.target == b"/?b"  # type: ignore[attr-defined]
