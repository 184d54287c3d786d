"""Results as text for people (Markdown) and as JSON. Unflattering numbers stay in."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.cases import Bar, Case
from benchmarks.machine import OUT, find
from benchmarks.proxies import PRODUCT
from benchmarks.rounds import Rounds


def table(case: Case, rounds: Rounds) -> str:
    """One case as a Markdown table with its verdicts."""
    head = f"| proxy | us per {case.unit} | per second | p50 us | p99 us | peer / {PRODUCT} (least to most) |"
    lines = [f"### {case.title}", "", head, "|---|---|---|---|---|---|"]
    for name in rounds.samples:
        figures = [rounds.median(name, field) for field in ("microseconds", "per_second", "p50", "p99")]
        lines.append("| " + " | ".join((name, *(f"{f:,.1f}" for f in figures), _ratio(case, rounds, name))) + " |")
    lines += ["", *(_verdict(*row) for row in verdicts(case, rounds))]
    lines.append(f"At most {rounds.noise():.2f} cores were busy with something else in any round.")
    return "\n".join(lines) + "\n"


def _ratio(case: Case, rounds: Rounds, name: str) -> str:
    if name == PRODUCT or PRODUCT not in rounds.samples:
        return ""
    ratios = rounds.ratios(name, PRODUCT, case.measured)
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def verdicts(case: Case, rounds: Rounds) -> list[tuple[Bar, float, bool]]:
    """Each bar whose two proxies ran: with the median ratio, and whether it holds."""
    found = []
    for bar in case.bars:
        if {bar.peer, PRODUCT} <= rounds.samples.keys():
            median = statistics.median(rounds.ratios(bar.peer, PRODUCT, case.measured))
            found.append((bar, median, bar.least <= median <= bar.most))
    return found


def _verdict(bar: Bar, median: float, holds: bool) -> str:
    wanted = f"at least {bar.least:.2f}" if bar.least else f"at most {bar.most:.2f}"
    aim = f", aim {bar.aim:.2f}" if bar.aim else ""
    return f"- {bar.peer}: {median:.2f}, {wanted}{aim}: {'holds' if holds else 'DOES NOT HOLD'}"


def idle_table(kib: Mapping[str, float], connections: int) -> str:
    lines = [
        f"### Memory per idle connection ({connections:,} held, one request each)",
        "",
        "| proxy | KiB |",
        "|---|---|",
    ]
    lines += [f"| {name} | {value:.1f} |" for name, value in kib.items()]
    return "\n".join(lines) + "\n"


def machine() -> dict[str, str]:
    """What a reader needs to judge the figures."""
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "nginx": _version([find("nginx"), "-v"]),
        "envoy": _version([find("envoy"), "--version"]),
    }


def _version(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().replace("\n", " ")[-90:]


def write(document: Mapping[str, Any], text: str) -> None:
    """`benchmarks/out/results.json` and `results.md`."""
    (OUT / "results.json").write_text(json.dumps(document, indent=1))
    (OUT / "results.md").write_text(text)
