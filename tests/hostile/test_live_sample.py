"""Hostile rows over real sockets: a sample of what `python -m benchmarks.hostile` sends of all of them.

32 connections hold back the last byte of what each sends, or an endpoint does so of its answers, and send it together;
then another client waits. The rows are those that once kept it waiting for a tenth of a second to three seconds. The
bound is wide: figures are those of the benchmark, and this is the guard against what is ten times as much.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.fakes.proxy_process import running
from tests.harness import yardstick
from tests.harness.ports import reserve
from tests.harness.saved import save
from tests.hostile.live import file_of, measure
from tests.hostile.live_peers import HTTP2, MANY, ONE, Case, Pace, Ports

pytestmark = pytest.mark.process

LIMIT: Final = 0.150
"""CPU seconds of the worker, on the machine of the yardstick."""
TRIES: Final = 3
PACE: Final = Pace(0.1, 0.3)

SAMPLE: Final = (
    Case("client, HTTP/1.1, JSON with 80,000 fractions"),
    Case("client, HTTP/1.1, MCP params with 170,000 keys"),
    Case("endpoint, HTTP/1.1, MCP results with 170,000 keys"),
    Case("client, HTTP/1.1, A2A messages of gRPC with 4,000 parts"),
    Case("client, HTTP/1.1, A2A messages of gRPC with 4,000 parts", HTTP2),
    Case("client, HTTP/2, targets that 32 conditions walk over"),
)
BY_CONFIG: Final = {case.row.config: [it for it in SAMPLE if it.row.config == case.row.config] for case in SAMPLE}


def allowed() -> float:
    """The limit on this machine, as busy as it is."""
    return LIMIT * max(1.0, min(yardstick.measure() for _ in range(3)) / yardstick.REFERENCE)


def longest(case: Case, ports: Ports, worker: int, first: int) -> float:
    """What the polite client waited: the least of a few tries, where one is too long. `first`: number of the first."""
    least = float("inf")
    for number in range(first, first + TRIES):
        least = min(least, measure(case, ports, worker, number, PACE))
        if least <= LIMIT:
            break
    return least


@pytest.mark.parametrize("config", BY_CONFIG, ids=[cases[0].name for cases in BY_CONFIG.values()])
async def test_nobody_waits_for_what_many_connections_send_at_once(config: str, tmp_path: Path) -> None:
    asked = Ports(reserve(), reserve(), reserve())
    save(tmp_path / "hostile.yaml", file_of(config, asked))
    async with running("-f", str(tmp_path / "hostile.yaml"), workers=1) as proxy:
        await proxy.ready()
        (worker,) = await proxy.workers()
        ports = Ports(proxy.at(asked.proxy), asked.plain, asked.evil)
        wanted = [case.of(origin) for case in BY_CONFIG[config] for origin in (ONE, MANY)]
        waits = {
            (case.name, case.origin): longest(case, ports, worker, TRIES * each) for each, case in enumerate(wanted)
        }
        assert max(waits.values()) <= LIMIT or max(waits.values()) <= allowed(), waits
