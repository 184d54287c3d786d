"""How soon does a new route serve, and what do clients see meanwhile? `python -m benchmarks.propagation [--routes N]`.

A controller over a folder and two proxies with two workers each, as `gatewright up` runs them. Routes are created one
by one, each by writing its file, some with backends that come with them: in the same file, or in one of their own
written just before or just after. From before the write both proxies are asked about each millisecond, in turns on a
new connection and on one that is kept (on both each time, the questions took a third of both processors, which the
change then waited for). Measured is the time from the write until both have answered 200 for the first time. Then the
kept connections and 100 new ones ask both again. At the end routes are removed, again one by one.

Demands, on a machine that does nothing else: mean at most 8 ms, 99 of 100 at most 15 ms; on removal mean at most 30 ms.
On any machine: before a proxy's first 200 nothing but 404, afterwards nothing but 200; on removal 200 and then 404,
nothing between and no way back; every worker was asked.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import hops
from benchmarks.fleet import wait_until
from benchmarks.load import Backend
from benchmarks.machine import OUT, alone
from benchmarks.pair import WORKERS, Pair
from benchmarks.probes import Asked, Client, Request, answer
from benchmarks.route_files import KINDS, RouteFiles
from tests.harness.patience import PATIENCE

MEAN_MS, P99_MS, REMOVAL_MS = 8.0, 15.0, 30.0
POLL = 0.001
CONNECTIONS = 100
"""New ones after the first 200, half to each proxy."""
CENSUS = 50
"""Every so many routes the connections are kept until each worker has told how many of them it has."""


class Lost(Exception):
    """A change did not reach a proxy."""


class Run:
    """All that was asked, and how long each change took."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.clients = [Client(port) for port in pair.ports]
        self.asked: list[Asked] = []
        self.wrong: list[str] = []
        self.windows: list[tuple[float, float]] = []
        """Of created routes: wall-clock seconds of the write and of the first 200 of the proxy that came last."""
        self.steady: list[tuple[float, float]] = []
        """The same by the steady clock."""
        self.per_worker: Counter[str] = Counter()

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def answers(self, request: Request) -> set[int]:
        """What there is to see, without a judgement."""
        return {status for statuses in self._look(request) for status in statuses}

    def create(self, files: RouteFiles, number: int) -> float:
        """Seconds until both proxies answer 200."""
        taken = self._change(files, number, 404, 200)
        self._ask_anew(files.request(number), 200, is_census=number % CENSUS == 0)
        return taken

    def remove(self, files: RouteFiles, number: int) -> float:
        """Seconds until both proxies answer 404."""
        taken = self._change(files, number, 200, 404)
        self._ask_anew(files.request(number), 404, is_census=False)
        return taken

    def _change(self, files: RouteFiles, number: int, before: int, after: int) -> float:
        request = files.request(number)
        for statuses in self._look(request):
            self._check(request, statuses, {before})
        wall, began = time.time(), time.perf_counter()
        files.write(number) if after == 200 else files.remove(number)
        missing, last = list(self.clients), began
        looks = itertools.cycle((self._look_anew, self._look_again))
        while missing:
            for client, status in zip(self.clients, next(looks)(request), strict=True):
                # The order counts: an old answer after a new one is wrong, of whichever worker.
                self._check(request, [status], {before, after} if client in missing else {after})
                if client in missing and status == after:
                    missing.remove(client)
                    last = time.perf_counter()
            if time.perf_counter() - began > PATIENCE:
                raise Lost(f"{request.target} of {request.host} at ports {[client.port for client in missing]}")
            time.sleep(POLL)
        for status in self._look_again(request):
            self._check(request, [status], {after})
        if after == 200:
            self.windows.append((wall, wall + last - began))
            self.steady.append((began, last))
        return last - began

    def _look(self, request: Request) -> list[list[int]]:
        """The status of each proxy on a new connection, then on the kept one."""
        return [list(both) for both in zip(self._look_anew(request), self._look_again(request), strict=True)]

    def _look_anew(self, request: Request) -> list[int]:
        """The status of each proxy on a new connection; both are asked at the same time."""
        new = [client.ask(request) for client in self.clients]
        statuses = [answer(connection) for connection in new]
        for connection in new:
            connection.close()
        return statuses

    def _look_again(self, request: Request) -> list[int]:
        """The same on the connections that are kept."""
        return [answer(connection) for connection in [client.ask_again(request) for client in self.clients]]

    def _ask_anew(self, request: Request, wanted: int, *, is_census: bool) -> None:
        for client, admin in zip(self.clients, self.pair.admins, strict=True):
            kept = []
            for _ in range(CONNECTIONS // len(self.clients)):
                kept.append(client.ask(request))
                self._check(request, [answer(kept[-1])], {wanted})
                if not is_census:
                    kept.pop().close()
            for worker in range(WORKERS) if is_census else ():
                self.per_worker[f"{client.port}/{worker}"] += connections(admin, worker)
            for connection in kept:
                connection.close()

    def _check(self, request: Request, statuses: Sequence[int], allowed: set[int]) -> None:
        self.asked += [Asked(request.kind, status) for status in statuses]
        self.wrong += [
            f"{status} for {request.target} of {request.host} ({request.kind}), where {sorted(allowed)} was right"
            for status in statuses
            if status not in allowed
        ]


def connections(admin: int, worker: int) -> int:
    """How many a worker has open now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/config_dump?worker={worker}", timeout=5) as page:
        return int(json.load(page)["connections"])


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(value * 1e3 for value in seconds)
    if not ordered:
        return {}
    p99 = ordered[min(len(ordered) - 1, math.ceil(len(ordered) * 0.99) - 1)]
    return {
        "mean": statistics.fmean(ordered),
        "p10": ordered[len(ordered) // 10],
        "p50": statistics.median(ordered),
        "p99": p99,
        "max": ordered[-1],
    }


def measure(routes: int, removals: int, *, with_hops: bool = False) -> dict[str, Any]:
    """Create `routes`, remove `removals` of them."""
    with ExitStack() as stack:
        stack.enter_context(alone())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatewright-hops"))) if with_hops else None
        backend = Backend()
        stack.callback(backend.process.stop)
        pair = Pair(stack, backend.port, folder)
        files, run = RouteFiles(pair.folder, backend.port), Run(pair)
        stack.callback(run.close)
        wait_until(lambda: run.answers(files.first()) == {200}, "first route")
        spent = pair.cpu_seconds()
        created = [run.create(files, number) for number in range(routes)]
        spent = {name: seconds - spent[name] for name, seconds in pair.cpu_seconds().items()}
        removed = [run.remove(files, number) for number in range(min(removals, routes))]
        phases = pair.phases(run.windows)
        where = {} if folder is None else _hops(hops.read(folder), run.steady)
    of_kind = {kind.name: created[number :: len(KINDS)] for number, kind in enumerate(KINDS)}
    return {
        "routes": routes,
        "ms": summary(created),
        "ms by kind": {name: summary(seconds) for name, seconds in of_kind.items()},
        "ms, first and last tenth": [summary(created[: routes // 10 or 1]), summary(created[-(routes // 10 or 1) :])],
        "ms of removal": summary(removed),
        "phases, mean ms": phases,
        "hops, median ms": where,
        "cpu ms per route": {name: seconds * 1e3 / routes for name, seconds in spent.items()},
        "answers": dict(sorted(Counter(f"{each.kind}: {each.status}" for each in run.asked).items())),
        "wrong answers": run.wrong,
        "connections per worker": dict(sorted(run.per_worker.items())),
    }


def _hops(stamps: hops.Stamps, changes: Sequence[hops.Window]) -> dict[str, list[hops.Row]]:
    """Of all routes and of the plainest, and of the quickest quarter of both."""
    return {
        "all": hops.table(stamps, changes),
        KINDS[0].name: hops.table(stamps, changes, len(KINDS)),
        "quickest quarter of all": hops.table(stamps, changes, 1, 0.25),
        f"quickest quarter, {KINDS[0].name}": hops.table(stamps, changes, len(KINDS), 0.25),
    }


def verdict(found: dict[str, Any]) -> bool:
    times, workers = found["ms"], found["connections per worker"]
    removal = found["ms of removal"].get("mean", 0.0)  # 0.0: none was removed
    rows = (
        (f"mean {times['mean']:.1f} ms, at most {MEAN_MS:g}", times["mean"] <= MEAN_MS),
        (f"p99 {times['p99']:.1f} ms, at most {P99_MS:g}", times["p99"] <= P99_MS),
        (f"mean of removal {removal:.1f} ms, at most {REMOVAL_MS:g}", removal <= REMOVAL_MS),
        (f"{len(found['wrong answers'])} wrong answers, none allowed", not found["wrong answers"]),
        (f"connections of each worker {sorted(workers.values())}, each some", all(workers.values())),
    )
    for text, holds in rows:
        print(f"- {text}: {'holds' if holds else 'DOES NOT HOLD'}")
    return all(holds for _, holds in rows)


def show(found: dict[str, Any]) -> None:
    print(f"| {found['routes']} routes | mean ms | p10 | p50 | p99 | max |\n|---|---|---|---|---|---|")
    of_kind = {"all": found["ms"], **found["ms by kind"], "removal": found["ms of removal"]}
    of_kind |= dict(zip(("first tenth", "last tenth"), found["ms, first and last tenth"], strict=True))
    for name, times in of_kind.items():
        if times:
            print(
                f"| {name} | " + " | ".join(f"{times[key]:.1f}" for key in ("mean", "p10", "p50", "p99", "max")) + " |"
            )
    print("phases, mean ms:", ", ".join(f"{name} {ms:.1f}" for name, ms in found["phases, mean ms"].items()))
    for name, rows in found["hops, median ms"].items():
        print(f"hops, {name}:\n{hops.text(rows)}")
    print("CPU ms per route:", ", ".join(f"{name} {ms:.1f}" for name, ms in found["cpu ms per route"].items()))
    print("answers:", ", ".join(f"{name} {count:,}" for name, count in found["answers"].items()))
    for text in found["wrong answers"][:20]:
        print("wrong:", text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.propagation", description=__doc__)
    parser.add_argument("--routes", type=int, help="default 1000")
    parser.add_argument("--removals", type=int, help="default: all")
    parser.add_argument("--quick", action="store_true", help="60 routes: a look, not a result")
    parser.add_argument("--hops", action="store_true", help="also where the time goes, by stamps in every process")
    parser.add_argument("--json", type=Path, metavar="FILE", default=OUT / "propagation.json")
    options = parser.parse_args()
    routes = options.routes or (60 if options.quick else 1000)
    found = measure(routes, routes if options.removals is None else options.removals, with_hops=options.hops)
    options.json.write_text(json.dumps(found, indent=1))
    show(found)
    return 0 if verdict(found) else 1


if __name__ == "__main__":
    sys.exit(main())
