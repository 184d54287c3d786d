"""The proxy with one step in every route that waits and does nothing, so that all requests take the general path.

`python -m benchmarks.general_path -f FILE ...` is `python -m dataplane` with workers started from here; the step stands
in for the policy `headerModifiers`, which the file sets on every route (`proxies.gatewright_general`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any

from dataplane.chain.filter import STEP, Env, Filter, Row

_WORKER = "--as-worker"


def wait(_: Any) -> Awaitable[None]:
    """A request hook that gives up one turn of the loop."""
    return asyncio.sleep(0)


def build(_: Any, __: Env) -> Filter:
    return Filter("waits", request=wait)


ROWS = (Row("header_modifiers", build, STEP, "benchmark: waits, and does nothing"),)


def main() -> int:
    if _WORKER in sys.argv:
        sys.argv.remove(_WORKER)
        from dataplane import worker

        worker.main(extra_rows=ROWS)
        return 0
    from dataplane.__main__ import main as agent

    return agent(worker_command=(sys.executable, "-m", "benchmarks.general_path", _WORKER))


if __name__ == "__main__":
    sys.exit(main())
