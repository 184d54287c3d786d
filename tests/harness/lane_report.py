"""A pytest plugin of lanes: writes the counts of a run to $GATEWRIGHT_LANE_REPORT, for one closing line of all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

CATEGORIES = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts = {name: len(terminalreporter.stats.get(name, ())) for name in CATEGORIES}
    Path(os.environ["GATEWRIGHT_LANE_REPORT"]).write_text(json.dumps(counts))
