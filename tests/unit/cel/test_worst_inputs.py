"""Functions of the expression language whose work Python does in one call: their worst inputs, which a search found,
take no longer than an evaluation may, or are refused."""

from __future__ import annotations

from random import Random
from time import thread_time
from typing import TYPE_CHECKING, Any

import pytest

from gatewright.cel import patterns
from gatewright.cel.budget import START
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import OverBudget
from gatewright.cel.functions import lists, misc, sets, strings
from gatewright.cel.program import compile_expression
from gatewright.cel.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable

ENVIRONMENT = Environment([Field("text", STRING)])
LONG = "a" * 1_000_000
HALF = "a" * 500_000
NUMBERS = list(range(10_000))
OTHERS = list(range(10_000, 20_000))
SCRIPT = "(?i)<script[^>]{0,500}>"
MADE_ANEW = "(a|b)*a(a|b){20}c"
"""Needs more states than RE2 keeps."""
GIVEN_UP = "a.{0,100}b.{0,100}c"
"""RE2 goes on without states, by each instruction."""
WRITTEN_OUT = "<" + "[^>]?" * 500 + "x"
OPTIONAL = "a" + "(?:.?.?.?.?.?.?)?" * 200 + "x"
CHOICES = "(a|b)*a" + "(a|b)" * 20 + "c"
"""The same without a number."""
LETTERS = "".join(Random(1).choices("ab", k=200_000))

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
    "matches, a long body": (patterns.matches, ("<script " * 250_000, SCRIPT)),
    "matches, a header": (patterns.matches, ("<script " * 1_300, SCRIPT)),
    "matches, states made anew": (patterns.matches, (LETTERS, MADE_ANEW)),
    "matches, a header, by each instruction": (patterns.matches, (LETTERS[:20_000], GIVEN_UP)),
    "matches, a body, by each instruction": (patterns.matches, (LETTERS, GIVEN_UP)),
    "matches, repetitions that are written out": (patterns.matches, ("<script " * 5_000, WRITTEN_OUT)),
    "matches, optional parts of optional parts": (patterns.matches, (LETTERS[:40_000], OPTIONAL)),
    "matches, choices that are written out": (patterns.matches, (LETTERS, CHOICES)),
    "regexReplace, a long body": (misc.regex_replace, ("<script " * 250_000, SCRIPT, "")),
    "regexReplace, states made anew": (misc.regex_replace, (LETTERS[:100_000], MADE_ANEW, "")),
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
    assert least < 0.1


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


@pytest.mark.parametrize(
    ("pattern", "most"),
    [(SCRIPT, 10_800), ("[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", 178_000), (r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", 6_000_000)],
)
def test_a_pattern_is_looked_for_in_so_much_text_and_not_in_more(pattern: str, most: int) -> None:
    """As the page of the language says; also where it is written out, and where it replaces."""
    inside, beyond = "." * most, "." * (most + most // 10)
    literal = compile_expression(f"text.matches(r'{pattern}')", ENVIRONMENT)
    calls: tuple[Callable[[str], object], ...] = (
        lambda text: patterns.matches([*START], text, pattern),
        lambda text: literal.evaluate(Values({"text": text})),
        lambda text: misc.regex_replace([*START], text[: len(text) // 2], pattern, "") == "",
    )
    for call in calls:
        assert call(inside) is False
        with pytest.raises(OverBudget, match="steps"):
            call(beyond)


@pytest.mark.parametrize(
    ("text", "found"),
    [("a<SCRIPT x>", True), ("<script" + "x" * 500 + ">", True), ("<script" + "x" * 501 + ">", False)],
)
def test_a_pattern_with_counted_repetitions_says_what_it_finds(text: str, found: bool) -> None:
    program = compile_expression(f"[text].all(each, each.matches('{SCRIPT}')) && text.matches('{SCRIPT}')", ENVIRONMENT)
    assert program.evaluate(Values({"text": text})) is found
    assert (misc.regex_replace([*START], text, SCRIPT, "") == "a"[: text.find("<")]) is found
