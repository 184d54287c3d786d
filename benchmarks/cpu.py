"""What processes cost, read from /proc: CPU time of a process tree in nanoseconds, memory, and what else ran."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


_PASSING = "dataplane.agent.reader_entry"
"""In the command line of the process that reads a standalone file, which ends half a minute after it has. What it used
would be missing afterwards."""


def tree(pid: int) -> list[int]:
    """The process and all its descendants, but for what is `_PASSING`."""
    found = [pid]
    for task in _listed(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children").split():
            if _PASSING not in _read(f"/proc/{child}/cmdline").split("\0"):
                found += tree(int(child))
    return found


def nanoseconds(pid: int) -> int:
    """CPU time of a process tree, over all threads (/proc/PID/task/TID/schedstat)."""
    return sum(map(own_nanoseconds, tree(pid)))


def own_nanoseconds(pid: int) -> int:
    """The same of one process alone. Threads that have ended are not in it."""
    total = 0
    for task in _listed(f"/proc/{pid}/task"):
        fields = _read(f"/proc/{pid}/task/{task}/schedstat").split()
        total += int(fields[0]) if fields else 0
    return total


def own_kib(pid: int, field: str) -> int:
    """Memory of one process as the kernel sums it up: `field` of /proc/PID/smaps_rollup, such as "Pss:"."""
    for line in _read(f"/proc/{pid}/smaps_rollup").split("\n"):
        if line.startswith(field):
            return int(line.split()[1])
    return 0


def resident_kib(pid: int) -> int:
    """Resident memory of a process tree, in KiB."""
    return sum(_status_kib(process, "VmRSS:") for process in tree(pid))


def busy() -> int:
    """Nanoseconds that all cores were busy since boot, time stolen by the host included."""
    user, nice, system, _, _, irq, softirq, steal = (int(v) for v in _read("/proc/stat").split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) * _TICK


def _status_kib(pid: int, field: str) -> int:
    for line in _read(f"/proc/{pid}/status").split("\n"):
        if line.startswith(field):
            return int(line.split()[1])
    return 0


def _read(path: str) -> str:
    """A /proc file, or "" when its process has just ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
