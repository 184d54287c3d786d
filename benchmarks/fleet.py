"""A controller over a folder of generated routes, and a proxy under it: the processes that `gatewright up` runs.

Used by `swap` and `one_edit`. In production each has its own machine; here the controller and the load run at a lower
priority than the proxy, so that they cannot be mistaken for its own stalls.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.machine import LOAD_CORE, PROXY_CORE, Process
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve

GATEWAY = "bench"
ROUTES_PER_FILE = 100
TRAFFIC_HOST = "traffic.example"
_GROUP = "gateway.networking.k8s.io/v1"
_BOTH_CORES = f"{PROXY_CORE},{LOAD_CORE}"


def host(number: int) -> str:
    return f"h{number}.example"


class Folder:
    """The directory source: what is in it changes file by file, each replaced in one step as editors do."""

    def __init__(self, backend_port: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="gatewright-bench"))
        self.port, self.extra_port = reserve(), reserve()
        backend = {"static": {"host": "127.0.0.1", "port": backend_port}}
        self.write(
            "class.yaml",
            _object("GatewayClass", "gatewright", {"controllerName": "gatewright.dev/controller"}),
            _object("GatewayBackend", "origin", backend, "gatewright.dev/v1alpha1"),
            _route("traffic", TRAFFIC_HOST, 1),
            _route("extra", TRAFFIC_HOST, 1, "extra"),
        )
        self.gateway(extra=True)

    def gateway(self, extra: bool) -> None:
        listeners = [{"name": "http", "protocol": "HTTP", "port": self.port}]
        if extra:
            listeners.append({"name": "extra", "protocol": "HTTP", "port": self.extra_port})
        self.write(
            "gateway.yaml", _object("Gateway", GATEWAY, {"gatewayClassName": "gatewright", "listeners": listeners})
        )

    def routes(self, numbers: range, version: int) -> None:
        """Write routes in whole files of ROUTES_PER_FILE."""
        for first in range(numbers.start, numbers.stop, ROUTES_PER_FILE):
            part = range(first, min(first + ROUTES_PER_FILE, numbers.stop))
            self.write(f"routes-{first:06}.yaml", *(_route(f"route-{n}", host(n), version) for n in part))

    def single_route(self, number: int, version: int) -> None:
        """One route in a file of its own."""
        self.write(f"single-{number}.yaml", _route(f"route-{number}", host(number), version))

    def write(self, name: str, *objects: dict[str, Any]) -> None:
        """JSON is YAML: much faster to write."""
        temporary = self.path / f".{name}"
        temporary.write_text("\n---\n".join(json.dumps(item) for item in objects))
        temporary.replace(self.path / name)

    def remove(self) -> None:
        shutil.rmtree(self.path)


def _object(kind: str, name: str, spec: dict[str, Any], version: str = _GROUP) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _route(name: str, hostname: str, version: int, section: str = "http") -> dict[str, Any]:
    """Every route has a header modifier and a timeout."""
    modifier = {"set": [{"name": "x-version", "value": str(version)}, {"name": "x-route", "value": name}]}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": modifier}],
        "timeouts": {"request": "30s"},
        "backendRefs": [{"group": "gatewright.dev", "kind": "GatewayBackend", "name": "origin"}],
    }
    parents = [{"name": GATEWAY, "sectionName": section}]
    return _object("HTTPRoute", name, {"parentRefs": parents, "hostnames": [hostname], "rules": [rule]})


class Fleet:
    """One controller and, when asked for, one proxy under it."""

    def __init__(self, folder: Folder, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.socket = Path(tempfile.mkdtemp(prefix="gatewright-xds")) / "xds.sock"
        stack.callback(shutil.rmtree, self.socket.parent)
        self.xds_port, self.admin_port, self.stats_port = reserve(), reserve(), reserve()

    def start_controller(self) -> Process:
        places = ["--socket", str(self.socket), "--xds", f"127.0.0.1:{self.xds_port}"]
        command = ["nice", "-n", "10", sys.executable, "-m", "controlplane.cli", "controller", str(self.folder.path)]
        process = Process("controller", [*command, *places, "--admin", f"127.0.0.1:{self.admin_port}"], _BOTH_CORES)
        self.stack.callback(process.stop)
        process.await_port(self.admin_port)
        return process

    def start_proxy(self, workers: int, priority: int = 0) -> Process:
        pages = ["--admin=off", f"--stats=127.0.0.1:{self.stats_port}", f"--readiness=127.0.0.1:{reserve()}"]
        command = [
            "nice",
            "-n",
            str(priority),
            sys.executable,
            "-m",
            "dataplane",
            "--xds",
            f"unix:{self.socket}",
            "--gateway",
            f"default/{GATEWAY}",
        ]
        environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
        process = Process("proxy", [*command, f"--workers={workers}", *pages], _BOTH_CORES, environment)
        self.stack.callback(process.stop)
        process.await_port(self.folder.port)
        return process

    def metrics(self) -> dict[str, float]:
        """The proxy's metrics: series as written -> value."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.stats_port}/metrics", timeout=5) as page:
            text = page.read().decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {series: float(value) for series, _, value in rows}


def wait_until(happened: Callable[[], bool], what: str, seconds: float = PATIENCE, every: float = 0.05) -> float:
    """Poll; answers how long it took. Raises TimeoutError naming `what`."""
    started = time.monotonic()
    while not happened():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"{what} did not happen within {seconds:g} s")
        time.sleep(every)
    return time.monotonic() - started
