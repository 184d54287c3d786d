"""The benchmarks, one command: `python -m benchmarks [--only CASE] [--rounds N] [--quick] [--against COMMAND]`.

Starts nginx, Envoy, an aiohttp proxy and the product, one core each, runs the same load against all in interleaved
rounds, prints CPU per unit and paired ratios, and writes `benchmarks/out/results.{json,md}`. Exit status 1 when a bar
does not hold.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks import report
from benchmarks.cases import CASES, IDLE, Case
from benchmarks.load import Backend, Sample, idle_kib, measure
from benchmarks.machine import PROXY_CORE, Process, alone
from benchmarks.proxies import GENERAL, STARTERS, TARGET, Starter, other
from benchmarks.rounds import Rounds, interleave

_IDLE_CONNECTIONS = 2000


class Field:
    """The running proxies, each started when it is first asked for."""

    def __init__(self, starters: dict[str, Starter], backend: Backend, stack: ExitStack) -> None:
        self.starters = starters
        self.backend = backend
        self.stack = stack
        self.running: dict[str, tuple[Process, int]] = {}

    def proxy(self, name: str) -> tuple[Process, int]:
        if name not in self.running:
            launch = self.starters[name](self.backend.port)
            process = Process(name, launch.command, PROXY_CORE, launch.environment)
            self.stack.callback(process.stop)
            process.await_port(launch.port)
            self.running[name] = process, launch.port
        return self.running[name]

    def run(self, case: Case, names: Sequence[str], count: int, seconds: int) -> Rounds:
        def one(name: str) -> Sample:
            process, port = self.proxy(name)
            return measure(process, port, self.backend, case.shape, seconds, case.events)

        for name in names:  # warm: connections, caches, memory
            one(name)
        return interleave(names, one, count, lambda text: tell(f"{case.name}: {text}"))

    def idle(self, names: Sequence[str], connections: int) -> dict[str, float]:
        """Fresh processes: memory that a load run left behind would hide what connections take."""
        found = {}
        for name in names:
            launch = self.starters[name](self.backend.port)
            process = Process(f"{name}-idle", launch.command, PROXY_CORE, launch.environment)
            try:
                process.await_port(launch.port)
                idle_kib(process, launch.port, TARGET, 50)
                found[name] = idle_kib(process, launch.port, TARGET, connections)
            finally:
                process.stop()
            tell(f"idle: {name}")
        return found


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*(c.name for c in CASES), IDLE], help="run only this case")
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--seconds", type=int, help="of load, per proxy and round; default 2")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 second: a look, not a result")
    parser.add_argument("--without", action="append", default=[], choices=list(STARTERS), help="leave a proxy out")
    parser.add_argument(
        "--against",
        metavar="COMMAND",
        help='another proxy, started with this command; "{port}" and "{backend}" are replaced by port numbers',
    )
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 9)
    options.seconds = options.seconds or (1 if options.quick else 2)
    return options


def main() -> int:
    options = arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    starters = {name: starter for name, starter in STARTERS.items() if name not in options.without}
    if options.against:
        starters["against"] = other(options.against)
    wanted = options.only or [*(c.name for c in CASES), IDLE]
    document: dict[str, Any] = {"machine": report.machine(), "rounds": options.rounds, "seconds": options.seconds}
    texts, failed = [], 0
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend = Backend()
        stack.callback(backend.process.stop)
        field = Field(starters, backend, stack)
        for case in (c for c in CASES if c.name in wanted):
            names = [name for name in starters if case.general or name != GENERAL]
            rounds = field.run(case, names, options.rounds, options.seconds)
            texts.append(report.table(case, rounds))
            document[case.name] = {name: [s.as_json() for s in found] for name, found in rounds.samples.items()}
            failed += sum(not holds for _, _, holds in report.verdicts(case, rounds))
            print(texts[-1], flush=True)
        if IDLE in wanted:
            connections = 500 if options.quick else _IDLE_CONNECTIONS
            kib = field.idle([name for name in starters if name != GENERAL], connections)
            texts.append(report.idle_table(kib, connections))
            document[IDLE] = kib
            print(texts[-1])
    report.write(document, "\n".join(texts))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
