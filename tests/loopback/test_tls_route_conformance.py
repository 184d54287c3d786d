"""Gateway API's conformance tests of TLSRoute, one function for each, named after its file.

Two of them ask what an implementation without `TLSRouteModeTerminate` or `TLSRouteModeMixed` says; the suite passes
over them where these are claimed, and so do we: `tests/rules/test_conformance_replays.py` names them.
"""

from __future__ import annotations

import ssl

import pytest

from tests.fakes.conformance import CHECKS, INFRA, Replay, Suite, trusting
from tests.fakes.echo_servers import ask_http, ask_tcp

pytestmark = pytest.mark.needs("go")

ACCEPTED = "Accepted=True Accepted"
RESOLVED = "ResolvedRefs=True ResolvedRefs"
TEST = "gateway-conformance-infra-test"


async def is_rejected(port: int, name: str) -> None:
    """The connection ends, or is reset, before a word of TLS."""
    with pytest.raises((ConnectionError, ssl.SSLEOFError, ssl.SSLError)) as found:
        await ask_tcp(port, trusting(CHECKS), name)
    is_silent = isinstance(found.value, ConnectionError | ssl.SSLEOFError)
    assert is_silent or "EOF" in str(found.value), found.value


async def reaches(port: int, name: str, backend: str) -> None:
    """An HTTPS request for this name, whose TLS ends at the backend."""
    answer = await ask_http(port, "/", name, trusting(CHECKS), name)
    assert (answer.status, answer.body["pod"], answer.body["namespace"]) == (200, backend, INFRA)


async def test_tlsroute_simple_same_namespace(suite: Suite) -> None:
    async with suite.replay("tlsroute-simple-same-namespace") as replay:
        await replay.accepts("TLSRoute", TEST, "gateway-tlsroute")
        answer = await ask_tcp(await replay.gateway("gateway-tlsroute"), trusting(CHECKS), "abc.example.com")
        assert (answer["pod"], answer["is_tls"], answer["sni"]) == ("tcp-backend", True, "abc.example.com")


async def test_tlsroute_terminate_simple_same_namespace(suite: Suite) -> None:
    async with suite.replay("tlsroute-terminate-simple-same-namespace") as replay:
        await replay.accepts("TLSRoute", "tlsroute-terminated-test", "gateway-tlsroute-terminate")
        (name,) = replay.find("TLSRoute", "tlsroute-terminated-test")["spec"]["hostnames"]
        answer = await ask_tcp(await replay.gateway("gateway-tlsroute-terminate"), trusting(CHECKS), name)
        assert (answer["pod"], answer["is_tls"]) == ("tcp-backend", False)


async def test_tlsroute_mixed_termination_same_namespace(suite: Suite) -> None:
    async with suite.replay("tlsroute-mixed-termination-same-namespace") as replay:
        gateway, routes = "gateway-tlsroute-mixed-termination", "gateway-conformance-mixed"
        await replay.accepts("TLSRoute", f"{routes}-passthroughroute", gateway)
        await replay.accepts("TLSRoute", f"{routes}-terminateroute", gateway)
        each = (ACCEPTED, ["TLSRoute"], 1)
        await replay.listeners(gateway, {"tls-terminate": each, "tls-passthrough": each})
        port = await replay.gateway(gateway)
        ended = await ask_tcp(port, trusting(CHECKS), "tls.example.com")
        passed = await ask_tcp(port, trusting(CHECKS), "abc.example.com")
        assert [(found["pod"], found["is_tls"], found["sni"]) for found in (ended, passed)] == [
            ("tcp-backend", False, ""),
            ("tcp-backend", True, "abc.example.com"),
        ]


INTERSECTIONS = [
    ("gw-tlsroute-exact-hostname-x-1", ["tlsroute-more-specific-wc-hostname-x-1"], "non.matching.com"),
    (
        "gw-tlsroute-more-specific-wc-hostname-x-2",
        ["tlsroute-exact-hostname-x-2", "tlsroute-less-specific-wc-hostname-x-2"],
        "non.matching.com",
    ),
    (
        "gw-tlsroute-less-specific-wc-hostname-x-3",
        ["tlsroute-exact-hostname-x-3", "tlsroute-more-specific-wc-hostname-x-3"],
        "non.matching.com",
    ),
    (
        "gw-tlsroute-empty-hostname-x-4",
        ["tlsroute-exact-hostname-x-4", "tlsroute-less-specific-wc-hostname-x-4"],
        "non.matching.org",
    ),
]
"""Gateway, its routes, and a name that meets none of them. Where there are two, the second has other names, too."""


@pytest.mark.parametrize(("gateway", "routes", "strange"), INTERSECTIONS)
async def test_tlsroute_hostname_intersection(suite: Suite, gateway: str, routes: list[str], strange: str) -> None:
    async with suite.replay("tlsroute-hostname-intersection") as replay:
        for route in routes:
            await replay.accepts("TLSRoute", route, gateway)
            await replay.has("TLSRoute", route, gateway, RESOLVED)
        port = await replay.gateway(gateway)
        await reaches(port, "abc.example.com", "tls-backend")
        if len(routes) == 2:
            await reaches(port, "other.example.com", "tls-backend-2")
        await is_rejected(port, strange)


@pytest.mark.parametrize(
    ("gateway", "older", "newer", "hostname"),
    [
        ("exact-hostname-x", "wc-hostname-x-older", "exact-hostname-x-newer", "abc.example.com"),
        (
            "wc-hostname-x",
            "less-specific-wc-hostname-x-older",
            "more-specific-wc-hostname-x-newer",
            "*.example.com",
        ),
    ],
)
async def test_tlsroute_multiple_routes_attachment_same_hostname_intersection(
    suite: Suite, gateway: str, older: str, newer: str, hostname: str
) -> None:
    async with suite.replay("tlsroute-multiple-routes-attachment-same-hostname-intersection") as replay:
        await replay.accepts("TLSRoute", f"tlsroute-{older}", f"gw-tlsroute-{gateway}")
        rules = [{"backendRefs": [{"name": "tls-backend-2", "port": 443}]}]
        parents = [{"name": f"gw-tlsroute-{gateway}"}]
        spec = {"parentRefs": parents, "hostnames": [hostname], "rules": rules}
        await replay.add_younger("TLSRoute", f"tlsroute-{newer}", spec)
        for route in (older, newer):
            await replay.has("TLSRoute", f"tlsroute-{route}", f"gw-tlsroute-{gateway}", RESOLVED)
        await reaches(await replay.gateway(f"gw-tlsroute-{gateway}"), "abc.example.com", "tls-backend-2")


async def refuses(replay: Replay, route: str, gateway: str, reason: str) -> None:
    await replay.accepts("TLSRoute", route, gateway)
    await replay.has("TLSRoute", route, gateway, f"ResolvedRefs=False {reason}")
    (name,) = replay.find("TLSRoute", route)["spec"]["hostnames"]
    await is_rejected(await replay.gateway(gateway), name)


async def test_tlsroute_invalid_backendref_nonexistent(suite: Suite) -> None:
    async with suite.replay("tlsroute-invalid-backendref-nonexistent") as replay:
        name = "invalid-backend-ref-nonexistent"
        await refuses(replay, name, f"gateway-tlsroute-{name}", "BackendNotFound")


async def test_tlsroute_invalid_backendref_unknown_kind(suite: Suite) -> None:
    async with suite.replay("tlsroute-invalid-backendref-unknown-kind") as replay:
        name = "invalid-backend-ref-unknown-kind"
        await refuses(replay, name, f"gateway-tlsroute-{name}", "InvalidKind")


async def test_tlsroute_invalid_reference_grant(suite: Suite) -> None:
    async with suite.replay("tlsroute-invalid-reference-grant") as replay:
        await replay.accepts("TLSRoute", TEST, "gateway-tlsroute-referencegrant")
        await replay.has("TLSRoute", TEST, "gateway-tlsroute-referencegrant", "ResolvedRefs=False RefNotPermitted")


async def test_tlsroute_invalid_no_matching_listener_hostname(suite: Suite) -> None:
    async with suite.replay("tlsroute-invalid-no-matching-listener-hostname") as replay:
        for number, gateway in enumerate(("gateway-tls-exact-hostname", "gateway-tls-wildcard-hostname"), 1):
            route = f"tlsroute-hostname-mismatch-{number}"
            await replay.has("TLSRoute", route, gateway, "Accepted=False NoMatchingListenerHostname")
            await replay.lacks_parents("TLSRoute", route)
            await replay.has_no_routes(gateway)


async def test_tlsroute_invalid_no_matching_listener(suite: Suite) -> None:
    async with suite.replay("tlsroute-invalid-no-matching-listener") as replay:
        not_allowed, missing = "Accepted=False NotAllowedByListeners", "Accepted=False NoMatchingParent"
        for route, gateway, condition in (
            ("tlsroute-not-allowed-protocol-http", "gateway-tlsroute-http-only", not_allowed),
            ("tlsroute-not-allowed-protocol-https", "gateway-tlsroute-https-only", not_allowed),
            ("tlsroute-no-matching-section-name", "gateway-tlsroute-tls-passthrough-only", missing),
        ):
            await replay.has("TLSRoute", route, gateway, condition)
            await replay.lacks_parents("TLSRoute", route)
            if condition == not_allowed:
                await replay.has_no_routes(gateway)


async def test_tlsroute_listener_passthrough_supported_kinds(suite: Suite) -> None:
    async with suite.replay("tlsroute-listener-passthrough-supported-kinds") as replay:
        expected = ("ResolvedRefs=False InvalidRouteKinds", ["TLSRoute"], 0)
        await replay.listeners("gateway-tlsroute-passthrough-supported-kind", {"tls-passthrough": expected})


async def test_tlsroute_listener_terminate_supported_kinds(suite: Suite) -> None:
    async with suite.replay("tlsroute-listener-terminate-supported-kinds") as replay:
        expected = (ACCEPTED, ["TLSRoute"], 0)
        await replay.listeners("gateway-tlsroute-terminate-supported", {"tls-terminate": expected})
