"""The one reference that a swap changes: when it does, and who hears of it."""

from __future__ import annotations

import pytest

from dataplane.net.keepalive import Keepalive
from dataplane.table.current import Current
from dataplane.table.table import Table


class Heard:
    """A worker that counts what it hears; tables take effect up to number `committed`."""

    def __init__(self, committed: int = 0) -> None:
        self.committed, self.heard = committed, list[str]()
        self.current = Current(lambda: self.committed)
        self.current.heads_changed = lambda: self.heard.append("heads")
        self.current.keepalives_changed = lambda: self.heard.append("keepalives")


ALIVE = Keepalive(3, 15, 5)


@pytest.mark.parametrize(
    ("table", "heard"),
    [
        (Table(version=1), []),
        (Table(version=1, rules=1), ["heads"]),
        (Table(version=1, keepalives={"bind/a": ALIVE}), ["keepalives"]),
        (Table(version=1, rules=2, keepalives={"bind/a": ALIVE}), ["heads", "keepalives"]),
    ],
)
def test_who_reads_heads_or_keeps_sockets_hears_of_a_swap_that_concerns_them(table: Table, heard: list[str]) -> None:
    worker = Heard()
    worker.current.offer(table)
    assert worker.current.table is table and worker.heard == heard
    worker.current.offer(Table(2, rules=table.rules, keepalives=dict(table.keepalives)))
    assert worker.heard == heard, "nothing that concerns them is another"


def test_a_table_waits_for_the_commit_of_its_number() -> None:
    worker, table = Heard(committed=4), Table(version=1, rules=1)
    current = worker.current
    current.number = 5
    before = current.table
    current.offer(table)
    assert (current.table, current.prepared, worker.heard) == (before, table, [])
    assert repr(current) == "Current(version=0, 1 waits for the commit of 5)"
    worker.committed = 5
    current.catch_up()
    assert (current.table, current.prepared, worker.heard) == (table, None, ["heads"])
    assert repr(current) == "Current(version=1)"
    current.catch_up()
    assert worker.heard == ["heads"], "once"
