"""Where the milliseconds of a change go: the programs of `pair` with a stamp at each hop. For `propagation --hops`.

    python -m benchmarks.hops controller|proxy|worker ARGUMENTS...

starts that program with some of its functions wrapped: each call writes one line, `NANOSECONDS CPU THREAD NAME`, into
a file of the process in the folder $GATEWRIGHT_HOPS. The clock is the system's monotonic one, which all processes have
in common; CPU is that of the thread. The product knows nothing of this. A stamp costs some three microseconds, and a
change makes about sixty.
"""

from __future__ import annotations

import functools
import math
import os
import statistics
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "GATEWRIGHT_HOPS"
LONGEST = 0.1
"""Seconds after which a change is over, if no other one has begun."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A function whose calls are stamped. `where`: "module:Class.method" or "module:function"."""

    name: str
    where: str
    after: bool = False
    """Stamp the return instead of the call."""
    last: bool = False
    """Of several stamps in one change the last one counts: the slowest process, or call, is what clients wait for."""


CONTROLLER = (
    Hop("file event", "controlplane.sources.inotify:Inotify.read", after=True),
    Hop("loop heard", "controlplane.sources.directory:Directory._note"),
    Hop("decoded", "controlplane.pipeline:Pipeline.take"),
    Hop("group whole", "controlplane.sources.directory:Directory._note", last=True),
    Hop("translation begins", "controlplane.pipeline:Pipeline._translate"),
    Hop("resources leave", "controlplane.pipeline:Pipeline._resources_leave"),
    Hop("published", "controlplane.pipeline:Pipeline._note"),
    Hop("responses written", "controlplane.xds.session:Session._send", last=True),
)
AGENT = (
    Hop("agents received", "dataplane.agent.xds_stream:XdsStream.receive", last=True),
    Hop("state whole", "dataplane.agent.workers:Workers.apply", last=True),
    Hop("relayed", "dataplane.agent.process:WorkerProcess.send_state", after=True, last=True),
    Hop("agents committed", "dataplane.link.commits:Commits.commit", after=True, last=True),
    Hop("acknowledged", "dataplane.agent.xds_stream:XdsStream.answer", last=True),
)
WORKER = (
    Hop("workers begin", "dataplane.serving:Serving.apply", last=True),
    Hop("workers prepared", "dataplane.serving:Serving._prepared", last=True),
    Hop("workers heard of commit", "dataplane.serving:Serving.commit", last=True),
)
PROGRAMS = {"controller": CONTROLLER, "proxy": AGENT, "worker": WORKER}
ROWS = (*CONTROLLER, *AGENT[:3], *WORKER[:2], AGENT[3], WORKER[2], AGENT[4])
"""In the order in which a change passes them."""


def stamp(fd: int, hop: Hop) -> None:
    """Wrap the function of `hop` where it is defined."""
    module, _, path = hop.where.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    setattr(owner, name, _stamped(getattr(owner, name), fd, hop))


def _stamped(function: Callable[..., Any], fd: int, hop: Hop) -> Callable[..., Any]:
    clock, cpu, thread, write = time.monotonic_ns, time.thread_time_ns, threading.get_native_id, os.write

    def put() -> None:
        write(fd, f"{clock()} {cpu()} {thread()} {hop.name}\n".encode())

    @functools.wraps(function)
    def before(*given: Any, **named: Any) -> Any:
        put()
        return function(*given, **named)

    @functools.wraps(function)
    def after(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        put()
        return result

    return after if hop.after else before


class Stamp(NamedTuple):
    at: float
    """Monotonic seconds."""
    cpu: float
    """Seconds of CPU since the stamp before of the same thread; 0 for its first."""
    since: float
    """When that one was."""


class Row(NamedTuple):
    """Medians in milliseconds."""

    name: str
    at: float
    """After the write."""
    more: float
    """After the hop before."""
    cpu: float
    """What its thread worked since its hop before in the same change; NaN for the first of a thread."""


Stamps = dict[str, list[Stamp]]
Window = tuple[float, float]
"""Monotonic seconds of a write and of the first 200 of the slower proxy."""


def read(folder: Path) -> Stamps:
    """Hop -> all its stamps of all processes, in order."""
    found: Stamps = {hop.name: [] for hop in ROWS}
    for file in folder.iterdir():
        before: dict[str, tuple[int, int]] = {}
        for line in file.read_text().splitlines():
            at, cpu, thread, name = line.split(" ", 3)
            since, used = before.get(thread, (int(at), int(cpu)))
            found[name].append(Stamp(int(at) / 1e9, (int(cpu) - used) / 1e9, since / 1e9))
            before[thread] = int(at), int(cpu)
    return {name: sorted(stamps) for name, stamps in found.items()}


def table(stamps: Stamps, changes: Sequence[Window], writes: Sequence[float], quickest: float = 1.0) -> list[Row]:
    """The hops in order, "first 200" at the end; of the quickest part of the changes: what others do on the machine
    shows in the slow ones. `writes`: when each change began, also those that do not count, in order."""
    ends = [*writes, math.inf]
    chosen = [(begin, served, min(begin + LONGEST, ends[bisect_right(ends, begin)])) for begin, served in changes]
    chosen.sort(key=lambda each: each[1] - each[0])
    chosen = chosen[: math.ceil(len(chosen) * quickest)]
    rows: list[Row] = []
    for hop in ROWS:
        found = [(_of_change(stamps[hop.name], begin, end, last=hop.last), begin) for begin, _, end in chosen]
        known = [(each, begin) for each, begin in found if each is not None]
        if known:
            at = statistics.median((each.at - begin) * 1e3 for each, begin in known)
            spent = [each.cpu * 1e3 for each, begin in known if each.since > begin]
            rows.append(Row(hop.name, at, at - (rows[-1].at if rows else 0.0), statistics.median(spent or [math.nan])))
    at = statistics.median((served - begin) * 1e3 for begin, served, _ in chosen)
    return [*rows, Row("first 200 of both", at, at - (rows[-1].at if rows else 0.0), math.nan)]


def text(rows: Sequence[Row]) -> str:
    lines = [
        "| hop | ms after the write | ms after the hop before | CPU ms of its thread since its last hop |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cpu = "" if math.isnan(row.cpu) else f"{row.cpu:.2f}"
        lines.append(f"| {row.name} | {row.at:.2f} | {row.more:+.2f} | {cpu} |")
    return "\n".join(lines)


def _of_change(stamps: Sequence[Stamp], begin: float, end: float, *, last: bool) -> Stamp | None:
    """The first (or last) stamp within a change's time."""
    low, high = (bisect_left(stamps, at, key=attrgetter("at")) for at in (begin, end))
    if low == high:
        return None
    return stamps[high - 1 if last else low]


def main() -> int:
    program, arguments = sys.argv[1], sys.argv[2:]
    fd = os.open(Path(os.environ[FOLDER]) / f"{program}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for hop in PROGRAMS[program]:
        stamp(fd, hop)
    sys.argv = [program, *arguments]
    if program == "controller":
        from controlplane.cli.__main__ import main as controller

        return controller(arguments)
    if program == "proxy":
        from dataplane.__main__ import main as proxy

        return proxy(arguments, (sys.executable, "-m", "benchmarks.hops", "worker"))
    from dataplane.worker import main as worker

    worker()
    return 0


if __name__ == "__main__":
    sys.exit(main())
