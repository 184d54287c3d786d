"""Endpoints that are workloads of a mesh outlive swaps as others do, and are known by address and port as others."""

from __future__ import annotations

from dataplane.table.carryover import Carryover


def test_another_workload_at_an_address_is_another_endpoint_until_both_are_given_back() -> None:
    kept = Carryover()
    plain, one, other = (
        kept.take("10.0.0.1", 80),
        *(kept.take("10.0.0.2", 80, workload=each) for each in ("a/b", "a/c")),
    )
    assert one is not other and kept.take("10.0.0.2", 80, workload="a/b") is one
    assert kept.holds("10.0.0.1", 80) and kept.holds("10.0.0.2", 80) and not kept.holds("10.0.0.2", 81)
    for endpoint in (one, one, plain):
        assert [*kept.give_back(endpoint)] == []
    assert kept.holds("10.0.0.2", 80) and not kept.holds("10.0.0.1", 80)
    assert [*kept.give_back(other)] == [] and not kept.holds("10.0.0.2", 80) and not len(kept)
