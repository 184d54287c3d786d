"""Rules for backends of a worker that shares nothing and counts nothing, for tests of what stands around them."""

from __future__ import annotations

from collections.abc import Callable

from dataplane.link.evictions import Evictions
from dataplane.link.loads import Loads
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.backend_rules import RuleStates


def local(clock: Callable[[], float] = lambda: 0.0, recorder: Recorder | None = None) -> RuleStates:
    return RuleStates(Evictions.local(), Loads.local(), clock, recorder or Recorder(Metrics.in_memory()))
