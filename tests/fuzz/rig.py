"""The memory proxy as the HTTP targets use it: kept from one input to the next, emptied in between, and watched.

What the product reports as an error of its own (a caught bug) fails the input, and so does a log line that cannot be
read back.
"""

from __future__ import annotations

import json
import logging
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from dataplane.chain.filter import Row
from dataplane.filters.registry import ROWS
from dataplane.net.writes import Writes
from dataplane.proxy.context import Limits
from dataplane.telemetry import access_log
from dataplane.telemetry.log_fields import writers
from dataplane.telemetry.log_plan import Added, LogPlan
from dataplane.telemetry.log_rows.registry import GROUPS
from tests.fakes.memory_proxy import ROUTES, FakeTransport, FakeUpstream, MemoryProxy

ID = b"id-of-the-request"
_DATE = re.compile(rb"\r\ndate: [^\r]*")


class Violation(AssertionError):
    """An input for which a promise does not hold."""


def require(holds: object, why: str) -> None:
    if not holds:
        raise Violation(why)


def pieces(data: bytes, manner: str) -> Iterator[bytes]:
    """The same bytes in other pieces, always the same ones for the same bytes."""
    if manner == "whole":
        if data:
            yield data
        return
    if manner == "bytes" and len(data) <= 400:
        yield from (data[i : i + 1] for i in range(len(data)))
        return
    rolls = random.Random(zlib.crc32(data))
    at = 0
    while at < len(data):
        size = rolls.choice((1, 1, 2, 3, 5, 16, 100, 700))
        yield data[at : at + size]
        at += size


class _Complaints(logging.Handler):
    """Errors that the product logs: bugs that it caught."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record)


PLAN = LogPlan(
    added=tuple(
        Added.named(name, evaluate)
        for name, evaluate in (
            ("http.path", lambda x: x.request_path_and_query),
            ("agent", lambda x: x.request_header("user-agent")),
            ("all", lambda x: x.request_headers),
        )
    ),
    fields=writers(frozenset({"http.path"})),
)
"""Attributes that are what a client wrote."""

_FIELD = re.compile(r'(?:^| )[^ "=]+=(?:"(?:[^"\\]|\\.)*"|[^ "]*)')


class _Log:
    """Takes the place of the access log: makes both kinds of line for each exchange, at once."""

    def __init__(self) -> None:
        self.count = 0

    def close(self) -> None:
        """Nothing waits."""

    def record(self, x: Any, seconds: float) -> None:
        self.count += 1
        text = access_log.text_line("now", x, seconds, GROUPS)
        require(text.count("\n") == 1 and text.endswith("\n") and text[:-1].replace("\t", " ").isprintable(), text)
        row = access_log.json_line("now", x, seconds, GROUPS)
        require(row.count("\n") == 1 and json.loads(row)["http.version"], row)
        if x.listener is not None:
            self._planned(x, seconds)

    def _planned(self, x: Any, seconds: float) -> None:
        """What a client wrote stays within its field, and no field is there twice."""
        text = access_log.planned_text(PLAN, "now", x, seconds, GROUPS)
        require(text.count("\n") == 1 and text[:-1].replace("\t", " ").isprintable() and text.isascii(), text)
        require(not _FIELD.sub("", text.rpartition("\t")[2]).strip(), text)
        pairs = json.loads(access_log.planned_json(PLAN, "now", x, seconds, GROUPS), object_pairs_hook=list)
        names = [name for name, _ in pairs]
        require(len(set(names)) == len(names), str(names))


class Rig:
    """One proxy for all inputs of a process. Use as a context manager around each input."""

    def __init__(
        self,
        text: str = ROUTES,
        limits: Limits | None = None,
        rows: Sequence[Row] = ROWS,
        writes: Writes | None = None,
    ) -> None:
        self.proxy = MemoryProxy(text, rows, limits, writes)
        self.proxy.context.access_log.close()
        self.log = _Log()
        self.proxy.context.access_log = self.log  # type: ignore[assignment]
        context = self.proxy.context
        context.observers = context.more_observers = (context.recorder.ended, self.log.record)
        self.proxy.context.request_id = lambda: ID
        self.complaints = _Complaints()
        self._loggers = [logging.getLogger(name) for name in ("dataplane.server", "dataplane.proxy")]

    def __enter__(self) -> Rig:
        self.log.count = 0
        self.complaints.errors.clear()
        for logger in self._loggers:
            logger.addHandler(self.complaints)
            logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.removeHandler(self.complaints)
            logger.propagate = True
        self.reset()

    def check(self) -> None:
        """Raises what the product caught, as what it is: a bug. Everything that began has ended by now."""
        for record in self.complaints.errors:
            if record.exc_info is not None and record.exc_info[1] is not None:
                raise Violation(record.getMessage()) from record.exc_info[1]
            raise Violation(record.getMessage())

    @property
    def upstreams(self) -> list[FakeUpstream]:
        return self.proxy.connector.upstreams

    def connect(self) -> FakeTransport:
        return self.proxy.connect()

    def reset(self) -> None:
        """End every connection, so that the next input meets none."""
        for connection in list(self.proxy.context.connections):
            if connection.transport.open:
                connection.transport.lose()
        for upstream in self.upstreams:
            if upstream.open:
                upstream.lose()
        self.upstreams.clear()
        self.proxy.connector.waiting.clear()
        self.proxy.connector.hold = False
        self.proxy.timers.clear()
        self.proxy.context.deadlines.close()


def without_date(data: bytes) -> bytes:
    return _DATE.sub(b"", data)
