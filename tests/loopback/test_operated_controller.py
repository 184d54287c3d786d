"""`gatewright controller` as a supervisor and a scraper see it: metrics, probes, the log, beside a real proxy."""

from __future__ import annotations

import http.client
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.web_objects import OBJECTS
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, running
from tests.harness.waiting import wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def samples(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    """Name and label values -> value, as Prometheus reads the page."""
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    return {
        (sample.name.removeprefix("gatewright_controller_"), tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@dataclass(frozen=True, slots=True)
class World:
    folder: Path
    objects: Path
    controller: Program

    @property
    def socket(self) -> Path:
        return self.folder / "xds.sock"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=9))
    command = [sys.executable, "-m", "controlplane", str(objects), "--socket", str(tmp_path / "xds.sock")]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--stats", "127.0.0.1:0"]
    command += ["--readiness", "[::1]:0", "--log-format", "json", "--log-level", "warn,controlplane.xds=info"]
    with running(tmp_path, "controller", command, environment={"TZ": "NPT-5:45"}) as controller:
        controller.await_ready()
        yield World(tmp_path, objects, controller)


def test_pages_probes_and_the_log(world: World) -> None:
    admin, stats = world.controller.port("ADMIN"), world.controller.port("STATS")
    assert world.controller.notices.heard["X_GATEWRIGHT_READINESS"].startswith("[::1]:")
    assert get(admin, "/healthz/ready") == (200, "ready\n")
    assert get(stats, "/api/status")[0] == 404
    before = samples(stats)
    assert before[("ready", ())] == 1
    assert before[("objects", ("Gateway",))] == 1
    assert before[("xds_proxies", ("default/web",))] == 0
    assert before[("process_resident_memory_bytes", ())] > 0
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{world.socket}", "--gateway", "default/web"]
    command += ["--any-port", "--workers", "1", "--admin", "off", "--stats", "off", "--readiness", "off"]
    with running(world.folder, "proxy", command) as proxy:
        proxy.await_ready()
        after = wait_until(lambda: _if_synced(stats), world.controller.log)
        assert after[("xds_proxies", ("default/web",))] == 1
        assert after[("xds_acks_total", ())] >= 1 and after[("xds_nacks_total", ())] == 0
        assert after[("xds_streams_total", ("accepted",))] == 1
        assert after[("xds_lag_seconds", ("default/web",))] == 0
        assert after[("xds_response_bytes_total", ())] > 0
        (world.objects / "bad.yaml").write_text(
            "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: 1}\n"
        )
        wait_until(lambda: samples(stats).get(("invalid_objects", ("Service",))) == 1, world.controller.log)
    rows = [json.loads(line) for line in world.controller.log().splitlines()]
    assert all(TIME.fullmatch(row["time"]) and row["process"] == "controller" for row in rows)
    assert {row["level"] for row in rows if row["module"] == "controlplane"} <= {"warn", "error"}
    assert any("connected from" in row["message"] for row in rows if row["module"] == "controlplane.xds.session")


WATCHED = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: guarded}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{name: origin, port: 80}, {name: gone, port: 80}]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: judge}
spec: {static: {host: 127.0.0.1, port: 9}}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: guarded}]
  traffic:
    extAuth:
      backendRef: {group: gatewright.dev, kind: GatewayBackend, name: judge}
      http: {}
"""


def test_what_operators_watch_is_on_the_pages(world: World) -> None:
    """Of a proxy: decisions by policy and reason, calls by target and outcome, lateness of the loop, stream, swaps.
    Of the controller: conditions that are False."""
    (world.objects / "watched.yaml").write_text(WATCHED)
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{world.socket}", "--gateway", "default/web"]
    command += ["--any-port", "--workers", "1", "--admin", "off", "--stats", "127.0.0.1:0", "--readiness", "off"]
    with running(world.folder, "proxy", command) as proxy:
        proxy.await_ready()
        stats = proxy.port("STATS")
        wait_until(lambda: get(proxy.port("BIND_8080"), "/")[0] == 403, proxy.log)
        found = samples(stats)
    assert found[("gatewright_policy_decisions_total", ("default/web", "ext_auth", "ExtAuthFailed"))] >= 1
    assert found[("gatewright_calls_total", ("backend/gatewaybackend/default/judge", "connect"))] >= 1
    assert found[("gatewright_event_loop_lag_seconds_count", ())] >= 1
    assert found[("gatewright_xds_connected", ())] == 1
    assert found[("gatewright_swap_duration_seconds_count", ())] >= 1
    refused = ("conditions_false", ("ResolvedRefs", "HTTPRoute", "BackendNotFound"))
    wait_until(lambda: samples(world.controller.port("STATS")).get(refused) == 1, world.controller.log)


def _if_synced(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    found = samples(port)
    return found if found.get(("xds_proxies_synced", ("default/web",))) == 1 else {}


def test_a_level_that_is_none_ends_the_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "controlplane", str(tmp_path), "--log-level", "loud"]
    with running(tmp_path, "controller", command) as controller:
        assert controller.wait() == 2
        assert 'unknown level "loud"' in controller.log()
