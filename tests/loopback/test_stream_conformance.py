"""Gateway API's conformance tests of TCPRoute and UDPRoute, one function for each, named after its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fakes.conformance import APP, WEB, Replay, Suite
from tests.fakes.echo_servers import ask_tcp, ask_udp
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.needs("go")

ACCEPTED, NOT_ALLOWED = "Accepted=True Accepted", "Accepted=False NotAllowedByListeners"
Ask = Callable[[int], Awaitable[dict[str, Any]]]


async def udp(port: int) -> dict[str, Any]:
    return await ask_udp(port, PATIENCE)


ASKS: dict[str, Ask] = {"TCPRoute": ask_tcp, "UDPRoute": udp}


async def pod(kind: str, port: int) -> str:
    """Who answers one new client."""
    return str((await ASKS[kind](port))["pod"])


# TCPRoute


async def test_tcproute_invalid_backendref_nonexistent(suite: Suite) -> None:
    async with suite.replay("tcproute-invalid-backendref-nonexistent") as replay:
        route, gateway = "tcp-route-invalid-backend-ref-nonexistent", "tcp-gateway-invalid-backend"
        await replay.has("TCPRoute", route, gateway, "ResolvedRefs=False BackendNotFound")
        with pytest.raises(OSError):
            await ask_tcp(await replay.gateway(gateway))


async def test_tcproute_invalid_cross_namespace_backend_ref(suite: Suite) -> None:
    async with suite.replay("tcproute-invalid-cross-namespace-backend-ref") as replay:
        route = "tcp-invalid-cross-namespace-backend-ref"
        await replay.accepts("TCPRoute", route, f"{route}-gateway")
        await replay.has("TCPRoute", route, f"{route}-gateway", "ResolvedRefs=False RefNotPermitted")


async def test_tcproute_invalid_non_tcp_listener(suite: Suite) -> None:
    async with suite.replay("tcproute-invalid-non-tcp-listener") as replay:
        await replay.has("TCPRoute", "tcp-route", "tcp-mixed-protocol-gateway", NOT_ALLOWED)
        await replay.has_no_routes("tcp-mixed-protocol-gateway")


async def oldest_of_two(replay: Replay, kind: str, word: str, backend_port: int, times: int) -> None:
    """Both routes of a listener are accepted and counted; the older one has the traffic."""
    gateway, routes = f"{word}-multi-route-attach-gateway", f"{word}route-attach"
    await replay.accepts(kind, f"{routes}-older", gateway)
    parent = {"name": gateway, "sectionName": word}
    rules = [{"backendRefs": [{"name": f"{word}-attach-backend-2", "port": backend_port}]}]
    await replay.add_younger(kind, f"{routes}-newer", {"parentRefs": [parent], "rules": rules})
    for name in ("older", "newer"):
        await replay.has(kind, f"{routes}-{name}", gateway, ACCEPTED)
    await replay.listeners(gateway, {word: (ACCEPTED, [kind], 2)})
    port = await replay.gateway(gateway)
    assert {await pod(kind, port) for _ in range(times)} == {f"{word}-attach-backend-1"}


async def test_tcproute_multiple_routes_attachment(suite: Suite) -> None:
    async with suite.replay("tcproute-multiple-routes-attachment") as replay:
        await oldest_of_two(replay, "TCPRoute", "tcp", 3000, 100)


async def test_tcproute_parentref_attach_all(suite: Suite) -> None:
    async with suite.replay("tcproute-parentref-attach-all") as replay:
        await replay.has("TCPRoute", "tcp-route-attach-all", "tcp-attach-all-gateway", ACCEPTED)
        for listener in ("one", "two", "three", "four"):
            port = await replay.gateway("tcp-attach-all-gateway", listener)
            assert await pod("TCPRoute", port) == "tcp-echo-attach-all"


@pytest.mark.parametrize(
    ("route", "listener"),
    [("tcp-route-by-port", "one"), ("tcp-route-by-section", "two"), ("tcp-route-by-section-and-port", "three")],
)
async def test_tcproute_parentref_port_and_section_name(suite: Suite, route: str, listener: str) -> None:
    async with suite.replay("tcproute-parentref-port-and-section-name") as replay:
        await replay.has("TCPRoute", route, "tcp-multi-listener-gateway", ACCEPTED)
        port = await replay.gateway("tcp-multi-listener-gateway", listener)
        assert await pod("TCPRoute", port) == f"tcp-echo-{listener}"


async def test_tcproute_reference_grant(suite: Suite) -> None:
    async with suite.replay("tcproute-reference-grant") as replay:
        route, gateway = "tcp-reference-grant", "tcp-reference-grant-gateway"
        await replay.accepts("TCPRoute", route, gateway)
        answer = await ask_tcp(await replay.gateway(gateway))
        assert (answer["pod"], answer["namespace"]) == ("tcp-reference-grant-backend", WEB)
        replay.delete("ReferenceGrant", "tcp-reference-grant", WEB)
        await replay.has("TCPRoute", route, gateway, "ResolvedRefs=False RefNotPermitted")


async def shares(kind: str, port: int, expected: dict[str, float]) -> None:
    """As the suite judges: 500 clients, five of a hundred off at most, in one of ten tries."""
    for _ in range(10):
        found = Counter([await pod(kind, port) for _ in range(500)])
        assert found.keys() <= expected.keys()
        off = {name: abs(found[name] / 500 - share) for name, share in expected.items()}
        if all(each <= (0.05 if expected[name] else 0.0) for name, each in off.items()):
            return
    raise AssertionError(f"far from {expected}: {found}")


async def test_tcproute_weighted_routing(suite: Suite) -> None:
    async with suite.replay("tcproute-weighted-routing") as replay:
        await replay.accepts("TCPRoute", "tcp-weighted-route", "tcp-weighted-gateway")
        weights = {"tcp-backend-v1": 0.7, "tcp-backend-v2": 0.3, "tcp-backend-v3": 0.0}
        await shares("TCPRoute", await replay.gateway("tcp-weighted-gateway"), weights)


# UDPRoute


async def test_udproute_simple(suite: Suite) -> None:
    async with suite.replay("udproute-simple") as replay:
        await replay.accepts("UDPRoute", "udp-route", "udp-gateway")
        assert await pod("UDPRoute", await replay.gateway("udp-gateway")) == "udp-echo"


async def test_udproute_invalid_backendref_nonexistent(suite: Suite) -> None:
    async with suite.replay("udproute-invalid-backendref-nonexistent") as replay:
        route, gateway = "udp-route-invalid-backend-ref-nonexistent", "udp-gateway-invalid-backend"
        await replay.has("UDPRoute", route, gateway, "ResolvedRefs=False BackendNotFound")


async def test_udproute_invalid_cross_namespace_backend_ref(suite: Suite) -> None:
    async with suite.replay("udproute-invalid-cross-namespace-backend-ref") as replay:
        name = "invalid-cross-namespace-backend-ref"
        await replay.accepts("UDPRoute", f"udp-route-{name}", f"udp-gateway-{name}")
        await replay.has("UDPRoute", f"udp-route-{name}", f"udp-gateway-{name}", "ResolvedRefs=False RefNotPermitted")


async def test_udproute_multiple_routes_attachment(suite: Suite) -> None:
    async with suite.replay("udproute-multiple-routes-attachment") as replay:
        await oldest_of_two(replay, "UDPRoute", "udp", 8080, 20)


async def test_udproute_not_allowed_by_listeners(suite: Suite) -> None:
    async with suite.replay("udproute-not-allowed-by-listeners") as replay:
        gateway = "udproute-tls-only-gateway"
        await replay.has("UDPRoute", "udproute-not-allowed-by-listeners", gateway, NOT_ALLOWED)
        await replay.has_no_routes(gateway)


async def test_udproute_parentref_attach_all_listeners(suite: Suite) -> None:
    async with suite.replay("udproute-parentref-attach-all-listeners") as replay:
        gateway, names = "udp-attach-all-listeners-gateway", ("udp-1", "udp-2", "udp-3")
        await replay.has("UDPRoute", "udp-route-attach-all", gateway, ACCEPTED)
        for condition in (ACCEPTED, "ResolvedRefs=True ResolvedRefs"):
            await replay.listeners(gateway, {name: (condition, ["UDPRoute"], 1) for name in names})
        for name in names:
            assert await pod("UDPRoute", await replay.gateway(gateway, name)) == "udp-echo-attach-all"


@pytest.mark.parametrize("how", ["by-port", "by-section", "by-section-and-port"])
async def test_udproute_parentref_port_and_section_name(suite: Suite, how: str) -> None:
    async with suite.replay("udproute-parentref-port-and-section-name") as replay:
        await replay.has("UDPRoute", f"udp-route-{how}", "udp-multi-listener-gateway", ACCEPTED)
        port = await replay.gateway("udp-multi-listener-gateway", how)
        assert await pod("UDPRoute", port) == f"udp-echo-{how}"


async def test_udproute_reference_grant(suite: Suite) -> None:
    async with suite.replay("udproute-reference-grant") as replay:
        route, gateway = "udp-route-reference-grant", "udp-gateway-reference-grant"
        await replay.accepts("UDPRoute", route, gateway)
        await replay.has("UDPRoute", route, gateway, "ResolvedRefs=True ResolvedRefs")
        assert (await udp(await replay.gateway(gateway)))["namespace"] == APP
        replay.delete("ReferenceGrant", "udp-reference-grant", APP)
        await replay.has("UDPRoute", route, gateway, "ResolvedRefs=False RefNotPermitted")


async def test_udproute_weighted_routing(suite: Suite) -> None:
    async with suite.replay("udproute-weighted-routing") as replay:
        await replay.accepts("UDPRoute", "udp-weighted-route", "udp-weighted-gateway")
        weights = {"udp-backend-v1": 0.7, "udp-backend-v2": 0.3, "udp-backend-v3": 0.0}
        await shares("UDPRoute", await replay.gateway("udp-weighted-gateway"), weights)
