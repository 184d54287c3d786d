"""What processes cost, read from /proc: CPU time of a process tree in nanoseconds, memory, and what else ran."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for task in _listed(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children").split():
            found += tree(int(child))
    return found


def nanoseconds(pid: int) -> int:
    """CPU time of a process tree, over all threads (/proc/PID/task/TID/schedstat)."""
    total = 0
    for process in tree(pid):
        for task in _listed(f"/proc/{process}/task"):
            fields = _read(f"/proc/{process}/task/{task}/schedstat").split()
            total += int(fields[0]) if fields else 0
    return total


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
