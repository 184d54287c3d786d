"""The page `docs/scale.md` from the benchmarks' own output. `python -m benchmarks.scale [--run] [--collect]`.

`--run` runs the benchmarks that the page is about, one after the other (half an hour on a quiet machine); `--collect`
takes what they wrote to `benchmarks/out/` into `benchmarks/results/scale.json`, which is committed. Without either the
tables between the marks of the page and the drawings beside it are made anew from that file. A figure on the page that
no run has given does not exist.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from benchmarks import report
from benchmarks.curves import Curve, Line, Row, draw, table
from benchmarks.machine import OUT, ROOT

PAGE: Final = ROOT / "docs" / "scale.md"
DRAWINGS: Final = ROOT / "docs" / "scale"
RESULTS: Final = ROOT / "benchmarks" / "results" / "scale.json"
BENCHMARKS: Final = ("growth", "startup", "fanout", "churn", "propagation", "swap")
"""In the order in which `--run` runs them; each writes `benchmarks/out/<name>.json`."""

CURVES: Final = (
    Curve(
        "memory",
        "Memory",
        "routes",
        "routes",
        "MiB",
        (Line("worker MiB", "one worker"), Line("controller MiB", "controller")),
    ),
    Curve(
        "request",
        "CPU of a request, against the smallest table",
        "routes",
        "routes",
        "times",
        (Line("request, times the smallest", "small GET"),),
        logarithmic=False,
    ),
    Curve(
        "change",
        "CPU of one changed route",
        "routes",
        "routes",
        "ms",
        (Line("cpu ms per changed route", "proxy"), Line("controller ms per edit", "controller")),
    ),
    Curve(
        "start",
        "Start",
        "routes",
        "routes",
        "s",
        (Line("controller seconds", "controller, first state"), Line("proxy seconds", "proxy, ready")),
    ),
    Curve(
        "proxies",
        "One change of 2 KB, acknowledged by all",
        "proxies",
        "proxies",
        "ms",
        (Line("wall_ms_median", "until all have"), Line("cpu_ms_median", "CPU of the controller")),
    ),
    Curve(
        "changes",
        "Changes a second, 1,000 routes",
        "rate",
        "edits a second",
        "cores",
        (Line("controller cores", "controller"), Line("proxy cores", "proxy")),
        logarithmic=False,
    ),
)


def rows(results: Mapping[str, Any]) -> dict[str, list[Row]]:
    """The rows of each curve, by its name. Sizes that only one benchmark measured have only its columns."""
    by_routes: dict[float, dict[str, float]] = {}
    for row in results["growth"]:
        by_routes.setdefault(row["routes"], {}).update(row)
    for found in results["startup"]["results"]:
        if found["form"] == "documents":
            row = by_routes.setdefault(found["routes"], {"routes": found["routes"]})
            row["controller MiB"], row["controller seconds"] = (
                found["controller"]["MiB"],
                found["controller"]["seconds"],
            )
            row["proxy seconds"] = found["proxy"]["seconds"]
    for row in results["churn"]:
        if row["rate"] == results["churn"][0]["rate"]:
            by_routes[row["routes"]]["controller ms per edit"] = row["controller ms per edit"]
    growth: list[Row] = [by_routes[count] for count in sorted(by_routes)]
    fewest = min(row["routes"] for row in results["churn"])
    curve = results["fanout"]["curve"]
    proxies: list[Row] = [{"proxies": float(count), **found} for count, found in curve.items() if count.isdigit()]
    changes: list[Row] = [row for row in results["churn"] if row["routes"] == fewest]
    of_routes: dict[str, list[Row]] = dict.fromkeys(("memory", "request", "change", "start"), growth)
    return {**of_routes, "proxies": proxies, "changes": changes}


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Markdown by the name of its marks on the page."""
    data = rows(results)
    return {
        "machine": _machine(results["machine"]),
        "bars": _bars(results),
        "routes": table(
            {
                "routes": "routes",
                "worker MiB": "worker, MiB",
                "us per request": "us of CPU per request",
                "request, times the smallest": "times the smallest",
                "seconds until served": "load, s",
                "cpu ms per changed route": "one route, ms of proxy CPU",
                "controller MiB": "controller, MiB",
                "controller seconds": "controller start, s",
                "proxy seconds": "proxy start, s",
            },
            data["memory"],
        ),
        "proxies": table(
            {
                "proxies": "proxies",
                "wall_ms_median": "until all have acknowledged, ms",
                "wall_ms_max": "slowest of 20, ms",
                "cpu_ms_median": "CPU of the controller, ms",
            },
            data["proxies"],
        ),
        "changes": table(
            {
                "routes": "routes",
                "rate": "edits a second",
                "controller ms per edit": "controller, ms an edit",
                "controller cores": "controller, cores",
                "proxy ms per edit": "proxy, ms an edit",
                "proxy cores": "proxy, cores",
            },
            results["churn"],
        ),
    }


def _machine(machine: Mapping[str, str]) -> str:
    return f"Measured {machine['when']}: {machine['cores']} cores, {machine['system']}, CPython {machine['python']}."


def _bars(results: Mapping[str, Any]) -> str:
    lines = ["| what | measured | at most | |", "|---|---|---|---|"]
    for what, value, most, unit in _demands(results):
        verdict = "holds" if value <= most else "**does not hold**"
        lines.append(f"| {what} | {value:.4g} {unit} | {most:g} {unit} | {verdict} |")
    return "\n".join(lines)


def _demands(results: Mapping[str, Any]) -> Iterator[tuple[str, float, float, str]]:
    """What the spine must hold at scale: what, measured, limit, unit."""
    swap, propagation, fanout = results["swap"], results["propagation"], results["fanout"]
    held = {row["change"]: row["longest_ms"] for row in swap["changes"]}
    size = f"{swap['routes']:,} routes"
    yield f"longest hold of a loop, {size} loaded", held["load"], 10, "ms"
    yield f"longest hold of a loop, one of {size} changed", held["one route changed"], 10, "ms"
    yield f"longest hold of a loop, any other change of {size}", max(held.values()), 10, "ms"
    yield f"memory after {swap['swaps']:,} swaps against that after 100", swap["rss_ratio"], 1.05, "times"
    yield "failed requests during all of this", swap["traffic"]["failed"], 0, ""
    yield f"write to first 200, mean of {propagation['routes']:,} routes", propagation["ms"]["mean"], 20, "ms"
    yield "write to first 200, longest", propagation["ms"]["max"], 75, "ms"
    yield "answers that were neither the old nor the new", len(propagation["wrong answers"]), 0, ""
    for found in results["startup"]["results"]:
        if found["routes"] >= 10_000:
            form = f"{found['routes']:,} routes as {found['form']}"
            waits = max(wait["longest ms"] for wait in found["controller"]["waits"].values())
            yield f"controller start, {form}", found["controller"]["seconds"], 15, "s"
            yield "longest wait of its xDS server's clients meanwhile", waits, 100, "ms"
            yield f"proxy start, {form}", found["proxy"]["seconds"], 2, "s"
    proxies = fanout["size"]["proxies"]
    state = fanout["cold"]["state_bytes"] / 2**20
    yield f"2 KB change acknowledged by {proxies} proxies, median", fanout["change"]["wall_ms_median"], 200, "ms"
    yield "the same, slowest of 20", fanout["change"]["wall_ms_max"], 200, "ms"
    yield "the same through the folder, slowest of 20", fanout["folder"]["route"]["wall_ms_max"], 200, "ms"
    grown = {name: fanout[name]["rss_grew_bytes"] / 2**20 for name in ("reconnect", "cold", "slow", "refusals")}
    yield f"all {proxies} reconnect with the newest state: memory above before", grown["reconnect"], 64, "MiB"
    yield f"all ask for the whole state of {state:.1f} MiB: memory above before", grown["cold"], 64, "MiB"
    yield "the same, ten slow readers among them: memory above before", grown["slow"], 64, "MiB"
    yield "all refuse a state in 70 KB each: memory above before", grown["refusals"], 64, "MiB"


def with_tables(page: str, found: Mapping[str, str]) -> str:
    """The page with each table between its marks. Raises KeyError for a table or marks that stand alone."""
    unused = set(found)

    def replaced(match: re.Match[str]) -> str:
        unused.discard(match[1])
        return f"<!-- {match[1]} -->\n{found[match[1]]}\n<!-- end -->"

    text = re.sub(r"<!-- ([a-z]+) -->\n.*?<!-- end -->", replaced, page, flags=re.DOTALL)
    if unused:
        raise KeyError(f"the page has no marks for {', '.join(sorted(unused))}")
    return text


def collect() -> None:
    """Take the benchmarks' output into the committed file."""
    found = {name: json.loads((OUT / f"{name}.json").read_text()) for name in BENCHMARKS}
    found["propagation"] = {name: found["propagation"][name] for name in ("routes", "ms", "wrong answers")}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": report.machine(), **found}, indent=1, sort_keys=True) + "\n")


def write() -> None:
    """Tables and drawings from the committed file."""
    results = json.loads(RESULTS.read_text())
    DRAWINGS.mkdir(exist_ok=True)
    data = rows(results)
    for curve in CURVES:
        draw(curve, data[curve.name], DRAWINGS)
    PAGE.write_text(with_tables(PAGE.read_text(), tables(results)))


def run() -> None:
    """All benchmarks. One that does not hold is reported by the page, not by stopping here."""
    for name in BENCHMARKS:
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(OUT / f"{name}.json")]
        done = subprocess.run(command, cwd=ROOT, check=False)
        print(f"{name}: exit status {done.returncode}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("--run", action="store_true", help="run all the benchmarks of the page first")
    parser.add_argument("--collect", action="store_true", help="take what they wrote to benchmarks/out")
    options = parser.parse_args()
    steps: tuple[tuple[bool, Callable[[], None]], ...] = ((options.run, run), (options.run or options.collect, collect))
    for wanted, step in steps:
        if wanted:
            step()
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
