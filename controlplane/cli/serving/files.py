"""File descriptors of the controller: one line when there are none left to accept with, one when there are again.

They are looked for once a second. asyncio's loop also reports each try to accept without one, with a traceback, and
pauses a second in between; uvloop reports nothing, and closes what it cannot accept.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from typing import Any

log = logging.getLogger("controlplane")

EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE))
PAUSE = 1.0
"""Seconds between looks for free descriptors."""


class FilesWatch:
    """`heard` is for `loop.set_exception_handler`; `start` begins the looks, `stop` ends them."""

    def __init__(self) -> None:
        self._is_out = False
        self._timer: asyncio.TimerHandle | None = None

    def heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in EXHAUSTED or "socket" not in context:
            loop.default_exception_handler(context)
        else:
            self._note(is_out=True)
            if self._timer is None:
                self.start(loop)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(PAUSE, self._look, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.close(os.dup(2))
        except OSError as error:
            self._note(is_out=error.errno in EXHAUSTED)
        else:
            self._note(is_out=False)
        self.start(loop)

    def _note(self, *, is_out: bool) -> None:
        if is_out != self._is_out:
            self._is_out = is_out
            if is_out:
                log.error("no file descriptors left: proxies and operators cannot connect; raise the limit (ulimit -n)")
            else:
                log.info("file descriptors are free again")
