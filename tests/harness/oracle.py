"""The leak oracle, a pytest plugin: after every test nothing of it is left, or this test fails and says what is.

- no child process, no descriptor and no thread of the product in this process that was not there before, but those of
  fixtures of wider scope;
- no task at the end of an event loop (a few turns later: what has ended may come to its end);
- of a proxy in memory (`MemoryProxy`, `SocketProxy`), whose clients the oracle ends: no connection, exchange, waiting
  step, deadline, pending count, upstream connection in use, or held byte.

Workers of real proxies are asked by those who end them (`tests/fakes/proxy_process`). A test that leaves something on
purpose says so: `@pytest.mark.leaves("why")`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from asyncio import runners
from collections.abc import Generator
from threading import Thread
from typing import Any

import pytest

from tests.harness import leaks, ports, preloaded
from tests.harness.patience import PATIENCE
from tests.harness.waiting import PAUSE

# Before anybody loads gRPC. It would make descriptors of its own anew whenever a test forks, also where nothing of it
# is in use any more, and they would count as left by that test.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A shell lets what it starts in the background ignore Ctrl-C, and every child would do the same: tests that end
# programs by it would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

GRACE = PATIENCE / 30
"""Seconds in which a descriptor that seems to be left may still go."""


class Oracle:
    """`before`: what was there when the last test was judged."""

    def __init__(self) -> None:
        self.files: frozenset[int] = frozenset()
        self.children: frozenset[int] = frozenset()
        self.threads: frozenset[Thread] = frozenset()
        self.found: list[str] = []
        """Of the test that runs."""
        self.is_watching = self.is_known = False

    def begin(self) -> None:
        self.found, self.is_watching = [], True
        leaks.of_thread().clear()
        if not self.is_known:  # else nothing has happened since the last test was judged
            self.files, self.children, self.threads = leaks.descriptors(), leaks.children(), leaks.threads()
            self.is_known = True

    def adopt(self, files: frozenset[int], children: frozenset[int], threads: frozenset[Thread]) -> None:
        """A fixture that outlives the test opened these."""
        self.files |= files
        self.children |= children
        self.threads |= threads

    def end(self, is_forgiven: bool = False) -> list[str]:
        """What is left. Garbage is collected, and what ends is waited for, only when something seems to be; never for
        a test that may leave something."""
        self.is_watching = False
        files, children = leaks.descriptors(), leaks.children()
        if is_forgiven:
            self.files, self.children, self.threads = files, children, leaks.threads()
            return []
        if files - self.files:
            gc.collect()
            files = self._settled()
        left = self._left(files)
        self.found += [f"descriptor {leaks.described(fd)}" for fd in left]
        self.found += [f"child process {pid}" for pid in sorted(children - self.children)]
        self.found += [f"thread {each.name}" for each in self._running()]
        self.files, self.children, self.threads = files, children, leaks.threads()
        return self.found

    def _running(self) -> list[Thread]:
        """Threads of the test, once those have ended that are about to."""
        end = time.monotonic() + GRACE
        found = sorted(leaks.threads() - self.threads, key=lambda each: each.name)
        for each in found:
            each.join(max(0.0, end - time.monotonic()))
        return [each for each in found if each.is_alive()]

    def _settled(self) -> frozenset[int]:
        """The descriptors, once threads of libraries have closed what they still close: gRPC's do so behind the end of
        a channel."""
        end = time.monotonic() + GRACE
        while self._left(files := leaks.descriptors()) and time.monotonic() < end:
            time.sleep(PAUSE)
        return files

    def _left(self, files: frozenset[int]) -> list[int]:
        return [fd for fd in sorted(files - self.files) if not leaks.is_mapping(fd)]


ORACLE = Oracle()
_cancel_all_tasks = runners._cancel_all_tasks  # type: ignore[attr-defined]


def _judge_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Instead of the runner's own: it cancels what is left without a word."""
    if ORACLE.is_watching:
        ORACLE.found += leaks.tasks(loop)
    _cancel_all_tasks(loop)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "leaves(reason): leaves something behind on purpose; the oracle does not look")
    ports.open_book()
    runners._cancel_all_tasks = _judge_loop  # type: ignore[attr-defined]


def pytest_unconfigure() -> None:
    runners._cancel_all_tasks = _cancel_all_tasks  # type: ignore[attr-defined]


preloaded.on_begin.append(lambda fd, pid: ORACLE.adopt(frozenset((fd,)), frozenset((pid,)), frozenset()))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    ORACLE.begin()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    files, children, threads = leaks.descriptors(), leaks.children(), leaks.threads()
    proxies = len(leaks.of_thread())
    found = yield
    ORACLE.adopt(leaks.descriptors() - files, leaks.children() - children, leaks.threads() - threads)
    del leaks.of_thread()[proxies:]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    # Here, and not in the teardown: proxies on sockets end with their fixtures, and the loop is theirs.
    for proxy in leaks.of_thread():
        ORACLE.found += proxy.left()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    leaks.of_thread().clear()
    found = ORACLE.end(is_forgiven=item.get_closest_marker("leaves") is not None)
    if found and not item.stash.get(_failed, False):
        pytest.fail("the test left something behind:\n  " + "\n  ".join(found), pytrace=False)


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        item.stash[_failed] = True  # what it had no chance to clean up is not worth a second message
    return report
