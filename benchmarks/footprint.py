"""Memory that a controller and a proxy need in a cluster: `python -m benchmarks.footprint [--routes N ...] [--held N]`.

An API server and its store (`scripts/apiserver`), `gatewright controller --kubernetes` and a proxy of two workers, on
this machine. First idle with one Gateway, then with each number of routes, each to a Service of its own with two
endpoints; then with `--held` connections of clients at the proxy, each of which has had one answer. In the end another
controller starts over all that is there.

Of a controller: resident memory, and the most that it was. Of a proxy: what its processes have, shared pages counted
once (Pss). The limit in manifests/controller and the figures in docs/deploying.md are from here; run it with
GATEWRIGHT_PRELOADED=0, so that no process has what tests have loaded.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.cluster import CLIENTS, GATEWAY, ROOT, ROUTES, SPACE, attached
from benchmarks.cpu import own_kib, tree
from tests.cluster.controllers import Controller, apply, created, install, install_crds, token_of_controller
from tests.cluster.kube import ApiServer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import running
from tests.harness.waiting import wait_until

Json = dict[str, Any]
WORKERS = 2
REQUEST = b"GET /r0 HTTP/1.1\r\nHost: a.example\r\n\r\n"


def objects(number: int) -> list[tuple[str, Json]]:
    """A Service, its endpoints and a route: collections and bodies."""
    name = f"r{number}"
    core = f"/api/v1/namespaces/{SPACE}/services"
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{SPACE}/endpointslices"
    ports = [{"name": "http", "port": 80}]
    addresses = [f"10.{number >> 8 & 255}.{number & 255}.{last}" for last in (1, 2)]
    backend = {"backendRefs": [{"name": name, "port": 80}]}
    rule = {"matches": [{"path": {"type": "Exact", "value": f"/{name}"}}], **backend}
    spec = {"parentRefs": [{"name": "web"}], "rules": [rule]}
    return [
        (core, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}}),
        (
            slices,
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4",
                "ports": ports,
                "endpoints": [{"addresses": [each]} for each in addresses],
            },
        ),
        (
            ROUTES,
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "HTTPRoute",
                "metadata": {"name": name},
                "spec": spec,
            },
        ),
    ]


def fill(server: ApiServer, numbers: range) -> None:
    def some(first: int) -> None:
        client = server.another()
        for number in numbers[first::CLIENTS]:
            for path, body in objects(number):
                answer = client.request("POST", path, body)
                assert answer.status == 201, answer.message
        client.close()

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(some, range(CLIENTS)))


def of_controller(pid: int) -> str:
    """Resident, and the most, in MiB."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    now, most = (int(rows[field].split()[0]) / 1024 for field in ("VmRSS", "VmHWM"))
    return f"now {now:.0f}, most {most:.0f}"


def of_proxy(pid: int) -> str:
    """Of all its processes together, in MiB."""
    return f"{sum(own_kib(each, 'Pss:') for each in tree(pid)) / 1024:.0f}"


def held(port: int, count: int) -> Iterable[socket.socket]:
    """Connections that have had an answer."""
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port), PATIENCE)
        client.sendall(REQUEST)
        assert client.recv(65536).startswith(b"HTTP/1.1 ")
        yield client


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routes", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--held", type=int, default=1000)
    arguments = parser.parse_args()
    command = [ROOT / "scripts/apiserver"]
    binaries = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = ApiServer(binaries, folder)
        stack.callback(server.stop)
        server.start()
        install_crds(server)
        install(server)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        created(server, f"/api/v1/namespaces/{SPACE}", namespace)
        measure(server, folder, arguments, stack)
    return 0


def measure(server: ApiServer, folder: Path, arguments: argparse.Namespace, stack: ExitStack) -> None:
    """Prints a line for each step."""
    token = token_of_controller(server)
    controller = Controller(server, token, folder, "controller")
    stack.callback(controller.process.stop)
    controller.await_ready()
    port = reserve()
    listener = {"name": "http", "port": port, "protocol": "HTTP"}
    apply(server, GATEWAY, "Gateway", {"gatewayClassName": "gatewright", "listeners": [listener]})
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"{SPACE}/web"]
    command += ["--workers", str(WORKERS), "--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off"]
    proxy = stack.enter_context(running(folder, "proxy", command, preloaded=False))
    proxy.await_ready()

    def report(what: str) -> None:
        print(f"{what}: controller {of_controller(controller.process.pid)}; proxy {of_proxy(proxy.pid)}", flush=True)

    def is_right(count: int) -> bool:
        found = server.request("GET", GATEWAY).body
        return bool((found.get("status") or {}).get("listeners")) and attached(found) == count

    wait_until(lambda: is_right(0), controller.process.log)
    report("idle")
    there = 0
    for routes in arguments.routes:
        fill(server, range(there, routes))
        there = routes
        server.hang_up()  # it has been idle for long
        wait_until(lambda: is_right(there) and controller.is_settled, controller.process.log)  # noqa: B023
        report(f"{routes} routes")
    clients = [*held(port, arguments.held)]
    report(f"{arguments.held} connections beside")
    for client in clients:
        client.close()
    controller.end()
    again = Controller(server, token, folder, "again", socket="controller")
    stack.callback(again.process.stop)
    again.await_ready()
    wait_until(lambda: again.is_settled, again.process.log)
    print(f"a start over {there} routes: controller {of_controller(again.process.pid)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
