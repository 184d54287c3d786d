"""From the settings of an identity provider to a token that is accepted: shapes of Keycloak, Auth0 and Entra, served
over TLS by a local server that stands for each of them."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.certificates import Authority
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.fakes.tokens import DAY, Issuer, key_set
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.unit.credentials.test_discovery import AUTH0, ENTRA, KEYCLOAK, TENANT

OKTA = "https://shop.okta.com/oauth2/default"

AUTHORITY = Authority()
KEY = Issuer("RS256", kid="k1")

PROVIDERS = {
    "Keycloak": (KEYCLOAK, f"{KEYCLOAK}/protocol/openid-connect/certs"),
    "Auth0": (AUTH0, f"{AUTH0}.well-known/jwks.json"),
    "Entra": (ENTRA, f"{TENANT}/discovery/v2.0/keys"),
}


class Provider:
    """Answers with documents by URL, as the provider of this host."""

    def __init__(self, host: str) -> None:
        self.host, self.port = host, 0
        self.documents: dict[str, bytes] = {}
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
                )
                await reader.readexactly(length)
                host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
                url = f"https://{host}{head.split(' ')[1]}"
                self.asked.append(url)
                body = self.documents.get(url)
                status = "200 OK" if body is not None else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-length: {len(body or b'')}\r\n\r\n".encode() + (body or b"")
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def provider(issuer: str, keys: str, folder: Path) -> AsyncIterator[Provider]:
    made = Provider(issuer.split("/")[2])
    made.documents[issuer.rstrip("/") + "/.well-known/openid-configuration"] = json.dumps(
        {"issuer": issuer, "jwks_uri": keys, "token_endpoint": f"{issuer}/token"}
    ).encode()
    made.documents[keys] = key_set(KEY.key()).encode()
    pair = AUTHORITY.issue(made.host)
    (folder / "server.pem").write_bytes(pair.chain + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


def file(issuer: str, jwks: str) -> str:
    return f"""
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      policies:
        jwtAuthentication: {{providers: [{{issuer: "{issuer}", jwks: {jwks}}}]}}
        directResponse: {{status: 200, bodyExpression: jwt.sub}}
"""


def tls(host: str) -> str:
    pem = AUTHORITY.pem.decode().replace("\n", "\\n")
    return f'policies: {{tls: {{sni: {host}, caCertificateRefs: [{{value: "{pem}"}}]}}}}'


async def answer(proxy: SocketProxy, issuer: str, key: Issuer = KEY) -> tuple[int, bytes]:
    token = key.token(iss=issuer, sub="ann", exp=int(time.time()) + DAY)
    head, _, body = (await proxy.get(f"Authorization: Bearer {token}\r\n")).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


@pytest.mark.parametrize(("issuer", "keys"), PROVIDERS.values(), ids=PROVIDERS)
async def test_discovery(issuer: str, keys: str, tmp_path: Path) -> None:
    async with provider(issuer, keys, tmp_path) as made:
        jwks = f'{{discovery: {{host: "127.0.0.1:{made.port}", {tls(made.host)}}}}}'
        async with serving(file(issuer, jwks)) as proxy:
            assert await answer(proxy, issuer) == (200, b"ann")
            assert made.asked == [*made.documents], "the metadata, then the keys, under the issuer's own name"
            assert (await answer(proxy, issuer, Issuer("RS256", kid="k1")))[0] == 401, "a key of somebody else"
            assert (await answer(proxy, f"{issuer}x"))[0] == 401


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("issuer", "keys"), PROVIDERS.values(), ids=PROVIDERS)
async def test_the_example_with_the_settings_of_a_provider(issuer: str, keys: str, root: Path, tmp_path: Path) -> None:
    """The commands of `examples/identity-provider` and of `docs/identity-providers.md`."""
    text = (root / "examples/identity-provider/config.yaml").read_text()
    async with provider(issuer, keys, tmp_path) as made, answering() as origin:
        for old, new in (
            (f"issuer: {KEYCLOAK} ", f"issuer: {issuer} "),
            ("host: sso.example.com:443", f'host: "127.0.0.1:{made.port}"'),
            ("policies:\n                          tls: {}", tls(made.host)),
            ("127.0.0.1:3000", f"127.0.0.1:{origin}"),
        ):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        async with serving(text) as proxy:
            url = f"http://127.0.0.1:{proxy.port}/"
            refused = await curl("-i", url)
            assert refused.startswith("HTTP/1.1 401 ") and "www-authenticate: bearer" in refused.lower()
            for audience, status in (("api://shop", "200"), ("api://other", "401")):
                token = KEY.token(iss=issuer, aud=audience, exp=int(time.time()) + DAY)
                found = await curl("-i", "-H", f"Authorization: Bearer {token}", url)
                assert found.startswith(f"HTTP/1.1 {status} "), (found, made.asked, proxy.log_lines())


async def curl(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec("curl", "-sS", *arguments, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    return output.decode()


@asynccontextmanager
async def answering() -> AsyncIterator[int]:
    """A server that says OK: its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("issuer", "keys"), PROVIDERS.values(), ids=PROVIDERS)
async def test_keys_over_https(issuer: str, keys: str, tmp_path: Path) -> None:
    async with provider(issuer, keys, tmp_path) as made:
        path = "/" + keys.split("/", 3)[3]
        made.documents[f"https://127.0.0.1:{made.port}{path}"] = made.documents[keys]
        jwks = f'{{remote: {{host: "127.0.0.1:{made.port}", jwksPath: "{path}", {tls(made.host)}}}}}'
        async with serving(file(issuer, jwks)) as proxy:
            assert await answer(proxy, issuer) == (200, b"ann")


async def test_keys_of_a_server_that_is_not_believed(tmp_path: Path) -> None:
    issuer, keys = PROVIDERS["Keycloak"]
    async with provider(issuer, keys, tmp_path) as made:
        jwks = f'{{discovery: {{host: "127.0.0.1:{made.port}", {tls("other.example")}}}}}'
        async with serving(file(issuer, jwks)) as proxy:
            assert (await answer(proxy, issuer))[0] == 401
            assert made.asked == []


async def test_a_new_key_is_found(tmp_path: Path) -> None:
    issuer, keys = PROVIDERS["Auth0"]
    async with provider(issuer, keys, tmp_path) as made:
        jwks = f'{{discovery: {{host: "127.0.0.1:{made.port}", cacheDuration: 1s, {tls(made.host)}}}}}'
        async with serving(file(issuer, jwks)) as proxy:
            assert await answer(proxy, issuer) == (200, b"ann")
            new = Issuer("RS256", kid="k2")
            made.documents[keys] = key_set(new.key()).encode()
            proxy.advance(10)
            assert await answer(proxy, issuer, new) == (200, b"ann")
            await until(lambda: len(made.asked) >= 4, "metadata and keys are fetched anew")


ORIGINS = {
    # kind of provider: its issuer, where its metadata is, and where clients register
    "Keycloak": (
        KEYCLOAK,
        f"{KEYCLOAK}/.well-known/openid-configuration",
        f"{KEYCLOAK}/clients-registrations/openid-connect",
    ),
    "Auth0": (AUTH0, f"{AUTH0}.well-known/oauth-authorization-server", f"{AUTH0}oidc/register"),
    "Okta": (OKTA, f"{OKTA}/.well-known/openid-configuration", "https://shop.okta.com/oauth2/v1/clients"),
}


@pytest.mark.parametrize(("kind", "places"), ORIGINS.items(), ids=ORIGINS)
async def test_metadata_for_mcp_clients(kind: str, places: tuple[str, str, str], tmp_path: Path) -> None:
    """What an MCP client does: a refusal leads to the resource, that to the server, and there it registers."""
    issuer, metadata, registration = places
    async with provider(issuer, f"{issuer}/keys", tmp_path) as made:
        root = f"https://{made.host}"
        made.documents[metadata] = json.dumps(
            {
                "issuer": issuer,
                "jwks_uri": f"{issuer}/keys",
                "authorization_endpoint": f"{root}/authorize",
                "token_endpoint": f"{root}/token",
                "registration_endpoint": registration,
            }
        ).encode()
        made.documents[registration] = b'{"client_id": "made"}'
        path = f"https://127.0.0.1:{made.port}/keys"
        made.documents[path] = made.documents[f"{issuer}/keys"]
        jwks = f'{{remote: {{host: "127.0.0.1:{made.port}", jwksPath: /keys, {tls(made.host)}}}}}'
        text = file(issuer, jwks).replace("jwtAuthentication: {", f"jwtAuthentication: {{mcp: {{provider: {kind}}}, ")
        text = text.replace(f"jwks: {jwks}", f"audiences: [shop], jwks: {jwks}")
        async with serving(text) as proxy:
            refused = (await proxy.ask("GET", "/mcp")).decode()
            pointer = refused.split('resource_metadata="')[1].split('"')[0]
            assert pointer == "http://a/.well-known/oauth-protected-resource/mcp"
            (server,) = json.loads(_body(await proxy.ask("GET", pointer.removeprefix("http://a"))))[
                "authorization_servers"
            ]
            assert server == "http://a/mcp"
            where = f"/.well-known/oauth-authorization-server{server.removeprefix('http://a')}"
            found = json.loads(_body(await proxy.ask("GET", where)))
            assert (found["issuer"], found["token_endpoint"]) == (server, f"{root}/token")
            assert found["authorization_endpoint"].endswith("?audience=shop") is (kind != "Keycloak")
            target = found["registration_endpoint"]
            if kind == "Auth0":  # it registers clients of any origin itself
                assert target == registration
                return
            answer = await proxy.ask("POST", target.removeprefix("http://a"), b'{"redirect_uris": []}')
            assert json.loads(_body(answer)) == {"client_id": "made"}
            assert made.asked[-1] == registration


def _body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]
