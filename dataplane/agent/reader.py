"""Reads standalone files: a text to resources and settings, or to what is wrong with it.

The only module of the agent that loads YAML and the models of the API. The agent runs it as a process of its own
(`reader_entry`, started by `reader_process`), which answers questions until its input ends. What a file
means is `gatewright.api.standalone.standalone`'s to say; its secrets are read by `file_contents`.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dataplane.agent.file_contents import Contents
from dataplane.agent.file_reading import MEMORY, Loaded, Place, Reading
from dataplane.link.commands import Command
from dataplane.link.messages import RESOURCE, Record
from dataplane.settings import Defaults
from gatewright.api.standalone import standalone
from gatewright.api.standalone.backend_resources import StdioServer
from gatewright.api.standalone.config import Config
from gatewright.aside import NO_MEMORY, limit_memory
from gatewright.wire.v1 import resource_pb2


class LocalReader:
    """A `Reader` in the process that asks. `socket`: where MCP servers are asked that the proxy runs."""

    def __init__(self, socket: str = "") -> None:
        self._socket = socket

    def interpret(self, text: str, file: Path, log_modules: Collection[str]) -> Reading:
        """See `Reader`."""
        contents = Contents(file.parent)
        found = standalone.load(text, str(file), log_modules, contents.read, time.time(), self._socket)
        if found.errors:
            return Reading(None, tuple(map(str, found.errors)), contents.stamps)
        records = tuple(Record(RESOURCE, each.key, _serialised(each)) for each in found.resources)
        commands = tuple(map(_command, found.servers))
        loaded = Loaded(text, records, _defaults(found.settings), contents.stamps, dict(found.places), commands)
        return Reading(loaded, tuple(map(str, found.problems)), contents.stamps)

    def refusals(self, text: str, file: Path, refused: Sequence[tuple[Place, str]]) -> Sequence[str]:
        """See `Reader`."""
        return [str(standalone.refusal(text, str(file), place, reason)) for place, reason in refused]

    def rest(self) -> None:
        """It keeps nothing."""


def _command(server: StdioServer) -> Command:
    stdio = server.stdio
    env, variables = dict(stdio.env or {}), dict(stdio.env_from or {})
    return Command(
        *(server.digest, server.name, stdio.cmd, stdio.args, env, server.is_stateless, variables, server.max_line)
    )


def _serialised(resource: resource_pb2.Resource) -> bytes:
    """The same bytes from every process: they are compared with those of the reader before."""
    return resource.SerializeToString(deterministic=True)


def _defaults(config: Config) -> Defaults:
    return Defaults(
        xds=config.xds.address,
        gateway=config.xds.gateway,
        workers=config.workers,
        admin=config.admin_addr,
        stats=config.stats_addr,
        readiness=config.readiness_addr,
        session_key=config.session.key,
        log_level=config.logging.level,
        log_format=config.logging.format,
        forward_allow=() if config.dynamic_forward_proxy is None else config.dynamic_forward_proxy.allow,
    )


def answer_all(questions: BinaryIO, answers: BinaryIO, reader: Any) -> None:  # Any: a `Reader`
    """Answer until there are no more questions: each a method of `Reader` and its arguments, pickled."""
    while True:
        try:
            method, arguments = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(getattr(reader, method)(*arguments), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    """Whatever is printed goes to standard error: what the agent reads is answers alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the agent decides
    limit_memory(MEMORY)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            answer_all(sys.stdin.buffer, answers, LocalReader(*sys.argv[1:]))
        except MemoryError:
            os._exit(NO_MEMORY)  # nothing else can be relied on
