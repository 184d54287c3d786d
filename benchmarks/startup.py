"""How long do controller and proxy take to start at size, and whom do they keep waiting meanwhile?

`python -m benchmarks.startup [--routes N ...] [--form files|documents] [--quick] [--json FILE]`. A folder of routes is
written, `gatewright controller` is started over it, and clients ask its gRPC server all the time: health every 20 ms,
reflection, client status, and a stream that waits for the first state. Then the clients pause, and a proxy with two
workers is started against the controller, until its readiness page says yes: STARTS times, and once more while the
clients ask, which costs a good part of a core and is no property of the proxy. At last come the steps that concern
every route: a listener more, the one Service gone and back, and an edit of one route, each with the waits of the
clients while it lasts.
"""

from __future__ import annotations

import argparse
import compileall
import json
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks import cpu
from benchmarks.fleet import wait_until
from benchmarks.machine import LOAD_CORE, PROXY_CORE, ROOT, Process, alone
from benchmarks.routes_on_disk import FORMS, GATEWAY, RouteFolder
from benchmarks.waits import QUESTIONS, Asker, Watcher, series
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve

CONTROLLER_SECONDS: Final = 15.0
PROXY_SECONDS: Final = 2.0
LONGEST_WAIT_MS: Final = 100.0
_BOTH_CORES: Final = f"{PROXY_CORE},{LOAD_CORE}"
STARTS: Final = 5
_SOURCES: Final = ("gatewright", "controlplane", "dataplane", "benchmarks")


class Scene:
    """A folder, a controller over it, and its clients."""

    def __init__(self, form: str, routes: int, stack: ExitStack) -> None:
        self.stack = stack
        self.folder = RouteFolder(form, routes)
        stack.callback(self.folder.remove)
        self.socket = Path(tempfile.mkdtemp(prefix="gatewright-xds")) / "xds.sock"
        stack.callback(shutil.rmtree, self.socket.parent)
        self.askers: list[Asker] = []
        _compile_sources()

    def start_controller(self) -> dict[str, Any]:
        """From the start of the process to the first complete state at a client that waits for it."""
        self.port = port = reserve()
        command = [sys.executable, "-m", "controlplane.cli", "controller", str(self.folder.path)]
        places = ["--socket", str(self.socket), "--xds", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{reserve()}"]
        started = time.monotonic()
        self.controller = Process("controller", [*command, *places], _BOTH_CORES)
        self.stack.callback(self.controller.stop)
        self.start_askers()
        self.watcher = Watcher(self.socket, f"default/{GATEWAY}/watcher")
        self.stack.callback(self._end_clients)
        wait_until(lambda: bool(self.watcher.states), "the first state", PATIENCE)
        listening = self.askers[0].first or started
        pid = self.controller.pid
        return {
            "seconds": round(self.watcher.states[0][0] - started, 2),
            "seconds until it listened": round(listening - started, 2),
            "cpu seconds": round(cpu.nanoseconds(pid) / 1e9, 2),
            "resources": self.watcher.resources,
            "MiB": round(cpu.resident_kib(pid) / 1024),
            "waits": dict(series(self.askers, started)),
        }

    def start_askers(self) -> None:
        self.askers = [Asker(question, self.port) for question in QUESTIONS]

    def stop_askers(self) -> None:
        for asker in self.askers:
            asker.stop()

    def start_proxies(self, workers: int) -> dict[str, Any]:
        """Several starts while no other client asks the controller: the typical one, and all seconds."""
        self.stop_askers()
        found = []
        for _ in range(STARTS):
            with ExitStack() as life:
                found.append(self.start_proxy(workers, life))
            time.sleep(0.3)  # the controller has noticed that it is gone
        self.start_askers()
        found.sort(key=lambda start: float(start["seconds"]))
        return {**found[len(found) // 2], "all seconds": [start["seconds"] for start in found]}

    def start_proxy(self, workers: int, life: ExitStack) -> dict[str, Any]:
        """From the start of the process to its readiness page's 200; it ends with `life`."""
        ready = reserve()
        command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{self.socket}", "--gateway", f"default/{GATEWAY}"]
        pages = ["--admin=off", f"--stats=127.0.0.1:{reserve()}", f"--readiness=127.0.0.1:{ready}"]
        environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
        started = time.monotonic()
        proxy = Process("proxy", [*command, f"--workers={workers}", *pages], _BOTH_CORES, environment)
        life.callback(proxy.stop)
        wait_until(lambda: _is_ready(ready), "readiness", PATIENCE, every=0.005)
        return {
            "seconds": round(time.monotonic() - started, 2),
            "cpu seconds": round(cpu.nanoseconds(proxy.pid) / 1e9, 2),
            "MiB": round(cpu.resident_kib(proxy.pid) / 1024),
        }

    def step(self, change: Callable[[], None]) -> dict[str, Any]:
        """From a change of the folder to the state with it at a client, and the waits of the others meanwhile."""
        time.sleep(0.3)  # what came before is over
        count, spent = len(self.watcher.states), cpu.nanoseconds(self.controller.pid)
        started = time.monotonic()
        change()
        wait_until(lambda: len(self.watcher.states) > count, "the state of a step", PATIENCE)
        time.sleep(0.1)  # answers that were asked for during the step
        return {
            "seconds": round(self.watcher.states[count][0] - started, 3),
            "cpu seconds": round((cpu.nanoseconds(self.controller.pid) - spent) / 1e9, 3),
            "waits": dict(series(self.askers, started)),
        }

    def steps(self) -> dict[str, Any]:
        folder = self.folder
        found = {
            "one route edited": self.step(lambda: folder.one_route(2)),
            "listener added": self.step(lambda: folder.gateway(extra=True)),
            "Service removed": self.step(lambda: folder.service(there=False)),
            "Service back": self.step(lambda: folder.service(there=True)),
        }
        return found | {"MiB after": round(cpu.resident_kib(self.controller.pid) / 1024)}

    def _end_clients(self) -> None:
        self.stop_askers()
        self.watcher.stop()


@cache
def _compile_sources() -> None:
    """As an installation does: the processes of a benchmark write no bytecode, and would compile at each start."""
    for name in _SOURCES:
        compileall.compile_dir(ROOT / name, quiet=1)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz/ready", timeout=5) as page:
            return bool(page.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def measure(form: str, routes: int, workers: int = 2) -> dict[str, Any]:
    """Everything for one folder."""
    with ExitStack() as stack:
        scene = Scene(form, routes, stack)
        found: dict[str, Any] = {"form": form, "routes": routes, "controller": scene.start_controller()}
        found["proxy"] = scene.start_proxies(workers)
        found["proxy beside clients"] = scene.start_proxy(workers, stack)
        found["steps"] = scene.steps()
        return found


def empty_controller_mib() -> float:
    """Resident memory of a controller with one route: what the others are compared with."""
    with ExitStack() as stack:
        return float(Scene("files", 1, stack).start_controller()["MiB"])


def rows(found: dict[str, Any], empty_mib: float) -> list[str]:
    """Lines for people, with the target beside each figure."""
    controller, proxy = found["controller"], found["proxy"]
    each = (controller["MiB"] - empty_mib) * 1024 / found["routes"]
    what = f"{found['routes']:,} routes, {found['form']}"
    lines = [
        f"{what}: controller {controller['seconds']:.2f} s (at most {CONTROLLER_SECONDS:g}), "
        f"{controller['cpu seconds']:.2f} s CPU, {controller['MiB']} MiB ({each:.1f} KiB a route)",
        f"{what}: proxy {proxy['seconds']:.2f} s (at most {PROXY_SECONDS:g}), {proxy['cpu seconds']:.2f} s CPU; "
        f"of {', '.join(f'{seconds:.2f}' for seconds in proxy['all seconds'])}; "
        f"{found['proxy beside clients']['seconds']:.2f} s while clients ask the controller",
        *_wait_rows("start", controller["waits"]),
    ]
    for name, step in found["steps"].items():
        if isinstance(step, dict):
            lines.append(f"  {name}: {step['seconds']:.3f} s, {step['cpu seconds']:.3f} s CPU")
            lines += _wait_rows(name, step["waits"])
    return lines


def _wait_rows(name: str, waits: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"    {name}, {question}: {row['answers']} answers, typical {row['typical ms']:g} ms, "
        f"p99 {row['p99 ms']:g} ms, longest {row['longest ms']:g} ms (at most {LONGEST_WAIT_MS:g})"
        for question, row in waits.items()
    ]


def holds(found: dict[str, Any]) -> bool:
    waits = [
        found["controller"]["waits"],
        *(step["waits"] for step in found["steps"].values() if isinstance(step, dict)),
    ]
    return (
        found["controller"]["seconds"] <= CONTROLLER_SECONDS
        and found["proxy"]["seconds"] <= PROXY_SECONDS
        and all(each["health"]["longest ms"] <= LONGEST_WAIT_MS for each in waits)
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.startup", description=__doc__)
    parser.add_argument("--routes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--form", choices=[*FORMS, "both"], default="both")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="1,000 routes in files: a look, not a result")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    sizes, forms = options.routes, list(FORMS) if options.form == "both" else [options.form]
    if options.quick:
        sizes, forms = [1000], ["files"]
    with alone():
        empty = empty_controller_mib()
        print(f"a controller with one route: {empty:g} MiB", flush=True)
        results = []
        for size in sizes:
            for form in forms:
                results.append(measure(form, size, options.workers))
                print("\n".join(rows(results[-1], empty)), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"empty MiB": empty, "results": results}, indent=1))
    verdict = all(holds(each) for each in results)
    print("holds" if verdict else "DOES NOT HOLD")
    return 0 if verdict else 1


if __name__ == "__main__":
    sys.exit(main())
