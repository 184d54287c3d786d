"""A proxy swaps as one: the rule of the commit, the shared numbers and tables of workers, without processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.agent import commit
from dataplane.link.commits import Commits
from dataplane.table.current import Current
from dataplane.table.table import Table


@dataclass(eq=False)
class Worker:
    """Both ends: what the agent knows of a worker, and its table. A table's version is the number of its state."""

    commits: Commits
    index: int
    prepared: int = 0
    accepts: bool = True
    is_late: bool = False
    is_condemned: bool = False
    current: Current = field(init=False)

    def __post_init__(self) -> None:
        self.current = Current(self.commits.read)

    def prepare(self, number: int) -> None:
        self.current.number = number
        self.current.offer(Table(number, {}, {}))
        self.commits.prepare(self.index, number)
        self.current.catch_up()

    def tell(self) -> None:
        """The agent hears of it."""
        self.prepared = self.current.number

    def answer(self) -> int:
        """As `proxy.entry` pins the table."""
        if self.current.prepared is not None:
            self.current.catch_up()
        return self.current.table.version


def workers(count: int) -> tuple[Commits, list[Worker]]:
    commits, region = Commits.create(count)
    region.close()  # the mapping stays
    return commits, [Worker(commits, index) for index in range(count)]


def test_the_last_worker_that_prepares_a_state_commits_it_for_all() -> None:
    commits, (first, second) = workers(2)
    commits.begin(1, {0, 1})
    first.prepare(1)
    assert first.answer() == 0 and first.current.prepared is not None
    second.prepare(1)
    assert commits.read() == 1 and second.current.table.version == 1
    assert first.answer() == 1 and first.current.prepared is None  # without a word from anybody


def test_a_request_meets_a_prepared_table_from_the_agents_commit_on_also_before_the_worker_heard_of_it() -> None:
    commits, (worker, _) = workers(2)
    commits.begin(1, {0, 1})
    worker.prepare(1)
    assert worker.answer() == 0 and worker.current.prepared is not None
    commits.commit(1)
    assert worker.answer() == 1 and worker.current.prepared is None


def test_an_idle_worker_swaps_when_it_hears_of_the_commit() -> None:
    commits, (worker, _) = workers(2)
    commits.begin(1, {0, 1})
    worker.prepare(1)
    commits.commit(1)
    worker.current.catch_up()
    assert worker.current.table.version == 1
    worker.current.catch_up()  # hearing of it again changes nothing
    assert worker.current.table.version == 1


def test_a_worker_that_prepares_what_is_committed_swaps_at_once() -> None:
    commits, (worker, _) = workers(2)
    commits.commit(3)
    worker.prepare(2)
    assert worker.current.table.version == 2 and worker.current.prepared is None
    worker.prepare(3)
    assert worker.current.table.version == 3
    worker.prepare(4)
    assert worker.current.table.version == 3


def test_a_worker_that_is_left_behind_keeps_nobody_from_the_next_states() -> None:
    commits, (first, second, late) = workers(3)
    commits.begin(1, {0, 1})
    first.prepare(1)
    assert commits.read() == 0
    second.prepare(1)
    assert first.answer() == second.answer() == 1 and late.answer() == 0
    commits.begin(2, {0, 1, 2})  # it has caught up, the agent thinks
    first.prepare(2)
    second.prepare(2)
    assert commits.read() == 1
    late.prepare(2)
    assert commits.read() == 2


def test_the_successor_of_a_dead_worker_takes_back_nothing_that_is_committed() -> None:
    commits, room = workers(2)
    commits.begin(5, {0, 1})
    for worker in room:
        worker.prepare(5)
    room[0] = Worker(commits, 0, accepts=False)
    room[0].prepare(0)  # its last good state, before the newest
    assert commits.read() == 5 and room[1].answer() == 5
    assert room[0].current.table.version == 0 and room[0].current.prepared is None


def test_a_state_over_which_a_worker_died_is_committed_by_the_agent() -> None:
    commits, (first, _dead) = workers(2)
    commits.begin(1, {0, 1})
    first.prepare(1)
    assert first.answer() == 0
    commits.commit(1)
    commits.begin(2, {0})
    first.prepare(2)
    assert first.answer() == 2


def test_a_table_without_an_agent_swaps_at_once() -> None:
    current = Current()
    current.offer(Table(7, {}, {}))
    assert current.table.version == 7 and current.prepared is None


def test_a_commit_waits_for_all_that_accept_and_have_not_prepared() -> None:
    _, room = workers(2)
    assert commit.awaited(room, 1) == room
    for worker, left in zip(room, ([room[1]], []), strict=True):
        worker.prepare(1)
        worker.tell()
        assert commit.awaited(room, 1) == left


def test_a_commit_waits_neither_for_the_late_nor_for_the_dying_nor_for_the_new() -> None:
    _, room = workers(4)
    room[0].is_late = room[1].is_condemned = True
    room[2].accepts = False
    assert commit.awaited(room, 1) == [room[3]]
    assert commit.accepting(room) == [room[0], room[1], room[3]]


# Random histories: whatever happens in whatever order, no client goes back in time.

WORKERS = 3
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("next", "prepare", "prepare", "tell", "hear", "ask", "ask", "die", "start", "hang", "resume")),
        st.integers(0, WORKERS - 1),
    ),
    max_size=120,
)


class Proxy:
    """The agent's part, step by step: the next state is sent when the one before is committed, as far as it knows."""

    def __init__(self) -> None:
        self.commits, self.workers = workers(WORKERS)
        self.number = 0
        self.committed = 0
        """By the agent."""
        self.living = set(self.workers)
        self.hung: set[Worker] = set()
        """Stopped in the middle of something: they answer nobody, and are waited for until they are late."""

    def known(self) -> list[Worker]:
        """As `Workers._lives`: the dead are gone from the agent's list."""
        return [worker for worker in self.workers if worker in self.living]

    def next(self, _index: int) -> None:
        self.commit()
        if self.committed == self.number:
            self.number += 1
            self.commits.begin(self.number, {each.index for each in commit.awaited(self.known(), self.number)})

    def prepare(self, index: int) -> None:
        worker = self.workers[index]
        if worker in self.living - self.hung and worker.current.number < self.number:
            worker.prepare(self.number)

    def tell(self, index: int) -> None:
        worker = self.workers[index]
        if worker in self.living:
            worker.tell()
            if worker.prepared >= self.number:
                worker.is_late, worker.accepts = False, True
            self.commit()

    def commit(self) -> None:
        if self.number > self.committed and not commit.awaited(self.known(), self.number):
            self.committed = self.number
            self.commits.commit(self.number)

    def hear(self, index: int) -> None:
        worker = self.workers[index]
        if worker in self.living - self.hung:
            worker.current.catch_up()

    def die(self, index: int) -> None:
        self.living.discard(self.workers[index])

    def start(self, index: int) -> None:
        if self.workers[index] not in self.living:
            self.workers[index] = Worker(self.commits, index, accepts=False)
            self.living.add(self.workers[index])

    def hang(self, index: int) -> None:
        worker = self.workers[index]
        self.hung.add(worker)
        if worker.prepared < self.number:
            worker.is_late = True

    def resume(self, index: int) -> None:
        self.hung.discard(self.workers[index])

    def ask(self, index: int) -> int | None:
        worker = self.workers[index]
        return worker.answer() if worker.accepts and worker in self.living - self.hung else None


@given(STEPS)
@settings(max_examples=1000)
def test_no_client_sees_a_state_and_then_the_one_before(steps: list[tuple[str, int]]) -> None:
    proxy, seen, committed = Proxy(), 0, 0
    for step, index in steps:
        answer = getattr(proxy, step)(index)
        assert proxy.commits.read() >= committed, "took a commit back"
        committed = proxy.commits.read()
        assert committed <= proxy.number
        if answer is not None:
            late = proxy.workers[index].is_late
            assert answer >= seen or late, "went back in time"
            assert answer <= committed, "served what was not committed"
            seen = max(seen, answer)
    for worker in proxy.known():
        if worker.accepts and worker not in proxy.hung and worker.current.number == committed:
            assert worker.answer() == committed
