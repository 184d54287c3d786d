"""What do hostile peers make others wait, live? `python -m benchmarks.hostile [--only WORDS] [--json FILE]`.

Each row of `tests/hostile/rows.py` against a real proxy of one worker, over real sockets, on 32 connections at once:
all from one address, then each from an address of its own (of 127.0.0.0/8), then each from a /64 of its own of one
IPv6 /59, where this machine lets us have one (root, and `ip` of iproute2). Each connection sends what its row says,
but holds back the last byte of its first message; when all have done so they send it together, and go on as fast as
they are read. Rows of HTTP/1.1 whose message has a body that fits into a window are also sent as 60 streams of each
of 32 connections of HTTP/2, all of whose last bytes come together. Endpoints hold back the last byte of their answers.

Meanwhile a polite client asks for a fixed answer every two milliseconds. What it waits is CPU time of the worker's
thread between its question and the answer: a busy machine gives the same figure, but for what the worker computes until
the client is scheduled, so the least of a few tries counts. Demands 50 ms in each row.

`--json FILE` keeps the figures there, those of rows that were not sent as they were.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.machine import OUT, PROXY_CORE, Process, alone, run_folder
from tests.harness.ports import reserve
from tests.hostile.live import file_of, measure
from tests.hostile.live_peers import CONNECTIONS, HTTP2, MANY, NETWORK, ONE, SITE, Case, Ports
from tests.hostile.rows import ROWS

MOST_MS: Final = 50.0
TRIES: Final = 3

Found = dict[str, dict[str, float]]
"""Milliseconds by the name of a case and by origin."""


@contextmanager
def proxy(config: str, ports: Ports) -> Iterator[int]:
    """One worker that serves it; its process."""
    path = run_folder() / "hostile.yaml"
    path.write_text(file_of(config, ports, '127.0.0.1, "::1"'))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
    command = [sys.executable, "-m", "dataplane", "-f", str(path), "--workers=1", *pages]
    process = Process("hostile", command, PROXY_CORE, environment)
    try:
        process.await_port(ports.proxy)
        (worker,) = (each for each in process.children() if _is_worker(each))
        yield worker
    finally:
        process.stop()


def _is_worker(pid: int) -> bool:
    return "gw-worker" in Path(f"/proc/{pid}/comm").read_text()


def cases(words: Sequence[str]) -> list[Case]:
    """Those whose names have one of these words, or all."""
    found = [Case(row.label, way) for row in ROWS for way in Case.ways(row)]
    return [each for each in found if not words or any(word in each.name for word in words)]


@contextmanager
def origins() -> Iterator[tuple[str, ...]]:
    """Those that there are on this machine."""
    route = ["ip", "-6", "route", "add", "local", NETWORK, "dev", "lo"]
    try:
        done = subprocess.run(route, capture_output=True, text=True, check=False)
        why = done.stderr.strip()
    except OSError as error:
        why = str(error)
    if why:
        print(f"nothing is sent from {SITE}: {' '.join(route)}: {why}")
        yield ONE, MANY
        return
    try:
        yield ONE, MANY, SITE
    finally:
        subprocess.run([word.replace("add", "del") for word in route], check=False)


def run(wanted: list[Case], places: Sequence[str], tries: int) -> Found:
    """Each case from each of these origins."""
    found: Found = {}
    number = 0
    ordered = sorted(wanted, key=lambda case: case.row.config)
    for config, group in groupby(ordered, key=lambda case: case.row.config):
        ports = Ports(reserve(), reserve(), reserve())
        with proxy(config, ports) as worker:
            for case in group:
                for origin in places:
                    least = float("inf")
                    for _ in range(tries):
                        number += 1
                        least = min(least, 1e3 * measure(case.of(origin), ports, worker, number))
                        if least <= MOST_MS:
                            break
                    found.setdefault(case.name, {})[origin] = round(least, 1)
                print(line(case.name, found[case.name]), flush=True)
    return found


def line(name: str, waits: dict[str, float]) -> str:
    """Of the table."""
    mark = "" if max(waits.values()) <= MOST_MS else "  too long"
    return f"{name:100}" + "".join(f"{wait:>14.1f}" for wait in waits.values()) + mark


def keep(found: Found, path: Path) -> None:
    """Put the figures into this file, beside those of other cases that it has."""
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**old, **found}, indent=0, sort_keys=True) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.hostile", description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="rows whose names have one of these words")
    parser.add_argument("--tries", type=int, default=TRIES, help="at most, for each figure")
    parser.add_argument("--json", type=Path, default=OUT / "hostile.json", help="put the figures into this file")
    options = parser.parse_args()
    with alone(), origins() as places:
        title = f"{CONNECTIONS} connections ({HTTP2}: of 60 streams)"
        print(f"{title:100}" + "".join(f"{place:>14}" for place in places) + "  ms of CPU")
        found = run(cases(options.only), places, options.tries)
    keep(found, options.json)
    late = [name for name, waits in found.items() if max(waits.values()) > MOST_MS]
    print(f"{len(found)} rows, of which {len(late)} make others wait for more than {MOST_MS:.0f} ms")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
