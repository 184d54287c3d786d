"""The code of a kind of backends that few use is loaded in steps when a table has one (`backends/registry.load`)."""

from __future__ import annotations

import subprocess
import sys

from dataplane.backends.registry import LOADED_LATE, ROWS
from dataplane.table.endpoints import NAMED

STEPS = """
import sys
from importlib import import_module
from dataplane import serving
from dataplane.backends.registry import LOADED_LATE, load
names = LOADED_LATE[sys.argv[1]]
steps = [sum(name in sys.modules for name in names) for _ in load(sys.argv[1])]
assert steps == list(range(1, len(names) + 1)), steps  # each step loads one and nothing that a later one would
before = set(sys.modules)
import_module(names[-1])  # what is asked for at the first request
assert set(sys.modules) == before
assert not list(load(sys.argv[1]))
"""


def test_each_step_loads_a_part_and_all_of_them_everything() -> None:
    assert LOADED_LATE.keys() <= {*ROWS, NAMED}
    for kind in LOADED_LATE:
        done = subprocess.run([sys.executable, "-c", STEPS, kind], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
