"""What do hundreds of proxies cost the controller? `python -m benchmarks.fanout [--proxies N] [--resources N]`.

Simulated proxies in two processes (`lean_fleet`), each with a connection of its own, against the production server in a
third process: one change of 2 KB until all have acknowledged it, through the snapshots and through the folder; all
coming back at once, holding the newest state, an older one, or nothing; ten slow readers among them; all refusing.
Every measure has a process of its own, so that its peak of memory is its own. `fanout_measures` says how.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.fanout_measures import Size
from benchmarks.machine import OUT, ROOT, alone

Json = dict[str, Any]

LONGEST: Final = 600
_MB: Final = 1 << 20

MOST_MS: Final = 200.0
MOST_RECONNECT_BYTES: Final = 2048
MOST_GROWTH: Final = 64 * _MB
"""Of a cold storm: 16 MiB under way, the shared responses of one state, and what 500 connections are to gRPC."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. `read` takes a figure out of the measure's answer; no `most`: a figure without a target."""

    measure: str
    label: str
    unit: str
    read: Callable[[Json], float]
    most: float | None = None


def _of(*path: str, scale: float = 1.0) -> Callable[[Json], float]:
    def read(found: Json) -> float:
        value: Any = found
        for key in path:
            value = value[key]
        return float(value) / scale

    return read


ROWS: Final = (
    Row("change", "2 KB change, all acknowledged: median", "ms", _of("wall_ms_median"), MOST_MS),
    Row("change", "… slowest", "ms", _of("wall_ms_max"), MOST_MS),
    Row("change", "… CPU of the controller", "ms", _of("cpu_ms_median")),
    Row("change_1000", "the same in a state of 1,000: median", "ms", _of("wall_ms_median"), MOST_MS),
    Row("bare", "gRPC alone, same bytes: median", "ms", _of("wall_ms_median")),
    Row("bare", "… CPU", "ms", _of("cpu_ms_median")),
    Row("folder", "file with a changed route, all acknowledged: median", "ms", _of("route", "wall_ms_median"), MOST_MS),
    Row("folder", "… slowest", "ms", _of("route", "wall_ms_max"), MOST_MS),
    Row("folder", "… CPU of the controller", "ms", _of("route", "cpu_ms_median")),
    Row("folder", "changed Gateway, Programmed again: median", "ms", _of("gateway_until_programmed", "wall_ms_median")),
    Row("reconnect", "all back with the newest state", "s", _of("wall_s")),
    Row("reconnect", "… most bytes to one", "B", _of("most_bytes_to_one"), MOST_RECONNECT_BYTES),
    Row("reconnect", "… peak memory above before", "MiB", _of("rss_grew_bytes", scale=_MB)),
    Row("outdated", "all back with an older state", "s", _of("wall_s")),
    Row("outdated", "… peak memory above before", "MiB", _of("rss_grew_bytes", scale=_MB)),
    Row("forgotten", "all back with a state that is not remembered", "s", _of("wall_s")),
    Row("forgotten", "… peak memory above before", "MiB", _of("rss_grew_bytes", scale=_MB)),
    Row("cold", "bytes of one state", "MiB", _of("state_bytes", scale=_MB)),
    Row("cold", "all hold nothing: asked for together", "MiB", _of("asked_bytes", scale=_MB)),
    Row("cold", "… until all have it", "s", _of("wall_s")),
    Row("cold", "… CPU of the controller", "s", _of("cpu_s")),
    Row("cold", "… peak memory", "MiB", _of("rss_peak_bytes", scale=_MB)),
    Row("cold", "… above before", "MiB", _of("rss_grew_bytes", scale=_MB), MOST_GROWTH / _MB),
    Row("slow", "ten slow readers among them: until the others have it", "s", _of("wall_s")),
    Row("slow", "… peak memory", "MiB", _of("rss_peak_bytes", scale=_MB)),
    Row("slow", "… above before", "MiB", _of("rss_grew_bytes", scale=_MB), MOST_GROWTH / _MB),
    Row("refusals", "all refuse in a message of 70 KB: states sent to each", "", _of("states_to_one"), 1.0),
    Row("refusals", "… peak memory above before", "MiB", _of("rss_grew_bytes", scale=_MB), MOST_GROWTH / _MB),
)


def measure(name: str, size: Size) -> Json:
    """Run one measure in a process of its own."""
    numbers = [str(size.proxies), str(size.resources), str(size.changes)]
    command = [sys.executable, "-m", "benchmarks.fanout_measures", name, *numbers]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_all(size: Size) -> Json:
    """Every measure, by name."""
    small = Size(size.proxies, min(1000, size.resources), size.changes)
    sizes = {row.measure: size for row in ROWS} | {"change_1000": small, "curve": small}
    found: Json = {"size": asdict(size)}
    with alone():
        for name, wanted in sizes.items():
            found[name] = measure(name.partition("_")[0], wanted)
    return found


def table(found: Json) -> tuple[str, bool]:
    """The figures beside their targets, and whether all hold."""
    lines, holds = [], True
    for row in ROWS:
        value = row.read(found[row.measure])
        verdict = ""
        if row.most is not None:
            holds &= value <= row.most
            verdict = f"<= {row.most:g}" + ("" if value <= row.most else "  DOES NOT HOLD")
        lines.append(f"{row.label:<58}{value:>10.1f} {row.unit:<4} {verdict}".rstrip())
    lines.append("proxies: ms until all acknowledged (CPU ms)")
    for count, point in found["curve"].items():
        if count != "pid":
            lines.append(f"{count:>7}: {point['wall_ms_median']:>7.1f} ({point['cpu_ms_median']:.1f})")
    return "\n".join(lines), holds


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.fanout", description=__doc__)
    parser.add_argument("--proxies", type=int, default=500)
    parser.add_argument("--resources", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--json", type=Path, default=OUT / "fanout.json", help="where the figures go")
    parser.add_argument("--quick", action="store_true", help="100 proxies, 1,000 resources, 5 changes: a look")
    options = parser.parse_args()
    size = Size(100, 1000, 5) if options.quick else Size(options.proxies, options.resources, options.changes)
    found = measure_all(size)
    text, holds = table(found)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1))
    print(text)
    print("holds" if holds else "DOES NOT HOLD")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
