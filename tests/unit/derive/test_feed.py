"""`controlplane.derive.feed`: what a consumer may rely on, whenever it comes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from controlplane.derive import Change, Outlet

BATCHES = st.lists(st.dictionaries(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 3)), min_size=1))


class Consumer:
    """Keeps what the batches come to."""

    def __init__(self) -> None:
        self.batches: list[list[Change[str, int]]] = []
        self.known: dict[str, int] = {}

    def __call__(self, changes: Sequence[Change[str, int]]) -> None:
        self.batches.append(list(changes))
        for key, old, new in changes:
            assert self.known.get(key) == old != new
            if new is None:
                del self.known[key]
            else:
                self.known[key] = new


def put(outlet: Outlet[str, int], wanted: dict[str, int | None]) -> None:
    """What a collection would report of a batch."""
    present = outlet.present()
    changes = [Change(key, present.get(key), wanted[key]) for key in sorted(wanted)]
    outlet.put([change for change in changes if change.old != change.new])


@given(BATCHES, st.integers(0, 8))
def test_early_and_late_consumers_come_to_the_same(batches: list[dict[str, int | None]], late: int) -> None:
    outlet: Outlet[str, int] = Outlet()
    early, later = Consumer(), Consumer()
    outlet.subscribe(early)
    for number, batch in enumerate(batches):
        if number == late:
            outlet.subscribe(later)
        put(outlet, batch)
    if late >= len(batches):
        outlet.subscribe(later)
    assert early.known == later.known == dict(outlet.present())
    for batch_ in (*early.batches, *later.batches):
        keys = [change.key for change in batch_]
        assert keys and keys == sorted(set(keys))


@given(BATCHES)
def test_joined_batches_with_the_last_of_each_key_lose_nothing(batches: list[dict[str, int | None]]) -> None:
    outlet: Outlet[str, int] = Outlet()
    consumer = Consumer()
    outlet.subscribe(consumer)
    for batch in batches:
        put(outlet, batch)
    latest = {change.key: change.new for batch_ in consumer.batches for change in batch_}
    assert {key: value for key, value in latest.items() if value is not None} == dict(outlet.present())


def test_nothing_is_told_of_nothing_and_nobody_after_the_end() -> None:
    outlet: Outlet[str, int] = Outlet()
    consumer = Consumer()
    end = outlet.subscribe(consumer)
    outlet.put([])
    assert consumer.batches == []
    put(outlet, {"a": 1})
    end()
    put(outlet, {"a": 2})
    assert consumer.known == {"a": 1}


def test_who_comes_late_gets_what_is_present_in_order() -> None:
    outlet: Outlet[str, int] = Outlet()
    put(outlet, {"c": 1, "b": 2})
    put(outlet, {"a": 3, "c": None})
    consumer = Consumer()
    outlet.subscribe(consumer)
    assert consumer.batches == [[Change("a", None, 3), Change("b", None, 2)]]
    assert dict(outlet.present()) == {"a": 3, "b": 2}


def test_consumers_are_called_in_the_order_in_which_they_came() -> None:
    outlet: Outlet[str, int] = Outlet()
    called: list[str] = []
    for name in ("first", "second", "third"):
        outlet.subscribe(lambda _, name=name: called.append(name))  # type: ignore[misc]
    put(outlet, {"a": 1})
    assert called == ["first", "second", "third"]
