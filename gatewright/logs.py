"""The form of a log line of a process, as text and as JSON, for both planes: equal keys, equal words, times in UTC.

Called by the planes' own logs, which decide where lines go and which levels are on. Fields of a record are given by
`extra={"fields": {...}}`. Imports the standard library only; workers load it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

FORMS: Final = ("text", "json")
"""What `--log-format` takes."""

OFF: Final = logging.CRITICAL + 10

LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {"off": OFF, "error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
)
"""Numbers of `gatewright.api.schema.log_level.LEVELS`."""

_NAMES = {number: name for name, number in LEVELS.items()} | {logging.CRITICAL: "error"}

_PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
"""Values that stand without quotes in text lines."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What could begin a line of its own, or move a terminal's cursor."""


def formatter(form: str, process: str, prefix: str = "") -> logging.Formatter:
    """Lines of this form (of FORMS). `process` is who speaks: `agent`, `worker-0`, `controller`; `prefix` stands before
    text lines. Raises KeyError for another form."""
    return {"text": _Text(process, prefix), "json": _Json(process)}[form]


class _Text(logging.Formatter):
    """Time, level, module, message with fields, separated by tabs as in the access log."""

    def __init__(self, process: str, prefix: str) -> None:
        super().__init__()
        self._process, self._prefix = process, prefix

    def format(self, record: logging.LogRecord) -> str:
        level = _NAMES.get(record.levelno, "info")
        fields = "".join(f" {name}={_text_value(value)}" for name, value in _fields(record).items())
        message = _CONTROL.sub(_escaped, record.getMessage())
        line = f"{_time(record)}\t{level}\t{record.name}\t{message}{fields} process={self._process}"
        if record.exc_info:
            line += _indented(self.formatException(record.exc_info))
        return self._prefix + line


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


def _time(record: logging.LogRecord) -> str:
    """RFC 3339 in UTC, whatever the time zone of the process is."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


def _indented(text: str) -> str:
    """Lines behind a record. An exception may quote what a client sent: none of them can be taken for a record."""
    return "".join(f"\n  {_CONTROL.sub(_escaped, line)}" for line in text.split("\n"))


def _text_value(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
