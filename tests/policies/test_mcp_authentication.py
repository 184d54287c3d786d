"""The deprecated `backend.mcp.authentication`: tokens that the MCP backend itself asks for, and the metadata by which
clients find who issues them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.chain.calls import CallRequest
from tests.carriers import Carrier, Received, Request, Response
from tests.fakes.calls import FakeCalls, answered
from tests.fakes.mcp_toys import Client, Toy
from tests.fakes.tokens import Issuer
from tests.harness import yamls

ISSUER = "https://idp.test/realms/r"
ANN = Issuer()
PROTECTED, SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
}
ROUTE = {"authorization": {"action": "Deny", "policy": {"matchExpressions": ['mcp.tool.name == "sub"']}}}


def idp(request: CallRequest) -> Any:
    body = ANN.key_set() if request.target == b"/certs" else json.dumps(METADATA)
    return answered(200, body.encode())


class Seen(Toy):
    """It notes what came in place of tokens."""

    def __call__(self, received: Received) -> Response:
        self.tokens.append(received.headers.get("authorization"))
        return super().__call__(received)

    @property
    def tokens(self) -> list[str | None]:
        return self.__dict__.setdefault("_tokens", [])


def opened(
    carrier: Carrier, of_route: Any = None, of_backend: Any = None, policies: Any = None, **authentication: Any
) -> tuple[Client, Seen]:
    jwks = {"host": "idp.test:443", "jwksPath": "certs"}
    tokens = {"authentication": {"issuer": ISSUER, "jwks": jwks, **authentication}}
    backend: Any = {"mcp": {"targets": [{"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}]}}
    if of_backend is not False:
        backend["policies"] = {"mcp": of_backend or tokens}
    route = {"name": "mcp", "policies": policies or {}, "backends": [backend]}
    if of_route is not None:
        route["policies"]["mcp"] = tokens if of_route is True else of_route
    text = yamls.dump({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": [route]}]}]})
    toy = Seen(["add", "sub"])
    return Client(carrier.proxy(text, FakeCalls(otherwise=idp)), {"127.0.0.1:9001": toy}), toy


def bearer(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def token(**claims: Any) -> str:
    return ANN.token(**{"iss": ISSUER, "sub": "ann", **claims})


def test_without_a_valid_token_nothing_reaches_a_server(carrier: Carrier) -> None:
    client, toy = opened(carrier)
    for headers in ([], bearer("nonsense"), bearer(Issuer().token(iss=ISSUER, sub="eve"))):
        client.headers = headers
        answer = client.request("ping")
        assert answer.status == 401, answer
        challenge = answer.headers["www-authenticate"]
        assert challenge is not None and f"{PROTECTED}/mcp" in challenge and challenge.startswith("Bearer ")
    assert toy.got == []


def test_a_valid_token_passes_and_stays_here(carrier: Carrier) -> None:
    client, toy = opened(carrier)
    client.headers = bearer(token())
    client.initialize()
    assert client.names() == ["add", "sub"]
    assert toy.tokens and set(toy.tokens) == {None}, "it was meant for us"


def test_a_session_belongs_to_the_caller_of_the_token(carrier: Carrier) -> None:
    client, _ = opened(carrier)
    client.headers = bearer(token())
    client.initialize()
    client.headers = bearer(token(sub="bob"))
    assert client.request("ping").status == 404


def test_claims_are_there_for_rules(carrier: Carrier) -> None:
    rule = {"authorization": {"policy": {"matchExpressions": ['jwt.sub == "ann" && mcp.tool.name == "add"']}}}
    jwks = {"host": "idp.test:443", "jwksPath": "certs"}
    client, _ = opened(carrier, of_backend={"authentication": {"issuer": ISSUER, "jwks": jwks}, **rule})
    client.headers = bearer(token())
    client.initialize()
    assert client.names() == ["add"]


@pytest.mark.parametrize(
    ("authentication", "claims", "status"),
    [
        ({}, {"iss": "https://other.test"}, 401),
        ({"issuer": None}, {"iss": "https://other.test"}, 200),
        ({"audiences": ["tools"]}, {"aud": "tools"}, 200),
        ({"audiences": ["tools"]}, {"aud": "other"}, 401),
        ({"mode": "Optional"}, {"iss": "https://other.test"}, 401),
        ({"mode": "Permissive"}, {"iss": "https://other.test"}, 200),
    ],
)
def test_issuers_audiences_and_modes(
    authentication: dict[str, Any], claims: dict[str, Any], status: int, carrier: Carrier
) -> None:
    made = {name: value for name, value in {"issuer": ISSUER, **authentication}.items() if value is not None}
    jwks = {"host": "idp.test:443", "jwksPath": "certs"}
    client, _ = opened(carrier, of_backend={"authentication": {"jwks": jwks, **made}})
    client.headers = bearer(token(**claims))
    assert client.request("initialize", {"protocolVersion": "2025-06-18"}).status == status


@pytest.mark.parametrize(("mode", "status"), [("Strict", 401), ("Optional", 200), ("Permissive", 200)])
def test_a_client_without_a_token(mode: str, status: int, carrier: Carrier) -> None:
    client, _ = opened(carrier, mode=mode)
    assert client.request("initialize", {"protocolVersion": "2025-06-18"}).status == status


def test_metadata_is_served_without_a_token(carrier: Carrier) -> None:
    client, toy = opened(carrier, clientId="fixed", resourceMetadata={"scopes_supported": ["a"]})
    gateway = "http://gw.example:8080"

    def document(method: str, path: str, body: bytes = b"") -> tuple[int | None, Any]:
        answer = client.run.carry(Request(method, path, (), body, authority="gw.example:8080")).answer
        return answer.status, json.loads(answer.body) if answer.status != 413 else None

    status, found = document("GET", f"{PROTECTED}/mcp")
    assert (status, found["resource"], found["scopes_supported"]) == (200, f"{gateway}/mcp", ["a"])
    status, found = document("GET", f"{SERVER}/mcp")
    assert (status, found["token_endpoint"]) == (200, f"{ISSUER}/token")
    registration = found["registration_endpoint"].removeprefix(gateway)
    status, found = document("POST", registration, b'{"redirect_uris": ["http://127.0.0.1/back"]}')
    assert (status, found["client_id"]) == (201, "fixed")
    assert document("POST", registration, b'{"redirect_uris": ["%b"]}' % (b"x" * 70_000))[0] == 413
    assert toy.got == []


def test_a_route_asks_for_tokens_of_its_mcp_backends(carrier: Carrier) -> None:
    client, _ = opened(carrier, of_route=True, of_backend=False)
    assert client.request("ping").status == 401
    client.headers = bearer(token())
    client.initialize()


def test_a_policy_of_the_backend_takes_the_place_of_the_routes(carrier: Carrier) -> None:
    client, _ = opened(carrier, of_route=True, of_backend=ROUTE)
    client.initialize()
    assert client.names() == ["add"]


def test_the_most_specific_policy_has_all_but_the_rules(carrier: Carrier) -> None:
    client, _ = opened(carrier, of_route=ROUTE)
    assert client.request("ping").status == 401
    client.headers = bearer(token())
    client.initialize()
    assert client.names() == ["add"], "rules add up"


def test_steps_of_the_request_run_before(carrier: Carrier) -> None:
    direct = {"directResponse": {"status": 299, "body": "first"}}
    client, _ = opened(carrier, policies=direct)
    assert client.request("ping").status == 299
