"""One line per request, written when its last byte went out.

On the request path a record is the exchange that ended, put in a list. A timer turns the list into lines and hands them
to a thread that writes: a full pipe or a slow disk then delays no request. What cannot be written in time is dropped
and counted. Fields are in `log_fields`, how values are written in `log_values`; what a Gateway's policy makes of them
is in `log_plan`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.telemetry import connections, log_writer
from dataplane.telemetry.lines import LineWriter
from dataplane.telemetry.log_fields import CLIENT_CLOSED
from dataplane.telemetry.log_rows.registry import GROUPS
from dataplane.telemetry.plan import log_of

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.connections import ConnectionRecord
    from dataplane.telemetry.log_field import Group
    from dataplane.telemetry.log_plan import LogPlan
    from dataplane.variables import ComputingTurns

    Groups = tuple[Group, ...]

log = logging.getLogger("dataplane.telemetry")

ROUND = 32
"""Records that are made into lines together: so few that they are in the processor's caches still."""
BATCH = 16 * ROUND
"""Lines that are worth waking the writer."""
INTERVAL = 0.5
"""Seconds that a record waits at most."""
MAX_QUEUED = 4 * 1024 * 1024
"""Bytes of lines waiting for the writer; above it lines are dropped and counted."""
MAX_BODIES = 8 * 1024 * 1024
"""Bytes of bodies that expressions read; above it lines are made at once."""


class Exports(Protocol):
    """Who gives records to the collectors of their plans (`export/logs`). `at`: nanoseconds since 1970."""

    def line(self, plan: LogPlan, x: Exchange, seconds: float, at: int) -> None: ...

    def connection(self, plan: LogPlan, record: ConnectionRecord, seconds: float, at: int) -> None: ...


class AccessLog:
    """`write` takes finished bytes and may block: a thread of its own calls it. `call_later` is the loop's."""

    def __init__(
        self,
        write: Callable[[bytes], None] | None,
        call_later: Callable[[float, Callable[[], None]], Any],
        as_json: bool = False,
        dropped: Callable[[int], None] = lambda count: None,
        clock: Callable[[], float] = time.monotonic,
        turns: ComputingTurns | None = None,
        groups: Groups = GROUPS,
    ) -> None:
        """`turns`: of the loop, where expressions may fill them; without, lines are made when they are due. `groups`:
        fields of kinds of backends."""
        self._groups = groups
        self.records: list[tuple[Exchange, float]] = []
        self._call_later = call_later
        self._line = json_line if as_json else text_line
        self._connection_line = connections.json_line if as_json else connections.text_line
        self._planned = planned_json if as_json else planned_text
        self._clock = clock
        self._turns = turns
        self._timer: Any = None
        self._weight = 0
        self._waits = False
        """For the next turn of the loop, because expressions of the lines have filled this one."""
        self.exports: Exports | None = None
        """Gives records to collectors, where a Gateway has one."""
        self._made: list[str] = []
        """Lines that the writer does not have yet."""
        self._lines = None if write is None else LineWriter(write, MAX_QUEUED, dropped, report_loss)

    @property
    def waiting(self) -> int:
        """Requests, of those that get a line, whose lines the writer does not have yet."""
        return len(self.records) + len(self._made)

    def record(self, x: Exchange, seconds: float) -> None:
        """Note an exchange that ended, `seconds` after its head was read."""
        if self._lines is None:
            return
        records = self.records
        records.append((x, seconds))
        if x.body is not None or x.response_body is not None:
            self._weigh(x)
        if len(records) >= ROUND or self._weight > MAX_BODIES:
            self._make()
            if len(self._made) >= BATCH:
                self._hand_over()
        if self._timer is None:
            self._timer = self._call_later(INTERVAL, self._due)

    def connection(self, record: ConnectionRecord, seconds: float) -> None:
        """Note a connection whose bytes passed as they are, or a UDP session, `seconds` after it began."""
        if self._lines is None:
            return
        now = time.time()
        self._export_connection(record, seconds, now)
        if self._lines.is_full:
            self._lines.refuse(1)
            return
        self._made.append(self._connection_line(record, seconds, now))
        if len(self._made) >= BATCH:
            self._hand_over()
        if self._timer is None:
            self._timer = self._call_later(INTERVAL, self._due)

    def _export_connection(self, record: ConnectionRecord, seconds: float, now: float) -> None:
        telemetry = None if record.listener is None else record.listener.telemetry
        plan: LogPlan | None = None if telemetry is None else telemetry.log
        if plan is not None and plan.collector is not None and self.exports is not None:
            self.exports.connection(plan, record, seconds, int(now * 1e9))

    def _export_line(self, plan: LogPlan, x: Exchange, seconds: float, now: float) -> None:
        if self.exports is None:
            return
        try:
            self.exports.line(plan, x, seconds, int(now * 1e9))
        except Exception as error:  # as for lines
            log.error("a record of the access log failed for %r", x, exc_info=error)

    def _weigh(self, x: Exchange) -> None:
        """Let go of bodies, so that a batch of large ones does not fill the memory."""
        x.forget_json()
        telemetry = x.listener.telemetry if x.listener is not None else None
        if telemetry is not None and telemetry.reads_bodies:
            self._weight += len(x.body or b"") + len(x.response_body or b"")
        else:
            x.body = x.response_body = None

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self._waits = False
        self._make()
        if self._timer is None:
            self._hand_over()

    def flush(self, whole: bool = False) -> None:
        """Make lines of what is noted and hand them to the writer. `whole`: of all of it, however long that takes."""
        self._make(whole)
        self._hand_over()

    def _may_wait(self, number: int) -> bool:
        """So many records, with their bodies, may be kept for the next turn. Lines of more are made at once, without
        what expressions would add."""
        return number <= BATCH and self._weight <= MAX_BODIES

    def _hand_over(self) -> None:
        made, self._made = self._made, []
        if made and self._lines is not None:
            self._lines.put("".join(made).encode("utf-8", "backslashreplace"))

    def _make(self, whole: bool = False) -> None:
        """Make lines of what is noted, as far as this turn goes."""
        if not self.records or (self._waits and not whole and self._may_wait(len(self.records))):
            return
        records, self.records = self.records, []
        assert self._lines is not None  # without a writer nothing is noted
        lines = self._made
        if self._lines.is_full:
            self._lines.refuse(len(records))
            records = [record for record in records if _has_collector(record[0])]
            lines, whole = [], True  # collectors get theirs
        turns = self._turns
        line, groups, offset = self._line, self._groups, time.time() - self._clock()
        last: int | None = None  # millisecond that `when` is of
        second: int | None = None  # that `stamp` is of
        stamp = when = ""
        for at, (x, seconds) in enumerate(records):
            is_short = not whole and turns is not None and _computes(x) and not turns.has_time()
            if is_short and turns is not None and self._may_wait(len(records) - at):
                self.records = records[at:]
                self._wait(turns)
                return
            ended = x.started + seconds + offset
            now = int(ended * 1000)
            if now != last:
                last = now
                if now // 1000 != second:
                    second = now // 1000
                    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
                when = f"{stamp}.{now % 1000:03d}Z"
            plan = None if x.listener is None or x.listener.telemetry is None else log_of(x)
            if plan is None:
                lines.append(line(when, x, seconds, groups))
                continue
            if is_short:
                plan = plan.without_added
            x.took, x.status = seconds, x.status or CLIENT_CLOSED
            is_exported = False
            try:
                if plan.wants is None or plan.wants(x):
                    is_exported = plan.collector is not None
                    lines.append(self._planned(plan, when, x, seconds, groups))
            except Exception as error:  # a bug must cost one request its attributes, not all of them their lines
                log.error("attributes of the access log failed for %r", x, exc_info=error)
                lines.append(line(when, x, seconds, groups))
            if is_exported:
                self._export_line(plan, x, seconds, ended)
            if turns is not None:
                turns.has_gone_on()
        self._weight = 0

    def _wait(self, turns: ComputingTurns) -> None:
        if not self._waits:
            self._waits = True
            turns.add(self)

    def close(self, timeout: float = 2.0) -> None:
        """Write what there is; waits for the writer no longer than `timeout` seconds."""
        if self._timer is not None:
            self._timer.cancel()
        self.flush(whole=True)
        if self._lines is not None:
            self._lines.close(timeout)


def _computes(x: Exchange) -> bool:
    """Its line has fields that expressions give."""
    return x.listener is not None and x.listener.telemetry is not None and log_of(x) is not None


def _has_collector(x: Exchange) -> bool:
    plan = log_of(x)
    return plan is not None and plan.collector is not None


def report_loss(why: str, missed: int) -> None:
    """Once when it begins and once when it is over: the counter has the rest."""
    if why:
        log.error("access log is not written: %s; its lines are dropped and counted, traffic goes on", why)
    else:
        log.info("access log is written again; %d lines were dropped", missed)


def text_line(stamp: str, x: Exchange, took: float, groups: Groups) -> str:
    """A line without fields of the user."""
    return f"{stamp}\tinfo\trequest\t{log_writer.text(x, took, groups)[1:]}\n"


def planned_text(plan: LogPlan, stamp: str, x: Exchange, took: float, groups: Groups) -> str:
    """A line with the fields of a plan."""
    if plan.fields is not None:
        fields = f"{plan.fields[0](x, took)}{plan.text_added(x)}"
        return f"{stamp}\tinfo\trequest\t{fields.lstrip(' ')}\n"
    return f"{text_line(stamp, x, took, groups)[:-1]}{plan.text_added(x)}\n"


def json_line(stamp: str, x: Exchange, took: float, groups: Groups) -> str:
    """As `text_line`, one JSON object."""
    return f'{{"level":"info","time":"{stamp}","scope":"request"{log_writer.json(x, took, groups)}}}\n'


def planned_json(plan: LogPlan, stamp: str, x: Exchange, took: float, groups: Groups) -> str:
    """As `planned_text`, one JSON object."""
    if plan.fields is not None:
        fields = f'{{"level":"info","time":"{stamp}","scope":"request"{plan.fields[1](x, took)}'
        return f"{fields}{plan.json_added(x)}}}\n"
    return f"{json_line(stamp, x, took, groups)[:-2]}{plan.json_added(x)}}}\n"
