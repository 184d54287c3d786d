"""Which requests are traced: pure, one decision for each request, by its trace id alone.

The rule of OpenTelemetry's `TraceIdRatioBased` below `ParentBased`: of one trace id every process with the same share
decides alike, and what a caller does not record is not recorded here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.tracing.context import SpanContext

_BITS: Final = 64
_LOW: Final = (1 << _BITS) - 1


def bound(share: object) -> int:
    """What the low 64 bits of a sampled trace id stay below. `share`: what an expression gave: true, false, or a number
    of which 0.0 to 1.0 counts; anything else is never."""
    if share is True:
        return _LOW + 1
    if share is False or not isinstance(share, (int, float)) or not share > 0:
        return 0
    return _LOW + 1 if share >= 1 else round(share * (_LOW + 1))


def is_among(trace: int, limit: int) -> bool:
    """Whether the trace with this id is among the share that `bound` gave."""
    return trace & _LOW < limit


def continues(parent: SpanContext, limit: int) -> bool:
    """Whether a request with a trace is recorded: its caller records it, and it is among the share."""
    return parent.is_sampled and is_among(int(parent.trace_id, 16), limit)
