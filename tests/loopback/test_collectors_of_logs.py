"""Lines of the access log and metrics of a real proxy arrive at a collector, over HTTP and gRPC."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.collector import attributes, collecting
from tests.fakes.proxy_process import get, origin, running
from tests.harness.waiting import until

FILE = """
frontendPolicies:
  accessLog:
    filter: 'request.path != "/shop/quiet"'
    add: {{tenant: 'request.headers["host"]', none: 'request.headers["x-none"]'}}
    remove: [http.method, gatewright.listener]
    otlp: {{host: "127.0.0.1:{port}", protocol: {protocol}}}
  metrics:
    attributes: {{add: [{{name: shop, expression: '"books"'}}]}}
    otlp: {{host: "127.0.0.1:{port}", protocol: {protocol}, interval: 1s}}
  tracing: {{host: "127.0.0.1:{port}", protocol: {protocol}, randomSampling: "true"}}
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
async def test_the_three_signals_arrive(protocol: str, tmp_path: Path) -> None:
    with collecting() as collector:
        async with origin() as to, running("-f", collector.file(tmp_path, FILE, protocol, to), workers=1) as proxy:
            await proxy.ready()
            assert await get(proxy.at(8080), "/shop/quiet") == (200, "hello")
            assert await get(proxy.at(8080), "/shop/7?q=1") == (200, "hello")

            async def all_there() -> bool:
                metric = collector.metrics().get("gatewright_request_duration_seconds")
                counted = metric is not None and metric.histogram.data_points[0].count == 2
                return bool(collector.logs()) and len(collector.spans()) == 4 and counted

            await until(all_there, "logs, spans and metrics")
        (record,) = collector.logs()
        found = attributes(record)
        assert (found["url.path"], found["http.response.status_code"]) == ("/shop/7", 200)
        assert found["tenant"] and "none" not in found
        assert "http.request.method" not in found and "gatewright.listener" not in found
        (span,) = [each for each in collector.spans() if each.span_id == record.span_id]
        assert record.trace_id == span.trace_id and attributes(span)["url.path"] == "/shop/7"
        metrics = collector.metrics()
        (point,) = metrics["gatewright_request_duration_seconds"].histogram.data_points
        assert attributes(point) == {"gateway": "default/standalone", "listener": "http", "shop": "books"}
        assert sum(point.bucket_counts) == point.count and span.trace_id in {each.trace_id for each in point.exemplars}
        (requests,) = metrics["gatewright_requests_total"].sum.data_points
        assert requests.as_int == 2 and metrics["gatewright_requests_total"].sum.is_monotonic
        assert 0 < requests.start_time_unix_nano < requests.time_unix_nano
        assert metrics["gatewright_event_loop_lag_seconds"].unit == "s"


async def test_lines_go_on_to_standard_output(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.statuses = [400]
        async with origin() as to, running("-f", collector.file(tmp_path, FILE, "HTTP", to), workers=1) as proxy:
            await proxy.ready()
            await get(proxy.at(8080), "/shop/7")
            await proxy.logged(r"request\t.* http.path=/shop/7 .* tenant=")
