"""The laws of `controlplane.derive`: what runs, what is told, and that increments equal a computation from scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.derive import Change, Collection, Context, Graph, GraphError, Source, TransformError
from controlplane.derive.derived import AT_ONCE, Derived, Groups


class Shop:
    """A graph with every feature: prices by item, discounts by category, a report by category."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.items: Source[str, tuple[str, int]] = self.graph.source("items")  # name -> (category, price)
        self.discounts: Source[str, int] = self.graph.source("discounts")
        self.prices = self.graph.map("prices", self.items, self._price)
        self.by_category = self.prices.index("category", lambda _, value: [value[0]])
        self.categories = self.graph.groups("categories", self.by_category)
        self.report = self.graph.map("report", self.categories, self._report)
        self.sizes = self.graph.map("sizes", self.categories, lambda ctx, key, _: ctx.count(self.by_category, key))
        self.letters = self.graph.derive("letters", self.items, lambda _, key, value: {(c, key): value for c in key})

    def _price(self, context: Context, _: str, item: tuple[str, int]) -> tuple[str, int]:
        category, price = item
        return category, price - (context.fetch(self.discounts, category) or 0)

    def _report(self, context: Context, category: str, _: bool) -> tuple[int, ...]:
        return tuple(price for _, (_, price) in context.fetch_index(self.by_category, category))

    def state(self) -> dict[str, Any]:
        return {each.name: each.items() for each in (self.prices, self.report, self.sizes, self.letters)}


def test_a_change_reaches_only_its_dependents() -> None:
    shop = Shop()
    shop.graph.apply((shop.items, f"i{n}", ("tea" if n % 2 else "coffee", n)) for n in range(100))
    before = shop.graph.runs()
    shop.graph.apply([(shop.discounts, "tea", 1)])
    after = shop.graph.runs()
    assert after["prices"] - before["prices"] == 50
    assert after["report"] - before["report"] == 1
    assert after["sizes"] == before["sizes"]
    assert after["letters"] == before["letters"]


def test_what_a_change_does_not_concern_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph has two hundred collections, and an edit should cost what it changes."""
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5))])
    asked: list[str] = []
    for kind in (Source, Derived, Groups):
        for deed in (kind.recompute, kind.deliver):
            monkeypatch.setattr(kind, deed.__name__, noting(asked, deed))
    told: list[Change[str, Any]] = []
    shop.prices.subscribe(told.extend)
    shop.graph.apply([(shop.discounts, "tea", 2)])
    assert asked == ["recompute discounts", "recompute prices", "recompute report", "deliver prices"]
    assert [change.new for change in told] == [("tea", 3)]
    asked.clear()
    shop.graph.apply()
    assert asked == []


def noting(asked: list[str], deed: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def noted(collection: Collection[Any, Any]) -> Any:
        asked.append(f"{deed.__name__} {collection.name}")
        return deed(collection)

    return noted


def test_equal_outputs_stop_propagation() -> None:
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5)), (shop.discounts, "tea", 2)])
    told: list[Change[str, Any]] = []
    shop.prices.subscribe(told.extend)
    before = shop.graph.runs()
    shop.graph.apply([(shop.items, "a", ("tea", 6)), (shop.discounts, "tea", 3)])
    after = shop.graph.runs()
    assert shop.prices.get("a") == ("tea", 3)
    assert (after["prices"] - before["prices"], after["report"] - before["report"]) == (1, 0)
    assert told == []


def test_putting_an_equal_value_is_no_change() -> None:
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5))])
    before = shop.graph.runs()
    shop.graph.apply([(shop.items, "a", ("tea", 5))])
    assert shop.graph.runs() == before


def test_a_missing_key_is_a_dependency_too() -> None:
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5))])
    shop.graph.apply([(shop.discounts, "tea", 4)])
    assert shop.prices.get("a") == ("tea", 1)
    shop.graph.apply([(shop.discounts, "tea", None)])
    assert shop.prices.get("a") == ("tea", 5)


def test_a_batch_tells_each_key_once_with_first_and_last_value() -> None:
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5)), (shop.items, "b", ("tea", 1))])
    told: list[list[Change[str, Any]]] = []
    shop.items.subscribe(lambda changes: told.append(list(changes)))
    shop.graph.apply(
        [(shop.items, "b", None), (shop.items, "a", ("tea", 6)), (shop.items, "a", ("tea", 7)), (shop.items, "c", None)]
    )
    assert told == [[Change("a", ("tea", 5), ("tea", 7)), Change("b", ("tea", 1), None)]]


def test_a_group_lives_as_long_as_its_members() -> None:
    shop = Shop()
    told: list[Change[str, Any]] = []
    shop.categories.subscribe(told.extend)
    shop.graph.apply([(shop.items, "a", ("tea", 5)), (shop.items, "b", ("tea", 1))])
    shop.graph.apply([(shop.items, "a", None)])
    shop.graph.apply([(shop.items, "b", ("coffee", 1))])
    assert told == [Change("tea", None, True), Change("coffee", None, True), Change("tea", True, None)]
    assert shop.report.items() == [("coffee", (1,))]


def test_counting_a_large_group_runs_one_transform_for_one_new_member() -> None:
    shop = Shop()
    shop.graph.apply((shop.items, f"{n:05}", ("tea", n)) for n in range(10_000))
    before = shop.graph.runs()
    shop.graph.apply([(shop.items, "new", ("tea", 1))])
    after = shop.graph.runs()
    assert shop.sizes.get("tea") == 10_001
    assert {name: after[name] - before[name] for name in ("prices", "sizes")} == {"prices": 1, "sizes": 1}


def test_readings_that_are_given_up_are_forgotten() -> None:
    shop = Shop()
    shop.graph.apply([(shop.items, "a", ("tea", 5))])
    shop.graph.apply([(shop.items, "a", ("coffee", 5))])
    before = shop.graph.runs()
    shop.graph.apply([(shop.discounts, "tea", 1)])
    assert shop.graph.runs() == before
    shop.graph.apply([(shop.items, "a", None)])
    assert [row["readers"] for row in shop.graph.dump()] == [0] * len(shop.graph.dump())


def test_an_output_may_move_between_inputs_within_a_batch() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    names = graph.derive("names", source, lambda _, key, value: {value: key})
    graph.apply([(source, "a", "x"), (source, "b", "y")])
    graph.apply([(source, "a", "y"), (source, "b", "x")])
    assert names.items() == [("x", "b"), ("y", "a")]


def test_two_owners_of_an_output_are_an_error_that_names_both() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    graph.derive("names", source, lambda _, key, value: {value: key})
    with pytest.raises(GraphError, match="'x' is an output of both 'a' and 'b'"):
        graph.apply([(source, "a", "x"), (source, "b", "x")])


def test_reading_what_is_declared_later_is_an_error() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    later: list[Any] = []
    graph.map("early", source, lambda ctx, key, _: ctx.fetch(later[0], key))
    later.append(graph.map("late", source, lambda _, __, value: value))
    with pytest.raises(GraphError, match="late is declared after its reader"):
        graph.apply([(source, "a", "x")])


def test_reading_its_own_outputs_is_an_error() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    own: list[Any] = []
    own.append(graph.map("own", source, lambda ctx, _, __: ctx.fetch(own[0], "b")))
    with pytest.raises(GraphError, match="own is declared after its reader"):
        graph.apply([(source, "a", "x")])


def test_a_subscriber_must_not_change_the_graph() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    source.subscribe(lambda _: graph.apply([(source, "b", "y")]))
    with pytest.raises(GraphError, match="in progress"):
        graph.apply([(source, "a", "x")])


def test_a_failing_transform_keeps_its_last_outputs_and_spares_the_others() -> None:
    graph = Graph()
    source: Source[str, int] = graph.source("source")
    limits: Source[str, int] = graph.source("limits")
    inverse = graph.map("inverse", source, lambda ctx, _, value: 100 // (value + (ctx.fetch(limits, "extra") or 0)))
    graph.apply([(source, "a", 10), (source, "b", 20)])
    with pytest.raises(TransformError, match=r"inverse\['a'\]: ZeroDivisionError"):
        graph.apply([(source, "a", 0), (source, "b", 50)])
    assert inverse.items() == [("a", 10), ("b", 2)]
    graph.apply([(limits, "extra", 50)])
    assert inverse.items() == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("keeps", "last"), [(True, 20), (False, -30)], ids=["a good output is kept, a spare one is not", "none is kept"]
)
def test_a_transform_that_failed_from_the_first_has_a_spare_output_until_it_succeeds(keeps: bool, last: int) -> None:
    graph = Graph()
    source: Source[str, int] = graph.source("source")
    inverse = graph.map(
        "inverse", source, lambda _, __, value: 100 // (value % 10), lambda _, value: -value, keeps=keeps
    )
    for value, shown in ((10, -10), (20, -20), (25, 20), (30, last)):
        if value % 10:
            graph.apply([(source, "a", value)])
        else:
            with pytest.raises(TransformError, match="ZeroDivisionError"):
                graph.apply([(source, "a", value)])
        assert inverse.items() == [("a", shown)]
    graph.apply([(source, "a", None)])
    assert inverse.items() == []
    with pytest.raises(TransformError):
        graph.apply([(source, "a", 10)])
    assert inverse.items() == [("a", -10)]


def test_collections_declared_late_see_what_is_there() -> None:
    graph = Graph()
    source: Source[str, int] = graph.source("source")
    graph.apply([(source, "a", 1), (source, "b", 2)])
    odd = source.index("odd", lambda _, value: [value % 2])
    groups = graph.groups("parity", odd)
    doubled = graph.map("doubled", source, lambda _, __, value: value * 2)
    graph.apply()
    assert (groups.items(), doubled.items()) == ([(0, True), (1, True)], [("a", 2), ("b", 4)])


def test_who_reads_keys_is_not_told_of_values() -> None:
    graph = Graph()
    source: Source[str, str] = graph.source("source")
    asked: Source[str, bool] = graph.source("asked")
    first = source.index("first letter", lambda _, value: [value[0]])
    names = graph.map("names", asked, lambda context, key, _: tuple(context.fetch_keys(first, key)))
    graph.apply([(source, "b", "tea"), (source, "a", "toast"), (asked, "t", True)])
    assert names.items() == [("t", ("a", "b"))]
    graph.apply([(source, "a", "tart")])
    assert names.runs == 1
    graph.apply([(source, "a", "rice"), (source, "c", "tart")])
    assert names.items() == [("t", ("b", "c"))]


def test_groups_of_several_indexes_are_there_while_any_has_members() -> None:
    graph = Graph()
    one: Source[str, int] = graph.source("one")
    other: Source[str, int] = graph.source("other")
    indexes = [source.index("value", lambda _, value: [value]) for source in (one, other)]
    groups = graph.groups("values", *indexes)
    graph.apply([(one, "a", 1), (other, "b", 1), (other, "c", 2)])
    assert list(groups.items()) == [(1, True), (2, True)]
    graph.apply([(one, "a", None), (other, "c", None)])
    assert list(groups.items()) == [(1, True)]
    graph.apply([(other, "b", None)])
    assert not groups.items()


NAMES = st.sampled_from(["a", "ab", "bc", "d", "cd"])
CATEGORIES = st.sampled_from(["tea", "coffee", "mate"])
EDIT = st.one_of(
    st.tuples(st.just("items"), NAMES, st.one_of(st.none(), st.tuples(CATEGORIES, st.integers(0, 3)))),
    st.tuples(st.just("discounts"), CATEGORIES, st.one_of(st.none(), st.integers(1, 3))),
)
HISTORY = st.lists(st.lists(EDIT, max_size=5), max_size=12)


@settings(max_examples=100, deadline=None)
@given(HISTORY, st.randoms(use_true_random=False))
def test_increments_equal_a_computation_from_scratch_in_any_order(history: Any, random: Any) -> None:
    shop = Shop()
    last: dict[tuple[str, str], Any] = {}
    mirror: dict[str, tuple[int, ...]] = {}

    def follow(changes: Any) -> None:
        for key, old, new in changes:
            assert mirror.get(key) == old
            assert old != new
            mirror.update({key: new}) if new is not None else mirror.pop(key)

    shop.report.subscribe(follow)
    for batch in history:
        shop.graph.apply((getattr(shop, source), key, value) for source, key, value in batch)
        last.update({(source, key): value for source, key, value in batch})
    edits = list(last.items())
    random.shuffle(edits)
    fresh = Shop()
    fresh.graph.apply((getattr(fresh, source), key, value) for (source, key), value in edits)
    assert shop.state() == fresh.state()
    assert sorted(mirror.items()) == shop.report.items()
    assert [row["readers"] for row in shop.graph.dump()] == [row["readers"] for row in fresh.graph.dump()]


def test_a_collection_is_read_as_a_mapping_and_its_groups_in_order_of_keys() -> None:
    shop = Shop()
    shop.graph.apply((shop.items, key, ("tea", price)) for key, price in (("b", 1), ("a", 9), ("c", 5)))
    assert (len(shop.prices), "a" in shop.prices, "z" in shop.prices) == (3, True, False)
    assert shop.by_category.members("tea") == [("a", ("tea", 9)), ("b", ("tea", 1)), ("c", ("tea", 5))]
    assert (shop.by_category.keys("tea"), shop.by_category.size("tea")) == (["a", "b", "c"], 3)
    shop.items.remove("a")
    shop.graph.apply([(shop.items, "b", ("tea", 2))])
    assert (len(shop.prices), shop.by_category.members("tea")) == (2, [("b", ("tea", 2)), ("c", ("tea", 5))])
    assert (shop.by_category.members("none"), shop.by_category.keys("none"), shop.by_category.size("none")) == (
        [],
        [],
        0,
    )


def test_an_entry_that_changes_its_group_concerns_both() -> None:
    shop = Shop()
    shop.graph.apply((shop.items, key, (kind, 1)) for key, kind in (("a", "tea"), ("b", "tea"), ("c", "coffee")))
    assert shop.sizes.items() == [("coffee", 1), ("tea", 2)]
    shop.graph.apply([(shop.items, "a", ("coffee", 7))])
    assert shop.sizes.items() == [("coffee", 2), ("tea", 1)]
    assert shop.report.items() == [("coffee", (7, 1)), ("tea", (1,))]
    shop.graph.apply([(shop.items, "a", ("coffee", 8))])
    assert shop.report.items() == [("coffee", (8, 1)), ("tea", (1,))]


@pytest.mark.parametrize("read", [Context.fetch_index, Context.fetch_keys, Context.count])
def test_reading_groups_of_what_is_declared_later_is_an_error(read: Callable[..., Any]) -> None:
    graph = Graph()
    items: Source[str, int] = graph.source("items")
    later: list[Any] = []
    graph.map("early", items, lambda context, key, _: read(context, later[0], key))
    late = graph.map("late", items, lambda _, __, value: value)
    later.append(late.index("group", lambda key, _: [key]))
    with pytest.raises(GraphError, match="late/group is declared after its reader"):
        graph.apply([(items, "a", 1)])


@pytest.mark.parametrize("count", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE])
def test_others_have_a_turn_for_each_key_and_while_many_outputs_change_owners(count: int) -> None:
    graph = Graph()
    items: Source[int, int] = graph.source("items")
    graph.map("same", items, lambda _, __, value: value)
    turns = sum(1 for _ in graph.steps((items, number, 1) for number in range(count)))
    # put, committed, run and committed; outputs are given up, and claimed
    assert turns == 4 * count + 2 * (count // AT_ONCE)


def test_thirty_two_outputs_change_owners_at_once() -> None:
    graph = Graph()
    items: Source[int, int] = graph.source("items")
    graph.map("same", items, lambda _, __, value: value)
    assert sum(1 for _ in graph.steps((items, number, 1) for number in range(32))) == 4 * 32 + 2


def test_others_have_a_turn_between_two_parts() -> None:
    graph = Graph()
    for _ in range(3):
        graph.part_ends()
    assert sum(1 for _ in graph.steps()) == 3


def test_a_step_yields_for_every_key_and_tells_at_the_end() -> None:
    shop = Shop()
    told: list[int] = []
    shop.prices.subscribe(lambda changes: told.append(len(changes)))
    steps = shop.graph.steps((shop.items, f"i{n}", ("tea", n)) for n in range(100))
    yields = 0
    for _ in steps:
        yields += 1
        assert told == []
    assert told == [100]
    assert yields >= 100 * 3  # put, run, commit


def test_subscribers_of_a_part_are_told_before_the_next_part_is_looked_at() -> None:
    graph = Graph()
    items: Source[str, int] = graph.source("items")
    told: list[str] = []
    ran: list[str] = []
    doubled = graph.map("doubled", items, lambda _, key, value: ran.append(key) or 2 * value)  # type: ignore[func-returns-value]
    doubled.subscribe(lambda changes: told.extend(change.key for change in changes))
    graph.part_ends()
    shown = graph.map("shown", doubled, lambda _, key, value: f"{value} after {told}")
    graph.apply([(items, "a", 1), (items, "b", 2)])
    assert shown.items() == [("a", "2 after ['a', 'b']"), ("b", "4 after ['a', 'b']")]
    assert [row["name"] for row in graph.dump()] == ["items", "doubled", "shown"]
    steps = graph.steps([(items, "a", 5)])
    seen = [list(told) for _ in steps]
    assert ["a", "b", "a"] in seen, "there is a yield between the parts, for whoever was told"


def test_a_batch_within_a_batch_is_an_error() -> None:
    shop = Shop()
    steps = shop.graph.steps([(shop.items, "a", ("tea", 5))])
    next(steps)
    with pytest.raises(GraphError, match="in progress"):
        shop.graph.apply([(shop.items, "b", ("tea", 5))])
    assert list(steps)
    assert shop.prices.items() == [("a", ("tea", 5))]
