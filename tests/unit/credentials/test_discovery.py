"""Where an issuer's metadata and keys are: shapes of real identity providers, and what must not be believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.credentials.discovery import Place, Unusable, keys_path, place_of

KEYCLOAK = "https://sso.example.com/realms/shop"
AUTH0 = "https://shop.eu.auth0.com/"
ENTRA = "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0"
TENANT = ENTRA.removesuffix("/v2.0")

PROVIDERS = {
    # issuer, jwks_uri -> host, path of the metadata, path of the keys
    "Keycloak": (
        KEYCLOAK,
        f"{KEYCLOAK}/protocol/openid-connect/certs",
        b"sso.example.com",
        "/realms/shop/.well-known/openid-configuration",
        "/realms/shop/protocol/openid-connect/certs",
    ),
    "Auth0": (
        AUTH0,
        f"{AUTH0}.well-known/jwks.json",
        b"shop.eu.auth0.com",
        "/.well-known/openid-configuration",
        "/.well-known/jwks.json",
    ),
    "Entra": (
        ENTRA,
        f"{TENANT}/discovery/v2.0/keys",
        b"login.microsoftonline.com",
        f"/{TENANT.rpartition('/')[2]}/v2.0/.well-known/openid-configuration",
        f"/{TENANT.rpartition('/')[2]}/discovery/v2.0/keys",
    ),
    "a port and a query": (
        "http://idp:8080", "http://IDP:8080/keys?a=b", b"idp:8080", "/.well-known/openid-configuration", "/keys?a=b",
    ),
    "keys at the root": (
        "https://a.example", "https://a.example", b"a.example", "/.well-known/openid-configuration", "/",
    ),
}  # fmt: skip


def metadata(**members: Any) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize(("issuer", "uri", "host", "path", "keys"), PROVIDERS.values(), ids=PROVIDERS)
def test_providers(issuer: str, uri: str, host: bytes, path: str, keys: str) -> None:
    place = place_of(issuer)
    assert place == Place(issuer.partition(":")[0], host, path)
    assert keys_path(metadata(issuer=issuer, jwks_uri=uri, other=[1]), issuer, place) == keys


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "shop",
        "ftp://a.example",
        "https://",
        "https:///a",
        "https://u@a.example/",
        "https://a.example?b",
        "https://a b",
    ],
)
def test_issuers_without_metadata(issuer: str) -> None:
    with pytest.raises(Unusable, match="no https or http URL"):
        place_of(issuer)


KEYS = f"{KEYCLOAK}/keys"
WRONG = {
    "no JSON": (b"<html>", "is not JSON"),
    "bytes that are no text": (b"\xff\xfe", "is not JSON"),
    "deep": (b"[" * 100_000, "is not JSON"),
    "a list": (b"[]", "is no object"),
    "another issuer": (metadata(issuer=KEYCLOAK + "/", jwks_uri=KEYS), "another issuer"),
    "no issuer": (metadata(jwks_uri=KEYS), "another issuer"),
    "no keys": (metadata(issuer=KEYCLOAK), "no jwks_uri"),
    "a number": (metadata(issuer=KEYCLOAK, jwks_uri=1), "no jwks_uri"),
    "a path": (metadata(issuer=KEYCLOAK, jwks_uri="/keys"), "no jwks_uri"),
    "a fragment": (metadata(issuer=KEYCLOAK, jwks_uri=f"{KEYS}#a"), "no jwks_uri"),
    "a line feed": (metadata(issuer=KEYCLOAK, jwks_uri=f"{KEYS}\r\nx: y"), "no jwks_uri"),
    "a user": (metadata(issuer=KEYCLOAK, jwks_uri="https://a@sso.example.com/keys"), "no jwks_uri"),
    "another host": (metadata(issuer=KEYCLOAK, jwks_uri="https://169.254.169.254/keys"), "at another host"),
    "another port": (metadata(issuer=KEYCLOAK, jwks_uri="https://sso.example.com:1/keys"), "at another host"),
    "plain text": (metadata(issuer=KEYCLOAK, jwks_uri="http://sso.example.com/keys"), "at another host"),
}


@pytest.mark.parametrize(("document", "why"), WRONG.values(), ids=WRONG)
def test_what_is_not_believed(document: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        keys_path(document, KEYCLOAK, place_of(KEYCLOAK))
