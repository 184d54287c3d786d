"""The process log: what the proxy says about itself, on standard error, as text or JSON lines (not the access log).

Agent and workers call `configure` once and `set_levels` when levels change; everybody else uses `logging.getLogger`
with a name of or under `MODULES` and gives fields by `extra={"fields": {...}}`. Lines are written by a thread: standard
error that is closed, full or not read raises nothing and stops nobody; what was lost is told when it takes lines again.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from dataplane.telemetry.lines import LineWriter, file_writer

MODULES = (
    "dataplane",
    "dataplane.agent",
    "dataplane.backends",
    "dataplane.filters",
    "dataplane.http",
    "dataplane.proxy",
    "dataplane.server",
    "dataplane.table",
    "dataplane.telemetry",
    "dataplane.upstream",
    "dataplane.worker",
    "xds",
)
"""Names that a level may be set for (`logging.level`), and the loggers that there are."""

_PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
"""Values that stand without quotes in text lines."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What could begin a line of its own, or move a terminal's cursor."""

OFF = logging.CRITICAL + 10
_LEVELS = {"off": OFF, "error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
_NAMES = {number: name for name, number in _LEVELS.items()} | {logging.CRITICAL: "error"}


STDERR = 2
MAX_QUEUED = 1024 * 1024
"""Bytes of lines waiting for the writer; above it lines are lost."""
LAST_WORDS = 1.0
"""Seconds that the end of the process waits for its last lines to be written."""


class _Handler(logging.Handler):
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
    handler = next((each for each in root.handlers if isinstance(each, _Handler)), None) or _Handler()
    handler.setFormatter(_FORMATTERS[form](process))
    root.handlers[:] = [handler]


def set_levels(default: str, modules: Mapping[str, str]) -> None:
    """Levels of `gatewright.api.schema.log_level.LEVELS`: of everything, and of the modules that differ."""
    logging.getLogger().setLevel(_LEVELS[default])
    for name in MODULES:
        logging.getLogger(name).setLevel(_LEVELS[modules[name]] if name in modules else logging.NOTSET)
    # Libraries speak of their own affairs: only what went wrong, unless everything is wanted.
    for library in ("asyncio", "grpc"):
        logging.getLogger(library).setLevel(max(logging.WARNING, _LEVELS[default]))


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


class _Text(logging.Formatter):
    """Time, level, module, message with fields, separated by tabs as in the access log."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        level = _NAMES.get(record.levelno, "info")
        fields = "".join(f" {name}={_text_value(value)}" for name, value in _fields(record).items())
        message = _CONTROL.sub(_escaped, record.getMessage())
        line = f"{_time(record)}\t{level}\t{record.name}\t{message}{fields} process={self._process}"
        if record.exc_info:
            line += _indented(self.formatException(record.exc_info))
        return line


def _indented(text: str) -> str:
    """Lines behind a record. An exception may quote what a client sent: none of them can be taken for a record."""
    return "".join(f"\n  {_CONTROL.sub(_escaped, line)}" for line in text.split("\n"))


def _text_value(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


class _Json(logging.Formatter):
    """One object a line: time, level, module, process, message, then the fields."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, Any] = {
            "time": _time(record),
            "level": _NAMES.get(record.levelno, "info"),
            "module": record.name,
            "process": self._process,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return json.dumps(row, default=str)


_FORMATTERS: dict[str, type[_Text | _Json]] = {"text": _Text, "json": _Json}
