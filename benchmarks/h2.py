"""HTTP/2 and gRPC beside nginx and Envoy: CPU per request, and what HTTP/2 costs more than HTTP/1 on either side.

`python -m benchmarks.h2 [--rounds N] [--quick] [--only GROUP]`. The proxies, their 1,000 routes and the backend are
those of `benchmarks/run`; the load is `h2load` with 32 connections of 10 streams each. All rows of all groups are
measured in each round, so that both ratios and differences are of figures of the same round. Exit status 1 when a bar
does not hold.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import proxies, report
from benchmarks.h2_load import Streams
from benchmarks.load import Backend, Load, Sample, Shape, measure
from benchmarks.machine import OUT, PROXY_CORE, Process, alone
from benchmarks.proxies import TARGET, Starter
from benchmarks.rounds import Rounds, interleave

CONNECTIONS: Final = 32
STREAMS: Final = 10
MESSAGE: Final = 128
"""Bytes of a message of gRPC."""
MOST_MORE: Final = 20.0
"""Microseconds that HTTP/2 may cost more than HTTP/1, for each request and side."""

ONE: Final = Shape(TARGET, CONNECTIONS)
TWO: Final = Streams(TARGET, CONNECTIONS, STREAMS)
PATHS: Final = Streams(f"{TARGET}&n=", CONNECTIONS, STREAMS, targets=1000)
CALLS: Final = Streams(TARGET, CONNECTIONS, STREAMS, message=MESSAGE)


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy under a load. Rows with the same `starter` share a process."""

    name: str
    starter: Starter
    load: Load


@dataclass(frozen=True, slots=True)
class Bar:
    """What the median of `peer / ours` must be at least, and what we aim at."""

    least: float
    aim: float


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are compared: ours, then those of others. `bars`: by name of a row."""

    name: str
    title: str
    rows: tuple[Row, ...]
    bars: Mapping[str, Bar] = field(default_factory=dict)


_ENVOY: Final = Bar(1.2, 1.7)
_NGINX: Final = Bar(0.4, 0.6)
GROUPS: Final = (
    Group(
        "get",
        "GET, clients of HTTP/2, backend of HTTP/1",
        (
            Row("gatewright 2 to 1", proxies.gatewright_to_http1, TWO),
            Row("nginx 2 to 1", proxies.nginx_http2, TWO),
            Row("envoy 2 to 1", proxies.envoy, TWO),
        ),
        {"nginx 2 to 1": _NGINX, "envoy 2 to 1": _ENVOY},
    ),
    Group(
        "through",
        "GET, clients and backend of HTTP/2",
        (Row("gatewright 2 to 2", proxies.gatewright_to_http2, TWO), Row("envoy 2 to 2", proxies.envoy_to_http2, TWO)),
        {"envoy 2 to 2": _ENVOY},
    ),
    Group(
        "paths",
        "GET of 1,000 different targets in turn, clients of HTTP/2, backend of HTTP/1",
        (
            Row("gatewright paths", proxies.gatewright_to_http1, PATHS),
            Row("nginx paths", proxies.nginx_http2, PATHS),
            Row("envoy paths", proxies.envoy, PATHS),
        ),
    ),
    Group(
        "grpc",
        f"gRPC, unary, messages of {MESSAGE} bytes",
        (Row("gatewright gRPC", proxies.gatewright_to_http2, CALLS), Row("envoy gRPC", proxies.envoy_to_http2, CALLS)),
        {"envoy gRPC": Bar(1.2, 1.2)},
    ),
    Group(
        "http1",
        "GET, clients of HTTP/1 (wrk, one request at a time on each connection)",
        (
            Row("gatewright 1 to 1", proxies.gatewright_to_http1, ONE),
            Row("gatewright 1 to 2", proxies.gatewright_to_http2, ONE),
        ),
    ),
)
SIDES: Final = (
    ("clients of HTTP/2 instead of HTTP/1", "gatewright 2 to 1", "gatewright 1 to 1"),
    ("backend of HTTP/2 instead of HTTP/1, clients of HTTP/2", "gatewright 2 to 2", "gatewright 2 to 1"),
    ("backend of HTTP/2 instead of HTTP/1, clients of HTTP/1", "gatewright 1 to 2", "gatewright 1 to 1"),
)
"""What is compared, and whose difference it is. The last one is for knowing: its connections carry one request each."""
JUDGED: Final = 2
"""So many of them have a bar."""


def run(groups: Sequence[Group], rounds: int, seconds: int) -> Rounds:
    """Samples of all rows, round by round."""
    rows = {row.name: row for group in groups for row in group.rows}
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend = Backend()
        stack.callback(backend.process.stop)
        running: dict[Starter, tuple[Process, int]] = {}

        def one(name: str) -> Sample:
            starter, load = rows[name].starter, rows[name].load
            if starter not in running:
                launch = starter(backend.port)
                process = Process(starter.__name__, launch.command, PROXY_CORE, launch.environment)
                stack.callback(process.stop)
                process.await_port(launch.port)
                running[starter] = process, launch.port
            return measure(*running[starter], backend, load, seconds)

        for name in rows:  # warm: connections, caches, memory
            one(name)
        return interleave([*rows], one, rounds, lambda text: print(text, file=sys.stderr, flush=True))


def table(group: Group, rounds: Rounds) -> str:
    """One group as a Markdown table with its verdicts."""
    ours = group.rows[0].name
    head = "| proxy | us per request | per second | p50 us | p99 us | peer / gatewright (least to most) |"
    lines = [f"### {group.title}", "", head, "|---|---|---|---|---|---|"]
    for row in group.rows:
        figures = [rounds.median(row.name, name) for name in ("microseconds", "per_second", "p50", "p99")]
        ratio = ""
        if row.name != ours:
            ratios = rounds.ratios(row.name, ours, "microseconds")
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append("| " + " | ".join((row.name, *(f"{figure:,.1f}" for figure in figures), ratio)) + " |")
    verdicts = [text for text, _ in judged(group, rounds)]
    return "\n".join([*lines, "", *verdicts, ""])


def judged(group: Group, rounds: Rounds) -> list[tuple[str, bool]]:
    """The group's bars, and whether they hold."""
    found = []
    for name, bar in group.bars.items():
        ratio = statistics.median(rounds.ratios(name, group.rows[0].name, "microseconds"))
        holds = ratio >= bar.least
        verdict = "holds" if holds else "DOES NOT HOLD"
        found.append((f"- {name}: {ratio:.2f}, at least {bar.least:.2f}, aim {bar.aim:.2f}: {verdict}", holds))
    return found


def differences(rounds: Rounds) -> list[tuple[str, bool]]:
    """What each side costs more over HTTP/2, in the rounds that have both figures."""
    found = []
    for number, (title, two, one) in enumerate(SIDES):
        if not {two, one} <= rounds.samples.keys():
            continue
        pairs = zip(rounds.samples[two], rounds.samples[one], strict=True)
        more = [p.microseconds - q.microseconds for p, q in pairs]
        median = statistics.median(more)
        text = f"- {title}: {median:+.1f} us for each request ({min(more):+.1f} to {max(more):+.1f})"
        holds = median <= MOST_MORE
        if number < JUDGED:
            text += f", at most {MOST_MORE:.0f}: {'holds' if holds else 'DOES NOT HOLD'}"
        found.append((text, holds or number >= JUDGED))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h2", description=__doc__)
    parser.add_argument("--only", action="append", choices=[group.name for group in GROUPS], help="only this group")
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--seconds", type=int, help="of load, per row and round; default 2")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 second: a look, not a result")
    options = parser.parse_args()
    count = options.rounds or (3 if options.quick else 9)
    groups = [group for group in GROUPS if not options.only or group.name in options.only]
    rounds = run(groups, count, options.seconds or (1 if options.quick else 2))
    sides = differences(rounds)
    text = "\n".join([table(group, rounds) for group in groups] + [text for text, _ in sides])
    text += f"\n\nAt most {rounds.noise():.2f} cores were busy with something else in any round.\n"
    print(text)
    document: dict[str, Any] = {
        "machine": report.machine(),
        "samples": {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()},
    }
    path: Path = OUT / "h2"
    path.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)
    held = [holds for group in groups for _, holds in judged(group, rounds)] + [holds for _, holds in sides]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
