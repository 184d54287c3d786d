"""Who makes spans of exchanges that ended (one of `Context.observers`), and gives them to exporters."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataplane.tracing.span_records import traced
from dataplane.tracing.trace import Trace

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.export.exporter import Signal
    from dataplane.export.exporters import Exporters
    from dataplane.tracing.spans import Traced

SIGNAL: Final = "traces"


class SpanObserver:
    """`clock`: the worker's monotonic seconds; `wall_clock`: nanoseconds since 1970."""

    def __init__(
        self, exporters: Exporters, clock: Callable[[], float], wall_clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._exporters = exporters
        self._clock = clock
        self._wall_clock = wall_clock

    def observe(self, x: Exchange, seconds: float) -> None:
        """An exchange has ended, `seconds` after its head was read."""
        trace = x.trace
        if type(trace) is not Trace or not self._exporters.admits(SIGNAL, trace.plan.collector):
            return
        now = self._clock()
        trace.try_ends(now, "" if x.endpoint is None else x.endpoint.label, 0 if x.reason else x.status, x.reason)
        record = traced(x, trace, seconds, self._wall_clock() - int(now * 1e9), now)
        self._exporters.add(SIGNAL, trace.plan.collector, _signal, record)


def _signal() -> Signal[Traced]:
    """Loaded with the first span: OTLP's descriptors take 6 MB."""
    from dataplane.export.otlp import Traces

    return Traces()
