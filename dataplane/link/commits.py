"""Which state requests may meet: numbers in memory that all processes of a proxy share. No socket, no wait, no lock.

A proxy swaps as one: a state is in effect when every worker that may be asked for an answer has prepared it. Each
worker writes what it has prepared, the agent writes who is not waited for, and every process computes the rest from
these numbers. So the last worker that prepares a state commits it, and no message has to travel between the two.

Laws
- Each cell has one writer: the agent, or the worker of that index. A worker's successor is started when it has ended.
- No cell ever shrinks, also when a process dies or is started anew. So what is committed stays committed, a look at one
  cell after the other gives a number that was right during the look, and a process that was stopped in between does no
  harm.
- The next state is sent when the one before is committed: `begin` says who is not waited for, before anybody is sent
  it. A worker that is excused answers no request (no sockets yet), or was left behind (`agent/commit`).
- The agent commits as well (`commit`): a state that a worker has died over, or that it waits for no longer. It does so
  for every state in the end, also where two workers wrote at one moment and neither saw the other's write.

Section: the number that the agent has committed u64; for each worker what it has prepared u64; for each worker the
newest state for which it is not waited u64. A number of eight bytes at its own alignment is written and read as one.
"""

from __future__ import annotations

from collections.abc import Collection

from dataplane.link.shared import Region

SECTION = "committed"
_WORD = 8


class Commits:
    """The numbers of one proxy, as the agent and each of its workers see them."""

    __slots__ = ("_cells", "_excused", "_prepared", "workers")

    def __init__(self, region: Region) -> None:
        self._cells = region.section(SECTION).cast("Q")
        self.workers = (len(self._cells) - 1) // 2
        self._prepared = range(1, 1 + self.workers)
        self._excused = range(1 + self.workers, 1 + 2 * self.workers)

    @staticmethod
    def create(workers: int, **beside: int) -> tuple[Commits, Region]:
        """For so many workers, with no state committed; and the region, with these sections beside it."""
        region = Region.create("gatewright-common", {SECTION: _WORD * (1 + 2 * workers), **beside})
        return Commits(region), region

    def read(self) -> int:
        """The newest state that is committed."""
        cells = self._cells
        by_all = min(max(cells[has], cells[need]) for has, need in zip(self._prepared, self._excused, strict=True))
        return max(cells[0], by_all)

    def begin(self, number: int, awaited: Collection[int]) -> None:
        """The agent: the state with this number is about to be sent; only workers with these indexes are waited for."""
        for index, cell in enumerate(self._excused):
            if index not in awaited:
                self._raise_to(cell, number)

    def prepare(self, index: int, number: int) -> None:
        """A worker: from now on it can answer from this state. A new one that fills itself begins below its
        predecessor's number, which stays: it answers no request before it has come as far."""
        self._raise_to(self._prepared[index], number)

    def commit(self, number: int) -> None:
        """The agent: this state is in effect. Numbers only grow: ValueError for one that does not."""
        if number < self._cells[0]:
            raise ValueError(f"state {number} after state {self._cells[0]}")
        self._cells[0] = number

    def _raise_to(self, cell: int, number: int) -> None:
        self._cells[cell] = max(self._cells[cell], number)

    def __repr__(self) -> str:
        has, excused = ([self._cells[cell] for cell in cells] for cells in (self._prepared, self._excused))
        return f"Commits({self.read()}, prepared={has}, excused={excused})"
