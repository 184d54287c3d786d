"""OAuth metadata of MCP endpoints: a challenge leads to it whatever paths the route takes, pages of every site may read
it, and what is set by hand holds for all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Answer, Carrier, Request
from tests.fakes.calls import FakeCalls
from tests.fakes.tokens import Issuer
from tests.harness import yamls

ISSUER = "https://idp.test"
ANN = Issuer()
PROTECTED, SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
MATCHES = [{"path": {"type": "PathPrefix", "value": "/mcp"}}]


def policy(**mcp: Any) -> dict[str, Any]:
    provider = {"issuer": ISSUER, "audiences": ["a"], "jwks": {"inline": ANN.key_set()}}
    return {"jwtAuthentication": {"providers": [provider], "mcp": mcp}}


def route(name: str, policies: Any, matches: Any = MATCHES) -> dict[str, Any]:
    target = {"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}
    made = {"name": name, "policies": policies, "backends": [{"mcp": {"targets": [target]}}]}
    return made if matches is None else {**made, "matches": matches}


def ask(carrier: Carrier, routes: list[Any], method: str, path: str, *headers: tuple[str, str], **of: Any) -> Answer:
    listener = {"name": "http", "routes": routes, **of}
    run = carrier.proxy(yamls.dump({"binds": [{"port": 8080, "listeners": [listener]}]}), FakeCalls())
    return run.send(Request(method, path, [*headers])).answer


def pointed(answer: Answer) -> str:
    challenge = answer.headers["www-authenticate"] or ""
    return challenge.partition('resource_metadata="')[2].partition('"')[0]


@pytest.mark.parametrize("matches", [None, MATCHES], ids=["all paths", "a path"])
def test_a_challenge_leads_to_the_metadata(matches: Any, carrier: Carrier) -> None:
    """RFC 9728 5.1, for a route of the path alone as well."""
    routes = [route("mcp", policy(), matches)]
    refused = ask(carrier, routes, "POST", "/mcp/tools")
    assert refused.status == 401
    place = "/" + pointed(refused).split("/", 3)[3]
    assert place == f"{PROTECTED}/mcp/tools"
    found = ask(carrier, routes, "GET", place)
    assert found.status == 200 and json.loads(found.body)["authorization_servers"] == [ISSUER]
    assert json.loads(found.body)["resource"].endswith("/mcp/tools")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{PROTECTED}/mcp", 200),
        ("HEAD", f"{PROTECTED}/mcp/", 200),
        ("OPTIONS", f"{PROTECTED}/mcp", 204),
        ("GET", f"{SERVER}/mcp", 502),
        ("GET", PROTECTED, 404),
        ("GET", f"{PROTECTED}/other", 404),
        ("GET", f"{PROTECTED}x/mcp", 404),
        ("GET", f"{PROTECTED}/mcpx", 404),
        ("GET", "/.well-known/other/mcp", 404),
        ("POST", f"{PROTECTED}/mcp", 401),
    ],
)
def test_only_metadata_of_what_the_route_takes(method: str, path: str, status: int, carrier: Carrier) -> None:
    """502: the keys are inline, so nobody has the metadata of the authorization server."""
    assert ask(carrier, [route("mcp", policy())], method, path).status == status


def test_a_route_that_publishes_none_takes_no_further_paths(carrier: Carrier) -> None:
    assert ask(carrier, [route("mcp", {})], "GET", f"{PROTECTED}/mcp").status == 404


def test_who_takes_the_well_known_path_itself_keeps_it(carrier: Carrier) -> None:
    other = {"directResponse": {"status": 418}}
    taken = route("own", other, [{"path": {"type": "PathPrefix", "value": PROTECTED}}])
    assert ask(carrier, [route("mcp", policy()), taken], "GET", f"{PROTECTED}/mcp").status == 418


def test_policies_of_the_listener_count(carrier: Carrier) -> None:
    answer = ask(carrier, [route("mcp", {})], "GET", f"{PROTECTED}/mcp", policies=policy())
    assert answer.status == 200


NARROW = {"cors": {"allowOrigins": ["https://app.test"], "allowMethods": ["POST"]}}


@pytest.mark.parametrize("matches", [None, MATCHES], ids=["all paths", "a path"])
@pytest.mark.parametrize("origin", ["https://app.test", "https://other.test"])
def test_a_narrow_cors_leaves_metadata_to_all_pages(matches: Any, origin: str, carrier: Carrier) -> None:
    """Who may let a page in it has to find out before it is let in. Everything else stays as narrow as it is."""
    routes = [route("mcp", {**policy(), **NARROW}, matches)]
    preflight = [("origin", origin), ("access-control-request-method", "GET")]
    wanted = ("access-control-request-headers", "mcp-protocol-version")
    asked = ask(carrier, routes, "OPTIONS", f"{PROTECTED}/mcp", *preflight, wanted)
    assert asked.status == 204 and asked.headers["access-control-allow-origin"] == "*"
    assert "mcp-protocol-version" in (asked.headers["access-control-allow-headers"] or "")
    found = ask(carrier, routes, "GET", f"{PROTECTED}/mcp", ("origin", origin))
    assert found.status == 200 and found.headers["access-control-allow-origin"] == "*"
    allowed = origin if origin == "https://app.test" else None
    assert (
        ask(carrier, routes, "POST", "/mcp", ("origin", origin)).headers.get("access-control-allow-origin") == allowed
    )
    asked = ask(carrier, routes, "OPTIONS", "/mcp", *preflight)
    assert asked.headers.get("access-control-allow-origin") == allowed


@pytest.mark.parametrize("provider", ["Keycloak", None])
def test_a_resource_that_is_set_by_hand_is_that_of_all_metadata(provider: str | None, carrier: Carrier) -> None:
    """A proxy before us ends TLS: clients are to use https, also where we stand for the authorization server."""
    resource = "https://tools.test/mcp"
    more = {} if provider is None else {"provider": provider}
    routes = [route("mcp", policy(resourceMetadata={"resource": resource}, **more))]
    found = json.loads(ask(carrier, routes, "GET", f"{PROTECTED}/mcp").body)
    assert found["resource"] == resource
    assert found["authorization_servers"] == [ISSUER if provider is None else resource]
    assert pointed(ask(carrier, routes, "POST", "/mcp")) == f"https://tools.test{PROTECTED}/mcp"
