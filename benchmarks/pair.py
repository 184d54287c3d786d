"""A controller and two proxies under it, with default priority and on all cores: what `gatewright up` runs.

Used by `propagation` and by tests. Their logs tell when a state was published and when each proxy had applied it.
"""

from __future__ import annotations

import re
import shutil
import statistics
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import cpu, hops
from benchmarks.fleet import GATEWAY, Folder
from benchmarks.machine import LOAD_CORE, PROXY_CORE, Process

PROXIES, WORKERS = 2, 2
_CORES = f"{PROXY_CORE},{LOAD_CORE}"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[.,](\d{3})")


class Pair:
    """Everything ends with `stack`. `backend_port`: the origin that all routes lead to.

    `hops`: the folder for stamps at each hop of a change (module `hops`); None: the programs as they are.
    """

    def __init__(self, stack: ExitStack, backend_port: int, hops: Path | None = None) -> None:
        self._hops = hops
        folder = Folder(backend_port)
        stack.callback(folder.remove)
        folder.gateway(extra=False)
        self.folder = folder.path
        self._socket = Path(tempfile.mkdtemp(prefix="gatewright-xds")) / "xds.sock"
        stack.callback(shutil.rmtree, self._socket.parent)
        self._processes = [self._controller(stack)]
        self._processes += [self._proxy(number, stack) for number in range(PROXIES)]
        for process in self._processes[1:]:
            process.await_ready()
        self.ports = [process.port(f"BIND_{folder.port}") for process in self._processes[1:]]
        self.agents = [process.pid for process in self._processes[1:]]
        """Process ids."""
        self.admins = [process.port("ADMIN") for process in self._processes[1:]]

    def _controller(self, stack: ExitStack) -> Process:
        places = ["--socket", str(self._socket), "--xds", "127.0.0.1:0"]
        module = ["controlplane.cli"] if self._hops is None else ["benchmarks.hops", "controller"]
        command = [sys.executable, "-m", *module, "controller", str(self.folder), *places]
        environment = {"TZ": "UTC0", **self._stamps()}
        process = Process("controller", [*command, "--admin", "127.0.0.1:0"], _CORES, environment)
        stack.callback(process.stop)
        process.await_ready()
        return process

    def _proxy(self, number: int, stack: ExitStack) -> Process:
        source = ["--xds", f"unix:{self._socket}", "--gateway", f"default/{GATEWAY}", "--instance", f"proxy-{number}"]
        shape = ["--any-port", f"--workers={WORKERS}"]
        pages = ["--admin=127.0.0.1:0", "--stats=off", "--readiness=off"]
        module = ["dataplane"] if self._hops is None else ["benchmarks.hops", "proxy"]
        command = [sys.executable, "-m", *module, *source, *shape, *pages]
        environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0", **self._stamps()}
        process = Process(f"proxy-{number}", command, _CORES, environment)
        stack.callback(process.stop)
        return process

    def _stamps(self) -> dict[str, str]:
        return {} if self._hops is None else {hops.FOLDER: str(self._hops)}

    def cpu_seconds(self) -> dict[str, float]:
        """Of each process and its children so far."""
        return {process.name: cpu.nanoseconds(process.pid) / 1e9 for process in self._processes}

    def phases(self, windows: Sequence[tuple[float, float]]) -> dict[str, float]:
        """Mean milliseconds from each window's begin to the publication and to each proxy's acknowledgement in it."""
        marks = {"published": " version ", **{f"acknowledged by proxy {n}": "state applied" for n in range(PROXIES)}}
        found = {}
        for process, (name, mark) in zip(self._processes, marks.items(), strict=True):
            times = _times(process.log() + process.out(), mark)
            found[name] = statistics.fmean(_after(times, begin) for begin, _ in windows) * 1e3
        return found


def _after(times: Sequence[float], begin: float) -> float:
    """Seconds until the first of `times` from `begin` on; the log's times are cut to the millisecond."""
    at = bisect_left(times, begin - 0.001)
    return times[at] - begin if at < len(times) else 0.0


def _times(log: str, mark: str) -> list[float]:
    """When the lines with `mark` were written."""
    found = []
    for line in log.splitlines():
        when = _TIME.search(line) if mark in line else None
        if when is not None:
            moment = datetime.fromisoformat(f"{when[1]}T{when[2]}.{when[3]}").replace(tzinfo=UTC)
            found.append(moment.timestamp())
    return found
