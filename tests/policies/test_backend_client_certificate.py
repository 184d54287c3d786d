"""A Gateway's own certificate for backends: from its YAML to what a server of TLS sees, and to its conditions."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_client_certificate
from gatewright.wire.v1 import backend_policy_pb2, resource_pb2
from tests.fakes.certificates import Authority, Issued
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.unit.translate.golden import World

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("localhost")
GATEWAYS = AUTHORITY.issue("gateway.example", client=True)
BACKENDS = AUTHORITY.issue("backend.example", client=True)


def secret(name: str, pair: Issued, namespace: str = "default") -> str:
    crt, key = (base64.b64encode(text).decode() for text in (pair.chain, pair.key))
    return f"""
---
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: {namespace}}}
data: {{tls.crt: {crt}, tls.key: {key}}}
"""


def objects(port: int = 9000, reference: str = "{name: own}", tls: str = "") -> str:
    authority = AUTHORITY.pem.decode().replace("\n", "\n    ")
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: gatewright}}
spec: {{controllerName: gatewright.dev/controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec:
  gatewayClassName: gatewright
  tls: {{backend: {{clientCertificateRef: {reference}}}}}
  listeners: [{{name: http, port: 8080, protocol: HTTP}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: authority}}
data:
  ca.crt: |
    {authority}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {{name: shop}}
spec:
  static: {{host: localhost, port: {port}}}
  policies: {{tls: {{caCertificateRefs: [{{name: authority}}]{tls}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: shop}}
spec:
  parentRefs: [{{name: web}}]
  rules: [{{backendRefs: [{{group: gatewright.dev, kind: GatewayBackend, name: shop}}]}}]
"""


# --- what a server sees


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[tuple[int, list[str]]]:
    """A server that takes clients with a certificate alone: its port, and the names in those that came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (folder / "server.pem").write_bytes(SERVER.chain + SERVER.key)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    names: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate: Any = writer.get_extra_info("ssl_object").getpeercert()
        names.extend(name for kind, name in certificate["subjectAltName"] if kind == "DNS")
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server, asyncio.timeout(PATIENCE):
        yield server.sockets[0].getsockname()[1], names


def proxy_of(world: World) -> Any:
    """A proxy with what the control plane made of these objects."""
    text = "binds: [{port: 8080, listeners: [{routes: [{backends: [{host: 'localhost:1'}]}]}]}]"
    resources = [resource_pb2.Resource.FromString(data) for batch in world.batches for _, _, _, data in batch if data]
    return serving(text, prepare=lambda _: resources)


async def answer(proxy: SocketProxy) -> int:
    return int((await proxy.get()).split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("tls", "expected"),
    [("", "gateway.example"), (", mtlsCertificateRef: [{name: other}]", "backend.example")],
    ids=["the Gateway's", "the backend's own"],
)
async def test_a_server_that_asks_sees_it(tls: str, expected: str, tmp_path: Path) -> None:
    async with asking(tmp_path) as (port, names):
        world = World()
        world.put(objects(port, tls=tls) + secret("own", GATEWAYS) + secret("other", BACKENDS))
        async with proxy_of(world) as proxy:
            assert (await answer(proxy), names) == (200, [expected])


async def test_where_it_cannot_be_used_nothing_is_sent(tmp_path: Path) -> None:
    async with asking(tmp_path) as (port, names):
        world = World()
        world.put(objects(port))
        async with proxy_of(world) as proxy:
            assert (await answer(proxy), names) == (500, [])
            line = proxy.log_line()
            assert "BackendRefused" in line and "spec.tls.backend.clientCertificateRef" in line
            assert "Secret default/own does not exist" in line


# --- conditions

ANOTHER = secret("far", GATEWAYS, "vault")
GRANT = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: grant, namespace: vault}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}]
  to: [{group: "", kind: Secret}]
"""
MISMATCHED = secret("own", Issued(GATEWAYS.chain, BACKENDS.key, GATEWAYS.certificate))


@pytest.mark.parametrize(
    ("reference", "more", "reason", "message"),
    [
        ("{name: own}", secret("own", GATEWAYS), "ResolvedRefs", ""),
        ("{name: own}", "", "InvalidClientCertificateRef", "Secret default/own does not exist"),
        ("{name: own}", MISMATCHED, "InvalidClientCertificateRef", "tls.key"),
        ("{name: own, kind: ConfigMap}", "", "InvalidClientCertificateRef", "certificates are in Secrets"),
        ("{name: own, group: example.com}", "", "InvalidClientCertificateRef", "certificates are in Secrets"),
        ("{name: far, namespace: vault}", ANOTHER, "RefNotPermitted", "ReferenceGrant"),
        ("{name: none, namespace: vault}", "", "RefNotPermitted", "ReferenceGrant"),
        ("{name: none, namespace: vault}", GRANT, "InvalidClientCertificateRef", "vault/none does not exist"),
        ("{name: far, namespace: vault}", ANOTHER + GRANT, "ResolvedRefs", ""),
    ],
)
def test_what_the_gateway_says(reference: str, more: str, reason: str, message: str) -> None:
    world = World()
    world.put(objects(reference=reference) + more)
    status = world.program.status("Gateway", "default", "web")
    assert status is not None
    found = {each["type"]: each for each in status["conditions"]}
    refs = found["ResolvedRefs"]
    assert (refs["status"], refs["reason"]) == ("True" if reason == "ResolvedRefs" else "False", reason)
    assert message in refs["message"]
    assert (found["Accepted"]["status"], found["Accepted"]["reason"]) == ("True", "Accepted")


def test_a_gateway_without_one_says_nothing_of_it() -> None:
    world = World()
    world.put(objects().replace("  tls: {backend: {clientCertificateRef: {name: own}}}\n", ""))
    status = world.program.status("Gateway", "default", "web")
    assert status is not None
    assert {each["type"] for each in status["conditions"]} == {"Accepted", "Programmed"}


def test_what_a_proxy_refuses_is_said_by_the_gateway() -> None:
    world = World()
    world.put(objects() + secret("own", GATEWAYS))
    world.program.fleet("default/web", None)
    world.program.refuse("default/web", {"policy/default/gateway:web/backend_client_certificate": "bad key"})
    status = world.program.status("Gateway", "default", "web")
    assert status is not None
    (programmed,) = [each for each in status["conditions"] if each["type"] == "Programmed"]
    assert programmed["status"] == "False" and "bad key" in programmed["message"]


# --- the builder


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({}, "no entry"),
        ({"tls.crt": GATEWAYS.chain}, "no entry"),
        ({"tls.crt": GATEWAYS.chain, "tls.key": BACKENDS.key}, "key"),
        ({"tls.crt": b"-----BEGIN CERTIFICATE-----", "tls.key": b"x"}, "certificate"),
    ],
)
def test_what_cannot_be_used_is_refused(held: dict[str, bytes], why: str) -> None:
    config = backend_policy_pb2.BackendClientCertificate(certificate="secret/default/own/tls")
    with pytest.raises(Refused, match=why):
        backend_client_certificate.build(config, Env(lambda: 0.0, lambda: 0.0, secret=lambda _: held))
