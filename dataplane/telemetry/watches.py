"""What a worker watches about itself with a coarse timer: how late its event loop is, and whether it is out of files.

Started by `worker`. A worker without requests looks at itself less often: each look wakes the process.
Decides nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
import time
from collections.abc import Callable
from typing import Any

from dataplane.telemetry.metrics import Metrics

log = logging.getLogger("dataplane.server")

STEP = 0.1
"""Seconds between two looks at the loop while there is traffic."""

IDLE_STEPS = 5
"""The same while there is none, in steps."""

FILES_STEPS = 10
"""Steps between two looks at the files, at least."""


class Watches:
    """`call_later(seconds, f)` is the loop's; `publish` puts gauges where the agent reads them, and
    answers whether there was traffic since its last call; `close_idle` closes an idle connection when there is no file
    descriptor left, and answers whether it found one."""

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], Any],
        metrics: Metrics,
        publish: Callable[[], bool],
        close_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self._call_later, self._metrics, self._publish = call_later, metrics, publish
        self._close_idle = close_idle
        self._histogram = metrics.histogram("event_loop_lag_seconds")
        self._out_of_files = metrics.gauge("workers_out_of_files")
        self._steps = 0
        """Since the last look at the files."""
        self._is_out_of_files = False
        self._arm(1)

    def stop(self) -> None:
        self._timer.cancel()

    def _arm(self, steps: int) -> None:
        self._due = time.monotonic() + steps * STEP
        self._timer = self._call_later(steps * STEP, self._look)
        self._steps += steps

    def _look(self) -> None:
        """By how much a timer is late is what a request would have waited for the event loop."""
        self._metrics.observe(self._histogram, max(0.0, time.monotonic() - self._due))
        has_traffic = self._publish()
        if self._steps >= FILES_STEPS:
            self._steps = 0
            self._look_at_files()
        self._arm(1 if has_traffic else IDLE_STEPS)

    def _look_at_files(self) -> None:
        """The event loop drops connections that it has no descriptor for without an error (libuv): one log line reports
        that."""
        was_out, self._is_out_of_files = self._is_out_of_files, is_out_of_files() and not self._close_idle()
        self._metrics.slots[self._out_of_files] = self._is_out_of_files
        if self._is_out_of_files and not was_out:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            log.error(
                "no file descriptors left (limit %d): new connections are closed; raise the limit (ulimit -n)", limit
            )
        elif was_out and not self._is_out_of_files:
            log.info("file descriptors are free again")


def is_out_of_files() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
