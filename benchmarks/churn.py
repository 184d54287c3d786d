"""What do changes cost, one after the other? `python -m benchmarks.churn [--routes N ...] [--rates N ...]`.

A controller over a folder and one proxy with two workers, no traffic. One route after the other is edited in a file of
its own, so many a second; the CPU time of both process trees is taken over the whole span, less what they use at rest.
Every edit has arrived when the span ends: the last one is asked for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import cpu
from benchmarks.fleet import TRAFFIC_HOST, Fleet, Folder, host, wait_until
from benchmarks.load import Backend
from benchmarks.machine import OUT, Process, alone
from benchmarks.swap import served

_OWN_FILES = 100
"""Routes that have a file of their own, edited in turn."""


class Churn:
    """A fleet at rest, and the two process trees whose time is taken."""

    def __init__(self, routes: int, stack: ExitStack) -> None:
        backend = Backend()
        stack.callback(backend.process.stop)
        self.folder = Folder(backend.port)
        stack.callback(self.folder.remove)
        self.own = range(routes - min(_OWN_FILES, routes), routes)
        self.folder.routes(range(self.own.start), 1)
        for number in self.own:
            self.folder.single_route(number, 1)
        fleet = Fleet(self.folder, stack)
        self.trees: dict[str, Process] = {"controller": fleet.start_controller(), "proxy": fleet.start_proxy(2)}
        wait_until(lambda: served(self.folder.port, TRAFFIC_HOST, "1"), "first route")
        wait_until(lambda: served(self.folder.port, host(self.own[-1]), "1"), "last route")
        time.sleep(2.0)  # a big first state is torn down and tidied up beside
        self._version = 1

    def spent(self) -> dict[str, int]:
        return {name: cpu.nanoseconds(process.pid) for name, process in self.trees.items()}

    def at_rest(self, seconds: float) -> dict[str, float]:
        """Cores that each tree uses when nothing changes."""
        before = self.spent()
        time.sleep(seconds)
        return {name: (now - before[name]) / seconds / 1e9 for name, now in self.spent().items()}

    def edits(self, rate: float, seconds: float) -> dict[str, float]:
        """`rate` edits a second for so long: CPU milliseconds of each tree, everything included."""
        before, started = self.spent(), time.monotonic()
        count = max(1, round(rate * seconds))
        for number in range(count):
            time.sleep(max(0.0, started + number / rate - time.monotonic()))
            self._version += 1
            last = self.own[number % len(self.own)]
            self.folder.single_route(last, self._version)
        wait_until(lambda: served(self.folder.port, host(last), str(self._version)), "last edit")
        span = time.monotonic() - started
        found = {name: (now - before[name]) / 1e6 for name, now in self.spent().items()}
        return {"edits": count, "seconds": span, **found}


def measure(routes: int, rates: list[float], seconds: float) -> list[dict[str, float]]:
    """One row for each rate: edits a second, CPU milliseconds for one edit and cores used, for both trees."""
    with ExitStack() as stack:
        churn = Churn(routes, stack)
        rest = churn.at_rest(seconds)
        return [_row(routes, rate, rest, churn.edits(rate, seconds)) for rate in rates]


def _row(routes: int, rate: float, rest: dict[str, float], found: dict[str, float]) -> dict[str, float]:
    row: dict[str, float] = {"routes": routes, "rate": rate}
    for name, cores in rest.items():
        spent = found[name] - cores * found["seconds"] * 1e3
        row[f"{name} ms per edit"] = round(spent / found["edits"], 2)
        row[f"{name} cores"] = round(found[name] / found["seconds"] / 1e3, 4)
        row[f"{name} cores at rest"] = round(cores, 4)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.churn", description=__doc__)
    parser.add_argument("--routes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 5, 20, 50])
    parser.add_argument("--seconds", type=float, default=10.0, help="of edits, for each rate")
    parser.add_argument("--quick", action="store_true", help="200 routes, 3 seconds: a look, not a result")
    parser.add_argument("--json", type=Path, default=OUT / "churn.json", metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.routes, options.seconds, options.rates = [200], 3.0, [2, 20]
    rows: list[dict[str, Any]] = []
    with alone():
        for routes in options.routes:
            rows += measure(routes, options.rates, options.seconds)
    options.json.write_text(json.dumps(rows, indent=1))
    for row in rows:
        print("  ".join(f"{name} {value:g}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
