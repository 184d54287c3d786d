"""The wall clock jumps a day forth and back while everything runs. Only time stamps follow."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from tests.faults.page import fault
from tests.faults.world import governed, has_route, is_programmed, load, more, route, until

DAY = 86_400


def _preload() -> str:
    (found, *_) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return str(found)


@pytest.mark.slow
@pytest.mark.needs("faketime")
@fault("The clock jumps")
async def test_a_clock_that_jumps_moves_time_stamps_and_nothing_else(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": _preload(),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FLSHM": "0",
    }
    objects = tmp_path / "objects"
    async with governed(tmp_path, objects, environment=environment) as world, load(world.proxy.port) as traffic:
        agent, control = world.proxy.agent, world.controller
        pids = await world.proxy.workers()
        for number, (days, text) in enumerate(((1, "+86400"), (-1, "-86400"), (0, "+0"))):
            clock.write_text(text)
            # Longer than a heartbeat of the workers; keepalive of the stream is due in one of these.
            await asyncio.sleep(4)
            (objects / f"jump-{number}.yaml").write_text(route(f"jump-{number}", f"/jump-{number}"))
            await until(lambda key=f"jump-{number}/": has_route(world.proxy, key), control.process.log)  # type: ignore[misc]
            await until(lambda: is_programmed(control), control.process.log)
            await more(traffic)
            day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * DAY))
            await until(lambda wanted=day: agent.out().splitlines()[-1].startswith(wanted), agent.out)  # type: ignore[misc]
            body = await control.status()
            assert 0 <= body["controller"]["uptimeSeconds"] < 600, json.dumps(body["controller"])
            assert all(0 <= row["lag_seconds"] < 60 for row in body["proxies"])
        assert traffic.is_clean(), traffic
        assert traffic.slowest < 5
        assert await world.proxy.workers() == pids
        assert await world.proxy.metric("gatewright_workers_restarted_total") == 0
        assert agent.log().count("connected to the control plane") == 1
