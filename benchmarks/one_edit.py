"""What does one edited route among 10,000 cost the controller? `python -m benchmarks.one_edit [--edits N]`.

The real composition root runs in this process over a folder, with a real proxy connected. A route is edited in a file
of its own, and in a file that holds a hundred. Counts runs of the translator of routes and resources that changed, and
takes the CPU time of the whole process from the edit until the proxy has acknowledged. Demands for the file of its own:
one run, at most 3 resources, 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.fleet import GATEWAY, ROUTES_PER_FILE, Fleet, Folder
from benchmarks.machine import OUT, alone
from controlplane.app import App, running
from controlplane.settings import Settings
from tests.harness.ports import reserve

_GATEWAY = f"default/{GATEWAY}"
_TRANSLATIONS = "HTTPRoute translations"
_MOST_RESOURCES = 3
_MOST_MS = 5.0


class Meter:
    """Counts what an edit makes the controller do."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.emitted = 0
        app.pipeline.program.resources.subscribe(self._count)

    def _count(self, changes: Sequence[object]) -> None:
        self.emitted += len(changes)

    async def edit(self, change: Callable[[], None]) -> dict[str, float]:
        """Make the change; CPU milliseconds, runs and resources until the proxy has acknowledged."""
        pipeline = self.app.pipeline
        sequence, runs, emitted = pipeline.snapshots.newest(_GATEWAY).sequence, pipeline.program.runs(), self.emitted
        started, spent = time.monotonic(), time.process_time()
        change()
        while pipeline.fleet.view(_GATEWAY).answered_by(sequence + 1) < 1:
            await asyncio.sleep(0.005)
        spent, taken = time.process_time() - spent, time.monotonic() - started
        after = pipeline.program.runs()
        return {
            "runs of the translator": after[_TRANSLATIONS] - runs[_TRANSLATIONS],
            "runs of all transforms": sum(after.values()) - sum(runs.values()),
            "resources": self.emitted - emitted,
            "cpu ms": spent * 1e3,
            "ms until acknowledged": taken * 1e3,
        }


async def several(meter: Meter, edits: int, change: Callable[[int], None]) -> dict[str, float]:
    """Medians over several edits, each after the controller has come to rest."""
    rows = []
    for number in range(edits):
        await asyncio.sleep(0.3)
        rows.append(await meter.edit(lambda number=number: change(number + 2)))  # type: ignore[misc]
    return {name: float(statistics.median(row[name] for row in rows)) for name in rows[0]}


async def measure(routes: int, edits: int) -> dict[str, Any]:
    with ExitStack() as stack:
        stack.enter_context(alone())
        folder = Folder(reserve())
        stack.callback(folder.remove)
        folder.routes(range(routes - 1), 1)
        folder.single_route(routes - 1, 1)
        fleet = Fleet(folder, stack)
        settings = Settings(folder.path, fleet.socket, ("127.0.0.1", 0), ("127.0.0.1", 0))
        async with running(settings) as app:
            await asyncio.wait_for(app.pipeline.ready.wait(), 300)
            meter = Meter(app)
            proxy = await asyncio.to_thread(fleet.start_proxy, 1)
            newest = app.pipeline.snapshots.newest(_GATEWAY).sequence
            while app.pipeline.fleet.view(_GATEWAY).answered_by(newest) < 1:
                await asyncio.sleep(0.05)
            part = range(ROUTES_PER_FILE)
            found = {
                "route in a file of its own": await several(meter, edits, lambda v: folder.single_route(routes - 1, v)),
                f"file of {len(part)} routes": await several(meter, edits, lambda v: folder.routes(part, v)),
            }
            await asyncio.to_thread(proxy.stop)
            return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.one_edit", description=__doc__)
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--edits", type=int, default=15)
    options = parser.parse_args()
    found = asyncio.run(measure(options.routes, options.edits))
    text = json.dumps({"routes": options.routes, **found}, indent=1)
    (OUT / "one_edit.json").write_text(text)
    print(text)
    own = found["route in a file of its own"]
    holds = own["runs of the translator"] == 1 and own["resources"] <= _MOST_RESOURCES and own["cpu ms"] <= _MOST_MS
    print("holds" if holds else "DOES NOT HOLD")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
