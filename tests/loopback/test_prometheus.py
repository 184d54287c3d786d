"""A real Prometheus reads the page of a real proxy, answers what dashboards ask, and knows the alert rules."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.collector import collecting
from tests.fakes.proxy_process import get, origin, running
from tests.fakes.telemetry_peers import EXAMPLE, built
from tests.harness.waiting import until
from tests.rules.test_dashboards import expressions

FILE = """
frontendPolicies:
  tracing: {{host: "127.0.0.1:{collector}", randomSampling: "true"}}
  metrics: {{attributes: {{add: [{{name: shop.name, expression: '"books"'}}]}}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{{host: "127.0.0.1:{origin}"}}]
"""
SCRAPES = """
global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}
rule_files: ["{rules}"]
scrape_configs:
- job_name: proxy
  static_configs: [{{targets: ["127.0.0.1:{stats}"]}}]
"""


async def checked(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def all_found(root: Path) -> str:
    """What the tool says when it has read each alert of the file."""
    return f"{(root / 'manifests/prometheus/alerts.yaml').read_text().count('alert: ')} rules found"


async def test_alert_rules_are_rules_and_fire(tool: Callable[[str], str], root: Path) -> None:
    folder = root / "manifests/prometheus"
    assert all_found(root) in await checked(tool("promtool"), "check", "rules", str(folder / "alerts.yaml"))
    await checked(tool("promtool"), "test", "rules", str(folder / "tests.yaml"))


async def test_the_example_s_configuration_is_one(tool: Callable[[str], str], root: Path) -> None:
    out = await checked(tool("promtool"), "check", "config", str(EXAMPLE / "prometheus.conf"))
    assert all_found(root) in out


async def test_dashboards_are_what_grafana_reads(root: Path) -> None:
    """By Grafana's published types: no field that they do not know, none of another type, none missing."""
    files = sorted(map(str, (root / "manifests/grafana").glob("*.json")))
    assert len(files) == 3 and await checked(built("dashboards"), *files) == ""


async def test_a_dashboard_that_is_none_is_named(tmp_path: Path, root: Path) -> None:
    text = (root / "manifests/grafana/traffic.json").read_text()
    (tmp_path / "bad.json").write_text(
        text.replace('"timezone"', '"timezoone"').replace('"expr": "', '"expr": 5, "x": "', 1)
    )
    with pytest.raises(AssertionError) as caught:
        await checked(built("dashboards"), str(tmp_path / "bad.json"))
    words = str(caught.value)
    assert (
        "unexpected field 'timezoone'" in words and "panels[0].targets[0].expr: json: cannot unmarshal number" in words
    )


async def linted(promtool: str, page: str) -> str:
    """What `promtool check metrics` says of a page; empty: nothing."""
    process = await asyncio.create_subprocess_exec(
        promtool,
        "check",
        "metrics",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate(page.encode())
    return out.decode()


@asynccontextmanager
async def prometheus(
    program: str, folder: Path, stats: int, rules: Path, flags: Sequence[str] = ()
) -> AsyncIterator[int]:
    """Its port, once it is ready."""
    (folder / "prometheus.yaml").write_text(SCRAPES.format(stats=stats, rules=rules))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
        *flags,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def is_ready() -> bool:
        try:
            return (await get(port, "/-/ready"))[0] == 200
        except OSError:
            return False

    try:
        await until(is_ready, "Prometheus is ready")
        yield port
    finally:
        process.terminate()
        await process.wait()


async def answer(port: int, path: str) -> Any:
    """Any: what the API answers, whose shape each question has of its own."""
    status, body = await get(port, path)
    found = json.loads(body[body.index("{") : body.rindex("}") + 1])
    assert (status, found["status"]) == (200, "success"), body
    return found["data"]


async def test_it_answers_what_dashboards_ask(tool: Callable[[str], str], root: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with collecting() as collector:
        async with origin() as to:
            config.write_text(FILE.format(origin=to, collector=collector.grpc_port))
            await ask(tool("prometheus"), tool("promtool"), config, root / "manifests/prometheus/alerts.yaml")


async def ask(program: str, promtool: str, config: Path, rules: Path) -> None:
    """All that dashboards ask, of a proxy that has served a request."""
    async with running("-f", str(config), workers=1) as proxy:
        await proxy.ready()
        stats = await proxy.page("stats")
        async with prometheus(program, config.parent, stats, rules) as port:
            assert (await get(proxy.at(8080), "/a"))[0] == 200

            async def counted() -> bool:
                text = 'gatewright_requests_total{shop_name="books",status="200"}'
                found = (await answer(port, f"/api/v1/query?query={quote(text)}"))["result"]
                return bool(found) and float(found[0]["value"][1]) == 1

            await until(counted, "the request is counted")
            for where, text in expressions():
                plain = text.replace("$gateway", ".*").replace("$__rate_interval", "1m")
                assert "result" in await answer(port, f"/api/v1/query?query={quote(plain)}"), where

            async def exemplars() -> list[str]:
                name = "gatewright_request_duration_seconds_bucket"
                data = await answer(port, f"/api/v1/query_exemplars?query={name}&start=0&end=9999999999")
                return [each["labels"]["trace_id"] for series in data for each in series["exemplars"]]

            assert await linted(promtool, (await get(stats, "/metrics"))[1]) == ""
            (trace,) = set(await until(exemplars, "an exemplar"))
            assert re.search(rf" trace\.id={trace} ", proxy.log()) is not None
            groups = (await answer(port, "/api/v1/rules"))["groups"]
            assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
