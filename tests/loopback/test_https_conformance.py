"""What Gateway API's conformance suite asks of HTTPS listeners, in our words: objects in a folder, a real controller
and proxy, clients over TLS (GatewayFrontendClientCertificateValidation, its InsecureFallback, an invalid default,
HTTPRouteHTTPSListenerDetectMisdirectedRequests)."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.certificates import Authority, Issued
from tests.fakes.controller_process import controller
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE

SERVERS, ONE, TWO = Authority("servers"), Authority("one"), Authority("two")
NAMES = ("example.org", "second-example.org", "*.wildcard.org", "unknown-example.org")
GATEWAY_API = "gateway.networking.k8s.io/v1"


def item(kind: str, name: str, api: str = GATEWAY_API, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def secret(name: str, issued: Issued) -> dict[str, Any]:
    data = {entry: value.decode() for entry, value in issued.entries.items()}
    return item("Secret", name, "v1", type="kubernetes.io/tls", stringData=data)


def authority(name: str, found: Authority) -> dict[str, Any]:
    return item("ConfigMap", name, "v1", data={"ca.crt": found.pem.decode()})


def listener(name: str, port: int, hostname: str = "", protocol: str = "HTTPS") -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "port": port, "protocol": protocol}
    if hostname:
        made["hostname"] = hostname
    if protocol == "HTTPS":
        made["tls"] = {"certificateRefs": [{"name": "server"}]}
    return made


def validation(config_map: str, mode: str = "AllowValidOnly") -> dict[str, Any]:
    reference = {"group": "", "kind": "ConfigMap", "name": config_map}
    return {"validation": {"caCertificateRefs": [reference], "mode": mode}}


def world(*listeners: dict[str, Any], default: Any = None, per_port: Any = None) -> list[dict[str, Any]]:
    """One Gateway, and a route at each listener that says the listener's name."""
    spec: dict[str, Any] = {"gatewayClassName": "gatewright", "listeners": listeners}
    if default is not None:
        ports = [{"port": port, "tls": tls} for port, tls in (per_port or {}).items()]
        spec["tls"] = {"frontend": {"default": default, "perPort": ports}}
    found = [
        item("GatewayClass", "gatewright", spec={"controllerName": "gatewright.dev/controller"}),
        item("Gateway", "edge", spec=spec),
        secret("server", SERVERS.issue(*NAMES)),
        authority("one", ONE),
        authority("two", TWO),
    ]
    for each in listeners:
        name = each["name"]
        parent = {"name": "edge", "sectionName": name}
        found.append(item("HTTPRoute", name, spec={"parentRefs": [parent], "rules": [{"name": "all"}]}))
        target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name}
        traffic = {"directResponse": {"status": 200, "body": name}}
        policy = {"targetRefs": [target], "traffic": traffic}
        found.append(item("GatewayPolicy", name, "gatewright.dev/v1alpha1", spec=policy))
    return found


@asynccontextmanager
async def served(folder: Path, objects: list[dict[str, Any]]) -> AsyncIterator[tuple[Proxy, int]]:
    """A proxy, and the controller's admin port."""
    files, socket = folder / "objects", folder / "xds.sock"
    files.mkdir()
    (files / "all.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
    flags = ("--xds", f"unix:{socket}", "--gateway", "default/edge", "--any-port")
    async with controller(files, socket) as admin, running(*flags) as proxy:
        await proxy.ready()
        yield proxy, admin


def client(folder: Path, issued: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=SERVERS.pem.decode())
    if issued is not None:
        for name, text in (("client.crt", issued.chain), ("client.key", issued.key)):
            (folder / name).write_bytes(text)
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


async def ask(port: int, context: ssl.SSLContext | None, name: str = "example.org", host: str = "") -> tuple[int, str]:
    """Status and body. Raises OSError when there is no answer."""
    async with asyncio.timeout(PATIENCE):
        server_name = name if context is not None else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_name)
        try:
            writer.write(f"GET / HTTP/1.1\r\nhost: {host or name}\r\nconnection: close\r\n\r\n".encode())
            answer = (await reader.read()).decode()
        finally:
            writer.close()
    if not answer:
        raise ConnectionResetError("closed without an answer")
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def conditions(admin: int) -> str:
    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/api/status", timeout=PATIENCE) as found:
            return str(found.read().decode())

    return await asyncio.to_thread(page)


async def test_clients_are_verified_by_the_default_and_by_what_is_said_of_a_port(tmp_path: Path) -> None:
    objects = world(
        listener("default", 443), listener("own", 8443), default=validation("one"), per_port={8443: validation("two")}
    )
    of_one, of_two = ONE.issue("a", client=True), TWO.issue("b", client=True)
    async with served(tmp_path, objects) as (proxy, admin):
        default, own = proxy.at(443), proxy.at(8443)
        assert await ask(default, client(tmp_path, of_one)) == (200, "default")
        assert await ask(own, client(tmp_path, of_two)) == (200, "own")
        for port, wrong in ((default, of_two), (own, of_one), (default, None), (own, None)):
            with pytest.raises(OSError):
                await ask(port, client(tmp_path, wrong))
        assert "InsecureFrontendValidationMode" not in await conditions(admin)


async def test_in_the_insecure_mode_everybody_is_served_and_the_gateway_says_so(tmp_path: Path) -> None:
    loose = validation("two", "AllowInsecureFallback")
    objects = world(listener("default", 443), listener("own", 8443), default=validation("one"), per_port={8443: loose})
    async with served(tmp_path, objects) as (proxy, admin):
        own = proxy.at(8443)
        for issued in (None, ONE.issue("a", client=True), TWO.issue("b", client=True)):
            assert await ask(own, client(tmp_path, issued)) == (200, "own")
        with pytest.raises(OSError):
            await ask(proxy.at(443), client(tmp_path))
        assert "InsecureFrontendValidationMode" in await conditions(admin)


async def test_a_default_that_cannot_be_used_breaks_https_alone(tmp_path: Path) -> None:
    objects = world(listener("https", 443), listener("http", 80, protocol="HTTP"), default=validation("none"))
    async with served(tmp_path, objects) as (proxy, admin):
        assert await ask(proxy.at(80), None) == (200, "http")
        assert "BIND_443" not in proxy.log() and "NoValidCACertificate" in await conditions(admin)


MISDIRECTED: list[tuple[str, str, int, str]] = [
    ("example.org", "example.org", 200, "first"),
    ("example.org", "second-example.org", 421, ""),
    ("example.org", "a.wildcard.org", 421, ""),
    ("example.org", "unknown-example.org", 421, ""),  # the listener without a hostname would have it
    ("second-example.org", "second-example.org", 200, "second"),
    ("second-example.org", "example.org", 421, ""),
    ("a.wildcard.org", "a.wildcard.org", 200, "wildcard"),
    ("a.wildcard.org", "b.wildcard.org", 200, "wildcard"),
    ("a.wildcard.org", "example.org", 421, ""),
    ("unknown-example.org", "unknown-example.org", 200, "any"),
    ("unknown-example.org", "example.org", 421, ""),
]
"""Server name, host, status, and which listener answers."""


async def test_a_request_for_the_host_of_another_listener_is_misdirected(tmp_path: Path) -> None:
    hosts = {"first": "example.org", "second": "second-example.org", "wildcard": "*.wildcard.org", "any": ""}
    objects = world(*(listener(name, 443, host) for name, host in hosts.items()))
    async with served(tmp_path, objects) as (proxy, _):
        port, context = proxy.at(443), client(tmp_path)
        found = [(name, host, *await ask(port, context, name, host)) for name, host, _, _ in MISDIRECTED]
        shown = [(name, host, status, body if status == 200 else "") for name, host, status, body in found]
        assert shown == MISDIRECTED
