"""How long tests, faults and benchmarks wait for what must happen: the one number, and the only one.

It is no measure of speed: what passes never waits so long, and nothing is shown by it but that a thing happened. On a
machine that is slower than any that was thought of, GATEWRIGHT_PATIENCE=3 makes it three times as long.
"""

from __future__ import annotations

import os
from typing import Final

SCALE: Final = float(os.environ.get("GATEWRIGHT_PATIENCE", "1"))
"""How many times as long as on a quiet machine."""
PATIENCE: Final = 90.0 * SCALE
"""Seconds. Much of it is for the start of processes on a machine that is busy with other tests: loading starves."""
