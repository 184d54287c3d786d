"""Endpoints live as long as anything names them."""

from __future__ import annotations

from dataplane.table.carryover import Carryover


def test_equal_addresses_are_one_endpoint() -> None:
    carryover = Carryover()
    one, same = carryover.take("10.0.0.1", 80), carryover.take("10.0.0.1", 80)
    others = [carryover.take("10.0.0.1", 81), carryover.take("10.0.0.2", 80), carryover.take("", 0, "/a")]
    assert one is same and len({one, *others}) == 4 and len(carryover) == 4


def test_closed_with_the_last_reference() -> None:
    carryover = Carryover()
    one = carryover.take("10.0.0.1", 80)
    carryover.take("10.0.0.1", 80)
    list(carryover.give_back(one))
    assert not one.closed
    list(carryover.give_back(one))
    assert one.closed and len(carryover) == 0
    assert carryover.take("10.0.0.1", 80) is not one
