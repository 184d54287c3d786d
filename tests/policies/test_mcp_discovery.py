"""`jwtAuthentication.mcp`: how MCP clients find the authorization server, from the standalone file to their answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.calls import CallRequest
from dataplane.credentials.mcp_discovery import MOST_REGISTRATIONS
from gatewright.api.decode.documents import decode_object
from tests.carriers import Carrier, Request, Run
from tests.fakes.calls import FakeCalls, answered, failed
from tests.fakes.policy_run import problems, served
from tests.fakes.tokens import Issuer
from tests.harness import yamls

ISSUER = "https://idp.test/realms/r"
ANN = Issuer()
GATEWAY = "gw.example:8080"
PROTECTED, SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/own-registration",
    "code_challenge_methods_supported": ["S256"],
}


def policy(mcp: Any, issuer: str = ISSUER, **provider: Any) -> str:
    made = {"issuer": issuer, "jwks": {"remote": {"host": "idp.test:443", "jwksPath": "certs"}}, **provider}
    return yamls.dump({"policies": {"jwtAuthentication": {"providers": [made], "mcp": mcp}}})


class Idp:
    """The identity provider: its answers by path, and what it was asked for."""

    def __init__(self, metadata: Any = METADATA, **more: Any) -> None:
        self.asked: list[CallRequest] = []
        self.metadata = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode()
        self.registration = answered(201, b'{"client_id": "made"}')

    def __call__(self, request: CallRequest) -> Any:
        self.asked.append(request)
        if request.method == b"POST":
            return self.registration
        return answered(200, ANN.key_set().encode() if request.target == b"/certs" else self.metadata)

    @property
    def metadata_targets(self) -> list[bytes]:
        return [each.target for each in self.asked if b".well-known" in each.target]


def proxy(carrier: Carrier, idp: Callable[[CallRequest], Any], mcp: Any = None, **provider: Any) -> Run:
    return carrier.proxy(served(policy(mcp or {}, **provider)), FakeCalls(otherwise=idp))


def get(target: str, *headers: tuple[str, str], method: str = "GET", body: bytes = b"") -> Request:
    return Request(method, target, headers, body, authority=GATEWAY)


def document(run: Run, target: str) -> dict[str, Any]:
    seen = run.carry(get(target))
    assert (seen.answer.status, seen.reached) == (200, ()), seen.answer
    assert seen.answer.headers["content-type"] == "application/json"
    assert seen.answer.headers["access-control-allow-origin"] == "*"
    found: dict[str, Any] = json.loads(seen.answer.body)
    return found


@pytest.mark.parametrize("path", ["", "/mcp", "/a/b"])
def test_metadata_of_the_resource(path: str, carrier: Carrier) -> None:
    url = f"http://{GATEWAY}{path}"
    found = document(proxy(carrier, Idp()), PROTECTED + path)
    expected = {"resource": url, "mcp_protocol_version": "2025-06-18", "resource_type": "mcp-server"}
    assert found == {**expected, "authorization_servers": [ISSUER]}
    found = document(proxy(carrier, Idp(), {"provider": "Keycloak"}), PROTECTED + path)
    assert found == {**expected, "authorization_servers": [url]}


def test_fields_of_the_policy_win_as_they_are(carrier: Carrier) -> None:
    mine = {"resource": "https://mcp.test/mcp", "scopesSupported": ["a"], "scopes_supported": ["b"]}
    run = proxy(carrier, Idp(), {"resourceMetadata": mine})
    found = document(run, f"{PROTECTED}/mcp")
    assert {name: found[name] for name in mine} == mine
    challenge = run.carry(get("/mcp")).answer.headers["www-authenticate"]
    assert challenge == f'Bearer resource_metadata="https://mcp.test{PROTECTED}/mcp"'


SERVERS = [
    # mcp, issuer, where its metadata is, what differs from it
    ({}, ISSUER, f"{SERVER}/realms/r", {}),
    (
        {"provider": "Keycloak"},
        ISSUER,
        "/realms/r/.well-known/openid-configuration",
        {
            "issuer": f"http://{GATEWAY}/mcp",
            "registration_endpoint": f"http://{GATEWAY}{SERVER}/mcp/client-registration",
        },
    ),
    (
        {"provider": "Okta"},
        ISSUER,
        "/realms/r/.well-known/openid-configuration",
        {
            "issuer": f"http://{GATEWAY}/mcp",
            "authorization_endpoint": f"{ISSUER}/auth?audience=api%3A%2F%2Fshop",
            "registration_endpoint": f"http://{GATEWAY}{SERVER}/mcp/client-registration",
        },
    ),
    (
        {"provider": "Auth0"},
        ISSUER,
        f"{SERVER}/realms/r",
        {"issuer": f"http://{GATEWAY}/mcp", "authorization_endpoint": f"{ISSUER}/auth?audience=api%3A%2F%2Fshop"},
    ),
    (
        {"clientId": "fixed"},
        ISSUER,
        f"{SERVER}/realms/r",
        {
            "issuer": f"http://{GATEWAY}/mcp",
            "registration_endpoint": f"http://{GATEWAY}{SERVER}/mcp/client-registration",
        },
    ),
]


@pytest.mark.parametrize(("mcp", "issuer", "target", "differs"), SERVERS)
def test_metadata_of_the_authorization_server(
    mcp: Any, issuer: str, target: str, differs: dict[str, str], carrier: Carrier
) -> None:
    idp = Idp()
    run = proxy(carrier, idp, mcp, issuer=issuer, audiences=["api://shop", "other"])
    assert document(run, f"{SERVER}/mcp") == {**METADATA, **differs}
    assert document(run, f"{SERVER}/mcp")
    assert idp.metadata_targets == [target.encode()]  # it is asked once
    assert {each.authority for each in idp.asked if each.target == target.encode()} == {b"idp.test"}
    run.advance(301)
    document(run, f"{SERVER}/mcp")
    assert len(idp.metadata_targets) == 2


def test_a_query_of_the_provider_stays(carrier: Carrier) -> None:
    idp = Idp({**METADATA, "authorization_endpoint": f"{ISSUER}/auth?a=b"})
    run = proxy(carrier, idp, {"provider": "Auth0"}, audiences=["x"])
    assert document(run, SERVER)["authorization_endpoint"] == f"{ISSUER}/auth?a=b&audience=x"


@pytest.mark.parametrize(
    ("idp", "why"),
    [
        (Idp(b"<html>"), "not JSON"),
        (Idp(b"[]"), "no object"),
        (Idp(b"[" * 50_000), "not JSON"),
        (Idp({**METADATA, "issuer": "https://evil.test"}), "another issuer"),
        (Idp({"issuer": ISSUER, "token_endpoint": "https://x/"}), "no authorization_endpoint"),
        (Idp({**METADATA, "token_endpoint": "javascript:alert(1)"}), "no token_endpoint"),
        (lambda _: answered(404), "answered 404"),
        (lambda _: failed("timeout"), "timeout"),
        (lambda _: failed("too_large"), "too_large"),
    ],
)
def test_metadata_that_cannot_be_had(idp: Any, why: str, carrier: Carrier) -> None:
    seen = proxy(carrier, idp).carry(get(SERVER))
    assert (seen.answer.status, seen.reason, seen.reached) == (502, "OAuthMetadataUnavailable", ())
    assert why in seen.line
    assert seen.answer.headers["access-control-allow-origin"] == "*"


def test_a_failure_is_not_asked_for_again_at_once(carrier: Carrier) -> None:
    asked = []

    def idp(request: CallRequest) -> Any:
        asked.append(request.target)
        return answered(500)

    run = proxy(carrier, idp, {"provider": "Keycloak"})
    for _ in range(3):
        assert run.carry(get(SERVER)).answer.status == 502
    assert len([each for each in asked if b"openid" in each]) == 1
    run.advance(6)
    run.carry(get(SERVER))
    assert len([each for each in asked if b"openid" in each]) == 2


def test_keys_that_are_inline_name_no_server_to_ask(carrier: Carrier) -> None:
    made = {"issuer": ISSUER, "jwks": {"inline": ANN.key_set()}}
    text = yamls.dump({"policies": {"jwtAuthentication": {"providers": [made], "mcp": {}}}})
    run = carrier.proxy(served(text))
    assert document(run, PROTECTED)["authorization_servers"] == [ISSUER]
    assert run.carry(get(SERVER)).reason == "OAuthMetadataUnavailable"


# --- what needs a token, and what does not


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/mcp", "/mcp"),
        ("/", ""),
        ("/a%22b%0D%0Ac?x=1", "/a%22b%0D%0Ac"),
        (f"{PROTECTED}x", f"{PROTECTED}x"),
        ("/mcp/.well-known/oauth-protected-resource", "/mcp/.well-known/oauth-protected-resource"),
        ("/client-registration", "/client-registration"),
        (f"{PROTECTED}/client-registration/..%2f..%2fsecret", None),
    ],
)
def test_all_other_paths_need_a_token(target: str, path: str | None, carrier: Carrier) -> None:
    seen = proxy(carrier, Idp()).carry(get(target))
    assert seen.reached == ()
    if path is None:  # how the path is read is not clear, so that is refused before
        assert seen.answer.status in (400, 401)
        return
    assert (seen.answer.status, seen.reason) == (401, "JwtMissing")
    challenge = seen.answer.headers["www-authenticate"]
    assert challenge == f'Bearer resource_metadata="http://{GATEWAY}{PROTECTED}{path}"'
    assert json.loads(seen.answer.body) == {"error": "unauthorized", "error_description": "JWT token required"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_of_the_metadata_need_a_token(method: str, carrier: Carrier) -> None:
    run = proxy(carrier, Idp())
    for target in (PROTECTED, SERVER, f"{PROTECTED}/client-registration"):
        assert run.carry(get(target, method=method)).answer.status == 401


def test_a_bad_token_leads_to_the_metadata_too(carrier: Carrier) -> None:
    seen = proxy(carrier, Idp()).carry(get("/mcp", ("authorization", "Bearer a.b.c")))
    expected = f'Bearer error="invalid_token", resource_metadata="http://{GATEWAY}{PROTECTED}/mcp"'
    assert (seen.reason, seen.answer.headers["www-authenticate"]) == ("JwtInvalid", expected)
    unknown = proxy(carrier, Idp(), issuer="https://issuer.test").carry(
        get("/mcp", ("authorization", f"Bearer {Issuer().token(sub='x')}"))
    )
    assert "resource_metadata=" in unknown.answer.headers["www-authenticate"]  # also when keys were waited for


def test_a_preflight_is_answered(carrier: Carrier) -> None:
    for target in (PROTECTED, f"{SERVER}/mcp", f"{SERVER}/mcp/client-registration"):
        seen = proxy(carrier, Idp()).carry(get(target, method="OPTIONS"))
        assert (seen.answer.status, seen.reached) == (204, ())
        assert seen.answer.headers["access-control-allow-headers"] == "content-type, mcp-protocol-version"


def test_https_of_a_proxy_before_us(carrier: Carrier) -> None:
    text = served(policy({})) + "frontendPolicies: {http: {ownedHeaders: [forwarded]}}\n"
    run = carrier.proxy(text, FakeCalls(otherwise=Idp()))
    trusted = [("x-forwarded-proto", "https"), ("x-forwarded-host", "mcp.test"), ("x-forwarded-for", "10.0.0.1")]
    found = json.loads(run.carry(get(f"{PROTECTED}/mcp", *trusted)).answer.body)
    assert found["resource"] == "https://mcp.test/mcp"
    untrusted = proxy(carrier, Idp()).carry(get(f"{PROTECTED}/mcp", *trusted))
    assert json.loads(untrusted.answer.body)["resource"] == f"http://{GATEWAY}/mcp"


# --- registration of clients

REGISTER = f"{SERVER}/mcp/client-registration"
ASKED = json.dumps({"redirect_uris": ["http://localhost/cb"], "client_name": "c"}).encode()


def test_a_fixed_client_id(carrier: Carrier) -> None:
    idp = Idp()
    seen = proxy(carrier, idp, {"clientId": "fixed"}).carry(get(REGISTER, method="POST", body=ASKED))
    assert seen.answer.status == 201
    assert json.loads(seen.answer.body) == {
        "client_id": "fixed",
        "client_id_issued_at": 0,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "redirect_uris": ["http://localhost/cb"],
    }
    assert all(each.method == b"GET" for each in idp.asked)


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"redirect_uris": 7}', b'{"redirect_uris": [7]}', b"[" * 60_000])
def test_a_registration_that_is_none(body: bytes, carrier: Carrier) -> None:
    seen = proxy(carrier, Idp(), {"clientId": "fixed"}).carry(get(REGISTER, method="POST", body=body))
    assert (seen.answer.status, json.loads(seen.answer.body)) == (400, {"error": "invalid_client_metadata"})


def test_a_registration_that_is_too_large(carrier: Carrier) -> None:
    run = proxy(carrier, Idp(), {"provider": "Keycloak"})
    assert run.carry(get(REGISTER, method="POST", body=b"x" * 65_537)).reason == "BodyTooLarge"


@pytest.mark.parametrize(
    ("provider", "target"),
    [
        ("Keycloak", b"/realms/r/clients-registrations/openid-connect"),
        ("Okta", b"/oauth2/v1/clients"),
        ("Auth0", b"/realms/r/own-registration"),
    ],
)
def test_a_registration_is_passed_on(provider: str, target: bytes, carrier: Carrier) -> None:
    idp = Idp()
    request = get(REGISTER, ("cookie", "secret=1"), method="POST", body=ASKED)
    seen = proxy(carrier, idp, {"provider": provider}).carry(request)
    assert (seen.answer.status, seen.answer.body) == (201, b'{"client_id": "made"}')
    (sent,) = [each for each in idp.asked if each.method == b"POST"]
    assert (sent.target, sent.body, sent.authority) == (target, ASKED, b"idp.test")
    assert b"cookie" not in sent.headers


@pytest.mark.parametrize(
    ("outcome", "status"), [(answered(400, b'{"error": "x"}'), 400), (answered(500), 502), (failed("connect"), 502)]
)
def test_a_registration_that_is_refused(outcome: Any, status: int, carrier: Carrier) -> None:
    idp = Idp()
    idp.registration = outcome
    seen = proxy(carrier, idp, {"provider": "Keycloak"}).carry(get(REGISTER, method="POST", body=ASKED))
    assert seen.answer.status == status


def test_registration_elsewhere_is_not_followed(carrier: Carrier) -> None:
    """Metadata must not lead the gateway to another host."""
    idp = Idp({**METADATA, "registration_endpoint": "https://internal.test/x"})
    seen = proxy(carrier, idp, {"provider": "Auth0"}).carry(get(REGISTER, method="POST", body=ASKED))
    assert (seen.reason, [each for each in idp.asked if each.method == b"POST"]) == ("OAuthMetadataUnavailable", [])


def test_a_registration_that_nobody_can_take_needs_a_token(carrier: Carrier) -> None:
    """Keys that are inline, and no fixed id: also when the body comes after the head."""
    made = {"issuer": ISSUER, "jwks": {"inline": ANN.key_set()}}
    run = carrier.proxy(served(yamls.dump({"policies": {"jwtAuthentication": {"providers": [made], "mcp": {}}}})))
    assert run.carry(get(REGISTER, method="POST", body=ASKED)).reason == "JwtMissing"
    late = run.client().begin(get(REGISTER, ("content-length", str(len(ASKED))), method="POST"))
    if not late.answer.ended:
        late.content(ASKED)
        late.end()
    assert late.answer.status == 401 and not run.arrivals


def test_registrations_that_wait_for_metadata_are_counted(carrier: Carrier) -> None:
    """Else all that came meanwhile would be passed on at the same moment."""
    idp = Idp()
    calls = FakeCalls(otherwise=idp)
    run = carrier.proxy(served(policy({"provider": "Keycloak"})), calls)
    run.carry(get("/mcp", ("authorization", "Bearer a.b.c")))  # keys are there
    calls.hold = True
    clients = [(f"198.51.100.{number}", 1) for number in range(MOST_REGISTRATIONS + 3)]
    asked = [run.client(each).send(get(REGISTER, method="POST", body=ASKED)) for each in clients]
    busy = [each.answer.status for each in asked if each.answer.ended]
    assert busy == [503] * 3
    calls.hold = False
    calls.release()
    run.advance(0)
    assert [each.answer.status for each in asked] == [201] * MOST_REGISTRATIONS + [503] * 3
    assert run.carry(get(REGISTER, method="POST", body=ASKED)).answer.status == 201


def test_one_client_leaves_registrations_to_others(carrier: Carrier) -> None:
    calls = FakeCalls(otherwise=Idp())
    run = carrier.proxy(served(policy({"provider": "Keycloak"})), calls)
    run.carry(get("/mcp", ("authorization", "Bearer a.b.c")))  # keys are there
    calls.hold = True
    asked = [run.client().send(get(REGISTER, method="POST", body=ASKED)) for _ in range(7)]
    assert [each.answer.status for each in asked if each.answer.ended] == [503]
    assert run.counted("limits_exceeded_total") == {"registrations": 1}
    other = run.client(("198.51.100.7", 1)).send(get(REGISTER, method="POST", body=ASKED))
    calls.hold = False
    calls.release()
    run.advance(0)
    assert [other.answer.status, *(each.answer.status for each in asked)] == [201] * 7 + [503]


@pytest.mark.parametrize("path", ["/r x", "/r\u00e9", "/r\x7f"])
def test_a_registration_endpoint_that_is_no_target_is_not_asked(path: str, carrier: Carrier) -> None:
    """What metadata says must not become more than a target in the request's first line."""
    idp = Idp({**METADATA, "registration_endpoint": f"https://idp.test{path}"})
    seen = proxy(carrier, idp, {"provider": "Auth0"}).carry(get(REGISTER, method="POST", body=ASKED))
    assert (seen.reason, [each for each in idp.asked if each.method == b"POST"]) == ("OAuthMetadataUnavailable", [])


# --- rules


def test_it_needs_one_provider_and_strict() -> None:
    one = {"issuer": "i", "jwks": {"inline": ANN.key_set()}}
    text = yamls.dump({"policies": {"jwtAuthentication": {"providers": [one, one], "mode": "Optional", "mcp": {}}}})
    found = " ".join(problems(text))
    assert "must have exactly one item when mcp is set" in found
    assert "must be Strict when mcp is set" in found


def test_it_is_accepted_in_a_policy() -> None:
    spec = {
        "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}],
        "traffic": {
            "jwtAuthentication": {
                "providers": [{"issuer": "i", "jwks": {"inline": ANN.key_set()}}],
                "mcp": {"provider": "IdpB", "resourceMetadata": {"a": [1, {"b": None}]}, "clientId": "c"},
            }
        },
    }
    kind = {"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy", "metadata": {"name": "p"}, "spec": spec}
    assert decode_object(kind, "api").verdict == "valid"
