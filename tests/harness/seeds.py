"""One seed for a run: whatever a test draws comes from it, a new one each time unless it is given.

`--seed N` or GATEWRIGHT_SEED=N replays a run; the environment carries it to every lane of `scripts/test` and to
child processes. It is printed when a run begins, and again with the command that replays a failed
test. Hypothesis gets it as `--hypothesis-seed`, Python's own `random` is set from it before each test, and generators
of our own ask `rolls`. GATEWRIGHT_EXAMPLES=N multiplies how long random tests look: `max_examples` of every hypothesis
test, and what asks `times` (`scripts/test --long` has 10).
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

SEED = "GATEWRIGHT_SEED"
EXAMPLES = "GATEWRIGHT_EXAMPLES"
LIMIT = 2**31
"""Seeds are below it: libFuzzer takes 32 bits, and PYTHONHASHSEED no sign."""
MOST_COMMANDS = 10
"""Tests that failed and get a command each beside the summary."""


def seed() -> int:
    """The seed of this run. Draws one, for child processes too, where none was given."""
    return int(os.environ.setdefault(SEED, str(secrets.randbelow(LIMIT - 1) + 1)))


def rolls(*name: object) -> random.Random:
    """A generator of its own for everything that has a name: the same each time in a run, another one in the next."""
    return random.Random("/".join(map(str, (seed(), *name))))


def times(count: int) -> int:
    """`count`, or a multiple of it in a long run."""
    return count * int(os.environ.get(EXAMPLES, "1"))


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """`rolls` by the name of the test."""
    return rolls(request.node.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"replay the random choices of a run ({SEED}; default: a new seed, which is printed)"
    parser.addoption("--seed", type=int, metavar="N", help=text)


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its own option
def pytest_configure(config: pytest.Config) -> None:
    asked = config.getoption("--seed")
    if asked is not None:
        os.environ[SEED] = str(asked)
    if not os.environ.get(EXAMPLES, "1").isdigit() or times(1) < 1:
        raise pytest.UsageError(f"{EXAMPLES} is a whole number from 1 on")
    try:
        number = seed()
    except ValueError:
        raise pytest.UsageError(f"{SEED} is a whole number, not {os.environ[SEED]!r}") from None
    if not config.getoption("--hypothesis-seed", None):
        config.option.hypothesis_seed = str(number)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    factor = times(1)
    if factor > 1:
        for test in {id(test): test for test in _hypothesis_tests(items)}.values():
            own = test._hypothesis_internal_use_settings
            longer = own.max_examples * factor
            test._hypothesis_internal_use_settings = hypothesis.settings(own, max_examples=longer)


def _hypothesis_tests(items: list[pytest.Item]) -> Iterator[Any]:
    """Their functions; one that has parameters is there several times."""
    for item in items:
        function = getattr(item, "function", None)
        if function is not None and hypothesis.is_hypothesis_test(function):
            yield function


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(f"{seed()}/{item.nodeid}")


@pytest.hookimpl(trylast=True)  # behind the reporter's own beginning
def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = _reporter(session.config)
    if reporter is not None:
        reporter.write_line(f"seed: {seed()}{f', {times(1)} times the examples' if times(1) > 1 else ''}")


def _reporter(config: pytest.Config) -> Any:
    """What prints."""
    return config.pluginmanager.get_plugin("terminalreporter")


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    wrong = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    names = list(dict.fromkeys(report.nodeid for report in wrong))
    long = f"{EXAMPLES}={times(1)} " if times(1) > 1 else ""
    for name in names[:MOST_COMMANDS]:
        terminalreporter.write_line(f"replay with: {long}scripts/test --seed {seed()} '{name}'")
    if len(names) > MOST_COMMANDS:
        terminalreporter.write_line(f"seed of this run and of {len(names) - MOST_COMMANDS} more failures: {seed()}")
