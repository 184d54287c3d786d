"""Rows of `tests/hostile` over real sockets, against a proxy with one worker that somebody has started: how long a
polite client waits meanwhile, in CPU time of the worker. `benchmarks.hostile` does so with all rows, `test_live_sample`
with a few.
"""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Final

from tests.hostile.live_peers import UNHURRIED, Case, Pace, Ports, attack
from tests.hostile.live_polite import Polite
from tests.hostile.world import EVIL_PORT

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PATIENCE: Final = 60.0


def file_of(config: str, ports: Ports, addresses: str = "127.0.0.1") -> str:
    """A row's configuration at these ports, with the polite route answering by itself."""
    places = {
        "port: 8080": f"port: {ports.proxy}\n  addresses: [{addresses}]",
        "backends: [{host: 127.0.0.1:9000}]": "policies: {directResponse: {status: 200, body: x}}",
        "127.0.0.1:9001": f"127.0.0.1:{ports.plain}",
        "port: 9001": f"port: {ports.plain}",
        f"127.0.0.1:{EVIL_PORT}": f"127.0.0.1:{ports.evil}",
        f"port: {EVIL_PORT}": f"port: {ports.evil}",
    }
    for old, new in places.items():
        config = config.replace(old, new)
    return config


def measure(case: Case, ports: Ports, worker: int, number: int, pace: Pace = UNHURRIED) -> float:
    """Seconds of CPU that the polite client waited at most. `number`: of this attack; no other has its addresses."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=attack, args=(case, ports, number, theirs, pace))
    process.start()
    theirs.close()
    try:
        with Polite(ports.proxy, worker) as polite:
            _heard(ours, "did not begin")  # all have sent what they may
            polite.await_served()
            ours.send("go")
            _heard(ours, "did not end")
        ours.send("leave")
        return polite.longest  # with the answer that it waited for when all was over
    finally:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
        ours.close()


def _heard(pipe: Connection, otherwise: str) -> None:
    if not pipe.poll(PATIENCE):
        raise TimeoutError(f"the hostile peers {otherwise} within {PATIENCE:g} s")
    pipe.recv()
