"""The numbers that say which state is in effect: what one process writes and all others read."""

from __future__ import annotations

import os

import pytest

from dataplane.link.commits import SECTION, Commits
from dataplane.link.shared import Region


def seen_by(count: int) -> tuple[Region, list[Commits]]:
    """The agent's view, then that of each worker."""
    commits, region = Commits.create(count, beside=16)
    return region, [commits, *(Commits(Region.attach(os.dup(region.fd))) for _ in range(count))]


def test_where_nobody_is_waited_for_the_state_is_in_effect_at_once() -> None:
    region, (agent, worker) = seen_by(1)
    agent.begin(1, ())
    assert worker.read() == 1
    region.close()


def test_numbers_only_grow() -> None:
    region, (agent, worker) = seen_by(1)
    agent.begin(5, {0})
    worker.prepare(0, 5)
    agent.commit(5)
    agent.commit(5)
    with pytest.raises(ValueError, match="state 4 after state 5"):
        agent.commit(4)
    agent.commit(9)
    with pytest.raises(ValueError, match="state 8 after state 9"):
        agent.commit(8)  # also where no worker has come as far
    worker.prepare(0, 0)  # of a successor
    agent.begin(4, ())
    assert agent.read() == worker.read() == 9
    assert repr(agent) == "Commits(9, prepared=[5], excused=[4])"
    region.close()


def test_the_section_tells_the_number_of_workers() -> None:
    region, (agent, *_) = seen_by(64)
    assert agent.workers == 64 and len(region.section(SECTION)) == 8 * 129
    agent.begin(1, range(64))
    for index in range(64):
        assert agent.read() == 0
        agent.prepare(index, 1)
    assert agent.read() == 1
    with pytest.raises(IndexError):
        agent.prepare(64, 1)
    region.close()
