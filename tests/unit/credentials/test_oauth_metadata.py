"""OAuth metadata for clients of MCP: what a provider's must have, what clients get of it, where they register."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.chain.filter import Refused
from dataplane.credentials.discovery import Unusable
from dataplane.credentials.mcp_discovery import settings_of
from dataplane.credentials.oauth_metadata import (
    MAX_REDIRECTS,
    Settings,
    Site,
    pointer,
    read,
    registered,
    registration_target,
    resource,
    server,
    site,
    source,
)
from gatewright.wire.v1 import authentication_pb2

ISSUER = "https://id.example/realms/shop"
HERE = Site("https://mcp.example", "/tools")
PLAIN = Settings(ISSUER)
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://id.example/authorize",
    "token_endpoint": "https://id.example/token",
    "registration_endpoint": "https://id.example/register?kind=mcp",
}


def without(*names: str, **others: Any) -> bytes:
    return json.dumps({**{name: value for name, value in DOCUMENT.items() if name not in names}, **others}).encode()


def test_a_provider_s_metadata_is_read() -> None:
    assert read(json.dumps(DOCUMENT).encode(), PLAIN) == DOCUMENT


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "the metadata is not JSON"),
        (b"[" * 100_000, "the metadata is not JSON"),
        (b"[]", "the metadata is no object"),
        (without("issuer"), "the metadata is of another issuer"),
        (without(issuer="https://evil.example"), "the metadata is of another issuer"),
        (without("authorization_endpoint"), "the metadata has no authorization_endpoint"),
        (without(authorization_endpoint=7), "the metadata has no authorization_endpoint"),
        (without(token_endpoint="/token"), "the metadata has no token_endpoint"),
        (without(token_endpoint="ftp://id.example/token"), "the metadata has no token_endpoint"),
        (without(token_endpoint="https:///token"), "the metadata has no token_endpoint"),
        (without(token_endpoint="https://[id/token"), "the metadata has no token_endpoint"),
    ],
)
def test_what_is_no_metadata_of_it(data: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read(data, PLAIN)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        (PLAIN, b"/.well-known/oauth-authorization-server/realms/shop"),
        (Settings(ISSUER, provider="Auth0"), b"/.well-known/oauth-authorization-server/realms/shop"),
        (Settings(ISSUER, provider="Keycloak"), b"/realms/shop/.well-known/openid-configuration"),
    ],
)
def test_where_the_metadata_is(settings: Settings, path: bytes) -> None:
    assert source(settings) == (b"id.example", path)


@pytest.mark.parametrize(
    ("settings", "servers"),
    [
        (PLAIN, [ISSUER]),
        (Settings(""), None),
        (Settings(ISSUER, provider="Okta"), ["https://mcp.example/tools"]),
        (Settings(ISSUER, client_id="c"), ["https://mcp.example/tools"]),
        (Settings(ISSUER, overrides={"authorization_servers": ["x"], "more": 1}), ["x"]),
    ],
)
def test_metadata_of_the_resource(settings: Settings, servers: list[str] | None) -> None:
    found = resource(settings, HERE)
    assert found.get("authorization_servers") == servers and found["resource"] == "https://mcp.example/tools"
    assert found.get("more") == settings.overrides.get("more")


REGISTRATION = "https://mcp.example/.well-known/oauth-authorization-server/tools/client-registration"


@pytest.mark.parametrize(
    ("settings", "endpoint", "expected"),
    [
        (PLAIN, "https://id.example/authorize", {}),
        (Settings(ISSUER, ("a b",)), "https://id.example/authorize", {}),
        (Settings(ISSUER, ("a b", "c"), "Auth0"), "https://id.example/authorize?audience=a%20b", {"issuer": HERE.url}),
        (Settings(ISSUER, (), "Auth0"), "https://id.example/authorize", {"issuer": HERE.url}),
        (
            Settings(ISSUER, ("a",), "Keycloak"),
            "https://id.example/authorize",
            {"issuer": HERE.url, "registration_endpoint": REGISTRATION},
        ),
        (
            Settings(ISSUER, client_id="c"),
            "https://id.example/authorize",
            {"issuer": HERE.url, "registration_endpoint": REGISTRATION},
        ),
    ],
)
def test_metadata_of_the_server_as_clients_get_it(settings: Settings, endpoint: str, expected: dict[str, str]) -> None:
    assert server(DOCUMENT, settings, HERE) == {**DOCUMENT, "authorization_endpoint": endpoint, **expected}
    assert DOCUMENT["issuer"] == ISSUER


def test_an_audience_goes_behind_a_query() -> None:
    asked = {**DOCUMENT, "authorization_endpoint": "https://id.example/authorize?x=1"}
    made = server(asked, Settings(ISSUER, ("a/b",), "Auth0"), HERE)
    assert made["authorization_endpoint"] == "https://id.example/authorize?x=1&audience=a%2Fb"


@pytest.mark.parametrize(
    ("provider", "endpoint", "target"),
    [
        ("", "https://id.example/register?kind=mcp", b"/register?kind=mcp"),
        ("", "https://ID.example", b"/"),
        ("Keycloak", None, b"/realms/shop/clients-registrations/openid-connect"),
        ("Okta", None, b"/oauth2/v1/clients"),
    ],
)
def test_where_clients_register(provider: str, endpoint: str | None, target: bytes) -> None:
    assert registration_target({"registration_endpoint": endpoint}, Settings(ISSUER, provider=provider)) == target


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        (None, "no registration_endpoint at the issuer's host"),
        (7, "no registration_endpoint at the issuer's host"),
        ("https://evil.example/register", "no registration_endpoint at the issuer's host"),
        ("http://id.example/register", "no registration_endpoint at the issuer's host"),
        ("https://id.example:8443/register", "no registration_endpoint at the issuer's host"),
        ("https://id.example/a b", "characters that a URL has escaped"),
        ("https://id.example/ä", "characters that a URL has escaped"),
    ],
)
def test_where_clients_cannot_register(endpoint: Any, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        registration_target({"registration_endpoint": endpoint}, PLAIN)


@pytest.mark.parametrize(
    ("body", "uris"),
    [
        (b'{"redirect_uris": ["http://localhost/cb"]}', ["http://localhost/cb"]),
        (b"{}", []),
        (json.dumps({"redirect_uris": ["a"] * MAX_REDIRECTS}).encode(), ["a"] * 64),
        (json.dumps({"redirect_uris": ["a"] * (MAX_REDIRECTS + 1)}).encode(), None),
        (b'{"redirect_uris": "http://localhost/cb"}', None),
        (b'{"redirect_uris": ["a", 7]}', None),
        (b"[]", None),
        (b"{", None),
        (b"[" * 100_000, None),
    ],
)
def test_a_client_gets_the_fixed_id(body: bytes, uris: list[str] | None) -> None:
    found = registered(body, "fixed")
    if uris is None:
        assert found is None
    else:
        assert found is not None and (found["client_id"], found["redirect_uris"]) == ("fixed", uris)
        assert found["client_id_issued_at"] == 0 and found["token_endpoint_auth_method"] == "none"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, "https://mcp.example/.well-known/oauth-protected-resource/tools"),
        ({"resource": "https://api.example/a/"}, "https://api.example/.well-known/oauth-protected-resource/a"),
        ({"resource": "https://api.example"}, "https://api.example/.well-known/oauth-protected-resource"),
        ({"resource": "api"}, "https://mcp.example/.well-known/oauth-protected-resource/tools"),
        ({"resource": 7}, "https://mcp.example/.well-known/oauth-protected-resource/tools"),
        ({"resource": 'https://api.example/"x'}, "https://api.example/.well-known/oauth-protected-resource/%22x"),
    ],
)
def test_what_a_challenge_points_at(overrides: dict[str, Any], expected: str) -> None:
    assert pointer(Settings(ISSUER, overrides=overrides), HERE) == f'resource_metadata="{expected}"'.encode()


@pytest.mark.parametrize(
    ("authority", "path", "expected"),
    [
        (b"mcp.example", b"/tools/", Site("https://mcp.example", "/tools")),
        (b"mcp.example:8443", b"/", Site("https://mcp.example:8443", "")),
        (b"[::1]:80", b"", Site("https://[::1]:80", "")),
        (b"", b"/", None),
        (b"a b", b"/", None),
        (b"user@mcp.example", b"/", None),
        (b"mcp.example:123456", b"/", None),
        (b'mcp"example', b"/", None),
    ],
)
def test_where_a_client_asked(authority: bytes, path: bytes, expected: Site | None) -> None:
    assert site(b"https", authority, path) == expected


# --- what a policy says


def config(providers: int = 1, mode: Any = 0, **mcp: str) -> authentication_pb2.JwtAuthentication:
    made = authentication_pb2.JwtAuthentication(mode=mode)
    for _number in range(providers):
        made.providers.add(issuer=ISSUER, audiences=["a", "b"])
    for name, value in mcp.items():
        setattr(made.mcp, name, value)
    return made


STRICT = authentication_pb2.AUTHENTICATION_MODE_STRICT
OPTIONAL = authentication_pb2.AUTHENTICATION_MODE_OPTIONAL


@pytest.mark.parametrize(("mode", "any_mode"), [(0, False), (STRICT, False), (OPTIONAL, True)])
def test_settings(mode: Any, any_mode: bool) -> None:
    said = config(mode=mode, provider="Okta", client_id="c", resource_metadata='{"x": 1}')
    assert settings_of(said, any_mode) == Settings(ISSUER, ("a", "b"), "Okta", "c", {"x": 1})
    assert settings_of(config()) == Settings(ISSUER, ("a", "b"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (config(0), "mcp: needs exactly one provider"),
        (config(2), "mcp: needs exactly one provider"),
        (config(mode=OPTIONAL), "mcp: needs mode Strict"),
        (config(provider="Other"), "mcp.provider: Other is not known to this proxy"),
        (config(resource_metadata="{"), "mcp.resourceMetadata: not JSON"),
        (config(resource_metadata="[" * 100_000), "mcp.resourceMetadata: not JSON"),
        (config(resource_metadata="[]"), "mcp.resourceMetadata: no object"),
    ],
)
def test_settings_that_are_refused(said: authentication_pb2.JwtAuthentication, why: str) -> None:
    with pytest.raises(Refused, match=why):
        settings_of(said)
