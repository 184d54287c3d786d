"""A pytest plugin: which files may have tests of a lane. The others are not even imported when a lane runs.

Each process of a lane would else import six hundred files and make twenty thousand tests of them, of which most are
another lane's. A file says in its own text what it may have: the marker, or the fixture whose values are marked. That
this is true is looked at whenever tests are collected: one whose file does not say so ends the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

ROOT: Final = Path(__file__).resolve().parents[2]
PROCESS_FOLDERS: Final = tuple(ROOT / "tests" / name for name in ("loopback", "faults", "cluster"))
"""Everything below them starts servers; elsewhere a test says so with the marker `process`."""
_POLICIES: Final = ROOT / "tests/policies"
_MARKER: Final = "mark[.]{}\\b"


def may_be_fast(path: Path) -> bool:
    """Whether a file may have tests of the in-memory lane."""
    return not _is_in_process_folders(path)


def may_be_process(path: Path) -> bool:
    """Whether a file may have tests that start servers."""
    return _is_in_process_folders(path) or _says(path, _MARKER.format("process"))


def may_be_slow(path: Path) -> bool:
    """Whether a file may have slow tests. All carriers of policies but two are."""
    carried = "\\bcarrier\\b" if path.is_relative_to(_POLICIES) else "(?!)"
    return _says(path, f"{_MARKER.format('slow')}|{carried}")


def values_of_lane(metafunc: pytest.Metafunc, values: Sequence[ParameterSet]) -> Sequence[ParameterSet]:
    """Of the values of a parameter those with which this test is in the lane that runs: pytest would make tests of all
    of them, and leave most out."""
    lane = metafunc.config.option.markexpr
    if lane not in FILES or metafunc.definition.get_closest_marker("slow") is not None:
        return values
    return [value for value in values if any(mark.name == "slow" for mark in value.marks) == (lane == "slow")]


FILES: Final[Mapping[str, Callable[[Path], bool]]] = {
    "not process and not slow": may_be_fast,
    "process and not slow": may_be_process,
    "slow": may_be_slow,
}
"""By the marks of a lane (pytest's `-m`)."""


@cache
def _is_in_process_folders(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in PROCESS_FOLDERS)


@cache
def _text(path: Path) -> str:
    return path.read_text()


def _says(path: Path, pattern: str) -> bool:
    return re.search(pattern, _text(path)) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    may_have = FILES.get(config.option.markexpr)
    if may_have is None or collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    return None if may_have(collection_path) else True


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_in_process_folders(item.path):
            item.add_marker("process")
        for name, may_be in (("process", may_be_process), ("slow", may_be_slow)):
            if item.get_closest_marker(name) is not None and not may_be(item.path):
                raise pytest.UsageError(f"{item.nodeid} is marked {name}, which the text of its file does not say")
