"""Child processes of `gatewright up`: start, pass their output on, stop, and leave nothing behind.

Two strings tie a child to its parent. Orderly: SIGTERM, a grace period, SIGKILL. Disorderly (`kill -9` of the parent):
the child holds the reading end of a pipe whose only writing end is here, so it sees end of file whatever happened.
Children run in sessions of their own: Ctrl-C in the terminal reaches `up` alone, which then stops them in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from controlplane.cli.serving.lines import Lines

CHUNK = 65536
"""Bytes of output that are read at once."""
OUTPUT_SECONDS = 1.0
"""Seconds that are waited for the last lines of a child that has ended."""


class Lifeline:
    """The pipe that ends with this process. Children get `reading` (with `pass_fds`) and end when it does."""

    def __init__(self) -> None:
        # os.pipe gives non-inheritable ends, so no other child ever holds the writing one.
        self.reading, self._writing = os.pipe()

    def cut(self) -> None:
        """Ends every child that is still there, as the death of this process would."""
        os.close(self._writing)
        os.close(self.reading)


class Output:
    """Writes whole lines of many children to one stream, each with its prefix; `quiet` keeps only standard error.

    `stream` is not buffered: what a full disk did not take must not come back at the end of the process.
    """

    def __init__(self, stream: IO[bytes], quiet: bool = False) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._own = Lines(self._put)
        self.quiet = quiet

    def write(self, prefix: bytes, lines: bytes) -> None:
        """`lines` ends with a newline. May wait, so the children's threads call it: a child whose lines are not taken
        drops and counts them itself. A closed terminal silences the output, never the proxy behind it."""
        text = prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n"
        with contextlib.suppress(OSError, ValueError):
            self._put(text)

    def say(self, lines: bytes) -> None:
        """Lines of `up` itself; never waits."""
        self._own.put(lines)

    def drain(self) -> None:
        """Wait a moment for what was said."""
        self._own.drain()

    def _put(self, text: bytes) -> None:
        with self._lock:
            while text:
                text = text[self._stream.write(text) :]


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `name` is for prefixes and messages; `speaks`: its standard input is a pipe that we write to."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    pass_fds: Sequence[int] = ()
    speaks: bool = False


@dataclass(slots=True, eq=False)
class Child:
    """One running child process."""

    name: str
    process: asyncio.subprocess.Process
    pumps: Sequence[threading.Thread]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.returncode is None

    async def say(self, line: bytes) -> None:
        """Writes to the child's standard input; a child that is gone is noticed by `ended`, not here."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.process.stdin.write(line)
            await self.process.stdin.drain()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def ended(self) -> int:
        """The exit status, when it ended (as subprocess gives it: negative for a signal)."""
        return await self.process.wait()


async def start(command: Command, output: Output) -> Child:
    """Starts the child; raises OSError when the program cannot be run."""
    pipes = [os.pipe(), os.pipe()]
    try:
        process = await asyncio.create_subprocess_exec(
            *command.arguments,
            stdin=subprocess.PIPE if command.speaks else subprocess.DEVNULL,
            stdout=pipes[0][1],
            stderr=pipes[1][1],
            env=dict(command.environment),
            pass_fds=tuple(command.pass_fds),
            start_new_session=True,
        )
    except OSError:
        for reading, _ in pipes:
            os.close(reading)
        raise
    finally:
        for _, writing in pipes:
            os.close(writing)
    prefix = f"[{command.name}] ".encode()
    pumps = [
        threading.Thread(target=_pump, args=(reading, output, prefix, is_stdout), daemon=True)
        for (reading, _), is_stdout in zip(pipes, (True, False), strict=True)
    ]
    for pump in pumps:
        pump.start()
    return Child(command.name, process, pumps)


def _pump(reading: int, output: Output, prefix: bytes, optional: bool) -> None:
    """Copies one pipe in whole lines until its end. A thread, since a slow terminal must not stall the controller."""
    rest = b""
    with open(reading, "rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline and not (optional and output.quiet):
                output.write(prefix, whole + newline)
    if rest:
        output.write(prefix, rest + b"\n")


async def stop(children: Sequence[Child], grace: float) -> None:
    """SIGTERM to all, then SIGKILL to those that are still there after `grace` seconds."""
    for child in children:
        child.signal(signal.SIGTERM)
    ends = [asyncio.ensure_future(child.ended()) for child in children]
    if not ends:
        return
    _, late = await asyncio.wait(ends, timeout=grace)
    if late:
        for child in children:
            child.signal(signal.SIGKILL)
        await asyncio.wait(ends)
    for pump in [pump for child in children for pump in child.pumps]:
        # A grandchild that outlives its parent for a moment may hold the pipe: do not wait for it for ever.
        await asyncio.to_thread(pump.join, OUTPUT_SECONDS)


def python(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules with this interpreter. -P: the current folder is a user's, and may
    hold what looks like a module."""
    return [sys.executable, "-P", "-m", module, *arguments]
