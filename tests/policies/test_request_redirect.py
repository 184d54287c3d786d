"""Request redirect from the standalone file to the Location that a client gets."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import request_redirect
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Answer, Carrier, Request
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange


def redirected(
    carrier: Carrier, fields: str, port: int = 80, target: str = "/p/q", scheme: str = "http", prefix: str = "/p"
) -> Answer:
    """The answer of a route for a prefix with this `requestRedirect`, on a listener with this port."""
    route = f"""
        matches: [{{path: {{type: PathPrefix, value: {prefix}}}}}]
        policies: {{requestRedirect: {fields}}}
        """
    https = f"""transformation: {{request: {{set: [{{name: ':scheme', value: "'{scheme}'"}}]}}}}"""
    listener = f"    policies: {{phase: PreRouting, {https}}}\n    routes:"
    run = carrier.proxy(text_of(route, port).replace("    routes:", listener if scheme != "http" else "    routes:"))
    seen = run.carry(Request("GET", target, authority="a.example"))
    assert (seen.reason, seen.answer.body, seen.answer.ended, seen.reached) == ("Redirect", b"", True, ())
    return seen.answer


@pytest.mark.parametrize(
    ("fields", "port", "scheme", "location"),
    [
        # the port: as written, else of the written scheme, else of the listener; left out when it is the scheme's own
        ("{statusCode: 302}", 80, "http", "http://a.example/p/q"),
        ("{statusCode: 302}", 8080, "http", "http://a.example:8080/p/q"),
        ("{statusCode: 302}", 443, "https", "https://a.example/p/q"),
        ("{statusCode: 302}", 8443, "https", "https://a.example:8443/p/q"),
        ("{scheme: https}", 8080, "http", "https://a.example/p/q"),
        ("{scheme: http}", 8443, "https", "http://a.example/p/q"),
        ("{scheme: https, port: 443}", 80, "http", "https://a.example/p/q"),
        ("{scheme: https, port: 80}", 80, "http", "https://a.example:80/p/q"),
        ("{scheme: https, port: 8443}", 80, "http", "https://a.example:8443/p/q"),
        ("{port: 80}", 8080, "http", "http://a.example/p/q"),
        ("{port: 81}", 80, "http", "http://a.example:81/p/q"),
        ("{port: 443}", 80, "http", "http://a.example:443/p/q"),
        ("{hostname: b.example}", 80, "http", "http://b.example/p/q"),
        ("{hostname: b.example}", 8080, "http", "http://b.example:8080/p/q"),
        ("{hostname: b.example, scheme: https, port: 9}", 80, "http", "https://b.example:9/p/q"),
    ],
)
def test_origin(fields: str, port: int, scheme: str, location: str, carrier: Carrier) -> None:
    assert redirected(carrier, fields, port, scheme=scheme).headers["location"] == location


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
def test_path(modifier: str, path: str, query: str, expected: str, carrier: Carrier) -> None:
    target = path + ("?" + query if query else "")
    answer = redirected(carrier, f"{{path: {modifier}}}", target=target)
    assert answer.headers.but("date") == {"location": f"http://a.example{expected}", "content-length": "0"}


@pytest.mark.parametrize(
    ("fields", "status"), [("{scheme: https}", 302), *((f"{{statusCode: {code}}}", code) for code in (301, 302))]
)
def test_status(fields: str, status: int, carrier: Carrier) -> None:
    assert redirected(carrier, fields).status == status


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


def test_it_comes_after_the_header_modifiers(carrier: Carrier) -> None:
    modifiers = "{request: {set: [{name: Host, value: b.example}]}, response: {set: [{name: y, value: '1'}]}}"
    run = carrier.proxy(text_of(f"policies: {{requestRedirect: {{scheme: https}}, headerModifiers: {modifiers}}}"))
    headers = run.carry(Request("GET", "/x")).answer.headers
    assert (headers["location"], headers["y"]) == ("https://b.example/x", "1")


def test_it_is_the_last_step() -> None:
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
