"""A mutation run: what `scripts/mutate` does (README.md beside this file).

A sample of faults over all packages, each planted alone; the tests of `selection` are asked; what no test noticed is
listed. Before that the same tests run without a fault: tests that fail anyway would kill everything.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutation import forks, selection
from mutation.equivalent import EQUIVALENT
from mutation.index import FOLDER, Index, file_of
from mutation.mutants import Mutant, of_files
from mutation.planted import module_of
from mutation.probes import MODULE, Wanted, runs_at_import
from mutation.run import FAILED, NO_VERDICT, TESTS_FAILED, UNPROVEN, Fault, Outcome, Record, run
from mutation.selection import PLANES, ROOT

WANTED = 0.9
"""Share of the faults that tests have to notice, in each plane."""
FIRST = 6.0, 40.0
"""Seconds of computing that the likeliest tests of a fault take without it, and what they may take with it: a fault
that never ends is noticed soon."""
ALL = 80.0, 300.0
"""The same for the others of those that are asked."""
RECORDED = 600.0
"""Seconds of computing of an eighth of all tests, while they write down what they execute."""
MOST_BROKEN = 5
"""Tests of an eighth that may fail without a fault, as a busy machine makes some do; they are not asked."""


def main(argv: Sequence[str]) -> int:
    """Exit codes: 0, 1 when a plane has too few killed, 2 when the tests cannot be asked."""
    options = _parser().parse_args(argv)
    found = [each for each in candidates() if _is_in(each, options.only)]
    if not found:
        print(f"scripts/mutate: no faults in {', '.join(options.only)}", file=sys.stderr)
        return 2
    chosen = found if options.tests else _sampled(found, options)
    if options.list:
        print(*map(shown, chosen), sep="\n")
        return 0
    tests = [Path(test).resolve() for test in options.tests]
    with ThreadPoolExecutor(options.jobs) as pool, forks.collected(tests or _files(chosen), options.jobs) as collected:
        try:
            if tests:
                _check_these(tests, collected)
            elif not options.trust:
                _check_without_a_fault(chosen, pool)
            outcomes = _all_asked(chosen, pool, Asker(collected, options.quick, tests))
        except Unsound as error:
            pool.shutdown(cancel_futures=True)
            print(f"{error}\nscripts/mutate: these tests fail without a fault", file=sys.stderr)
            return 2
    return report(outcomes)


class Unsound(Exception):
    """Tests fail without a fault: what they say of faults counts for nothing."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description="Plant faults; list what no test notices.")
    parser.add_argument("--seed", type=int, help="the sample of this number; without it another one each time")
    parser.add_argument("--count", type=int, default=200, help="faults (default 200)")
    parser.add_argument("--only", action="append", default=[], metavar="PACKAGE", help="dataplane.server, or a module")
    parser.add_argument("--tests", nargs="+", default=[], metavar="FILE", help="ask only these, about all faults")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (default 1)")
    parser.add_argument("--list", action="store_true", help="list the sample and run nothing")
    parser.add_argument("--quick", action="store_true", help="ask only the likeliest tests: some survivors are none")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a fault first")
    return parser


# --- the sample


def _sampled(found: Sequence[Mutant], options: argparse.Namespace) -> list[Mutant]:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    chosen = sample(found, options.count, seed)
    only = "".join(f" --only {name}" for name in options.only)
    print(f"{len(chosen)} of {len(found)} faults; again: scripts/mutate --seed {seed} --count {options.count}{only}")
    return chosen


def candidates() -> list[Mutant]:
    """All faults, but those that are known to change nothing."""
    return [each for each in of_files(selection.sources()) if (each.file, each.before, each.after) not in EQUIVALENT]


def package_of(mutant: Mutant) -> str:
    return module_of(mutant.file).rpartition(".")[0]


def _is_in(mutant: Mutant, only: Sequence[str]) -> bool:
    module = f"{module_of(mutant.file)}."
    return not only or any(module.startswith(f"{name}.") for name in only)


def sample(found: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them: of each package by its share of all, at least one; at most one of a line."""
    chance = random.Random(seed)
    packages: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in found:
        packages[package_of(mutant)].append(mutant)
    total = sum(map(len, packages.values()))
    chosen: list[Mutant] = []
    owed = 0.0
    for _, faults in sorted(packages.items()):
        owed += count * len(faults) / total
        number = max(1, round(owed))
        owed -= number
        chance.shuffle(faults)
        lines = {(mutant.file, mutant.line): mutant for mutant in reversed(faults)}
        chosen += [mutant for mutant in faults if lines[mutant.file, mutant.line] is mutant][:number]
    return chosen


# --- the run


def _files(chosen: Iterable[Mutant]) -> list[Path]:
    sets = dict.fromkeys(selection.files(package_of(mutant)) for mutant in chosen)
    return list(dict.fromkeys(path for each in sets for path in each))


def _check_these(tests: Sequence[Path], collected: forks.Forks) -> None:
    outcome = collected.ask(tests, None, RECORDED)
    if outcome is None or outcome.code:
        raise Unsound(outcome.output if outcome else f"{', '.join(map(str, tests))} cannot be collected")


def _check_without_a_fault(chosen: Sequence[Mutant], pool: ThreadPoolExecutor) -> None:
    files = _files(chosen)
    print(f"{len(files)} files of tests, first without a fault", flush=True)
    wanted = Wanted.of(chosen, selection.sources())
    for _ in pool.map(lambda tests: _check(tests, wanted), [files[start::8] for start in range(8) if files[start::8]]):
        pass


def _check(tests: Sequence[Path], wanted: Wanted) -> None:
    name = hashlib.sha256(repr((tests, wanted)).encode()).hexdigest()[:16]
    outcome = run(tests, None, RECORDED, record=Record(ROOT / FOLDER / f"{name}.json", wanted))
    broken = FAILED.findall(outcome.output)
    print(*(f"without a fault: {test}" for test in broken), sep="\n", end="\n" if broken else "", flush=True)
    if outcome.code not in (0, TESTS_FAILED) or len(broken) > MOST_BROKEN:
        raise Unsound(outcome.output[-3000:])


@cache
def _index() -> Index:
    return Index(ROOT)


Ask = Callable[[Sequence[Path | str], Fault | None, float], Outcome]
"""As `run`: tests are asked about a fault, or without one, for so many seconds of computing."""


def planted_in(root: Path, mutant: Mutant) -> Fault:
    text = mutant.apply((root / mutant.file).read_text())
    return Fault(module_of(mutant.file), str(root / mutant.file), text)


def certain(ask: Ask, fault: Fault, tests: Sequence[Path | str], seconds: float) -> Outcome:
    """No verdict counts only as the work of the fault, not of a machine that is busy or ends processes: the same tests
    pass without it in the same time, and those that were not cut off have no verdict a second time."""
    outcome = ask(tests, fault, seconds)
    if outcome.code == NO_VERDICT and not outcome.was_cut:
        outcome = ask(tests, fault, seconds)
    if outcome.code == NO_VERDICT and ask(tests, None, seconds).code:
        return Outcome(UNPROVEN, outcome.output)
    return outcome


def _all_asked(chosen: Sequence[Mutant], pool: ThreadPoolExecutor, asker: Asker) -> dict[Mutant, Outcome]:
    """In no order, and each fault to the end before the next: so a run that is interrupted (Ctrl+C) has a smaller
    sample of all packages, with verdicts that are as good."""
    mixed = random.Random(len(chosen)).sample(chosen, len(chosen))
    outcomes: dict[Mutant, Outcome] = {}
    try:
        for mutant, outcome in zip(mixed, pool.map(asker.asked, mixed), strict=True):
            outcomes[mutant] = outcome
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        print(f"interrupted: {len(outcomes)} of {len(chosen)} were asked")
    return outcomes


@dataclass(frozen=True)
class Asker:
    """Asks tests about faults: the likeliest in forks, then in processes of their own, then others."""

    collected: forks.Forks
    is_quick: bool
    given: Sequence[Path] = ()
    """Files of tests to ask in place of those that execute the statement."""

    def asked(self, mutant: Mutant) -> Outcome:
        """Print what became of it, too."""
        began = time.monotonic()
        outcome = self._asked(mutant)
        print(f"{_word(outcome)} {time.monotonic() - began:5.0f} s  {shown(mutant)}{_by(outcome)}", flush=True)
        return outcome

    def _asked(self, mutant: Mutant) -> Outcome:
        fault = planted_in(ROOT, mutant)
        outcome = self._in_a_fork(mutant, fault)
        if not outcome.is_killed:
            outcome = self._pass(mutant, fault, FIRST, run)
        if not outcome.is_killed and not (self.is_quick or self.given):
            outcome = self._pass(mutant, fault, ALL, run)
        return outcome

    def _in_a_fork(self, mutant: Mutant, fault: Fault) -> Outcome:
        """Only a fault that is noticed is certain: what is made while modules are imported does not have it here."""
        if runs_at_import((ROOT / mutant.file).read_text(), mutant.line):
            return Outcome(0, "")
        try:
            return self._pass(mutant, fault, FIRST, self._fork)
        except Unasked:
            return Outcome(0, "")

    def _fork(self, tests: Sequence[Path | str], fault: Fault | None, seconds: float) -> Outcome:
        outcome = self.collected.ask(tests, fault, seconds)
        if outcome is None:
            raise Unasked
        return outcome

    def _pass(self, mutant: Mutant, fault: Fault, limits: tuple[float, float], ask: Ask) -> Outcome:
        tests = self.given or _index().within(_askable(mutant), limits[0], _ranks(mutant.file))
        return _confirmed(mutant, fault, certain(ask, fault, tests, limits[1]), ask) if tests else Outcome(0, "")


class Unasked(Exception):
    """The process that has collected tests cannot say."""


def _askable(mutant: Mutant) -> set[str]:
    """Those that execute the statement. Of one that runs when the module is imported, those that execute anything of
    the module, those that read a name which it defines, and all of the package: others may read what it defines, in
    another process too."""
    index = _index()
    found = index.of(mutant.file, mutant.line)
    if found and not runs_at_import((ROOT / mutant.file).read_text(), mutant.line):
        return found
    files = {str(path.relative_to(ROOT)) for path in selection.files(package_of(mutant))}
    asked = {test for test in index.seconds if file_of(test) in files}
    return found | index.of(mutant.file, MODULE) | asked


def _ranks(file: str) -> Callable[[str], tuple[bool, int]]:
    """Tests that execute something of the module before others, then by `selection`."""
    places = {str(path.relative_to(ROOT)): at for at, path in enumerate(selection.ranked(file))}
    executing = _index().of(file, MODULE)
    return lambda test: (test not in executing, places.get(file_of(test), len(places)))


def _confirmed(mutant: Mutant, fault: Fault, outcome: Outcome, ask: Ask) -> Outcome:
    """A test's verdict counts when it passes without the fault, by itself: some need what others did before. Where it
    is not known to execute the line, it has to fail with the fault a second time: a busy machine misses deadlines."""
    test = outcome.by
    if not outcome.is_killed or "::" not in test:
        return outcome
    executes = test in _index().of(mutant.file, mutant.line)
    if not ask([test], None, ALL[1]).code and (executes or ask([test], fault, ALL[1]).is_killed):
        return outcome
    return Outcome(UNPROVEN, outcome.output)


def _word(outcome: Outcome) -> str:
    return "killed  " if outcome.is_killed else "UNPROVEN" if outcome.code == UNPROVEN else "SURVIVED"


def _by(outcome: Outcome) -> str:
    return f"  by {outcome.by}" if outcome.code else ""


# --- the report


def shown(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line} [{mutant.kind}]  {mutant.before}  ->  {mutant.after}"


def report(outcomes: dict[Mutant, Outcome]) -> int:
    """Print figures and survivors; 1 when a plane is below what is wanted."""
    by_package = Counter(map(package_of, outcomes))
    killed = Counter(package_of(mutant) for mutant, outcome in outcomes.items() if outcome.is_killed)
    print("\npackage                      killed   of")
    print(*(f"{name:28} {killed[name]:6} {number:4}" for name, number in sorted(by_package.items())), sep="\n")
    survivors = [mutant for mutant, outcome in outcomes.items() if not outcome.is_killed]
    print(f"\n{len(survivors)} survived", *map(shown, survivors), sep="\n")
    shares = dict(_shares(by_package, killed))
    print("\nplane            killed   of   share")
    for plane, (number, of) in shares.items():
        print(f"{plane:16} {number:6} {of:4} {number / of:7.1%}{'' if number / of >= WANTED else '  too few'}")
    return int(any(number / of < WANTED for number, of in shares.values()))


def _shares(by_package: Counter[str], killed: Counter[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for plane in PLANES:
        names = [name for name in by_package if name.split(".")[0] == plane]
        if names:
            yield plane, (sum(killed[name] for name in names), sum(by_package[name] for name in names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
