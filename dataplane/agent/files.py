"""File descriptors of the agent: one line when there are none left to accept with, one when there are again.

Called by the event loop for errors that no other code handles. The loop itself pauses a second before it accepts again,
and would log each of these tries with a traceback, for each page.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from typing import Any

log = logging.getLogger("dataplane.agent")

EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE))
PAUSE = 1.0
"""Seconds between looks for free descriptors."""


class FilesWatch:
    """`heard` is for `loop.set_exception_handler`."""

    def __init__(self) -> None:
        self._is_out = False

    def heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in EXHAUSTED or "socket" not in context:
            loop.default_exception_handler(context)
        elif not self._is_out:
            self._is_out = True
            log.error(
                "no file descriptors left: its pages cannot be reached, workers cannot be replaced;"
                " raise the limit (ulimit -n)"
            )
            loop.call_later(PAUSE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.close(os.dup(2))
        except OSError:
            loop.call_later(PAUSE, self._look, loop)
        else:
            self._is_out = False
            log.info("file descriptors are free again")
