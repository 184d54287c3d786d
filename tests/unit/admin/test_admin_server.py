"""`controlplane.admin` over HTTP on a free loopback port."""

import http.client
import json
from collections.abc import AsyncIterator, Iterable, Sequence

import pytest

from controlplane.admin import facts, metrics, server
from gatewright.api.text.problem import Problem
from tests.harness.patience import PATIENCE

GATEWAY = facts.ObjectRow("Gateway", "default", "web", 2, "gateway.yaml", {"conditions": []})
ROUTE = facts.ObjectRow("HTTPRoute", "shop", "cart", 1, "routes.yaml", {"parents": []})


class Known:
    """Facts as literals."""

    def about(self) -> facts.Json:
        return {"version": "1.2.3", "pid": 7}

    def proxies(self) -> Sequence[facts.ProxyRow]:
        refusal = facts.Refusal("route/httproute/shop/cart/0", "unknown field")
        return [
            facts.ProxyRow("default/web", "proxy-1", "aa", "aa", 0.0),
            facts.ProxyRow("default/web", "proxy-2", "aa", "99", 1.5),
            facts.ProxyRow("default/web", "proxy-3", "aa", "99", 1.5, (refusal,)),
        ]

    def objects(self) -> Iterable[facts.ObjectRow]:
        return iter((ROUTE, GATEWAY))

    def problems(self) -> Sequence[Problem]:
        return [Problem("a.yaml", 3, "HTTPRoute shop/cart", "spec", "is wrong")]

    def pending(self) -> Sequence[str]:
        return []

    def is_broken(self) -> bool:
        return False

    def numbers(self) -> metrics.Values:
        return {"ready": {(): 1}}

    def notes(self) -> Sequence[str]:
        return ["a note"]

    def trace(self, row: facts.ObjectRow) -> facts.Json:
        return {"object": {"kind": row.kind, "name": row.name}}

    def content(self, kind: str, namespace: str, name: str) -> facts.Json | None:
        if (kind, namespace, name) == ("Gateway", "default", "web"):
            return {"kind": "Gateway"}
        return {"kind": "GatewayClass"} if (kind, namespace, name) == ("GatewayClass", "", "ours") else None


@pytest.fixture
async def port() -> AsyncIterator[int]:
    running = server.Server(Known(), "127.0.0.1", 0)
    yield await running.start()
    await running.stop()


async def ask(port: int, path: str, method: str = "GET", host: str | None = None) -> tuple[int, object]:
    import asyncio

    def call() -> tuple[int, object]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("host", f"127.0.0.1:{port}" if host is None else host)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode()
        if answer.getheader("content-type", "").startswith("application/json"):
            body = json.loads(body)
        connection.close()
        return answer.status, body

    return await asyncio.to_thread(call)


async def test_status_shows_everything_sorted(port: int) -> None:
    code, body = await ask(port, "/api/status")
    assert code == 200
    assert isinstance(body, dict)
    assert body["controller"] == {"version": "1.2.3", "pid": 7}
    assert [(row["instance"], row["state"]) for row in body["proxies"]] == [
        ("proxy-1", "Synced"),
        ("proxy-2", "Stale"),
        ("proxy-3", "Refused"),
    ]
    assert body["proxies"][2]["refusals"] == [{"resource": "route/httproute/shop/cart/0", "message": "unknown field"}]
    assert [(row["kind"], row["name"]) for row in body["objects"]] == [("Gateway", "web"), ("HTTPRoute", "cart")]
    assert body["problems"][0]["line"] == 3
    assert body["notes"] == ["a note"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("object=gateway", ["web"]),
        ("object=httproute/cart", ["cart"]),
        ("object=HTTPRoute/shop/cart", ["cart"]),
        ("object=HTTPRoute/default/cart", []),
        ("object=gateway/web&object=httproute", ["web", "cart"]),
    ],
)
async def test_selectors(port: int, query: str, names: list[str]) -> None:
    _, body = await ask(port, f"/api/status?{query}")
    assert isinstance(body, dict)
    assert [row["name"] for row in body["objects"]] == names


async def test_a_wrong_selector_names_the_forms(port: int) -> None:
    code, body = await ask(port, "/api/status?object=a/b/c/d")
    assert code == 400
    assert "KIND/NAMESPACE/NAME" in str(body)


async def test_objects(port: int) -> None:
    _, listed = await ask(port, "/api/objects")
    assert listed == [
        {"kind": "Gateway", "namespace": "default", "name": "web", "generation": 2},
        {"kind": "HTTPRoute", "namespace": "shop", "name": "cart", "generation": 1},
    ]
    _, of_kind = await ask(port, "/api/objects/httproute")
    assert isinstance(of_kind, list)
    assert [row["name"] for row in of_kind] == ["cart"]
    assert await ask(port, "/api/objects/Gateway/default/web") == (200, {"kind": "Gateway"})
    assert await ask(port, "/api/objects/GatewayClass/ours") == (200, {"kind": "GatewayClass"})
    code, body = await ask(port, "/api/objects/Gateway/default/other")
    assert (code, "no such object" in str(body)) == (404, True)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:18001", "127.9.9.9:80", "10.0.0.1:18001", "[::2]"]
)
async def test_hosts_that_no_page_can_name_are_answered(port: int, host: str) -> None:
    assert (await ask(port, "/api/version", host=host))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[evil.example]", "localhost.evil", "1.2"]
)
async def test_other_hosts_are_refused_against_dns_rebinding(port: int, host: str) -> None:
    code, body = await ask(port, "/api/status", host=host)
    assert code == 403
    assert "objects" not in str(body)


@pytest.mark.parametrize("path", ["/metrics", "/stats/prometheus", "/healthz/ready", "/healthz/live"])
async def test_numbers_and_probes_are_for_everybody(port: int, path: str) -> None:
    assert (await ask(port, path, host="gatewright.internal"))[0] == 200


async def test_a_name_that_an_option_gives_is_answered() -> None:
    listening = server.Server(Known(), "127.0.0.1", 0, frozenset(("ops.example",)))
    port = await listening.start()
    try:
        assert (await ask(port, "/api/version", host="Ops.Example:18001"))[0] == 200
        assert (await ask(port, "/api/version", host="other.example"))[0] == 403
    finally:
        await listening.stop()


async def test_the_api_is_read_only_and_teaches(port: int) -> None:
    code, body = await ask(port, "/api/status", method="POST")
    assert (code, "read-only" in str(body)) == (405, True)
    code, body = await ask(port, "/nothing")
    assert (code, "/api/status" in str(body)) == (404, True)
    for path in ("/", "/api"):
        assert (await ask(port, path))[0] == 200


def test_it_listens_on_loopback_only() -> None:
    with pytest.raises(ValueError, match="loopback only"):
        server.Server(Known(), "0.0.0.0", 0)


async def test_a_taken_address_is_an_error(port: int) -> None:
    with pytest.raises(OSError, match="in use"):
        await server.Server(Known(), "127.0.0.1", port).start()


@pytest.mark.parametrize(
    ("query", "names"),
    [("object=httproute/cart", ["cart"]), ("object=gateway/none", []), ("object=gateway/web&object=httproute/cart", 2)],
)
async def test_traces_of_the_named_objects(port: int, query: str, names: list[str] | int) -> None:
    code, body = await ask(port, f"/api/trace?{query}")
    assert code == 200 and isinstance(body, dict) and body["controller"]["version"] == "1.2.3"
    found = [each["object"]["name"] for each in body["traces"]]
    assert found == (names if isinstance(names, list) else ["web", "cart"])


@pytest.mark.parametrize("query", ["", "?object=gateway", "?object=gateway/web&object=httproute", "?object=a/b/c/d"])
async def test_a_trace_wants_names(port: int, query: str) -> None:
    code, body = await ask(port, f"/api/trace{query}")
    assert code == 400 and isinstance(body, dict) and "KIND/NAME" in body["error"]
