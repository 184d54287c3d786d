"""The process log: what the proxy says about itself, on standard error, as text or JSON lines (not the access log).

Agent and workers call `configure` once and `set_levels` when levels change; everybody else uses `logging.getLogger`
with a name of or under `MODULES` and gives fields by `extra={"fields": {...}}`. Lines are written by a thread: standard
error that is closed, full or not read raises nothing and delays nothing; what was lost is reported when it takes lines
again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from dataplane.telemetry.lines import LineWriter, file_writer
from gatewright.logs import LEVELS, formatter

MODULES = (
    "dataplane",
    "dataplane.agent",
    "dataplane.backends",
    "dataplane.filters",
    "dataplane.http",
    "dataplane.proxy",
    "dataplane.server",
    "dataplane.stdio",
    "dataplane.table",
    "dataplane.telemetry",
    "dataplane.upstream",
    "dataplane.worker",
    "xds",
)
"""Names that a level may be set for (`logging.level`), and the loggers that there are."""

STDERR = 2
MAX_QUEUED = 1024 * 1024
"""Bytes of lines waiting for the writer; above it lines are lost."""
LAST_WORDS = 1.0
"""Seconds that the end of the process waits for its last lines to be written."""


class Handler(logging.Handler):
    """To standard error, by a thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = LineWriter(file_writer(STDERR), MAX_QUEUED, lambda _count: None, self._changed)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.put(self.format(record).encode("utf-8", "backslashreplace") + b"\n")

    def flush(self) -> None:
        """Called by `logging` at the end of the process."""
        self._lines.drain(LAST_WORDS)

    def _changed(self, why: str, missed: int) -> None:
        if not why:
            text = f"{missed} lines of this log were lost before this one: it could not be written"
            self.emit(logging.makeLogRecord({"name": __name__, "levelno": logging.WARNING, "msg": text}))


def configure(form: str, process: str) -> None:
    """Log to standard error in this form (`text` or `json`). `process` is who speaks: `agent`, `worker-0`."""
    root = logging.getLogger()
    handler = next((each for each in root.handlers if isinstance(each, Handler)), None) or Handler()
    handler.setFormatter(formatter(form, process))
    root.handlers[:] = [handler]


def set_levels(default: str, modules: Mapping[str, str]) -> None:
    """Levels of `gatewright.api.schema.log_level.LEVELS`: of everything, and of the modules that differ."""
    logging.getLogger().setLevel(LEVELS[default])
    for name in MODULES:
        logging.getLogger(name).setLevel(LEVELS[modules[name]] if name in modules else logging.NOTSET)
    # Libraries speak of their own affairs: only what went wrong, unless everything is wanted.
    for library in ("asyncio", "grpc"):
        logging.getLogger(library).setLevel(max(logging.WARNING, LEVELS[default]))
