"""A proxy swaps as one: the rule of the commit, the word and the workers' tables together, without processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from dataplane.agent import commit
from dataplane.link.shared import CommitWord
from dataplane.table.current import Current
from dataplane.table.table import Table


@dataclass(eq=False)
class Worker:
    """Both ends: what the agent knows of a worker, and its table. A table's version is the number of its state."""

    word: CommitWord
    prepared: int = 0
    accepts: bool = True
    is_late: bool = False
    is_condemned: bool = False
    current: Current = field(init=False)

    def __post_init__(self) -> None:
        self.current = Current(self.word.read)

    def prepare(self, number: int) -> None:
        self.current.number = number
        self.current.offer(Table(number, {}, {}))
        self.prepared = number

    def answer(self) -> int:
        """As `proxy.entry` pins the table."""
        if self.current.prepared is not None:
            self.current.catch_up()
        return self.current.table.version


def workers(count: int) -> tuple[CommitWord, list[Worker]]:
    word, region = CommitWord.create()
    region.close()  # the mapping stays
    return word, [Worker(word) for _ in range(count)]


def test_a_request_meets_a_prepared_table_from_the_commit_on_also_before_the_worker_heard_of_it() -> None:
    word, (worker,) = workers(1)
    worker.prepare(1)
    assert worker.answer() == 0 and worker.current.prepared is not None
    word.commit(1)
    assert worker.answer() == 1 and worker.current.prepared is None


def test_an_idle_worker_swaps_when_it_hears_of_the_commit() -> None:
    word, (worker,) = workers(1)
    worker.prepare(1)
    word.commit(1)
    worker.current.catch_up()
    assert worker.current.table.version == 1
    worker.current.catch_up()  # hearing of it again changes nothing
    assert worker.current.table.version == 1


def test_a_worker_that_prepares_what_is_committed_swaps_at_once() -> None:
    word, (worker,) = workers(1)
    word.commit(3)
    worker.prepare(2)
    assert worker.current.table.version == 2 and worker.current.prepared is None
    worker.prepare(3)
    assert worker.current.table.version == 3
    worker.prepare(4)
    assert worker.current.table.version == 3


def test_a_table_without_an_agent_swaps_at_once() -> None:
    current = Current()
    current.offer(Table(7, {}, {}))
    assert current.table.version == 7 and current.prepared is None


def test_a_commit_waits_for_all_that_accept_and_have_not_prepared() -> None:
    _, room = workers(2)
    assert commit.awaited(room, 1) == room
    room[0].prepare(1)
    assert commit.awaited(room, 1) == [room[1]]
    room[1].prepare(1)
    assert commit.awaited(room, 1) == []


def test_a_commit_waits_neither_for_the_late_nor_for_the_dying_nor_for_the_new() -> None:
    _, room = workers(4)
    room[0].is_late = room[1].is_condemned = True
    room[2].accepts = False
    assert commit.awaited(room, 1) == [room[3]]
    assert commit.accepting(room) == [room[0], room[1], room[3]]


# Random histories: whatever happens in whatever order, no client goes back in time.

STEPS = st.lists(
    st.tuples(st.sampled_from(("next", "prepare", "hear", "ask", "ask", "restart", "hang")), st.integers(0, 2)),
    max_size=80,
)


class Proxy:
    """The agent's part, step by step: the next state is sent when the one before is committed."""

    def __init__(self) -> None:
        self.word, self.workers = workers(3)
        self.number = 0
        self.hung: set[Worker] = set()
        """Stopped in the middle of a state: they answer nobody, and are waited for until they are late."""

    def next(self, _index: int) -> None:
        self.commit()
        if self.word.read() == self.number:
            self.number += 1

    def prepare(self, index: int) -> None:
        worker = self.workers[index]
        if worker not in self.hung and worker.prepared < self.number:
            worker.prepare(self.number)
            worker.accepts = True
            self.commit()

    def commit(self) -> None:
        if not commit.awaited(self.workers, self.number):
            self.word.commit(self.number)

    def hear(self, index: int) -> None:
        if self.workers[index] not in self.hung:
            self.workers[index].current.catch_up()

    def restart(self, index: int) -> None:
        self.hung.discard(self.workers[index])
        self.workers[index] = Worker(self.word, accepts=self.number == 0)

    def hang(self, index: int) -> None:
        worker = self.workers[index]
        self.hung.add(worker)
        worker.is_late = True

    def ask(self, index: int) -> int | None:
        worker = self.workers[index]
        return worker.answer() if worker.accepts and worker not in self.hung else None


@given(STEPS)
def test_no_client_sees_a_state_and_then_the_one_before(steps: list[tuple[str, int]]) -> None:
    proxy, seen = Proxy(), 0
    for step, index in steps:
        answer = getattr(proxy, step)(index)
        if answer is not None:
            assert answer >= seen, "went back in time"
            assert answer <= proxy.word.read(), "served what was not committed"
            seen = answer
    for worker in proxy.workers:
        if worker.accepts and worker not in proxy.hung and worker.prepared == proxy.word.read():
            assert worker.answer() == proxy.word.read()
