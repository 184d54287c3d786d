"""Who gives lines of the access log to exporters (`telemetry/access_log.Exports`). Loaded with the first line that a
collector gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.telemetry import connections, log_record
from dataplane.telemetry.log_record import LogRecord

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.export.exporter import Signal
    from dataplane.export.exporters import Exporters
    from dataplane.telemetry.connections import ConnectionRecord
    from dataplane.telemetry.log_plan import LogPlan

SIGNAL: Final = "logs"


class LogExports:
    """One per worker."""

    def __init__(self, exporters: Exporters) -> None:
        self._exporters = exporters

    def line(self, plan: LogPlan, x: Exchange, seconds: float, at: int) -> None:
        if self._is_wanted(plan):
            self._add(plan, log_record.of_exchange(plan, x, seconds, at))

    def connection(self, plan: LogPlan, record: ConnectionRecord, seconds: float, at: int) -> None:
        if not self._is_wanted(plan):
            return
        attributes = connections.attributes_of(record, seconds)
        left = [(name, value) for name, value in attributes if name not in plan.removed]
        self._add(plan, LogRecord(at, "connection", list(left)))

    def _is_wanted(self, plan: LogPlan) -> bool:
        return plan.collector is not None and self._exporters.admits(SIGNAL, plan.collector)

    def _add(self, plan: LogPlan, record: LogRecord) -> None:
        if plan.collector is not None:
            self._exporters.add(SIGNAL, plan.collector, _signal, record)


def _signal() -> Signal[LogRecord]:
    """Loaded with the first record: OTLP's descriptors take 6 MB."""
    from dataplane.export.otlp_logs import Logs

    return Logs()
