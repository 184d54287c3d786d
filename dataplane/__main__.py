"""Entry of `gatewright-proxy` and of `python -m dataplane`: settings, the first reading of the file, then the agent.

What workers need is loaded beside the reader of the file and the agent, in a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dataplane import bootstrap
from dataplane.agent import forks, process
from dataplane.agent.reader_process import COMMAND, ReaderProcess
from dataplane.agent.stdio_servers import socket_path
from dataplane.telemetry import process_log
from gatewright.api.schema.log_level import parse_log_level

if TYPE_CHECKING:
    from dataplane.agent.file_reading import Loaded, Reader
    from dataplane.agent.forks import Starter

log = logging.getLogger("dataplane")

BAD_CONFIGURATION, USAGE = 1, 2
"""Exit codes."""

MAX_FILES = 1_048_576

STDERR = 2

WORKER = (sys.executable, "-P", "-m", "dataplane.worker")
"""-P: the current folder is a user's, and may hold what looks like a module."""


def main(argv: Sequence[str] | None = None, worker_command: Sequence[str] = WORKER) -> int:
    """Run one proxy; answers the exit code. `worker_command` may start workers with further policies."""
    _hold_standard_files()
    stdio = socket_path()
    reader = ReaderProcess((*COMMAND, str(stdio)))
    starter = forks.starter(worker_command)
    try:
        return _main(list(sys.argv[1:] if argv is None else argv), starter, reader, stdio)
    finally:
        reader.rest()
        starter.end()


def _main(words: Sequence[str], starter: Starter, reader: Reader, stdio: Path) -> int:
    settings = bootstrap.parse(words, os.environ)
    _allow_files()
    with contextlib.suppress(OSError):  # the first worker tries again, and tells
        starter.begin()
    first = None
    if settings.file is not None:
        process_log.configure(settings.logging.format, "agent")
        first = _first_reading(settings.file, reader)
        if first is None and settings.xds is None:
            return BAD_CONFIGURATION
        settings = bootstrap.parse(words, os.environ, None if first is None else first.defaults)
    try:
        levels = parse_log_level(settings.logging.level, process_log.MODULES)
    except ValueError as error:
        sys.stderr.write(f"gatewright-proxy: error: --log-level: {error}\n")
        return USAGE
    process_log.configure(settings.logging.format, "agent")
    process_log.set_levels(levels.default, levels.modules)
    return asyncio.run(_run(settings, starter, first, reader, stdio))


def _hold_standard_files() -> None:
    """Where one of the first three descriptors is closed, a connection would get its number, and log lines with it."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def _first_reading(file: Path, reader: Reader) -> Loaded | None:
    """The file as it is at the start; None when it gives nothing to serve, which is logged."""
    from dataplane.agent import file_source

    try:
        return file_source.read(file, process_log.MODULES, reader)
    except file_source.BadFile as bad:
        for problem in bad.args:
            log.error("%s", problem)
        return None


def _allow_files() -> None:
    """As many open files as the system allows: each connection is one, and the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run(
    settings: bootstrap.Settings, starter: Starter, first: Loaded | None, reader: Reader, stdio: Path
) -> int:
    gc.disable()  # nothing that is loaded is garbage; looking through it takes a tenth of the start
    lives = await process.start_all(settings.workers, starter)
    for warning in settings.warnings:
        log.warning("%s", warning)
    sources = {"file": settings.file, "xds": settings.xds}
    given = {name: value for name, value in sources.items() if value is not None}
    log.info("gatewright-proxy %s", bootstrap.version(), extra={"fields": {"workers": settings.workers, **given}})
    from dataplane.agent.agent import Agent
    from dataplane.agent.workers import Pace

    agent = Agent(settings, starter, first, Pace(), lives, reader, stdio)
    gc.freeze()
    gc.enable()
    try:
        return await agent.run()
    finally:
        starter.end()


if __name__ == "__main__":
    sys.exit(main())
