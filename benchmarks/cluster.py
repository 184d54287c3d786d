"""A controller on a real API server: `python -m benchmarks.cluster [--routes N] [--changes N] [--large N]`.

An API server and its store (`scripts/apiserver`), `gatewright controller --kubernetes` and a proxy, on this machine.

1. Propagation: routes are created one by one; from the answer of the API server to the first answer of the proxy that
   has the route. Before that nothing but 404.
2. Attachment: `--routes` routes are created by four clients. How often is the Gateway's status written, is a write
   refused, and how long after the last creation is `attachedRoutes` right? Then propagation again, beside these routes.
3. Refusal: how long until a listener that a proxy cannot open is in the status, and until it is gone after the mend?
4. Memory and CPU: `--large` routes are created at 100 a second, with an edit of another one after every tenth. Of every
   fiftieth it is seen how long it takes to its first answer.

Demands: mean at most 8 ms and 99 of 100 at most 20 ms; at most 15 writes, none refused, right within 60 ms; 2 s for a
refusal and for its end; at most 250 MB beside the memory of a controller that has reached the cluster and read nothing.
Times count on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.cluster.controllers import (
    GATEWAY_API,
    Controller,
    apply,
    created,
    install,
    install_crds,
    token_of_controller,
)
from tests.cluster.kube import ApiServer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import running
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
SPACE = "bench"
GATEWAY = f"{GATEWAY_API}/namespaces/{SPACE}/gateways/web"
ROUTES = f"{GATEWAY_API}/namespaces/{SPACE}/httproutes"
CLIENTS = 4
PER_SECOND = 100
SAMPLED = 50
MEAN_MS, P99_MS, MOST_WRITES, RIGHT_MS, MOST_MB = 8.0, 20.0, 15, 60.0, 250.0
Json = dict[str, Any]


def route(name: str, host: str) -> Json:
    match = {"path": {"type": "Exact", "value": f"/{name}"}}
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": host}}
    spec = {"parentRefs": [{"name": "web"}], "rules": [{"matches": [match], "filters": [redirect]}]}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name}, "spec": spec}


class Bench:
    """One API server with a controller and a proxy."""

    def __init__(self, server: ApiServer, controller: Controller, port: int) -> None:
        self.server, self.controller, self.port = server, controller, port
        self._local = threading.local()

    def client(self) -> ApiServer:
        """A connection of this thread's own."""
        if not hasattr(self._local, "client"):
            self._local.client = self.server.another()
        found: ApiServer = self._local.client
        return found

    def create(self, name: str) -> None:
        answer = self.client().request("POST", ROUTES, route(name, "a.example"))
        assert answer.status == 201, answer.message

    def edit(self, name: str, host: str) -> None:
        answer = self.client().apply(f"{ROUTES}/{name}", route(name, host))
        assert answer.status == 200, answer.message

    def attached(self) -> int:
        return attached(self.server.request("GET", GATEWAY).body)

    def programmed(self, listener: str = "") -> str:
        """The reason of `Programmed` for the newest content, of the Gateway or one of its listeners; "" for none."""
        found = self.server.request("GET", GATEWAY).body
        status = found.get("status") or {}
        listeners = {each["name"]: each for each in status.get("listeners") or ()}
        rows = (listeners.get(listener, {}) if listener else status).get("conditions") or ()
        newest = found["metadata"]["generation"]
        said = (each for each in rows if each["type"] == "Programmed" and each["observedGeneration"] == newest)
        return next((str(each["reason"]) for each in said), "")

    def metric(self, name: str) -> float:
        for line in self.controller.metrics.splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        raise LookupError(name)

    def megabytes(self) -> float:
        for line in Path(f"/proc/{self.controller.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise LookupError("VmRSS")

    def seconds(self) -> float:
        """Of CPU."""
        fields = Path(f"/proc/{self.controller.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


class NoAnswer(Exception):
    """A route that was created is not served."""


def first_answer(connection: http.client.HTTPConnection, name: str) -> tuple[float, int]:
    """Milliseconds until the proxy has a route that was created just now, and answers before that were not 404. Raises
    NoAnswer."""
    began, asked, wrong = time.perf_counter(), 0, 0
    while True:
        connection.request("GET", f"/{name}")
        answer = connection.getresponse()
        answer.read()
        took, asked = time.perf_counter() - began, asked + 1
        if answer.status == 302:
            return took * 1000, wrong
        wrong += answer.status != 404
        if took > PATIENCE:
            raise NoAnswer(f"route {name} is not served after {took:.0f} s: {asked} requests, the last {answer.status}")


def to_proxy(bench: Bench) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", bench.port, timeout=PATIENCE)


def percentiles(took: list[float]) -> Json:
    took = sorted(took)
    return {
        "mean ms": round(statistics.mean(took), 1),
        "p50": round(took[len(took) // 2], 1),
        "p99": round(took[int(len(took) * 0.99)], 1),
        "max": round(took[-1], 1),
    }


def propagation(bench: Bench, changes: int, name: str = "change") -> Json:
    connection, took, wrong = to_proxy(bench), [], 0
    for number in range(changes):
        bench.create(f"{name}{number}")
        one, others = first_answer(connection, f"{name}{number}")
        took.append(one)
        wrong += others
    connection.close()
    return {**percentiles(took), "wrong answers": wrong}


class Writes:
    """How often a Gateway changes, as a watch reports it, and when its counts were right."""

    def __init__(self, server: ApiServer, attached: int) -> None:
        self.count, self.right = 0, 0.0
        self.is_right = threading.Event()
        self._attached = attached
        self._server = server.another()
        self._version = self._server.request("GET", GATEWAY).body["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        for line in self._server.lines(f"{GATEWAY.rpartition('/')[0]}?watch=1&resourceVersion={self._version}"):
            event = json.loads(line)
            self.count += event["type"] == "MODIFIED"
            if attached(event["object"]) == self._attached and not self.is_right.is_set():
                self.right = time.perf_counter()
                self.is_right.set()


def attachment(bench: Bench, routes: int, before: int) -> Json:
    _await(lambda: bench.metric("gatewright_controller_status_writes_pending") == 0)
    writes = Writes(bench.server, before + routes)
    conflicts = bench.metric('gatewright_controller_status_writes_total{outcome="conflict"}')
    seconds = bench.seconds()
    with ThreadPoolExecutor(CLIENTS) as pool:
        began = time.perf_counter()
        list(pool.map(bench.create, [f"attached{number}" for number in range(routes)]))
        ended = time.perf_counter()
    _await(writes.is_right.is_set)
    _await(lambda: bench.metric("gatewright_controller_status_writes_pending") == 0)
    refused = bench.metric('gatewright_controller_status_writes_total{outcome="conflict"}') - conflicts
    return {
        "routes": routes,
        "creation s": round(ended - began, 2),
        "right after ms": round((writes.right - ended) * 1000),
        "writes of the Gateway": writes.count,
        "refused with 409": int(refused),
        "controller CPU s": round(bench.seconds() - seconds, 2),
    }


def attached(gateway: Json) -> int:
    """-1: its status does not say."""
    status = gateway.get("status") or {}
    return int(next((each["attachedRoutes"] for each in status.get("listeners") or ()), -1))


def refusal(bench: Bench) -> Json:
    """A listener on a port that somebody else has: from the API server's answer until the status says so, and from the
    answer to its removal until the Gateway is well again."""
    http_ = {"name": "http", "port": bench.port, "protocol": "HTTP"}
    with socket.create_server(("0.0.0.0", 0)) as taken:
        bad = {"name": "taken", "port": taken.getsockname()[1], "protocol": "HTTP"}
        began = _listening(bench, http_, bad)
        _await(lambda: bench.programmed("taken") == "Rejected")
        shown = time.perf_counter() - began
        began = _listening(bench, http_)
        _await(lambda: bench.programmed("http") == bench.programmed() == "Programmed" and not bench.programmed("taken"))
    return {"shown after ms": round(shown * 1000), "gone after ms": round((time.perf_counter() - began) * 1000)}


def _listening(bench: Bench, *listeners: Json) -> float:
    """When the API server has answered."""
    apply(bench.server, GATEWAY, "Gateway", {"gatewayClassName": "gatewright", "listeners": [*listeners]})
    return time.perf_counter()


def _await(holds: Callable[[], bool]) -> None:
    wait_until(holds, "the controller is behind")


class Sampler:
    """How long routes take to their first answer while others are created: one at a time, in a thread of its own."""

    def __init__(self, bench: Bench) -> None:
        self._connection = to_proxy(bench)
        self._pool = ThreadPoolExecutor(1)
        self._asked: list[Future[tuple[float, int]]] = []

    def ask(self, name: str) -> None:
        """Of a route that was created just now; not while another one is asked for."""
        if not self._asked or self._asked[-1].done():
            self._asked.append(self._pool.submit(first_answer, self._connection, name))

    def result(self) -> Json:
        found = [each.result() for each in self._asked]
        self._pool.shutdown()
        self._connection.close()
        wrong = sum(others for _, others in found)
        return {**percentiles([one for one, _ in found]), "wrong answers": wrong, "asked": len(found)}


def memory(bench: Bench, routes: int, empty: float) -> Json:
    sampler, seconds, began = Sampler(bench), bench.seconds(), time.perf_counter()
    for number in range(routes):
        bench.create(f"large{number}")
        if number % SAMPLED == 0:
            sampler.ask(f"large{number}")
        if number % 10 == 9:
            bench.edit(f"large{number // 2}", f"{number}.example")
        time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
    _await(lambda: bench.metric("gatewright_controller_status_writes_pending") == 0)
    return {
        "routes": routes,
        "creation s": round(time.perf_counter() - began, 1),
        "controller CPU s": round(bench.seconds() - seconds, 1),
        "MB with nothing read": round(empty),
        "MB": round(bench.megabytes()),
        "MB beside that": round(bench.megabytes() - empty),
        "first answer": sampler.result(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--routes", type=int, default=1000)
    parser.add_argument("--large", type=int, default=5000)
    arguments = parser.parse_args()
    binaries = Path(
        subprocess.run([ROOT / "scripts/apiserver"], check=True, capture_output=True, text=True).stdout.strip()
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = ApiServer(binaries, folder)
        stack.callback(server.stop)
        server.start()
        install_crds(server)
        install(server)
        created(
            server,
            f"/api/v1/namespaces/{SPACE}",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        )
        controller = Controller(server, token_of_controller(server), folder, "controller")
        stack.callback(controller.process.stop)
        controller.await_ready()
        port = reserve()
        bench = Bench(server, controller, port)
        empty = bench.megabytes()
        listener = {"name": "http", "port": port, "protocol": "HTTP"}
        apply(server, GATEWAY, "Gateway", {"gatewayClassName": "gatewright", "listeners": [listener]})
        command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"{SPACE}/web"]
        command += ["--workers", "1", "--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off"]
        stack.enter_context(running(folder, "proxy", command)).await_ready()
        _await(lambda: bench.attached() == 0)
        try:
            measure(bench, arguments, empty)
        except (NoAnswer, TimeoutError) as error:
            print(f"benchmarks.cluster: {error}", controller.process.log()[-3000:], sep="\n", file=sys.stderr)
            return 1
    return 0


def measure(bench: Bench, arguments: argparse.Namespace, empty: float) -> None:
    """Prints each part when it is done. Raises NoAnswer, TimeoutError."""
    print("propagation", json.dumps(propagation(bench, arguments.changes)), flush=True)
    print("refusal", json.dumps(refusal(bench)), flush=True)
    print("attachment", json.dumps(attachment(bench, arguments.routes, arguments.changes)), flush=True)
    beside = f"propagation beside {arguments.routes + arguments.changes} routes"
    print(beside, json.dumps(propagation(bench, arguments.changes, "beside")), flush=True)
    if arguments.large:
        print("memory", json.dumps(memory(bench, arguments.large, empty)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
