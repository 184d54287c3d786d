"""Which tests execute the statement of a fault: written down while they run without one, and asked about it.

Of a statement that runs when its module is imported, such as a table or a default, it is those that execute any
function of the module. What is written about a file counts as long as the file stays as it was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from mutation import probes
from mutation.probes import Spot

FOLDER: Final = ".coverage/mutation"


class Recorder:
    """A plugin of pytest. The product must not have been imported before."""

    def __init__(self, root: Path, wanted: probes.Wanted) -> None:
        self.root = root
        self.wanted = wanted
        self.seconds: Counter[str] = Counter()
        self.tests: dict[Spot, list[str]] = defaultdict(list)
        self._seen: set[Spot] = set()
        probes.install(root, wanted, self._seen.add)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        """What a file of tests executes when it is imported, all its tests may see."""
        self._seen.clear()
        try:
            return (yield)
        finally:
            self._note(file_of(collector.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._seen.clear()
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] += time.process_time() - began  # type: ignore[assignment]
            self._note(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":  # nothing that it says of a fault counts
            self.seconds[report.nodeid] = float("inf")  # type: ignore[assignment]

    def _note(self, test: str) -> None:
        for spot in self._seen:
            self.tests[spot].append(test)
        self._seen.clear()

    def write(self, path: Path) -> None:
        """Every file that was asked about is in it, whether somebody executes it or not."""
        tests = [test for test, seconds in self.seconds.items() if seconds != float("inf")]
        number = {test: at for at, test in enumerate(tests)}
        of_file: dict[str, list[int]] = defaultdict(list)
        for test, at in number.items():
            of_file[file_of(test)].append(at)
        lines: dict[str, dict[int, list[int]]] = defaultdict(dict)
        for file, line in self.wanted.spots:
            lines[file][line] = []
        for file, line in self.tests.keys() & set(self.wanted.spots):
            names = self.tests[file, line]
            found = {at for name in names for at in ([number[name]] if name in number else of_file[name])}
            lines[file][line] = sorted(found)
        files = {*lines, *of_file}
        path.parent.mkdir(parents=True, exist_ok=True)
        seconds = [round(self.seconds[test], 3) for test in tests]
        path.write_text(json.dumps([{file: digest(self.root, file) for file in files}, tests, seconds, lines]))


class Index:
    """What was written about files that are still the same."""

    def __init__(self, root: Path) -> None:
        self.seconds: dict[str, float] = {}
        """Of computing, for each test."""
        self._tests: dict[Spot, set[str]] = defaultdict(set)
        self._known: set[Spot] = set()
        for path in (root / FOLDER).glob("*.json"):
            self._read(root, *json.loads(path.read_text()))

    def _read(self, root: Path, digests: dict[str, str], tests: list[str], seconds: list[float], lines: Any) -> None:
        fresh = {file for file, was in digests.items() if digest(root, file) == was}
        self.seconds |= {test: each for test, each in zip(tests, seconds, strict=True) if file_of(test) in fresh}
        for file in lines.keys() & fresh:
            for line, numbers in lines[file].items():
                self._known.add((file, int(line)))
                self._tests[file, int(line)] |= self.seconds.keys() & {tests[number] for number in numbers}

    def knows(self, file: str, line: int) -> bool:
        """Whether anybody looked at who executes it."""
        return (file, line) in self._known

    def of(self, file: str, line: int) -> set[str]:
        """Who executes it."""
        return self._tests[file, line]

    def within(self, tests: Iterable[str], seconds: float, rank: Callable[[str], Any]) -> list[str]:
        """Those for which there is time, by rank, of each rank the fastest first."""
        chosen = []
        for test in sorted(tests, key=lambda each: (rank(each), self.seconds[each], each)):
            if self.seconds[test] <= seconds:
                seconds -= self.seconds[test]
                chosen.append(test)
        return chosen


def file_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def digest(root: Path, file: str) -> str:
    path = root / file
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
