"""How slow this machine is just now: the CPU time of a fixed piece of work beside that on a quiet reference machine.

CPU seconds of the same work differ by two and more between machines, and between a machine whose cores share their
units with busy neighbours and a quiet one. A budget in CPU seconds is scaled by this.
"""

from __future__ import annotations

import json
import re
import threading
import time
from types import TracebackType

REFERENCE = 0.0095
"""Thread CPU seconds of `work` on the machine for which budgets are written, when it is quiet, by the interpreter that
`scripts/env` takes there. (It was 0.0120 by one that was compiled without optimisation.)"""
PAUSE = 5.0
"""Seconds between two looks."""
_TEXT = json.dumps([{"name": f"n{i}", "value": i, "tags": ["a", "b", str(i)]} for i in range(200)])
_WORD = re.compile(r"[a-z]+\d+")


def work() -> int:
    """Something of what tests do: objects, text, calls. Always the same."""
    total = 0
    for _ in range(12):
        rows = json.loads(_TEXT)
        total += sum(len(word) for word in _WORD.findall(_TEXT))
        for row in rows:
            row["sum"] = row["value"] * 3 % 7
            total += len(f"{row['name']}-{row['sum']}".encode())
        rows.sort(key=lambda row: (row["sum"], row["name"]))
        total += hash(tuple(sorted({row["name"]: row["sum"] for row in rows}.items()))) & 1
    return total


def measure() -> float:
    """Thread CPU seconds of one piece of work."""
    before = time.thread_time()
    work()
    return time.thread_time() - before


class Watch:
    """Measures now and then while the block runs."""

    def __init__(self) -> None:
        self._seen: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def pace(self) -> float:
        """How many times slower than the reference; at least 1, so that no fast machine is held to less."""
        seen = list(self._seen) or [measure()]
        return max(1.0, sum(seen) / len(seen) / REFERENCE)

    def _look(self) -> None:
        while True:
            self._seen.append(measure())
            if self._ended.wait(PAUSE):
                return
