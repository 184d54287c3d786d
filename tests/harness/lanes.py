"""The lanes of a test run: what `scripts/test` does, and the table of what each lane may cost.

`scripts/test` runs the in-memory lane; `--all` every lane, where a skip is a failure; `--long` is `--all` with ten
times the random examples, and ten minutes of fuzzing behind it. Paths are run as they are, without lanes. Each lane is
one pytest with several processes (`harness/forked.py`). What a lane costs is CPU seconds, children included: wall time
measures the neighbours, so it is printed and never judged. All lanes together end in one line of pytest's kind.

In CI a few tests that failed are asked once more, one after the other, when all lanes are done: a machine may starve
what waits for processes. Those that pass then are named and counted apart. Random tests draw the same examples again,
so what they found stays found.
"""

from __future__ import annotations

import json
import os
import re
import resource
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness import seeds, yardstick

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ("--seconds", "600", "--rounds", "3")
"""Of a long run: all targets together, each with several seeds."""
EXAMPLES = "10"
"""Factor of a long run for everything random."""
TESTS_FAILED = 1
"""pytest's exit code when it ran to its end and some tests failed."""
NO_TESTS = 5
"""pytest's exit code when it collected nothing."""


@dataclass(frozen=True, slots=True)
class Lane:
    """`marks` selects the tests (pytest's `-m`). `workers`: test processes for each core. `budget`: CPU seconds with
    all children, on a machine on which the yardstick takes its reference time."""

    name: str
    marks: str
    workers: float
    budget: float


MEMORY = Lane("memory", "not process and not slow", 1, 1050)
"""Runs of 31,500 tests took 640 to 813 seconds on machines of one kind, by which the yardstick saw no difference."""
PROCESS = Lane("process", "process and not slow", 2, 1250)
"""Real processes: mostly waiting, so more workers than cores. Runs took 593 and, with hostile rows sent live, 878 s."""
SLOW = Lane("slow", "slow", 1, 1050)
"""Runs of 12,100 to 12,500 tests took 515 and 742 seconds: of what machines differ in the yardstick sees a part."""
ROUNDS: Sequence[Sequence[Lane]] = ((MEMORY,), (PROCESS, SLOW))
"""Lanes of a round run at the same time. The in-memory lane needs all cores; the others wait for each other's sake."""

MOST_AGAIN = 4
"""Failed tests that CI asks once more. Where more fail, the machine is not the reason."""

ORDER = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
"""How pytest orders a closing line."""


@dataclass(slots=True)
class Outcome:
    """What became of a lane. `counts`: pytest's categories; `code`: its exit code; times in seconds."""

    lane: Lane
    counts: Counter[str]
    code: int
    wall: float
    cpu: float
    pace: float = 1.0
    bad: list[str] = field(default_factory=list)
    """The tests that failed, as pytest names them."""

    @property
    def allowed(self) -> float:
        """CPU seconds that the lane may take on this machine, as busy as it was."""
        return self.lane.budget * self.pace

    def __str__(self) -> str:
        return (
            f"lane {self.lane.name}: {_listed(self.counts)} in {self.wall:.0f}s; "
            f"{self.cpu:.0f} CPU seconds of {self.allowed:.0f} (machine {self.pace:.2f} of the reference)"
        )


@dataclass(slots=True)
class Wanted:
    """A command line."""

    rounds: Sequence[Sequence[Lane]] = ((MEMORY,),)
    long: bool = False
    paths: bool = False
    rest: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def parse(words: Sequence[str], environment: Mapping[str, str]) -> Wanted:
    """What to run. Words that are not ours go to pytest as they are."""
    wanted = Wanted()
    seed = environment.get(seeds.SEED) or str(secrets.randbelow(seeds.LIMIT - 1) + 1)
    waiting = iter(words)
    for word in waiting:
        if word in ("--all", "--long"):
            wanted.rounds = ROUNDS
            wanted.long = wanted.long or word == "--long"
        elif word == "--seed":
            seed = next(waiting, "")
        elif word.startswith("--seed="):
            seed = word.partition("=")[2]
        else:
            wanted.rest.append(word)
            wanted.paths = wanted.paths or (not word.startswith("-") and (ROOT / word.partition("::")[0]).exists())
    if not seed.isdecimal():
        raise SystemExit(f"scripts/test: --seed takes a whole number, not {seed!r}")
    # Also the order of sets of texts comes from it.
    wanted.environment = {seeds.SEED: seed, "PYTHONHASHSEED": environment.get("PYTHONHASHSEED") or seed}
    if wanted.rounds is ROUNDS:
        wanted.environment["GATEWRIGHT_ALL"] = "1"
    if wanted.long:
        wanted.environment[seeds.EXAMPLES] = environment.get(seeds.EXAMPLES) or EXAMPLES
    return wanted


def main(words: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code is 0 when everything passed within its budget."""
    os.chdir(ROOT)
    wanted = parse(words, os.environ)
    os.environ.update(wanted.environment)
    # Compiled files are kept whatever the machine says: all processes of tests, and what they start, read them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if wanted.paths:
        os.execv(sys.executable, _pytest(wanted.rest))
    begun = time.monotonic()
    outcomes = [outcome for lanes in wanted.rounds for outcome in _round(lanes, wanted.rest)]
    is_ci = bool(os.environ.get("CI"))
    if is_ci:
        ask_again(outcomes, _alone)
    code = max(judged(outcome, is_ci) for outcome in outcomes)
    if wanted.long:
        code |= subprocess.run(["scripts/fuzz", *FUZZ, "--seed", os.environ[seeds.SEED]], check=False).returncode
    for outcome in outcomes:
        print(outcome)
    print(closing_line(outcomes, time.monotonic() - begun), flush=True)
    return code


def ask_again(outcomes: Sequence[Outcome], passes: Callable[[str], bool]) -> list[str]:
    """Ask the tests that failed once more, if they are few; `passes` runs one by itself. Those that pass count as
    passed, and are the answer."""
    if sum(len(outcome.bad) for outcome in outcomes) > MOST_AGAIN:
        return []
    unsteady = []
    for outcome in outcomes:
        for test in [each for each in outcome.bad if passes(each)]:
            unsteady.append(test)
            outcome.bad.remove(test)
            print(f"unsteady: {test} failed beside other tests, and passed by itself")
        if outcome.code == TESTS_FAILED and not outcome.bad:
            outcome.code = 0
            outcome.counts["passed"] += outcome.counts.pop("failed", 0)
            outcome.counts.pop("error", None)
    return unsteady


def _alone(test: str) -> bool:
    print(f"== once more, by itself: {test}", flush=True)
    return subprocess.run(_pytest(["-p", "no:cacheprovider", test]), check=False).returncode == 0


def closing_line(outcomes: Sequence[Outcome], seconds: float) -> str:
    """One line for all lanes, as pytest closes a run."""
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(outcome.counts)
    minutes, rest = divmod(round(seconds), 60)
    return f"{_listed(total)} in {seconds:.2f}s ({minutes // 60}:{minutes % 60:02}:{rest:02})"


def _listed(counts: Mapping[str, int]) -> str:
    shown = [f"{counts[name]} {name}" for name in ORDER if counts.get(name)]
    return re.sub(r"(?<!\b1) error$", " errors", ", ".join(shown)) or "no tests ran"


def judged(outcome: Outcome, is_ci: bool) -> int:
    """1 when tests failed, or when CI paid more for them than the budget allows."""
    if outcome.cpu > outcome.allowed:
        print(f"lane {outcome.lane.name} is over its budget: {outcome.cpu:.0f} CPU seconds of {outcome.allowed:.0f}")
        if is_ci:
            return 1
    return int(outcome.code not in (0, NO_TESTS))


def _pytest(arguments: Sequence[str]) -> list[str]:
    # A test that hangs tells where, long before the caller's patience ends.
    return [sys.executable, "-m", "pytest", "-o", "faulthandler_timeout=300", *arguments]


def _round(lanes: Sequence[Lane], arguments: Sequence[str]) -> list[Outcome]:
    """Run some lanes at once. The first writes as it goes, the others when they are done."""
    with tempfile.TemporaryDirectory(prefix="lanes") as folder, yardstick.Watch() as watch:
        running = [_Running(lane, Path(folder), arguments, shown=lane is lanes[0]) for lane in lanes]
        threads = [threading.Thread(target=each.wait) for each in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in running:
            if not each.shown:
                print(each.output.read_text(errors="replace"), end="", flush=True)
        return [each.outcome(watch.pace()) for each in running]


class _Running:
    """One pytest."""

    def __init__(self, lane: Lane, folder: Path, arguments: Sequence[str], shown: bool) -> None:
        self.lane, self.shown = lane, shown
        self.output = folder / f"{lane.name}.out"
        self._report = folder / f"{lane.name}.json"
        workers = max(1, min(round(lane.workers * len(os.sched_getaffinity(0))), 8))
        plugins = ["-p", "tests.harness.lane_report", "-p", "tests.harness.forked"]
        flags = [*plugins, "-m", lane.marks, "--forks", str(workers)]
        print(f"== lane {lane.name}: {workers} processes, seed {seeds.seed()}", flush=True)
        self._begun = time.monotonic()
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                _pytest([*flags, *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=None if shown else output,
                stderr=None if shown else subprocess.STDOUT,
                env={**os.environ, "GATEWRIGHT_LANE_REPORT": str(self._report)},
            )
        self._status = 0
        self._usage: resource.struct_rusage | None = None

    def wait(self) -> None:
        """Until it ends. `wait4` gives what it and everything below it used."""
        _, self._status, self._usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(self._status)
        self._wall = time.monotonic() - self._begun

    def outcome(self, pace: float) -> Outcome:
        assert self._usage is not None
        try:
            report = json.loads(self._report.read_text())
        except FileNotFoundError:  # it ended before it could count
            report = {"counts": {"error": 1}, "bad": []}
        cpu = self._usage.ru_utime + self._usage.ru_stime
        counts = Counter(report["counts"])
        return Outcome(self.lane, counts, self._process.returncode, self._wall, cpu, pace, report["bad"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
