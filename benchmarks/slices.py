"""How long one slice of applying a state holds a loop: `python -m benchmarks.slices [--routes N]`.

The applier of a worker in this process, without sockets, agent or controller, driven as `dataplane/serving.py` drives
it. Each kind of change is applied once to a big table. A slice is measured in CPU time of the thread, so that a busy
machine tells the same, and the whole state beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.states import BACKEND, LISTENER, OTHER_LISTENER, States
from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Env
from dataplane.filters.registry import ROWS
from dataplane.table import collection
from dataplane.table.applier import Applier
from dataplane.table.store import Change

TARGET_MS, AIM_MS = 10.0, 2.0
_QUICK = 5_000


class Bench:
    """One applier; `rows` has a line for each state that was applied."""

    def __init__(self) -> None:
        self.applier = Applier(ROWS, Env(clock=time.monotonic, random=random.random), kinds=KINDS)
        self.rows: list[dict[str, Any]] = []

    def apply(self, name: str, changes: Iterable[Change]) -> None:
        """As `serving.Serving` applies a state, with a look at the thread's clock at each turn of the loop."""
        records = deque(changes)
        count = len(records)
        is_first = not self.applier.current.table.version
        watch = _Watch()
        for _ in self.applier.apply(_taken(records)):
            watch.look()
        watch.look()
        if is_first:
            gc.freeze()
        assert not self.applier.outcome.refused, self.applier.outcome.refused
        self.rows.append({"change": name, "resources": count, **watch.row()})


class _Watch:
    """CPU time of slices. A virtual machine charges what happens at a switch between processes to whoever ran, in ticks
    of 4 ms: slices in which we were pushed aside are kept apart."""

    def __init__(self) -> None:
        self._slices: list[float] = []
        self._disturbed: list[float] = []
        self._switches, self._began = _switches(), time.thread_time()

    def look(self) -> None:
        """A slice has ended, the next begins."""
        took, switches = time.thread_time() - self._began, _switches()
        (self._slices if switches == self._switches else self._disturbed).append(took * 1e3)
        self._switches, self._began = switches, time.thread_time()

    def row(self) -> dict[str, float]:
        return {
            "longest_ms": max(self._slices, default=0.0),
            "longest_disturbed_ms": max(self._disturbed, default=0.0),
            "total_ms": sum(self._slices) + sum(self._disturbed),
            "slices": len(self._slices) + len(self._disturbed),
        }


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def _taken(records: deque[Change]) -> Iterator[Change]:
    while records:
        yield records.popleft()


def measure(routes: int) -> dict[str, Any]:
    """Every kind of change at `routes` routes; answers the lines, and the memory that a route takes."""
    collection.configure()
    states, bench = States(routes), Bench()
    bench.apply("first state", states.gateway())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, _rss()
    for name, changes in _scenarios(states):
        bench.apply(name, changes)
        if name == "load":
            per_route = (_rss() - before[1]) / routes
    return {"routes": routes, "bytes_per_route": per_route, "changes": bench.rows}


def _scenarios(states: States) -> Iterator[tuple[str, Iterable[Change]]]:
    """Lazily: a state is made of what the one before left."""
    every, tenth = range(states.count), range(states.count // 10)
    yield "load", states.routes(every)
    yield "one route changed", states.routes(range(7, 8), version=2)
    yield "one route added", states.routes(range(states.count, states.count + 1))
    yield "one route removed", states.removed(range(states.count, states.count + 1))
    yield "a tenth changed", states.routes(tenth, version=3)
    yield "all routes changed", states.routes(every, version=4)
    yield "a hostname added to a tenth", states.routes(tenth, version=4, alias=True)
    yield "endpoint added to the backend of all", states.endpoints(range(1, 2))
    yield "1000 endpoints added to it", states.endpoints(range(2, 1002))
    yield "one of these removed", states.endpoints_gone(range(2, 3))
    yield "listener removed", states.gone(LISTENER)
    yield "listener returned", states.listener(LISTENER)
    yield "a tenth moves to one hostname", states.crowd(tenth)
    yield "one of that hostname changed", states.crowd(range(7, 8), version=2)
    yield "a second listener with all routes", states.listener(OTHER_LISTENER)
    yield "it is removed", states.gone(OTHER_LISTENER)
    yield "backend removed", states.gone(BACKEND)
    yield "all routes removed", states.removed(every)


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def show(found: dict[str, Any]) -> str:
    lines = [f"{'change':40}{'longest slice':>15}{'(disturbed)':>15}{'whole':>12}{'slices':>9}"]
    for row in found["changes"]:
        lines.append(
            f"{row['change']:40}{row['longest_ms']:>12.2f} ms{row['longest_disturbed_ms']:>12.2f} ms"
            f"{row['total_ms']:>9.1f} ms{row['slices']:>9}"
        )
    worst = max(row["longest_ms"] for row in found["changes"])
    lines.append(f"{found['routes']} routes, {found['bytes_per_route']:.0f} bytes each (aim 600)")
    lines.append(f"longest slice {worst:.2f} ms CPU ({TARGET_MS:g} allowed, aim {AIM_MS:g})")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.slices", description=__doc__)
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} routes")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    found = measure(min(options.routes, _QUICK) if options.quick else options.routes)
    print(show(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0 if all(row["longest_ms"] <= TARGET_MS for row in found["changes"]) else 1


if __name__ == "__main__":
    sys.exit(main())
