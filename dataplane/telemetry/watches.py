"""What a worker watches about itself with a coarse timer: how late its event loop is, and whether it is out of files.

Started by `worker`. Costs two system calls a second; decides nothing.
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
"""Seconds between two looks at the loop."""

FILES_EVERY = 10
"""Looks at the loop for one look at the files."""


class Watches:
    """`call_later(seconds, f)` is the loop's; `publish` puts gauges where the agent reads them."""

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], Any],
        metrics: Metrics,
        publish: Callable[[], None] = lambda: None,
    ) -> None:
        self._call_later, self._metrics, self._publish = call_later, metrics, publish
        self._histogram = metrics.histogram("event_loop_lag_seconds")
        self._out_of_files = metrics.gauge("workers_out_of_files")
        self._looks = 0
        self._is_out_of_files = False
        self._arm()

    def stop(self) -> None:
        self._timer.cancel()

    def _arm(self) -> None:
        self._due = time.monotonic() + STEP
        self._timer = self._call_later(STEP, self._look)

    def _look(self) -> None:
        """A timer that fires late tells what a request would have waited for the event loop."""
        self._metrics.observe(self._histogram, max(0.0, time.monotonic() - self._due))
        self._publish()
        self._looks += 1
        if self._looks % FILES_EVERY == 0:
            self._look_at_files()
        self._arm()

    def _look_at_files(self) -> None:
        """The event loop drops connections that it has no descriptor for without a word (libuv): one line says so."""
        was_out, self._is_out_of_files = self._is_out_of_files, _is_out_of_files()
        self._metrics.slots[self._out_of_files] = self._is_out_of_files
        if self._is_out_of_files and not was_out:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            log.error(
                "no file descriptors left (limit %d): new connections are closed; raise the limit (ulimit -n)", limit
            )
        elif was_out and not self._is_out_of_files:
            log.info("file descriptors are free again")


def _is_out_of_files() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
