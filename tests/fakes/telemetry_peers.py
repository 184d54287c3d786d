"""Real programs that read telemetry: what `scripts/telemetry` has built, on ports of the test, until a block ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ALL, ROOT
from tests.fakes.proxy_process import get
from tests.harness.ports import reserve
from tests.harness.processes import Program, started
from tests.harness.waiting import until

EXAMPLE = ROOT / "examples/telemetry"


def built(name: str) -> str:
    """The path of a program; only a full run builds it, else the running test is skipped where it is absent."""
    command = [str(ROOT / "scripts/telemetry"), *([name] if ALL else ["--built", name])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"scripts/telemetry has no {name} {done.stderr.strip()[-300:]}".rstrip())
    return done.stdout.strip()


def moved(text: str, ports: Mapping[int, int]) -> str:
    """A file of the example with other ports in place of its own. Each must be there."""
    for port, other in ports.items():
        assert f":{port}" in text, port
        text = text.replace(f":{port}", f":{other}")
    return text


@asynccontextmanager
async def serving(folder: Path, name: str, command: Sequence[str], port: int, path: str) -> AsyncIterator[Program]:
    """A program, once a page of it answers."""
    async with started(folder, name, command, preloaded=False, cwd=str(folder)) as program:

        async def is_ready() -> bool:
            assert program.returncode is None, program.log()
            try:
                return (await get(port, path))[0] < 500
            except OSError:
                return False

        await until(is_ready, f"{name} is ready")
        yield program


class Collector:
    """OpenTelemetry's, with the exporters `file` (to `records.jsonl`) and, of the example, `prometheus`."""

    def __init__(self, folder: Path, grpc: int, http: int, page: int) -> None:
        self.grpc, self.http, self.page = grpc, http, page
        self.file = folder / "records.jsonl"

    def documents(self, kind: str) -> list[dict[str, Any]]:
        """Of `resourceSpans`, `resourceLogs` or `resourceMetrics`: what came, a resource each (Any: OTLP's JSON)."""
        text = self.file.read_text() if self.file.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # the exporter writes blocks, not lines
        return [each for line in whole.splitlines() for each in json.loads(line).get(kind, ())]

    def spans(self) -> list[dict[str, Any]]:
        return self._of("resourceSpans", "scopeSpans", "spans")

    def logs(self) -> list[dict[str, Any]]:
        return self._of("resourceLogs", "scopeLogs", "logRecords")

    def metrics(self) -> list[dict[str, Any]]:
        return self._of("resourceMetrics", "scopeMetrics", "metrics")

    def _of(self, kind: str, scopes: str, records: str) -> list[dict[str, Any]]:
        return [record for of in self.documents(kind) for scope in of[scopes] for record in scope[records]]


def attributes(of: Mapping[str, Any]) -> dict[str, Any]:
    """Of a span, record, point or resource, as a mapping of plain values."""
    return {item["key"]: next(iter(item["value"].values()), None) for item in of.get("attributes", ())}


@asynccontextmanager
async def collector(folder: Path, token: str = "", spans_to: int | None = None) -> AsyncIterator[Collector]:
    """With the configuration of the example, which takes HTTP too. `token`: what it asks of senders, if anything;
    `spans_to`: the port where Jaeger takes OTLP (else spans are in the file alone)."""
    made = Collector(folder, reserve(), reserve(), reserve())
    text = (EXAMPLE / "collector.conf").read_text()
    grpc = 'grpc: {endpoint: "127.0.0.1:4317"}'
    assert grpc in text and "exporters: [otlp/jaeger, file]" in text
    asks = ", auth: {authenticator: bearertokenauth}" if token else ""
    ports = (("grpc", made.grpc), ("http", made.http))
    both = [f'{name}: {{endpoint: "127.0.0.1:{port}"{asks}}}' for name, port in ports]
    text = text.replace(grpc, "\n      ".join(both))
    text = moved(text, {9464: made.page, 14317: spans_to or reserve()})
    if spans_to is None:
        text = text.replace("[otlp/jaeger, file]", "[file]")
    if token:
        text = text.replace(
            "service:\n",
            f"extensions:\n  bearertokenauth: {{token: {token}}}\nservice:\n  extensions: [bearertokenauth]\n",
        )
    file = folder / "collector.yaml"
    file.write_text(text)
    async with serving(folder, "collector", [built("collector"), "--config", str(file)], made.http, "/"):
        yield made
