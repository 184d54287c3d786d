"""The beginning of an agent: settings, the first reading of the file, then the agent itself.

Called by `dataplane/__main__`. What workers need, and what reads the file, loads in processes of their own meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dataplane.agent import forks, process
from dataplane.agent.reader_process import COMMAND, ReaderProcess
from dataplane.agent.stdio_servers import socket_path
from dataplane.bootstrap.parse import parse
from dataplane.settings import Settings
from dataplane.telemetry import process_log
from gatewright.api.schema.log_level import parse_log_level
from gatewright.version import VERSION

if TYPE_CHECKING:
    from dataplane.agent.file_reading import Loaded, Reader
    from dataplane.agent.fork_start import Begun
    from dataplane.agent.forks import Starter

log = logging.getLogger("dataplane")

BAD_CONFIGURATION, USAGE = 1, 2
"""Exit codes."""


def main(words: Sequence[str], worker_command: Sequence[str], begun: Begun | None) -> int:
    """Run one proxy; answers the exit code. `begun`: a fork server that is there already."""
    stdio = socket_path()
    reader = ReaderProcess((*COMMAND, str(stdio)))
    starter = forks.starter(worker_command, begun)
    try:
        return _main(words, starter, reader, stdio)
    finally:
        reader.rest()
        starter.end()


def _main(words: Sequence[str], starter: Starter, reader: Reader, stdio: Path) -> int:
    settings = parse(words, os.environ)
    first = None
    if settings.file is not None:
        process_log.configure(settings.logging.format, "agent")
        first = _first_reading(settings.file, reader)
        if first is None and settings.xds is None:
            return BAD_CONFIGURATION
        settings = parse(words, os.environ, None if first is None else first.defaults)
    try:
        levels = parse_log_level(settings.logging.level, process_log.MODULES)
    except ValueError as error:
        sys.stderr.write(f"gatewright-proxy: error: --log-level: {error}\n")
        return USAGE
    process_log.configure(settings.logging.format, "agent")
    process_log.set_levels(levels.default, levels.modules)
    return asyncio.run(_run(settings, starter, first, reader, stdio))


def _first_reading(file: Path, reader: Reader) -> Loaded | None:
    """The file as it is at the start; None when it gives nothing to serve, which is logged."""
    from dataplane.agent import file_source

    try:
        return file_source.read(file, process_log.MODULES, reader)
    except file_source.BadFile as bad:
        for problem in bad.args:
            log.error("%s", problem)
        return None


async def _run(settings: Settings, starter: Starter, first: Loaded | None, reader: Reader, stdio: Path) -> int:
    lives = await process.start_all(settings.workers, starter)
    for warning in settings.warnings:
        log.warning("%s", warning)
    sources = {"file": settings.file, "xds": settings.xds}
    given = {name: value for name, value in sources.items() if value is not None}
    log.info("gatewright-proxy %s", VERSION, extra={"fields": {"workers": settings.workers, **given}})
    from dataplane.agent.agent import Agent
    from dataplane.agent.workers import Pace

    agent = Agent(settings, starter, first, Pace(), lives, reader, stdio)
    gc.freeze()
    gc.enable()  # disabled by `__main__`: nothing that is loaded is garbage, and looking through it takes a tenth
    try:
        return await agent.run()
    finally:
        starter.end()  # while the loop is there that watches it
