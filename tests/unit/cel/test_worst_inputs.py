"""Functions of the expression language whose work Python does in one call: their worst inputs, which a search found,
take no longer than an evaluation may, or are refused."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest

from gatewright.cel.budget import START
from gatewright.cel.errors import OverBudget
from gatewright.cel.functions import lists, sets, strings

LONG = "a" * 1_000_000
HALF = "a" * 500_000
NUMBERS = list(range(10_000))
OTHERS = list(range(10_000, 20_000))

ROWS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lastIndexOf, the first character differs": (strings.last_index_of, (LONG, HALF + "b")),
    "lastIndexOf, the last character differs": (strings.last_index_of, (LONG, "b" + HALF)),
    "lastIndexOf, the one in the middle differs": (strings.last_index_of, (LONG, HALF + "b" + HALF)),
    "lastIndexOf before a place": (strings.last_index_of_before, (LONG, "b" + HALF, 900_000)),
    "indexOf, the first character differs": (strings.index_of, (LONG, "b" + HALF)),
    "indexOf, the last character differs": (strings.index_of, (LONG, HALF + "b")),
    "replace, by less": (strings.replace, (LONG, HALF + "b", "")),
    "replace, by more": (strings.replace, (LONG, "b" + HALF, HALF + "bb")),
    "split, by what is long": (strings.split, (LONG, HALF + "b")),
    "split, into all characters": (strings.split, (LONG, "")),
    "sets.intersects": (sets.intersects, (NUMBERS, OTHERS)),
    "sets.contains": (sets.contains, (NUMBERS, OTHERS)),
    "sets.contains, the last ones": (sets.contains, (NUMBERS, NUMBERS[::-1])),
    "sets.equivalent": (sets.equivalent, (NUMBERS, NUMBERS[::-1])),
    "distinct": (lists.distinct, (NUMBERS,)),
}


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize("row", ROWS)
def test_the_worst_input_takes_no_longer_than_an_evaluation_may(row: str) -> None:
    function, arguments = ROWS[row]
    least = 1.0
    for _ in range(3):
        began = thread_time()
        try:
            function([*START], *arguments)
        except OverBudget:
            pass
        least = min(least, thread_time() - began)
    assert least < 0.05


@pytest.mark.parametrize("text", ["", "ab", "abcab" * 700, "\u00e9b" * 2_000])
@pytest.mark.parametrize("part", ["", "ab", "b", "x", "abcab" * 300, "b\u00e9" * 900])
def test_what_is_turned_around_is_found_at_the_same_place(
    text: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = [text.rfind(part), *(text.rfind(part, 0, at + len(part)) for at in range(0, len(text) + 1, 97))]
    monkeypatch.setattr(strings, "SHORT", 0)
    found = [strings.last_index_of([*START], text, part)]
    found += [strings.last_index_of_before([*START], text, part, at) for at in range(0, len(text) + 1, 97)]
    assert found == plain
