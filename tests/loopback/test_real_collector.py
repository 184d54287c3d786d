"""OpenTelemetry's own collector gets what a real proxy sends, with the files of `examples/telemetry`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.fakes.proxy_process import Proxy, get, origin, running
from tests.fakes.telemetry_peers import EXAMPLE, Collector, attributes, collector, moved
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = f"traceparent: 00-{TRACE}-{PARENT}-01\r\n"
TOKEN = "0123456789-token-of-the-collector"


async def asked(port: int, head: str, body: bytes = b"") -> tuple[int, str]:
    """Status and body of a request whose first lines are given."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"{head}Host: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    finally:
        writer.close()
    lines, _, rest = answer.partition(b"\r\n\r\n")
    return int(lines.split()[1]), rest.decode()


def example(folder: Path, to: Collector, protocol: str, server: int, interval: str = "1s") -> str:
    """The proxy's file of the example, with a collector and a server of the test."""
    port = to.http if protocol == "HTTP" else to.grpc
    text = moved((EXAMPLE / "config.yaml").read_text(), {4317: port, 9000: server})
    for old, new in (
        ("otlp: {backend: collector}", f"otlp: {{backend: collector, protocol: {protocol}}}"),
        ("interval: 5s", f"interval: {interval}, protocol: {protocol}"),
        ("    backend: collector\n", f"    backend: collector\n    protocol: {protocol}\n"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = folder / "config.yaml"
    file.write_text(text)
    return str(file)


def points_of(to: Collector, name: str) -> list[dict[str, Any]]:
    """Points of the last message with this metric."""
    found: list[list[dict[str, Any]]] = [
        metric[kind]["dataPoints"]
        for metric in to.metrics()
        for kind in ("sum", "histogram", "gauge")
        if metric["name"] == name and kind in metric
    ]
    return found[-1] if found else []


@pytest.mark.parametrize("protocol", ["GRPC", "HTTP"])
async def test_the_three_signals_of_the_example_arrive(protocol: str, tmp_path: Path) -> None:
    async with collector(tmp_path) as to, origin() as server:
        async with running("-f", example(tmp_path, to, protocol, server), workers=1) as proxy:
            await proxy.ready()
            assert (await asked(proxy.at(8080), f"GET /shop/7?q=1 HTTP/1.1\r\nx-tenant: blue\r\n{TRACED}"))[0] == 200

            async def all_there() -> bool:
                return bool(len(to.spans()) == 2 and to.logs() and points_of(to, "gatewright_requests_total"))

            await until(all_there, lambda: f"spans, records and metrics: {proxy.log()}")
            await until(lambda: _page(to, 'tenant="blue"'), "the collector's own page has the label")
            assert f"trace.id={TRACE}" in proxy.log()
        request, attempt = sorted(to.spans(), key=lambda span: span["kind"])
        assert (request["traceId"], request["parentSpanId"], request["name"]) == (TRACE, PARENT, "GET /shop")
        assert (attempt["traceId"], attempt["parentSpanId"]) == (TRACE, request["spanId"])
        assert attributes(request)["url.path"] == "/shop/7"
        (record,) = to.logs()
        assert (record["traceId"], record["spanId"]) == (TRACE, request["spanId"])
        assert attributes(record)["tenant"] == "blue"
        (point,) = points_of(to, "gatewright_requests_total")
        assert attributes(point)["tenant"] == "blue" and point["asInt"] == "1"
        (timed,) = points_of(to, "gatewright_request_duration_seconds")
        assert [each["traceId"] for each in timed["exemplars"]] == [TRACE]
        names = [attributes(each["resource"])["service.name"] for each in to.documents("resourceSpans")]
        assert names == ["shop-gateway"]


async def _page(to: Collector, text: str) -> bool:
    return text in (await get(to.page, "/metrics"))[1]


@pytest.mark.parametrize("protocol", ["GRPC", "HTTP"])
@pytest.mark.parametrize("key", [TOKEN, "another"])
async def test_a_collector_that_asks_for_a_token(key: str, protocol: str, tmp_path: Path) -> None:
    """With it records arrive; with another they are counted as rejected, and requests are answered all the same."""
    async with collector(tmp_path, TOKEN) as to, origin() as server:
        file = example(tmp_path, to, protocol, server)
        text = Path(file).read_text()
        port = to.http if protocol == "HTTP" else to.grpc
        plain = f'{{name: collector, host: "127.0.0.1:{port}"}}'
        assert plain in text
        Path(file).write_text(text.replace(plain, f"{plain[:-1]}, policies: {{auth: {{key: {key}}}}}}}"))
        async with running("-f", file, workers=1) as proxy:
            await proxy.ready()
            assert (await asked(proxy.at(8080), f"GET /shop/7 HTTP/1.1\r\n{TRACED}"))[0] == 200
            outcome = "sent" if key == TOKEN else "rejected"
            for signal in ("traces", "logs", "metrics"):
                await until(_counted(proxy, f'outcome="{outcome}",signal="{signal}"'), f"{signal} {outcome}")
            assert key not in proxy.log()
            if key == TOKEN:
                await until(_has(to, "GET /shop"), "the span is in the file")
            else:
                assert not to.spans() and not to.logs() and not to.metrics()


def _counted(proxy: Proxy, labels: str) -> Callable[[], Any]:
    async def is_counted() -> bool:
        return await proxy.metric(f"gatewright_telemetry_records_total{{{labels}}}") >= 1

    return is_counted


THROUGH = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: web
      matches: [{{path: {{type: PathPrefix, value: /v1}}}}]
      backends: [{{host: "127.0.0.1:{http}"}}]
    - name: grpc
      matches: [{{path: {{type: PathPrefix, value: /opentelemetry.proto.collector.trace.v1.TraceService}}}}]
      backends: [{{host: "127.0.0.1:{grpc}"}}]
"""
"""Telemetry of others, whose collector is behind the proxy."""
SPAN = {
    "traceId": TRACE,
    "spanId": PARENT,
    "name": "theirs",
    "kind": 1,
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
}
JSON = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}).encode()


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", JSON, 200),
        ("application/json", JSON[:-1], 400),
        ("application/x-protobuf", b"\xff\xff\xff", 400),
        ("text/plain", JSON, 415),
    ],
)
async def test_telemetry_of_others_passes(kind: str, body: bytes, status: int, tmp_path: Path) -> None:
    """What a collector behind the proxy answers to good and bad messages is what their sender gets."""
    async with collector(tmp_path) as to:
        (tmp_path / "config.yaml").write_text(THROUGH.format(http=to.http, grpc=to.grpc))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1) as proxy:
            await proxy.ready()
            head = f"POST /v1/traces HTTP/1.1\r\nContent-Type: {kind}\r\n"
            got, _ = await asked(proxy.at(8080), head, body)
            direct, _ = await asked(to.http, head, body)
            assert got == direct == status
            if status == 200:
                await until(_has(to, "theirs"), "the span")


async def test_telemetry_of_others_passes_by_grpc(tmp_path: Path) -> None:
    async with collector(tmp_path) as to:
        (tmp_path / "config.yaml").write_text(THROUGH.format(http=to.http, grpc=to.grpc))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1) as proxy:
            await proxy.ready()
            request = trace_service_pb2.ExportTraceServiceRequest()
            request.resource_spans.add().scope_spans.add().spans.add(
                name="theirs", trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(PARENT)
            )
            async with grpc.aio.insecure_channel(f"127.0.0.1:{proxy.at(8080)}") as channel:
                stub: Any = trace_service_pb2_grpc.TraceServiceStub(channel)  # type: ignore[no-untyped-call]
                answer = await stub.Export(request, timeout=PATIENCE)
            assert answer.partial_success.rejected_spans == 0
            await until(_has(to, "theirs"), "the span")


def _has(to: Collector, name: str) -> Callable[[], Any]:
    async def has() -> bool:
        return name in {span["name"] for span in to.spans()}

    return has


CANARIES = {
    "key of a client": "canary-key-1111",
    "password of a client": "canary-pass-2222",
    "cookie": "canary-cookie-3333",
    "query": "canary-query-4444",
    "credential of the backend": "canary-backend-5555",
    "credential for the collector": "canary-collector-6666",
    "header": "canary-header-7777",
}


async def test_no_secret_is_in_any_signal(tmp_path: Path) -> None:
    """Not in the collector's files, its page, the log of the proxy, or its metrics. A line of the log has the query."""
    async with collector(tmp_path) as to, origin() as server:
        file = Path(example(tmp_path, to, "GRPC", server))
        text = file.read_text()
        key = CANARIES["credential for the collector"]
        plain = f'"127.0.0.1:{to.grpc}"'
        text = text.replace(plain, f"{plain}, policies: {{auth: {{key: {key}}}}}")
        backend = f"- host: 127.0.0.1:{server}"
        assert backend in text
        text = text.replace(
            backend, f"{backend}\n                policies: {{auth: {{key: {CANARIES['credential of the backend']}}}}}"
        )
        key = CANARIES["key of a client"]
        text = text.replace(
            "retry: {attempts: 1, codes: [503]}", f"apiKeyAuthentication: {{secretRef: {{ann: {{value: {key}}}}}}}"
        )
        file.write_text(text)
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            head = (
                f"GET /shop/7?token={CANARIES['query']} HTTP/1.1\r\nx-tenant: blue\r\n"
                f"x-secret: {CANARIES['header']}\r\nCookie: session={CANARIES['cookie']}\r\n{TRACED}"
            )
            assert (await asked(proxy.at(8080), f"{head}Authorization: Bearer {key}\r\n"))[0] == 200
            assert (await asked(proxy.at(8080), f"{head}Authorization: Bearer {CANARIES['password of a client']}\r\n"))[
                0
            ] == 401

            async def all_there() -> bool:
                return bool(len(to.spans()) >= 3 and len(to.logs()) == 2 and points_of(to, "gatewright_requests_total"))

            await until(all_there, "the three signals")
            pages = {
                "metrics": (await get(await proxy.page("stats"), "/metrics"))[1],
                "dump": (await get(await proxy.page("admin"), "/config_dump"))[1],
                "page of the collector": (await get(to.page, "/metrics"))[1],
                "file of the collector": to.file.read_text(),
                "log": proxy.log().replace(f"?token={CANARIES['query']}", ""),
            }
        assert all(pages.values())
        found = [(name, where) for name, value in CANARIES.items() for where, page in pages.items() if value in page]
        assert found == []
