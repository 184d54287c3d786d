"""Request redirect from the standalone file to the Location that a client gets."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.chain.reply import Reply
from dataplane.filters import request_redirect
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import exchange


def redirected(fields: str, port: int = 80, path: str = "/p/q", query: str = "", scheme: bytes = b"http") -> Reply:
    """The answer of a route for prefix /p with this `requestRedirect`, on a listener with this port."""
    run = PolicyRun(
        f"""
        matches: [{{path: {{type: PathPrefix, value: /p}}}}]
        policies: {{requestRedirect: {fields}}}
        """,
        port,
    )
    x = exchange(host="a.example", path=path, query=query)
    x.scheme = scheme
    reply = run.request(x)
    assert reply is not None and (reply.reason, reply.body, x.stopped) == ("Redirect", b"", 0)
    return reply


@pytest.mark.parametrize(
    ("fields", "port", "scheme", "location"),
    [
        # the port: as written, else of the written scheme, else of the listener; left out when it is the scheme's own
        ("{statusCode: 302}", 80, b"http", "http://a.example/p/q"),
        ("{statusCode: 302}", 8080, b"http", "http://a.example:8080/p/q"),
        ("{statusCode: 302}", 443, b"https", "https://a.example/p/q"),
        ("{statusCode: 302}", 8443, b"https", "https://a.example:8443/p/q"),
        ("{scheme: https}", 8080, b"http", "https://a.example/p/q"),
        ("{scheme: http}", 8443, b"https", "http://a.example/p/q"),
        ("{scheme: https, port: 443}", 80, b"http", "https://a.example/p/q"),
        ("{scheme: https, port: 80}", 80, b"http", "https://a.example:80/p/q"),
        ("{scheme: https, port: 8443}", 80, b"http", "https://a.example:8443/p/q"),
        ("{port: 80}", 8080, b"http", "http://a.example/p/q"),
        ("{port: 81}", 80, b"http", "http://a.example:81/p/q"),
        ("{port: 443}", 80, b"http", "http://a.example:443/p/q"),
        ("{hostname: b.example}", 80, b"http", "http://b.example/p/q"),
        ("{hostname: b.example}", 8080, b"http", "http://b.example:8080/p/q"),
        ("{hostname: b.example, scheme: https, port: 9}", 80, b"http", "https://b.example:9/p/q"),
    ],
)
def test_origin(fields: str, port: int, scheme: bytes, location: str) -> None:
    assert redirected(fields, port, scheme=scheme).headers == f"location: {location}\r\n".encode()


@pytest.mark.parametrize(
    ("modifier", "path", "query", "expected"),
    [
        ("{type: ReplaceFullPath, replaceFullPath: /new}", "/p/q", "", "/new"),
        ("{type: ReplaceFullPath, replaceFullPath: /new}", "/p/q", "a=1", "/new?a=1"),
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /new}", "/p/q", "a=1", "/new/q?a=1"),
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /new/}", "/p", "", "/new/"),
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /new/}", "/p/", "", "/new/"),
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /}", "/p", "", "/"),
        ('{type: ReplacePrefixMatch, replacePrefixMatch: ""}', "/p/q", "", "/q"),
    ],
)
def test_path(modifier: str, path: str, query: str, expected: str) -> None:
    reply = redirected(f"{{path: {modifier}}}", path=path, query=query)
    assert reply.headers == f"location: http://a.example{expected}\r\n".encode()


@pytest.mark.parametrize("path", ["//evil.example/x", "///evil.example/x", "/p//evil.example/x"])
def test_a_path_does_not_name_another_host(path: str) -> None:
    """Of a request that has none itself (HTTP/1.0)."""
    shortened = "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}"
    fields = shortened if path.startswith("/p") else "{statusCode: 302}"
    run = PolicyRun(
        f"""
        matches: [{{path: {{type: PathPrefix, value: {"/p" if path.startswith("/p") else "/"}}}}}]
        policies: {{requestRedirect: {fields}}}
        """,
        80,
    )
    x = exchange(host="", path=path)
    reply = run.request(x)
    assert reply is not None and reply.headers == b"location: /evil.example/x\r\n"


@pytest.mark.parametrize(
    ("fields", "status"), [("{scheme: https}", 302), *((f"{{statusCode: {code}}}", code) for code in (301, 302))]
)
def test_status(fields: str, status: int) -> None:
    assert redirected(fields).status == status


def build(**fields: object) -> object:
    config = traffic_pb2.RequestRedirect(**fields)  # type: ignore[arg-type]
    return request_redirect.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))


@pytest.mark.parametrize("status", [303, 307, 308])
def test_further_statuses(status: int) -> None:
    x = exchange(host="")
    x.host = b""
    x.listener = type("Listener", (), {"port": 80})
    reply = build(status=status).request(x)  # type: ignore[attr-defined]
    assert (reply.status, reply.headers) == (status, b"location: /\r\n")  # no host: within the origin


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"scheme": "ftp"}, "scheme 'ftp' must be http or https"),
        ({"hostname": "a/b"}, "hostname 'a/b' is not a host"),
        ({"port": 65536}, "port 65536 is not between 1 and 65535"),
        ({"status": 200}, "status 200 must be one of [301, 302, 303, 307, 308]"),
        ({"path": {"replace_full_path": "x"}}, "path 'x' must begin with /"),
        ({"path": {"replace_prefix_match": "/\r\nx"}}, "must begin with /"),
    ],
)
def test_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        build(**fields)
    assert reason in str(refused.value)


def test_without_a_matched_prefix_there_is_nothing_to_replace() -> None:
    x = exchange(path="/a")
    reply = build(path={"replace_prefix_match": "/x"}).request(x)  # type: ignore[attr-defined]
    assert (reply.status, reply.reason) == (503, "PolicyUnusable")


def test_it_comes_after_the_header_modifiers() -> None:
    run = PolicyRun(
        """
        policies:
          requestRedirect: {scheme: https}
          headerModifiers: {request: {set: [{name: x, value: "1"}]}, response: {set: [{name: y, value: "1"}]}}
        """
    )
    x = exchange()
    assert run.request(x) is not None
    filters = x.policies.chain.filters
    assert filters[-1].name == "request_redirect" and x.stopped == len(filters) - 1
    assert x.request.get(b"x") == b"1"
