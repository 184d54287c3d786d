"""What a local limit costs a worker: `python -m benchmarks.rate_limits [--rounds N] [--json FILE]`.

With and without keys: one exchange through the step of one policy that lets it pass, in memory shared as the workers of
a proxy share it. CPU time of the thread, without the exchange itself. The least of several rounds counts: other work on
the machine adds to a figure and never takes from it. Beside each figure its ratio to the limit without a key.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Any, Final

from dataplane.chain.filter import Env
from dataplane.exchange import Exchange
from dataplane.filters.steps import rate_limit
from dataplane.http.heads import Head
from dataplane.link import buckets, locks
from dataplane.link.commits import Commits
from gatewright.wire.v1 import traffic_pb2

PLAIN: Final = "one limit without a key"
KEYS: Final = 100_000
TURNS: Final = 10_000
"""Exchanges of a round, of one client."""
MUCH: Final = 2_000_000_000
"""A limit that no load reaches."""
BY_ADDRESS: Final = "source.address"

Step = Callable[[Exchange], Any]


def _step(shared: buckets.Buckets, *keys: str) -> Step:
    """A policy with a limit for each of these keys; "" is none."""
    env = Env(clock=time.monotonic, random=random.random, buckets=shared)
    config = traffic_pb2.RateLimit()
    for key in keys:
        config.local.add(requests=MUCH, unit=traffic_pb2.UNIT_SECONDS, key=key)
    built = rate_limit.build(config, env)
    assert built is not None and built.request is not None
    return built.request


def _nanoseconds(step: Step, clients: Sequence[str]) -> float:
    """CPU of an exchange, for addresses of clients in this order."""
    for client in set(clients):
        step(_exchange(client))
    return (_time(step, clients) - _time(lambda x: None, clients)) / len(clients)


def _exchange(client: str) -> Exchange:
    x = Exchange(None, b"GET", b"/", Head(b"\r\n"), 0.0)
    x.peer = client
    return x


def _time(step: Step, clients: Sequence[str]) -> int:
    x = _exchange("")
    begun = thread_time_ns()
    for client in clients:
        x.peer = client
        step(x)
    return thread_time_ns() - begun


def measure(rounds: int) -> dict[str, float]:
    """Nanoseconds for each case, the least of `rounds`."""
    _, region = Commits.create(**buckets.SECTIONS)
    assert locks.initialise(region.section(buckets.LOCKS))
    shared = buckets.Buckets.of(region)
    one = ["192.0.2.7"] * TURNS
    many = [f"198.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in range(KEYS)]
    random.Random(1).shuffle(many)
    cases: dict[str, tuple[Step, Sequence[str]]] = {
        PLAIN: (_step(shared, ""), one),
        "two limits without a key": (_step(shared, "", ""), one),
        f"one limit by {BY_ADDRESS}, one client": (_step(shared, BY_ADDRESS), one),
        f"one limit by {BY_ADDRESS}, 100,000 clients": (_step(shared, BY_ADDRESS), many),
        f"one limit by {BY_ADDRESS} and one without a key": (_step(shared, BY_ADDRESS, ""), one),
        f"two limits by {BY_ADDRESS}": (_step(shared, BY_ADDRESS, BY_ADDRESS), one),
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (step, clients) in cases.items():
            taken[name].append(_nanoseconds(step, clients))
    return {name: min(each) for name, each in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    figures = measure(options.rounds)
    for name, cost in figures.items():
        print(f"{cost / 1000:8.2f} us  {cost / figures[PLAIN]:5.1f}  {name}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
