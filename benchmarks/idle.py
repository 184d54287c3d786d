"""What does a proxy cost without requests? `python -m benchmarks.idle [--seconds N] [--json FILE]`.

Two proxies of one worker are left alone, one after the other: one with a file, and one under a controller, which is
measured with it. For each process: CPU milliseconds for each second of the span, of all its threads; resident memory
(RSS) and its proportional share of it (PSS: what it has in common with other processes is divided among them). The bars
are for the proxy with a file. Exit status 1 when one does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import cpu
from benchmarks.fleet import Fleet, Folder
from benchmarks.machine import LOAD_CORE, OUT, PROXY_CORE, Process, alone, run_folder
from tests.harness.ports import reserve

SETTLE: Final = 35.0
"""Seconds after the start, for what a start leaves behind: what read the file ends after thirty of them."""

MOST_MS: Final = {"agent": 1.0, "worker": 1.0}
"""CPU milliseconds for each second."""
MOST_MIB: Final = {"agent": 45.0}
"""RSS."""
_BOTH_CORES: Final = f"{PROXY_CORE},{LOAD_CORE}"


@dataclass(frozen=True, slots=True)
class Row:
    """One process over the span."""

    scene: str
    process: str
    ms_per_second: float
    rss_mib: float
    pss_mib: float
    threads: int

    @property
    def holds(self) -> bool | None:
        """None: there is no bar."""
        if self.scene != "file" or self.process not in MOST_MS:
            return None
        return self.ms_per_second <= MOST_MS[self.process] and self.rss_mib <= MOST_MIB.get(self.process, float("inf"))


def with_file(stack: ExitStack) -> dict[str, int]:
    """Start a proxy with a file; answers what was started, by name."""
    port = reserve()
    path = run_folder() / "idle.json"
    path.write_text(json.dumps(_file(port)))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
    command = [sys.executable, "-m", "dataplane", "-f", str(path), "--workers=1", *pages]
    process = Process("idle", command, _BOTH_CORES, environment)
    stack.callback(process.stop)
    process.await_port(port)
    return {"agent": process.pid}


def _file(port: int) -> dict[str, Any]:
    backend = {"host": f"127.0.0.1:{reserve()}"}
    listener = {"name": "http", "protocol": "HTTP", "routes": [{"name": "all", "backends": [backend]}]}
    return {"binds": [{"port": port, "listeners": [listener]}]}


def with_controller(stack: ExitStack) -> dict[str, int]:
    """Start a controller over a folder of a few files, and a proxy under it; answers what was started, by name."""
    folder = Folder(reserve())
    stack.callback(folder.remove)
    fleet = Fleet(folder, stack)
    controller = fleet.start_controller()
    return {"controller": controller.pid, "agent": fleet.start_proxy(1).pid}


SCENES: Final = {"file": with_file, "controller": with_controller}


def measured(scene: str, started: Mapping[str, int], seconds: float) -> list[Row]:
    """A row for each process and for the worker, over a span in which nothing is asked of them."""
    time.sleep(SETTLE)
    _, worker = cpu.tree(started["agent"])
    pids = {**started, "worker": worker}
    before, began = {name: cpu.own_nanoseconds(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(seconds)
    after, span = {name: cpu.own_nanoseconds(pid) for name, pid in pids.items()}, time.monotonic() - began
    return [
        Row(
            scene,
            name,
            (after[name] - before[name]) / span / 1e6,
            cpu.own_kib(pid, "Rss:") / 1024,
            cpu.own_kib(pid, "Pss:") / 1024,
            len(os.listdir(f"/proc/{pid}/task")),
        )
        for name, pid in pids.items()
    ]


def table(rows: list[Row]) -> str:
    lines = [
        "| configured by | process | CPU ms per second | RSS MiB | PSS MiB | threads | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row.ms_per_second:.2f} | {row.rss_mib:.1f} | {row.pss_mib:.1f} | {row.threads}"
        lines.append(f"| {row.scene} | {row.process} | {figures} | {_verdict(row)} |")
    return "\n".join(lines)


def _verdict(row: Row) -> str:
    if row.holds is None:
        return ""
    memory = f" and {MOST_MIB[row.process]:g} MiB (RSS)" if row.process in MOST_MIB else ""
    return f"at most {MOST_MS[row.process]:g} ms{memory}: {'holds' if row.holds else 'DOES NOT HOLD'}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of the span; at least 20 for a result")
    parser.add_argument("--only", choices=list(SCENES), help="only this proxy")
    parser.add_argument("--json", type=Path, default=OUT / "idle.json", metavar="FILE")
    options = parser.parse_args()
    rows: list[Row] = []
    with alone():
        for scene in [options.only] if options.only else SCENES:
            with ExitStack() as stack:
                rows += measured(scene, SCENES[scene](stack), options.seconds)
    document = {"seconds": options.seconds, "rows": [asdict(row) for row in rows]}
    options.json.write_text(json.dumps(document, indent=1))
    print(table(rows))
    return 1 if any(row.holds is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
