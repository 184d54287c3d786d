"""Endpoints that are not well, from a proxy to `gatewright status` and its own page: a real controller, a real agent,
real TLS toward a backend that a proxy does not trust, or that answers badly."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import exits
from controlplane.xds.protocol import reports
from dataplane.settings import Address, Drain
from tests.fakes.certificates import Authority
from tests.fakes.memory_agent import MemoryAgent, agent, ask, config
from tests.fakes.web_objects import OBJECTS, route
from tests.harness.ports import reserve
from tests.harness.waiting import until
from tests.unit.app.test_truthful_status import controller, status

OURS, OTHERS = Authority(), Authority("somebody else")
SHOP = OTHERS.issue("shop.example")
BACKEND = "backend/service/default/origin/80"


def tls_policy() -> str:
    """The proxy trusts an authority that the server is not of."""
    lines = OURS.pem.decode().replace("\n", "\n    ")
    return f"""\
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: authority}}
data:
  ca.crt: |
    {lines}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: origin}}
spec:
  targetRefs: [{{group: "", kind: Service, name: origin}}]
  validation:
    hostname: shop.example
    caCertificateRefs: [{{group: "", kind: ConfigMap, name: authority}}]
"""


HEALTH = """\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: health}
spec:
  targetRefs: [{group: "", kind: Service, name: origin}]
  backend: {health: {eviction: {duration: 300s}}}
"""


@asynccontextmanager
async def secure_server(folder: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = folder / "pair.pem"
    pair.write_bytes(SHOP.chain + SHOP.key)
    context.load_cert_chain(pair)
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def failing_server() -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Bad\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def under(folder: Path) -> dict[str, Any]:
    return {"xds": Address(path=str(folder / "xds.sock")), "gateway": "default/web", "drain": Drain(0.0, 1.0)}


async def served(proxy: MemoryAgent) -> None:
    await until(lambda: proxy.agent.xds is not None and proxy.agent.xds.version, "a state")


async def rows(
    capsys: pytest.CaptureFixture[str], ask_for: Callable[[], Any], wanted: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Of `status -o json`, once they are as `wanted`."""
    found: list[dict[str, Any]] = []

    async def is_as_wanted() -> bool:
        await ask_for()
        (proxy,) = json.loads(capsys.readouterr().out)["proxies"]
        found[:] = proxy["endpoints"]
        return wanted(found)

    await until(is_as_wanted, "endpoints as wanted")
    return found


async def test_a_handshake_that_fails_is_a_row_with_peer_name_and_openssl_s_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = reserve()
    async with secure_server(tmp_path) as upstream:
        text = OBJECTS.format(port=port, upstream=upstream) + route("all", "/") + tls_policy()
        async with controller(tmp_path, text) as app, agent(tmp_path, config(reserve(), 1), **under(tmp_path)) as proxy:
            await served(proxy)
            assert (await ask(port)).status == 503
            found = await rows(capsys, lambda: status(app, "-o", "json"), bool)
            (row,) = found
            assert (row["endpoint"], row["backend"]) == (f"127.0.0.1:{upstream}", BACKEND)
            assert (row["server_name"], row["failures"]) == ("shop.example", 1)
            assert "certificate verify failed" in row["reason"] or "unable to get local issuer" in row["reason"]
            assert row["last_failure"] > 1e9
            assert await status(app) == exits.OK
            shown = capsys.readouterr().out
            assert f"127.0.0.1:{upstream} service/default/origin/80 Unreachable" in " ".join(shown.split())
            assert "TLS with shop.example failed once, last at 20" in shown and row["reason"] in shown
            (on_page,) = (await proxy.dump())["endpoints_in_trouble"]
            assert (on_page["endpoint"], on_page["backend"]) == (row["endpoint"], BACKEND)
            assert (on_page["server_name"], on_page["reason"]) == ("shop.example", row["reason"])


async def test_an_evicted_endpoint_is_a_row_until_nothing_watches_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = reserve()
    async with failing_server() as upstream:
        text = OBJECTS.format(port=port, upstream=upstream) + route("all", "/")
        async with (
            controller(tmp_path, text + HEALTH) as app,
            agent(tmp_path, config(reserve(), 1), **under(tmp_path)) as proxy,
        ):
            await served(proxy)
            assert (await ask(port)).status == 500
            (row,) = await rows(capsys, lambda: status(app, "-o", "json"), bool)
            assert (row["backend"], row["unhealthy_percent"], row["failures"]) == (BACKEND, 30, 0)
            assert row["evicted_until"] > 1e9
            await status(app)
            shown = capsys.readouterr().out
            assert "Evicted until 20" in shown and "failed" not in shown
            (on_page,) = (await proxy.dump())["endpoints_in_trouble"]
            assert on_page["evicted_for_seconds"] > 200
            gauge = f'gatewright_endpoint_unhealthy_percent{{backend="{BACKEND}",endpoint="127.0.0.1:{upstream}"}}'
            assert await proxy.metric(gauge) == 30
            (tmp_path / "objects" / "web.yaml").write_text(text)
            await rows(capsys, lambda: status(app, "-o", "json"), lambda found: not found)
            assert (await proxy.dump())["endpoints_in_trouble"] == []
            assert await proxy.metric(gauge) == 0


async def test_a_proxy_says_nothing_of_backends_that_are_none_of_its_gateway_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with controller(tmp_path, OBJECTS.format(port=8080, upstream=1) + route("all", "/")) as app:
        proxy = app.pipeline.fleet.connect("default/web/hostile", "default/web", "")
        theirs = {"endpoint": "a", "backend": "backend/service/other/x/1"}
        app.pipeline.fleet.hear_report(proxy, json.dumps([theirs, {"endpoint": "b", "backend": BACKEND}]))
        await status(app, "-o", "json")
        (row,) = json.loads(capsys.readouterr().out)["proxies"]
        assert [each["endpoint"] for each in row["endpoints"]] == ["b"]
        assert reports.KEY == "gatewright.endpoints"
        app.pipeline.fleet.disconnect(proxy)
