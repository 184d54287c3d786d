"""A real controller of a folder, as a process."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.harness.processes import started


@asynccontextmanager
async def controller(folder: Path, path: Path) -> AsyncIterator[int]:
    """Until the block ends, with its socket at `path`; gives the port of its admin API. Its log stands beside the
    folder."""
    command = [sys.executable, "-m", "controlplane", str(folder), "--socket", str(path)]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    async with started(folder.parent, "controller", command, end=signal.SIGKILL) as program:
        await program.ready()
        yield program.port("ADMIN")
