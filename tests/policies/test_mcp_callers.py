"""A session with MCP servers belongs to whom authentication has proven, whichever way: for anybody else it is none, and
with the next credential of the same caller it goes on."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import visit
from dataplane.http.messages import TlsInfo
from tests.carriers import Carrier
from tests.fakes.mcp_toys import Client, Toy
from tests.fakes.tokens import Issuer
from tests.harness import yamls
from tests.policies.test_mcp import FIRST

KEY = Issuer()
PROVIDERS = [{"issuer": issuer, "jwks": {"inline": KEY.key_set()}} for issuer in ("https://a.test", "https://b.test")]
JWT = {"jwtAuthentication": {"mode": "Optional", "providers": PROVIDERS}}


def proxy(carrier: Carrier, policies: Any) -> Client:
    backend = {"mcp": {"targets": [{"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}]}}
    route = {"name": "mcp", "policies": policies, "backends": [backend]}
    text = yamls.dump({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": [route]}]}]})
    return Client(carrier.proxy(text), {FIRST: Toy()})


def token(**claims: Any) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {KEY.token(**{'iss': 'https://a.test', 'sub': 'ann', **claims})}")]


OTHERS: list[list[tuple[str, str]]] = [token(sub="bob"), token(iss="https://b.test"), token(sub=None), []]


@pytest.mark.parametrize("headers", OTHERS, ids=["sub", "issuer", "no sub", "nobody"])
def test_a_session_of_a_token_is_that_subjects_of_that_issuer(headers: list[tuple[str, str]], carrier: Carrier) -> None:
    client = proxy(carrier, JWT)
    client.headers = token(jti="1", role="a")
    client.initialize()
    client.headers = headers
    for method in ("POST", "GET", "DELETE"):
        lines = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}' if method == "POST" else b""
        assert client.ask(method, *lines, body=body).status == 404
    client.headers = token(jti="2", role="b", exp=4_000_000_000)
    assert client.request("ping").status == 200, "the next token of the same subject"


def test_without_a_subject_all_other_claims_count(carrier: Carrier) -> None:
    client = proxy(carrier, JWT)
    client.headers = token(sub=None, client="x", jti="1", exp=4_000_000_000)
    client.initialize()
    client.headers = token(sub=None, client="x", jti="2", exp=4_000_000_001)
    assert client.request("ping").status == 200
    client.headers = token(sub=None, client="y", jti="1", exp=4_000_000_000)
    assert client.request("ping").status == 404


def test_nobodys_session_is_nobody_elses(carrier: Carrier) -> None:
    client = proxy(carrier, JWT)
    client.initialize()
    assert client.request("ping").status == 200
    client.headers = token()
    assert client.request("ping").status == 404


def basic(name: str, password: str) -> list[tuple[str, str]]:
    return [("authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())]


def test_a_session_of_a_user_is_that_users(carrier: Carrier) -> None:
    users = ["ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", "bob:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="]
    client = proxy(carrier, {"basicAuthentication": {"users": users, "mode": "Optional"}})
    client.headers = basic("ann", "test")
    client.initialize()
    assert client.request("ping").status == 200
    client.headers = basic("bob", "test")
    assert client.request("ping").status == 404


def caller(certificate: bytes, is_proven: bool = True) -> bytes:
    tls = TlsInfo(alpn=b"", sni=b"", certificate=certificate, is_proven=is_proven)
    fake: Any = SimpleNamespace(x=SimpleNamespace(attributes=None, client=SimpleNamespace(tls=tls, workload=None)))
    return visit.caller_of(fake)


def test_a_certificate_is_a_caller_when_it_was_verified() -> None:
    assert caller(b"a") and caller(b"a") != caller(b"b")
    assert caller(b"a", False) == caller(b"") == b"", "one that nobody verified proves nothing"
