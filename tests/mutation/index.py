"""Which tests execute a line: written down while the tests run without a fault, and asked first about a fault there.

It says who is asked first (tests that execute the line), and which files of tests are asked then (those of which a test
executes anything of the module): a line that is read from a cache or at import loses time, and mostly no verdict. What
is written about a file counts as long as the file stays as it was.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Final

import coverage
import pytest

FOLDER: Final = ".coverage/mutation"
MOST: Final = 30
"""Tests of a line, from each of the files here."""
SECONDS: Final = 8.0
"""What the tests that are asked first may take in all, without a fault."""
LINES: Final = 8
"""A statement may begin so far above the line with the fault."""


class Recorder:
    """A plugin of pytest. The product must not have been imported before."""

    def __init__(self, root: Path, packages: Iterable[str]) -> None:
        self.root = root
        self.seconds: Counter[str] = Counter()
        self.coverage = coverage.Coverage(data_file=None, config_file=False, source_pkgs=[*packages])
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]

    def write(self, path: Path) -> None:
        """Of each line the tests that execute the fewest lines: they say more of each."""
        self.coverage.stop()
        data = self.coverage.get_data()
        names = {name: str(Path(name).relative_to(self.root)) for name in data.measured_files()}
        lines = {file: data.contexts_by_lineno(name) for name, file in names.items()}
        breadth = Counter(test for each in lines.values() for tests in each.values() for test in tests)
        narrowest = {
            file: {line: sorted(filter(None, tests), key=breadth.__getitem__)[:MOST] for line, tests in each.items()}
            for file, each in lines.items()
        }
        tests = {test: (breadth[test], seconds) for test, seconds in self.seconds.items()}
        executing = {
            file: sorted({file_of(test) for tests in each.values() for test in tests if test})
            for file, each in lines.items()
        }
        files = {*lines, *map(file_of, tests)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{file: digest(self.root, file) for file in files}, tests, narrowest, executing]))


class Index:
    """What was written about files that are still the same."""

    def __init__(self, root: Path) -> None:
        self.tests: dict[str, tuple[int, float]] = {}
        self.lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.executing: dict[str, set[str]] = defaultdict(set)
        """Files of tests, by the product's file of which they execute something."""
        for path in (root / FOLDER).glob("*.json"):
            digests, tests, lines, executing = json.loads(path.read_text())
            fresh = {file for file, was in digests.items() if digest(root, file) == was}
            self.tests |= {test: figures for test, figures in tests.items() if file_of(test) in fresh}
            for file in lines.keys() & fresh:
                self.executing[file] |= fresh.intersection(executing[file])
                for line, found in lines[file].items():
                    self.lines[file, int(line)] |= self.tests.keys() & found

    def of(self, file: str, line: int) -> list[str]:
        """Those to ask first about a fault here, the narrowest first."""
        found = next(filter(None, (self.lines.get((file, line - up)) for up in range(LINES))), set())
        chosen, left = [], SECONDS
        for test in sorted(found, key=lambda test: (self.tests[test][0], test)):
            left -= self.tests[test][1]
            if left >= 0:
                chosen.append(test)
        return chosen


def file_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def digest(root: Path, file: str) -> str:
    path = root / file
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
