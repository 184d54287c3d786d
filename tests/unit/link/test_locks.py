"""Locks between processes: one holder, and what becomes of a lock whose holder is gone or stands still."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from dataplane.link import buckets, locks
from dataplane.link.commits import Commits
from dataplane.link.locks import DEAD, STOPPED, Lock, Locks
from dataplane.link.shared import Region
from tests.fakes import shared_buckets
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")

HOLD = """
from dataplane.link.locks import Locks
lock = Locks(region.section("locks"), region.fd)[3]
assert lock.try_take(False)
if sys.argv[2] == "signed":
    lock.word[lock.index] = __import__("os").getpid()
print("held", flush=True)
sys.stdin.read() if sys.argv[3] == "killed" else time.sleep(600)
"""


@pytest.fixture
def region() -> Iterator[Region]:
    with shared_buckets.shared() as made:
        yield made


def lock_of(region: Region, number: int = 3) -> Lock:
    return Locks(region.section(buckets.LOCKS), region.fd)[number]


def test_it_has_one_holder(region: Region) -> None:
    first, second, other = lock_of(region), lock_of(region), lock_of(region, 4)
    assert first.try_take(False)
    assert not second.try_take(False)
    assert other.try_take(False)
    first.give()
    assert second.try_take(False)


def test_it_is_given_once(region: Region) -> None:
    lock = lock_of(region)
    assert lock.try_take(False)
    lock.give()
    with pytest.raises(ValueError, match="released too many times"):
        lock.give()


def test_who_waits_gets_it_and_signs(region: Region) -> None:
    lock = lock_of(region)
    lock.wait()
    assert lock.word[lock.index] == os.getpid()
    assert not lock_of(region).try_take(False)


def test_each_stripe_has_a_lock(region: Region) -> None:
    found = Locks(region.section(buckets.LOCKS), region.fd)
    assert all(found[number].try_take(False) for number in range(len(found)))
    assert found[0] is found[0] and repr(found) == f"Locks({len(found)} stripes)"


def test_each_lock_has_a_line_of_its_own(region: Region) -> None:
    """In 64 bytes: the lock, and who has it at the 32nd."""
    section = region.section(buckets.LOCKS)
    found = Locks(section, region.fd)
    before = bytes(section)
    for number in range(len(found)):
        found[number].wait()
        line = slice(number * 64, (number + 1) * 64)
        assert section[line][32:40] == os.getpid().to_bytes(8, "little")
        found[number].give()
        found[number].word[found[number].index] = 0
        assert bytes(section) == before


class Clock:
    """In place of `time`: it goes on when somebody sleeps. `then` is done at these moments."""

    def __init__(self, then: dict[float, Callable[[], object]] | None = None) -> None:
        self.now, self.then, self.pauses = 1000.0, then or {}, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        for moment in [moment for moment in self.then if self.now >= 1000.0 + moment]:
            self.then.pop(moment)()


@pytest.mark.parametrize(
    ("state", "waits"), [("gone", DEAD), ("alive", STOPPED), ("nobody", STOPPED), ("foreign", STOPPED)]
)
def test_how_long_a_lock_stays_with_who_does_not_give_it(
    region: Region, monkeypatch: pytest.MonkeyPatch, state: str, waits: float
) -> None:
    """Looked for in short pauses, from none to a millisecond."""
    clock = Clock()
    monkeypatch.setattr(locks, "time", clock)
    errors = {"gone": ProcessLookupError, "foreign": PermissionError}
    asked: list[int] = []

    def kill(pid: int, signal: int) -> None:
        assert signal == 0
        asked.append(pid)
        if state in errors:
            raise errors[state]

    monkeypatch.setattr(os, "kill", kill)
    lock = lock_of(region)
    assert lock.try_take(False)
    lock.word[lock.index] = 0 if state == "nobody" else 4711
    lock_of(region).wait()
    assert waits < clock.now - 1000.0 <= waits + 2 * locks.LONGEST and lock.word[lock.index] == os.getpid()
    assert set(asked) == (set() if state == "nobody" else {4711})
    assert clock.pauses[:3] == pytest.approx([0.0, 1e-5, 2e-5]) and max(clock.pauses) == locks.LONGEST


def test_the_time_of_each_holder_is_its_own(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_of(region)
    assert lock.try_take(False)

    def signs(pid: int) -> Callable[[], object]:
        return lambda: lock.word.__setitem__(lock.index, pid)

    clock = Clock({0.03: signs(4712), 0.06: signs(4713)})
    monkeypatch.setattr(locks, "time", clock)
    monkeypatch.setattr(locks, "_is_alive", lambda pid: False)
    lock.word[lock.index] = 4711
    lock_of(region).wait()
    assert clock.now - 1000.0 == pytest.approx(0.06 + DEAD, abs=3 * locks.LONGEST)


def test_who_is_not_the_one_that_takes_over_goes_on_waiting(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one has the record lock first; then it has signed already; then it gives the lock back."""
    lock = lock_of(region)
    assert lock.try_take(False)
    lock.word[lock.index] = 4711
    done: list[str] = []

    def lockf(fd: int, what: int, length: int, start: int) -> None:
        assert (fd, length, start) == (region.fd, 1, 3)
        done.append("free" if what == fcntl.LOCK_UN else "take")
        if done == ["take"]:
            raise BlockingIOError
        if done == ["take", "take"]:
            lock.word[lock.index] = 4712
        if done[-1] == "free":
            lock.give()

    monkeypatch.setattr(locks, "time", Clock())
    monkeypatch.setattr(locks, "_is_alive", lambda pid: False)
    monkeypatch.setattr(fcntl, "lockf", lockf)
    waiting = lock_of(region)
    waiting.wait()
    assert done == ["take", "take", "free"] and lock.word[lock.index] == os.getpid()
    waiting.give()
    with pytest.raises(ValueError, match="released too many times"):
        waiting.give()


def test_one_that_is_given_back_at_the_last_moment_is_taken_over_whole(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder lived after all: nobody else may have it beside the one that took over."""
    lock = lock_of(region)
    assert lock.try_take(False)
    lock.word[lock.index] = 4711
    monkeypatch.setattr(locks, "time", Clock())
    monkeypatch.setattr(locks, "_is_alive", lambda pid: False)
    monkeypatch.setattr(fcntl, "lockf", lambda fd, what, *place: lock.give() if what != fcntl.LOCK_UN else None)
    lock_of(region).wait()
    assert lock.word[lock.index] == os.getpid() and not lock_of(region).try_take(False)


def held_by(region: Region, signs: str, child_ends: str = "killed") -> int:
    """The process id of one that has taken the lock and was killed, or stopped."""
    child = shared_buckets.spawn(region, HOLD, signs, child_ends)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not lock_of(region).try_take(False)
    return child.pid


def test_a_lock_of_the_dead_is_taken_over(region: Region) -> None:
    pid = held_by(region, "signed")
    lock = lock_of(region)
    assert lock.word[lock.index] == pid
    lock.wait()
    assert lock.word[lock.index] == os.getpid()
    lock.give()
    assert lock_of(region).try_take(False)


@pytest.mark.parametrize("holder", ["nobody", "another"])
def test_also_when_it_died_before_it_signed(region: Region, holder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STOPPED", 0.1)
    lock = lock_of(region)
    lock.word[lock.index] = {"nobody": 0, "another": os.getppid()}[holder]
    held_by(region, "unsigned")
    lock.wait()
    assert lock.word[lock.index] == os.getpid()
    lock.give()
    assert lock_of(region).try_take(False)


def test_one_that_stood_still_learns_it(
    region: Region, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "STOPPED", 0.05)
    asleep, awake = lock_of(region), lock_of(region)
    assert asleep.try_take(False)
    asleep.word[asleep.index] = os.getppid()  # it lives
    awake.wait()
    awake.give()
    with pytest.raises(ValueError, match="released too many times"):
        asleep.give()
    asleep.late()
    assert "lock 3 was taken over while this process stood still" in caplog.text


WAIT = """
from dataplane.link.locks import Locks
lock = Locks(region.section("locks"), region.fd)[3]
print("ready", flush=True)
lock.wait()
counts[int(sys.argv[2])] = 1
while counts[15] == 0:
    time.sleep(0.001)
lock.give()
"""


def test_of_several_that_wait_one_takes_over(region: Region) -> None:
    held_by(region, "signed")
    counts = region.section(shared_buckets.COUNTS).cast("Q")
    children = [shared_buckets.spawn(region, WAIT, index) for index in range(3)]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    while sum(counts[:3]) == 0:
        os.sched_yield()
    one_at_first = sum(counts[:3])
    counts[15] = 1
    for child in children:
        child.communicate(timeout=PATIENCE)
    assert (one_at_first, sum(counts[:3]), [child.returncode for child in children]) == (1, 3, [0, 0, 0])


def test_without_semaphores_there_are_no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, region = Commits.create(1, **buckets.SECTIONS)
    section = region.section(buckets.LOCKS)
    assert not locks.are_made(section)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not locks.initialise(section)
    monkeypatch.undo()
    assert locks.initialise(section) and locks.are_made(section)
    region.close()
