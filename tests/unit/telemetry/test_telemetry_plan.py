"""The parts of a listener's telemetry: what any of them reads is kept, and only that."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.telemetry.log_plan import LogPlan
from dataplane.telemetry.plan import TelemetryPlan, log_of

KINDS = (None, LogPlan(), LogPlan(reads_headers=True), LogPlan(reads_bodies=True))


@pytest.mark.parametrize("parts", [*product(KINDS, repeat=3)])
def test_what_one_part_reads_is_kept(parts: tuple[LogPlan | None, ...]) -> None:
    plan = TelemetryPlan(*parts)
    there = [part for part in parts if part is not None]
    assert plan.reads_headers == any(part.reads_headers for part in there)
    assert plan.reads_bodies == any(part.reads_bodies for part in there)


def test_the_plan_of_a_line() -> None:
    x: Any = Exchange(None, b"GET", b"/", Head(b"\r\n"), started=2.0)
    assert log_of(x) is None
    made = LogPlan()
    for telemetry, found in ((None, None), (TelemetryPlan(tracing=made), None), (TelemetryPlan(made), made)):
        x.listener = SimpleNamespace(telemetry=telemetry)
        assert log_of(x) is found
