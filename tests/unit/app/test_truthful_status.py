"""What `gatewright status` says of a folder: causes, not consequences, and each once, where it belongs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane import app as app_
from controlplane.cli import exits
from controlplane.cli.__main__ import main
from controlplane.settings import Settings
from dataplane.chain.filter import Refused
from dataplane.filters import registry
from dataplane.settings import Address, Drain
from tests.fakes import memory_workers
from tests.fakes.memory_agent import agent, ask, config
from tests.fakes.web_objects import OBJECTS, route
from tests.harness.ports import reserve
from tests.harness.waiting import until

LOOPBACK = ("127.0.0.1", 0)

GUARD = """\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: keys}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  traffic: {apiKeyAuthentication: {secretRef: {name: absent}}}
"""


@asynccontextmanager
async def controller(folder: Path, text: str) -> AsyncIterator[app_.App]:
    """Over a folder with this text."""
    objects = folder / "objects"
    objects.mkdir()
    (objects / "web.yaml").write_text(text)
    async with app_.running(Settings(objects, folder / "xds.sock", LOOPBACK, LOOPBACK)) as started:
        await started.pipeline.ready.wait()
        yield started


async def status(app: app_.App, *words: str) -> int:
    return await asyncio.to_thread(main, ["status", *words, "--admin", f"127.0.0.1:{app.admin_port}"])


def world(port: int, listeners: str = "", upstream: int = 1) -> str:
    """With one route, and other listeners of the Gateway where they are given."""
    text = OBJECTS.format(port=port, upstream=upstream) + route("all", "/")
    return text.replace(f"{{name: http, protocol: HTTP, port: {port}}}", listeners) if listeners else text


async def below(folder: Path, capsys: pytest.CaptureFixture[str], listeners: str) -> tuple[str, str]:
    """What status says of the Gateway and of the route below it."""
    async with controller(folder, world(8080, listeners)) as app:
        assert await status(app, "gateway/web") == exits.OK
        gateway = capsys.readouterr().out
        assert await status(app, "httproute/all", "--exit-code") == exits.CONFIG
        return gateway, capsys.readouterr().out


async def test_a_route_below_a_listener_without_a_certificate_names_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway, found = await below(
        tmp_path, capsys, "{name: s, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}}"
    )
    cause = "no certificate can be used, so every handshake fails"
    assert f"listener s: Programmed=False Invalid: {cause}" in gateway
    assert f"parent web: Programmed=False Invalid: no listener serves it: listener s: {cause}\n" in found
    assert "admits" not in found


@pytest.mark.parametrize(
    ("listeners", "cause"),
    [
        (
            "{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: TCP}",
            "listener a: conflicts with listener b on port 80: their protocols cannot share a port",
        ),
        (
            "{name: admin, port: 15000, protocol: HTTP}",
            "listener admin: port 15000 is reserved: the proxy serves its admin page there",
        ),
    ],
)
async def test_a_route_below_refused_listeners_says_that_nobody_serves_it_and_why(
    listeners: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = await below(tmp_path, capsys, listeners)
    assert f"parent web: Programmed=False Invalid: no listener serves it: {cause}\n" in found


async def test_a_missing_secret_is_told_of_the_policy_and_not_of_proxies_that_serve_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = reserve()
    under: dict[str, Any] = {
        "xds": Address(path=str(tmp_path / "xds.sock")),
        "gateway": "default/web",
        "drain": Drain(0.0, 1.0),
    }
    async with controller(tmp_path, world(port) + GUARD) as app, agent(tmp_path, config(reserve(), 1), **under):
        newest = app.pipeline.snapshots.newest("default/web")

        def rows() -> list[str]:
            return [row.acknowledged_version for row in app.pipeline.fleet.proxies(lambda _: newest.sequence)]

        await until(lambda: rows() == [newest.version], "the state is acknowledged")
        assert (await ask(port)).status == 503
        await status(app, "-o", "json")
        body = json.loads(capsys.readouterr().out)
        assert [(row["state"], row["lag_seconds"], row["refusals"]) for row in body["proxies"]] == [("Synced", 0.0, [])]
        await status(app, "gatewaypolicy/keys")
        shown = capsys.readouterr().out
        assert "ancestor default/web: ResolvedRefs=False SecretNotFound: Secret default/absent does not exist" in shown
        assert "Rejected" not in shown


@pytest.mark.parametrize("name", ["httproute/none", "gateway/other/web", "toaster", "toaster/bread"])
async def test_what_is_absent_or_unknown_is_said_and_fails(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with controller(tmp_path, world(8080)) as app:
        assert await status(app, name) == exits.DEPENDENCY
        assert capsys.readouterr().err == f"gatewright: {name}: there is no such object\n"
        assert await status(app, "httproute/all", name, "--exit-code") == exits.DEPENDENCY


EDGE = """\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: edge}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  frontend: {proxyProtocol: {version: V1}}
"""


async def test_what_a_proxy_cannot_carry_out_of_the_rules_for_connections_is_a_condition_of_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of an older version meets a value that it does not know: it refuses connections, and says so."""

    def refuse(_config: Any, _env: Any) -> Any:
        raise Refused("version: unknown value 99")

    older = tuple(replace(row, build=refuse) if row.name == "proxy_protocol" else row for row in registry.ROWS)
    monkeypatch.setattr(memory_workers, "ROWS", older)
    port = reserve()
    under: dict[str, Any] = {
        "xds": Address(path=str(tmp_path / "xds.sock")),
        "gateway": "default/web",
        "drain": Drain(0.0, 1.0),
    }
    async with controller(tmp_path, world(port) + EDGE) as app, agent(tmp_path, config(reserve(), 1), **under):
        await until(lambda: any(row.refusals for row in app.pipeline.fleet.proxies(lambda _: 0)), "the refusal")
        assert (await ask(port)).status == 0, "closed without an answer"
        await until(lambda: "Rejected" in str(app.pipeline.program.status("GatewayPolicy", "default", "edge")))
        assert await status(app, "--exit-code") == exits.CONFIG
        shown = capsys.readouterr().out
        assert "policy/default/edge/proxy_protocol: proxy_protocol: version: unknown value 99" in shown
        policy = shown.partition("GatewayPolicy  default/edge")[2].partition("\nGateway")[0]
        assert "unknown value 99" in policy
