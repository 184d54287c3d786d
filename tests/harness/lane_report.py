"""A pytest plugin of lanes: writes the counts of a run, and which tests failed, to $GATEWRIGHT_LANE_REPORT."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

CATEGORIES = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts = {name: len(terminalreporter.stats.get(name, ())) for name in CATEGORIES}
    bad = [report.nodeid for name in ("failed", "error") for report in terminalreporter.stats.get(name, ())]
    report = {"counts": counts, "bad": list(dict.fromkeys(bad))}
    Path(os.environ["GATEWRIGHT_LANE_REPORT"]).write_text(json.dumps(report))
