"""`python -m dataplane.stdio SOCKET FORMAT LEVEL`: serves until its input ends, whatever ends that. Tables of commands
come as lines of its input; what it reports goes to its output (`link/commands`).
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from typing import Final

from dataplane.link import commands
from dataplane.local_http import Connection
from dataplane.stdio.service import Service
from dataplane.stdio.sessions import Sessions
from dataplane.telemetry import process_log
from gatewright.api.schema.log_level import parse_log_level

SWEEP: Final = 30.0
"""Seconds between looks for sessions that are no longer used."""
LAST_SECONDS: Final = 8.0
"""For processes to end when this one does."""
MAX_TABLE: Final = 64 * 1024 * 1024
"""Bytes of a table of commands."""


def report(word: str) -> None:
    """To the agent, at once; nothing happens when that is gone."""
    try:
        os.write(sys.stdout.fileno(), word.encode() + b"\n")
    except OSError:
        pass  # its end is noticed by our input


async def run(path: str) -> None:
    loop = asyncio.get_running_loop()
    sessions = Sessions(
        lambda begins, pid: report(f"{commands.STARTED if begins else commands.ENDED} {pid}"),
        lambda: report(commands.FULL),
    )
    service, connections = Service(sessions), set[Connection]()
    server = await loop.create_unix_server(lambda: Connection(service.serve, connections), path, backlog=1024)
    os.chmod(path, 0o600)
    sweeping = asyncio.create_task(_sweep(sessions))
    try:
        tables = asyncio.StreamReader(limit=MAX_TABLE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(tables), sys.stdin)
        while line := await tables.readline():
            sessions.take(commands.read(line))
            report(commands.TAKEN)
    finally:
        server.close()
        sweeping.cancel()
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await sessions.close()
        finally:
            sessions.kill()


async def _sweep(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(SWEEP)
        sessions.sweep()


def main() -> None:
    path, form, level = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the agent decides
    process_log.configure(form, "stdio")
    levels = parse_log_level(level, process_log.MODULES)
    process_log.set_levels(levels.default, levels.modules)
    gc.freeze()
    asyncio.run(run(path))


if __name__ == "__main__":
    main()
