"""Gateway API's conformance tests of HTTPRoute about listeners with TLS and ports of redirects, one function for each,
named after its file. What else there is about HTTPS listeners: `test_https_conformance.py`."""

from __future__ import annotations

import pytest

from tests.fakes.conformance import INFRA, LISTENERS, Suite, trusting
from tests.fakes.echo_servers import ask_http

pytestmark = pytest.mark.needs("go")

HTTPS = "same-namespace-with-https-listener"
RESOLVED = "ResolvedRefs=True ResolvedRefs"


async def test_httproute_https_listener(suite: Suite) -> None:
    async with suite.replay("httproute-https-listener") as replay:
        for route in ("httproute-https-test", "httproute-https-test-no-hostname"):
            await replay.accepts("HTTPRoute", route, HTTPS)
            await replay.has("HTTPRoute", route, HTTPS, RESOLVED)
        port, found = await replay.gateway(HTTPS), []
        for host in ("example.org", "unknown-example.org", "second-example.org"):
            answer = await ask_http(port, "/", host, trusting(LISTENERS), host)
            found.append((answer.status, answer.body.get("pod"), answer.body.get("namespace")))
        assert found == [(200, "infra-backend-v1", INFRA), (404, None, None), (200, "infra-backend-v2", INFRA)]


async def test_httproute_disallowed_kind(suite: Suite) -> None:
    async with suite.replay("httproute-disallowed-kind") as replay:
        await replay.has("HTTPRoute", "disallowed-kind", "tlsroutes-only", RESOLVED)
        await replay.has("HTTPRoute", "disallowed-kind", "tlsroutes-only", "Accepted=False NotAllowedByListeners")
        await replay.lacks_parents("HTTPRoute", "disallowed-kind")
        await replay.has_no_routes("tlsroutes-only")


REDIRECTS = {
    ("same-namespace", "80", "http"): {
        "nil-and-port-nil": {"http://example.org", "http://example.org:80"},
        "nil-and-port-80": {"http://example.org", "http://example.org:80"},
        "nil-and-port-8080": {"http://example.org:8080"},
        "https-and-port-nil": {"https://example.org", "https://example.org:443"},
        "https-and-port-443": {"https://example.org", "https://example.org:443"},
        "https-and-port-8443": {"https://example.org:8443"},
    },
    ("same-namespace-with-http-listener-on-8080", "8080", "http"): {
        "nil-and-port-nil": {"http://example.org:8080"},
        "nil-and-port-80": {"http://example.org", "http://example.org:80"},
        "https-and-port-nil": {"https://example.org", "https://example.org:443"},
    },
    (HTTPS, "443", "https"): {
        "nil-and-port-nil": {"https://example.org", "https://example.org:443"},
        "nil-and-port-443": {"https://example.org", "https://example.org:443"},
        "nil-and-port-8443": {"https://example.org:8443"},
        "http-and-port-nil": {"http://example.org", "http://example.org:80"},
        "http-and-port-80": {"http://example.org", "http://example.org:80"},
        "http-and-port-8080": {"http://example.org:8080"},
    },
}
"""Gateway, the port of its listener and the scheme of the request; path to where it may lead."""


@pytest.mark.parametrize(("gateway", "listener_port", "scheme"), REDIRECTS)
async def test_httproute_redirect_port_and_scheme(suite: Suite, gateway: str, listener_port: str, scheme: str) -> None:
    async with suite.replay("httproute-redirect-port-and-scheme") as replay:
        route = f"http-route-for-listener-on-port-{listener_port}"
        await replay.accepts("HTTPRoute", route, gateway)
        await replay.has("HTTPRoute", route, gateway, RESOLVED)
        port, host = await replay.gateway(gateway), "example.org"
        tls = (trusting(LISTENERS), host) if scheme == "https" else ()
        for path, allowed in REDIRECTS[gateway, listener_port, scheme].items():
            answer = await ask_http(port, f"/scheme-{path}", host, *tls)
            location, _, rest = answer.fields["location"].rpartition("/scheme-")
            assert (answer.status, rest) == (302, path)
            assert location in allowed, path


@pytest.mark.parametrize(
    ("path", "status", "host"),
    [
        ("/port", 302, "same.example"),
        ("/port-and-host", 302, "example.org"),
        ("/port-and-status", 301, "same.example"),
        ("/port-and-host-and-status", 302, "example.org"),
    ],
)
async def test_httproute_redirect_port(suite: Suite, path: str, status: int, host: str) -> None:
    async with suite.replay("httproute-redirect-port") as replay:
        await replay.accepts("HTTPRoute", "redirect-port", "same-namespace")
        answer = await ask_http(await replay.gateway("same-namespace"), path, "same.example")
        assert (answer.status, answer.fields["location"]) == (status, f"http://{host}:8083{path}")
