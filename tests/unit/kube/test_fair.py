"""Turns of namespaces, and how much of others' time each has."""

from __future__ import annotations

from controlplane.fair import Budgets, FairQueue


def queue(*keys: str) -> FairQueue[str]:
    made: FairQueue[str] = FairQueue(lambda key: key[0])
    for key in keys:
        made.put(key)
    return made


def all_of(waiting: FairQueue[str]) -> list[str]:
    return [key for _ in range(len(waiting)) if (key := waiting.take()) is not None]


def test_each_namespace_has_one_turn_before_any_has_two() -> None:
    assert all_of(queue("a1", "a2", "a3", "b1", "c1", "b2")) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_whoever_comes_late_waits_for_one_thing_of_each_other() -> None:
    waiting = queue(*(f"a{number}" for number in range(1000)))
    assert waiting.take() == "a0"
    waiting.put("b")
    assert [waiting.take(), waiting.take()] == ["a1", "b"]


def test_a_thing_waits_once_and_keeps_its_place() -> None:
    waiting = queue("a1", "a2", "a1")
    assert "a1" in waiting and "b1" not in waiting
    assert all_of(waiting) == ["a1", "a2"] and waiting.take() is None


def test_what_is_dropped_has_no_turn() -> None:
    waiting = queue("a1", "b1", "a2")
    for key in ("a1", "b1", "never"):
        waiting.drop(key)
    assert (len(waiting), all_of(waiting)) == (1, ["a2"])


def test_a_namespace_has_so_much_at_once_and_so_much_of_each_second() -> None:
    budgets = Budgets(1.0, 0.5)
    assert budgets.has("a", 10.0)
    budgets.spend("a", 0.5, 10.0)
    assert budgets.has("a", 10.0)
    budgets.spend("a", 0.5, 10.0)
    assert not budgets.has("a", 10.0) and budgets.has("b", 10.0)
    assert budgets.has("a", 10.1)
    budgets.spend("a", 3.0, 12.0)  # it had all of it again
    assert not budgets.has("a", 16.0) and budgets.has("a", 16.1)


def test_namespaces_that_used_nothing_lately_are_forgotten() -> None:
    budgets = Budgets(1.0, 0.5)
    for number in range(10 * Budgets.MANY):
        budgets.spend(str(number), 0.5, float(number))
    assert len(budgets) <= Budgets.MANY


def test_a_namespace_that_may_not_is_passed_over_and_keeps_its_turn() -> None:
    waiting = queue("a1", "b1", "b2")
    assert waiting.has(lambda name: name == "b") and not waiting.has(lambda name: name == "c")
    assert waiting.take(lambda name: name == "b") == "b1"
    assert waiting.take(lambda name: name == "c") is None
    assert all_of(waiting) == ["a1", "b2"]
