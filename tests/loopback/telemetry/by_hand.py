"""Proofs that are too heavy for CI: `scripts/telemetry --prove` builds Jaeger and Prometheus 3 and runs these."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.fakes.collector import collecting
from tests.fakes.llm_toys import CHATTED
from tests.fakes.proxy_process import get, origin, running
from tests.fakes.telemetry_peers import built, serving
from tests.harness.ports import reserve
from tests.harness.waiting import until
from tests.loopback.test_prometheus import FILE as SCRAPED
from tests.loopback.test_prometheus import answer, ask, prometheus
from tests.loopback.test_real_collector import asked

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
JAEGER = """
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry: {{metrics: {{level: none}}}}
extensions:
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 1000}}}}}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: "127.0.0.1:{query}"}}
    grpc: {{endpoint: "127.0.0.1:{query_grpc}"}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
exporters:
  jaeger_storage_exporter: {{trace_storage: memory}}
"""
FILE = """
frontendPolicies:
  tracing:
    host: "127.0.0.1:{otlp}"
    protocol: {protocol}
    resources: [{{name: service.name, expression: '"shop-gateway"'}}]
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: shop
      matches: [{{path: {{type: PathPrefix, value: /shop}}}}]
      backends: [{{host: "127.0.0.1:{server}"}}]
      policies:
        retry: {{attempts: 1, codes: [503]}}
        extAuthz: {{host: "127.0.0.1:{server}", protocol: {{http: {{path: '"/auth"'}}}}}}
    - name: tools
      matches: [{{path: {{type: PathPrefix, value: /mcp}}}}]
      backends:
      - mcp:
          targets:
          - {{name: one, static: {{host: 127.0.0.1, port: {server}, path: /one}}}}
          - {{name: two, static: {{host: 127.0.0.1, port: {server}, path: /two}}}}
    - name: models
      matches: [{{path: {{type: PathPrefix, value: /v1}}}}]
      policies: {{ai: {{routes: {{/v1/chat/completions: Completions}}}}}}
      backends:
      - ai:
          groups:
          - {{providers: [{{name: busy, openai: {{}}, host: 127.0.0.1, port: {server}, path: /busy}}]}}
          - {{providers: [{{name: well, openai: {{}}, host: 127.0.0.1, port: {server}, path: /well}}]}}
"""
SELF = {"name": "s", "version": "1"}
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "3"}]},
}


class Server:
    """All that is behind the proxy: a shop that is busy once, an authorization server, MCP servers, LLM providers. What
    each was asked for, with the span that its request names as the parent."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    def answer(self, target: str, parent: str, body: bytes) -> tuple[int, object]:
        message = json.loads(body) if body else {}
        method = message.get("method", "") if isinstance(message, dict) else ""
        name = f"{target} {method}".strip()
        self.got.append((name, parent))
        if method:
            return (
                (200, {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[method]})
                if "id" in message
                else (202, "")
            )
        if target == "/busy" or (target == "/shop" and [each for each, _ in self.got].count("/shop") == 1):
            return 503, {}
        return 200, CHATTED if target == "/well" else {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                parent = headers.get("traceparent", "--").split("-")[2]
                status, value = self.answer(lines[0].split()[1], parent, body)
                text = json.dumps(value).encode() if value else b""
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                writer.write(head.encode() + text)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def jaeger(folder: Path) -> AsyncIterator[dict[str, int]]:
    """Its ports by name, once it is ready."""
    ports = {name: reserve() for name in ("query", "query_grpc", "grpc", "http")}
    (folder / "jaeger.yaml").write_text(JAEGER.format(**ports))
    command = [built("jaeger"), "--config", str(folder / "jaeger.yaml")]
    async with serving(folder, "jaeger", command, ports["query"], "/api/services"):
        yield ports


async def trace_of(query: int) -> list[dict[str, Any]]:
    """The spans that Jaeger has of the trace (Any: its JSON)."""
    status, body = await get(query, f"/api/traces/{TRACE}")
    if status != 200:
        return []
    data = json.loads(body[body.index("{") : body.rindex("}") + 1])["data"]
    return cast("list[dict[str, Any]]", data[0]["spans"]) if data else []


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": SELF}
MCP_CALLS: list[dict[str, Any]] = [
    {"id": 1, "method": "initialize", "params": HELLO},
    {"id": 2, "method": "tools/call", "params": {"name": "one_add", "arguments": {}}},
    {"id": 3, "method": "tools/list"},
]
TRACED = f"traceparent: 00-{TRACE}-{PARENT}-01\r\n"


async def called(port: int, message: dict[str, Any], session: str) -> str:
    """A message to the MCP endpoint; the session that the answer names, else that one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"jsonrpc": "2.0"} | message).encode()
    lines = (
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n"
        + session
    )
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{TRACED}{lines}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    text = (await reader.read()).decode()
    writer.close()
    assert text.startswith("HTTP/1.1 200 "), text
    found = [line for line in text.split("\r\n") if line.lower().startswith("mcp-session-id:")]
    return f"{found[0]}\r\n" if found else session


@pytest.mark.parametrize("protocol", ["GRPC", "HTTP"])
async def test_jaeger_has_each_call_below_the_request_that_made_it(protocol: str, tmp_path: Path) -> None:
    """And what servers got as the parent is the span of the call that reached them."""
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening, jaeger(tmp_path) as ports:
        port = listening.sockets[0].getsockname()[1]
        otlp = ports["http" if protocol == "HTTP" else "grpc"]
        (tmp_path / "config.yaml").write_text(FILE.format(otlp=otlp, protocol=protocol, server=port))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1) as proxy:
            await proxy.ready()
            at = proxy.at(8080)
            assert (await asked(at, f"GET /shop HTTP/1.1\r\n{TRACED}"))[0] == 200
            session = ""
            for message in MCP_CALLS:
                session = await called(at, message, session)
            chat = json.dumps({"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\n{TRACED}"
            assert (await asked(at, head, chat))[0] == 200

            async def complete() -> bool:
                found = await trace_of(ports["query"])
                parents = {parent for _, parent in server.got}
                return parents <= {span["spanID"] for span in found}

            await until(complete, lambda: f"all spans: {server.got} {proxy.log()}")
            spans = await trace_of(ports["query"])
    by_id = {span["spanID"]: span for span in spans}
    above = {span["spanID"]: span["references"][0]["spanID"] for span in spans}
    requests = {each: by_id[each]["operationName"] for each, parent in above.items() if parent == PARENT}
    assert sorted(requests.values()) == ["GET /shop", "POST /mcp", "POST /mcp", "POST /mcp", "POST /v1"]
    reached = sorted((name, requests[above[parent]], by_id[parent]["operationName"]) for name, parent in server.got)
    call = "GET backend/gatewaybackend/default/127.0.0.1:" + str(port)
    assert reached == [
        ("/auth", "GET /shop", call),
        ("/busy", "POST /v1", "chat gpt"),
        ("/one initialize", "POST /mcp", "initialize"),
        ("/one tools/call", "POST /mcp", "tools/call add"),
        ("/one tools/list", "POST /mcp", "tools/list"),
        ("/shop", "GET /shop", "GET"),
        ("/shop", "GET /shop", "GET"),
        ("/two initialize", "POST /mcp", "initialize"),
        ("/two tools/list", "POST /mcp", "tools/list"),
        ("/well", "POST /v1", "chat gpt"),
    ]
    assert len({parent for _, parent in server.got}) == len(server.got)
    reached_by = {parent for _, parent in server.got}
    others = [by_id[each]["operationName"] for each in above if each not in requests and each not in reached_by]
    assert (
        others == ["POST"] * 4
    )  # the tries of the rule's backend, of which each call of a target or provider is a part


async def test_prometheus_3_reads_the_page_and_answers_what_dashboards_ask(
    tool: Callable[[str], str], root: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    with collecting() as other:
        async with origin() as to:
            config.write_text(SCRAPED.format(origin=to, collector=other.grpc_port))
            await ask(built("prometheus"), tool("promtool"), config, root / "manifests/prometheus/alerts.yaml")


PUSHED = """
frontendPolicies:
  metrics:
    attributes: {{add: [{{name: tenant, expression: 'request.headers["x-tenant"]'}}]}}
    otlp: {{host: "127.0.0.1:{to}", protocol: HTTP, path: /api/v1/otlp/v1/metrics, interval: 1s}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{{host: "127.0.0.1:{server}"}}]
"""


async def test_prometheus_3_takes_metrics_by_otlp(root: Path, tmp_path: Path) -> None:
    rules = root / "manifests/prometheus/alerts.yaml"
    flags = ("--web.enable-otlp-receiver",)
    async with origin() as server, prometheus(built("prometheus"), tmp_path, reserve(), rules, flags) as port:
        (tmp_path / "config.yaml").write_text(PUSHED.format(to=port, server=server))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1) as proxy:
            await proxy.ready()
            assert (await asked(proxy.at(8080), "GET /a HTTP/1.1\r\nx-tenant: blue\r\n"))[0] == 200

            async def pushed() -> bool:
                found = (await answer(port, "/api/v1/query?query=gatewright_requests_total"))["result"]
                return any(each["metric"]["tenant"] == "blue" and each["value"][1] == "1" for each in found)

            await until(pushed, "the request is counted, by its tenant")


VALUES = 100_000
MOST_GROWTH = 8 << 20
"""Bytes. The slots of all metrics are there from the start; a series that is used takes pages of them."""


async def test_a_hundred_thousand_values_of_a_label_are_bounded(tmp_path: Path) -> None:
    """The first 512 sets are counted apart, all others as `overflow`: no request is lost, and memory stays."""
    async with origin() as server:
        text = PUSHED.format(to=reserve(), server=server)
        (tmp_path / "config.yaml").write_text(text.replace("interval: 1s", "interval: 3600s"))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1) as proxy:
            await proxy.ready()
            (worker,) = await proxy.workers()
            await values(proxy.at(8080), range(2000))
            before = _resident(worker)
            await values(proxy.at(8080), range(2000, VALUES))
            grown = _resident(worker) - before
            found = [
                await proxy.metric(f"gatewright_{name}{{")
                for name in ("requests_total", "request_duration_seconds_count", "metric_labels_overflowed_total")
            ]
            _, page = await get(await proxy.page("stats"), "/metrics")
    series = [line for line in page.splitlines() if line.startswith("gatewright_requests_total{")]
    assert found == [VALUES, VALUES, VALUES - 512] and len(series) == 513
    assert grown < MOST_GROWTH, grown


def _resident(pid: int) -> int:
    (line,) = (each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


async def values(port: int, numbers: Iterable[int]) -> None:
    """A request with each of these as its tenant, on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in numbers:
        writer.write(f"GET /a HTTP/1.1\r\nHost: localhost\r\nx-tenant: t{number}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        await reader.readexactly(5)
    writer.close()
