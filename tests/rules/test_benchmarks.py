"""Every benchmark can be loaded: nobody runs most of them from one month to the next."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__main__")


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_loaded(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__
