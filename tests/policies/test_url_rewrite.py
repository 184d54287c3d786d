"""URL rewrite from the standalone file to the target that goes upstream."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import url_rewrite
from dataplane.http.uri import canonical_path
from gatewright.api import http_filters
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.policy_run import PolicyRun, problems
from tests.fakes.table_state import exchange


def rewrite(prefix: str, path: str) -> PolicyRun:
    """A route that matches a prefix and has a path modifier, in YAML."""
    return PolicyRun(
        f"""
        matches: [{{path: {{type: PathPrefix, value: "{prefix}"}}}}]
        policies: {{urlRewrite: {{path: {path}}}}}
        """
    )


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
@pytest.mark.parametrize("query", ["", "a=/foo&b"])
def test_replace_prefix(path: str, prefix: str, replacement: str, expected: str, query: str) -> None:
    run = rewrite(prefix, f'{{type: ReplacePrefixMatch, replacePrefixMatch: "{replacement}"}}')
    x = exchange(path=path, query=query)
    assert run.request(x) is None
    assert x.target.decode() == expected + ("?" + query if query else "")
    assert (x.path.decode(), x.query.decode()) == (expected, query)


@pytest.mark.parametrize("query", ["", "a=1?b"])
def test_replace_full_path(query: str) -> None:
    run = rewrite("/foo", "{type: ReplaceFullPath, replaceFullPath: /all/new}")
    x = exchange(path="/foo/bar", query=query)
    assert run.request(x) is None
    assert x.target == b"/all/new" + (b"?" + query.encode() if query else b"") and x.path == b"/all/new"


def test_an_empty_query_stays() -> None:
    run = rewrite("/foo", "{type: ReplaceFullPath, replaceFullPath: /new}")
    x = exchange(path="/foo")
    x.target = b"/foo?"
    run.request(x)
    assert x.target == b"/new?"


def test_hostname() -> None:
    run = PolicyRun("policies: {urlRewrite: {hostname: inner.example}}")
    x = exchange(host="outer.example", path="/p", query="q", headers=b"x: 1\r\n")
    assert run.request(x) is None
    assert (x.authority, x.host, x.target) == (b"inner.example", b"inner.example", b"/p?q")
    assert x.request.items() == [(b"x", b"1"), (b"host", b"inner.example")]


def test_hostname_and_path() -> None:
    run = PolicyRun(
        "policies: {urlRewrite: {hostname: inner.example, path: {type: ReplaceFullPath, replaceFullPath: /x}}}"
    )
    x = exchange()
    assert run.request(x) is None
    assert (x.authority, x.target) == (b"inner.example", b"/x")


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
        told = bool(http_filters._NEW_PATH(path))
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
