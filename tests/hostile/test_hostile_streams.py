"""No input of one peer keeps others waiting for more than 50 ms of the worker's CPU time: each row of `streams`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.net.turns import Turns
from tests.harness import yardstick
from tests.hostile.page import labels, page
from tests.hostile.peers import Peer
from tests.hostile.rows import ROWS
from tests.hostile.streams import CLIENT, GET, H1, H2, Row
from tests.hostile.world import POLITE_PEER, Found, Polite, World, measure

LIMIT = 0.050
"""CPU seconds, on the machine of the yardstick."""
TRIES = 3
"""A turn that is too long is so each time; one that was unlucky (caches, a neighbour) is not."""


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> None:
    """Floods are logged, as they should be."""
    caplog.set_level(logging.CRITICAL)


def allowed() -> float:
    """The limit on this machine, as busy as it is; never less."""
    return LIMIT * max(1.0, min(yardstick.measure() for _ in range(3)) / yardstick.REFERENCE)


def judged(row: Row) -> Found:
    """What was measured: the best of a few tries, where one is not enough."""
    found = measure(row)
    for _ in range(TRIES - 1):
        if found.longest <= LIMIT:
            break
        found = min(found, measure(row), key=lambda each: each.longest)
    return found


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize("row", ROWS, ids=[row.label for row in ROWS])
def test_keeps_nobody_waiting(row: Row) -> None:
    found = judged(row)
    assert found.longest <= LIMIT or found.longest <= allowed(), f"{row.label}: {found}"
    assert found.served >= found.turns // 2 - 1, f"the polite client was not served: {found}"
    assert found.sent, "nothing was sent"


def test_there_are_enough_of_them() -> None:
    assert len(ROWS) >= 60 and len({row.label for row in ROWS}) == len(ROWS)
    assert {(row.side, row.protocol) for row in ROWS} == {
        (side, protocol) for side in ("client", "endpoint") for protocol in (H1, H2)
    }


def test_the_page_has_them_all(root: Path) -> None:
    file = root / "docs/hostile-streams.md"
    if os.environ.get("HOSTILE") == "write":
        file.write_text(page({row.label: judged(row) for row in ROWS}))
    assert labels(file.read_text()) == [row.label for row in ROWS], "run HOSTILE=write scripts/test tests/hostile"


class TestTheMeasure:
    """It notices what it is there for."""

    def test_a_loop_without_shares_is_too_slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a worker did that took all requests of a read at once."""
        monkeypatch.setattr(Turns, "is_spent", lambda self: False)
        monkeypatch.setattr("dataplane.server.h1.h1_connection.REQUESTS", 100_000)
        (row,) = [row for row in ROWS if row.label == f"{CLIENT}, {H1}, targets that an expression walks over"]
        assert measure(row).longest > LIMIT

    def test_what_peers_do_is_not_counted(self) -> None:
        found = measure(Row("slow to write", CLIENT, H1, _slow))
        assert 0 < found.longest <= LIMIT

    def test_a_polite_client_is_served_in_each_turn_or_two(self) -> None:
        world, polite = World(ROWS[0].config), Polite()
        mine = world.connect(polite, POLITE_PEER)
        hostile = world.connect(Peer(iter((GET,))), POLITE_PEER)
        for _ in range(20):
            world.turn(mine)
        assert polite.served >= 9 and hostile.open
        assert world.left() == []


def _slow() -> Iterator[bytes]:
    for _ in range(3):
        yardstick.work()
        yield GET
