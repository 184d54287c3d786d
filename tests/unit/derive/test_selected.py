"""Selections follow selectors and entries: the same as looking at every pair, however it came to be."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from controlplane.derive import EVERYTHING, Graph, Members, Selecting, Source

Numbers = tuple[tuple[int, str], ...]


def digits(_: int, value: str) -> Iterator[Hashable]:
    yield from value


def select(wanted: str, members: Members) -> int:
    """Entries with a character; with "-" before it, without."""
    return members(EVERYTHING) & ~members(wanted[1]) if wanted[0] == "-" else members(wanted)


class World:
    def __init__(self, most: int = 100) -> None:
        self.graph = Graph()
        self.wanted: Source[str, bool] = self.graph.source("wanted")
        self.entries: Source[int, str] = self.graph.source("entries")
        how = Selecting(digits, lambda _, value: value[:1], select, most)
        self.selected = self.graph.selected("selected", self.wanted, self.entries, how)
        self.told: list[str] = []
        self.selected.subscribe(lambda changes: self.told.extend(change.key for change in changes))

    def want(self, *wanted: str) -> None:
        self.graph.apply((self.wanted, each, True) for each in wanted)

    def put(self, entries: dict[int, str | None]) -> None:
        self.graph.apply((self.entries, key, value) for key, value in entries.items())

    def of(self, wanted: str) -> Numbers | None:
        return self.selected.get(wanted)


def test_a_selector_has_its_entries_in_key_order() -> None:
    world = World()
    world.want("a", "-a")
    world.put({3: "xa", 1: "ya", 2: "zb"})
    assert world.of("a") == ((1, "y"), (3, "x")) and world.of("-a") == ((2, "z"),)
    assert world.of("b") is None


def test_an_entry_moves_between_selectors() -> None:
    world = World()
    world.want("a", "-a")
    world.put({1: "xa", 2: "xb"})
    world.put({1: "xb"})
    assert world.of("a") == () and world.of("-a") == ((1, "x"), (2, "x"))
    world.put({2: None})
    assert world.of("-a") == ((1, "x"),)


def test_nobody_is_told_of_what_readers_do_not_see() -> None:
    world = World()
    world.want("a", "b")
    world.put({1: "xa", 2: "xb"})
    world.told.clear()
    world.put({1: "xac"})  # another group, the same selectors
    assert world.told == []
    world.put({1: "ya"})
    assert world.told == ["a"]


def test_of_many_there_are_the_first_and_one_more() -> None:
    world = World(most=2)
    world.want("a")
    world.put(dict.fromkeys(range(200), "xa"))
    assert world.of("a") == ((0, "x"), (1, "x"), (2, "x"))
    world.told.clear()
    world.put({150: None})
    assert world.told == []
    world.put({1: None})
    assert world.of("a") == ((0, "x"), (2, "x"), (3, "x"))


def test_a_selector_that_goes_has_nothing() -> None:
    world = World()
    world.want("a")
    world.put({1: "xa"})
    world.graph.apply([(world.wanted, "a", None)])
    assert world.of("a") is None and len(world.selected) == 0
    world.put({2: "xa"})
    world.want("a")
    assert world.of("a") == ((1, "x"), (2, "x"))


VALUES = st.one_of(st.none(), st.text("abc", min_size=1, max_size=4))
BATCHES = st.lists(st.dictionaries(st.integers(0, 150), VALUES, max_size=90), max_size=6)


@given(BATCHES, st.lists(st.dictionaries(st.sampled_from(["a", "b", "-a", "-c"]), st.sampled_from([True, None]))))
def test_every_history_ends_as_looking_at_every_pair_does(
    batches: list[dict[int, str | None]], wanted: list[dict[str, bool | None]]
) -> None:
    world = World()
    for number in range(max(len(batches), len(wanted))):
        changes = [(world.entries, *each) for each in (batches[number : number + 1] or [{}])[0].items()]
        changes += [(world.wanted, *each) for each in (wanted[number : number + 1] or [{}])[0].items()]  # type: ignore[misc]
        world.graph.apply(changes)
        for selector in world.wanted:
            expected = [
                (key, value[:1])
                for key, value in world.entries.items()
                if (selector[-1] in value) == (selector[0] != "-")
            ]
            assert world.of(selector) == tuple(expected)
        assert sorted(world.selected) == sorted(world.wanted)
