"""Spans of a real proxy arrive at a collector, over HTTP and gRPC; one that refuses or is away costs records alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.collector import attributes, collecting
from tests.fakes.proxy_process import get, origin, running
from tests.harness.waiting import until

FILE = """
frontendPolicies:
  tracing:
    host: 127.0.0.1:{port}
    protocol: {protocol}
    randomSampling: "true"
    attributes:
      add:
      - {{name: shop, expression: '"books"'}}
    resources:
    - {{name: service.name, expression: '"front"'}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      matches: [{{path: {{type: PathPrefix, value: /shop}}}}]
      backends: [{{host: "127.0.0.1:{origin}"}}]
"""


@pytest.mark.parametrize("protocol", ["HTTP", "GRPC"])
async def test_spans_arrive(protocol: str, tmp_path: Path) -> None:
    with collecting() as collector:
        async with origin() as to, running("-f", collector.file(tmp_path, FILE, protocol, to), workers=1) as proxy:
            await proxy.ready()
            assert await get(proxy.at(8080), "/shop/7?q=secret") == (200, "hello")

            async def two() -> bool:
                return len(collector.spans()) == 2

            await until(two, "two spans")
        request, attempt = collector.spans()
        assert (request.name, request.kind, attempt.kind) == ("GET /shop", 2, 3)
        assert attempt.trace_id == request.trace_id and attempt.parent_span_id == request.span_id
        assert request.start_time_unix_nano <= attempt.start_time_unix_nano < attempt.end_time_unix_nano
        found = attributes(request)
        assert found["url.path"] == "/shop/7" and found["http.response.status_code"] == 200
        assert found["shop"] == "books" and found["gatewright.route"] == "default/all"
        assert attributes(attempt)["server.port"] == to
        assert collector.resources()[0]["service.name"] == "front"


async def test_a_collector_that_is_not_ready_gets_them_later(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.statuses = [503, 429]
        async with origin() as to, running("-f", collector.file(tmp_path, FILE, "HTTP", to), workers=1) as proxy:
            await proxy.ready()
            assert (await get(proxy.at(8080), "/shop"))[0] == 200

            async def sent() -> bool:
                return await proxy.metric('gatewright_telemetry_records_total{outcome="sent",signal="traces"}') == 1

            await until(sent, "they are sent")
        assert len(collector.paths) == 3 and len(collector.spans()) == 2


async def test_one_that_refuses_costs_records_alone(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.statuses = [400]
        async with origin() as to, running("-f", collector.file(tmp_path, FILE, "HTTP", to), workers=1) as proxy:
            await proxy.ready()
            answers = await asyncio.gather(*(get(proxy.at(8080), "/shop") for _ in range(3)))
            assert {status for status, _ in answers} == {200}

            async def refused() -> bool:
                return await proxy.metric('gatewright_telemetry_records_total{outcome="rejected",signal="traces"}') >= 1

            await until(refused, "they are refused")
            await proxy.logged(r"collector backend/\S+ \(traces\): status 400")
