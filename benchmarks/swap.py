"""Does a change of configuration disturb traffic? `python -m benchmarks.swap [--routes N]`.

Through xDS, 2 workers, defaults on, every route with a header modifier and a timeout. Under keep-alive and new
connections, uploads and open event streams: all routes are loaded, a tenth is changed, a listener is removed and added
again. Demands no failed request, and no hold of an event loop by a swap above 5 ms (`swap_stall_max_us`); how late the
workers' timers fired altogether is printed beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

from benchmarks.fleet import TRAFFIC_HOST, Fleet, Folder, host, wait_until
from benchmarks.load import Backend
from benchmarks.machine import OUT, ROOT, alone, is_open

_LIMIT_US = 5000
_STILL = 5.0
"""Seconds of traffic without any change: what the machine alone does to the timers."""
_AGREE = 12
"""Connections in a row that must answer alike: they are spread over the workers."""
_LAG = "gatewright_event_loop_lag_seconds_bucket"


def version_of(port: int, hostname: str) -> str:
    """The route's version as a new connection sees it, "" when there is no such route yet."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        client.request("GET", "/", headers={"Host": hostname})
        answer = client.getresponse()
        answer.read()
        return answer.headers.get("x-version", "") if answer.status == 200 else ""
    except OSError:
        return ""
    finally:
        client.close()


def served(port: int, hostname: str, version: str) -> bool:
    return all(version_of(port, hostname) == version for _ in range(_AGREE))


class Swap:
    """The phases, each timed from the change of the files until every worker serves it."""

    def __init__(self, folder: Folder, routes: int) -> None:
        self.folder = folder
        self.count = routes
        self.seconds: dict[str, float] = {}

    def run(self) -> None:
        last, changed = host(self.count - 1), self.count // 10
        everything, tenth = range(self.count), range(changed)
        self._phase("routes loaded", lambda: self.folder.routes(everything, 1), self.folder.port, last, "1")
        self._phase("a tenth changed", lambda: self.folder.routes(tenth, 2), self.folder.port, host(changed - 1), "2")
        self.folder.gateway(extra=False)
        self.seconds["listener removed"] = wait_until(lambda: not is_open(self.folder.extra_port), "removal")
        extra = self.folder.extra_port
        self._phase("listener added", lambda: self.folder.gateway(extra=True), extra, TRAFFIC_HOST, "1")

    def _phase(self, name: str, change: Any, port: int, hostname: str, version: str) -> None:
        change()
        self.seconds[name] = wait_until(lambda: served(port, hostname, version), name)
        time.sleep(1.0)  # the old table is torn down in slices: its end belongs to the swap


def lateness(before: dict[str, float], after: dict[str, float]) -> dict[str, int]:
    """How often the timers fired late, by upper bound in seconds."""
    bounds = sorted((s for s in after if s.startswith(_LAG)), key=_bound)
    counts = [after[series] - before.get(series, 0.0) for series in bounds]
    steps = [count - previous for count, previous in zip(counts, [0.0, *counts], strict=False)]
    return {f"{_bound(series):g}": int(step) for series, step in zip(bounds, steps, strict=True) if step}


def _bound(series: str) -> float:
    return float(series.partition('le="')[2].partition('"')[0].replace("+Inf", "inf"))


def measure(routes: int, workers: int, priority: int) -> dict[str, Any]:
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend = Backend()
        stack.callback(backend.process.stop)
        folder = Folder(backend.port)
        stack.callback(folder.remove)
        fleet = Fleet(folder, stack)
        fleet.start_controller()
        fleet.start_proxy(workers, priority)
        wait_until(lambda: served(folder.port, TRAFFIC_HOST, "1"), "first route")
        command = ["nice", "-n", "10", sys.executable, "-m", "benchmarks.traffic", str(folder.port), TRAFFIC_HOST]
        traffic = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        stack.callback(traffic.kill)
        still = fleet.metrics()
        time.sleep(_STILL)
        before = fleet.metrics()
        swap = Swap(folder, routes)
        swap.run()
        report, _ = traffic.communicate("", timeout=60)
        after = fleet.metrics()
        return {
            "routes": routes,
            "seconds": swap.seconds,
            "traffic": json.loads(report),
            "swap_stall_max_us": after["gatewright_swap_stall_max_us"],
            "late_timers": lateness(before, after),
            f"late_timers_before_in_{_STILL:g}_s": lateness(still, before),
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.swap", description=__doc__)
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--priority", type=int, default=0, help="nice value of the proxy, where other things run")
    options = parser.parse_args()
    found = measure(options.routes, options.workers, options.priority)
    text = json.dumps(found, indent=1)
    (OUT / "swap.json").write_text(text)
    print(text)
    failed, stall = found["traffic"]["failed"], found["swap_stall_max_us"]
    holds = not failed and stall <= _LIMIT_US
    verdict = "holds" if holds else "DOES NOT HOLD"
    print(f"{failed} failed requests (none allowed), longest swap stall {stall / 1000:.2f} ms (5 allowed): {verdict}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
