"""What RE2 takes for the worst texts that a search finds is within the price of a pattern, and what a price depends on.

Patterns are drawn, texts are those that keep most of their places open."""

from __future__ import annotations

import random
from time import thread_time
from typing import Any, Final

import pytest
import re2

from gatewright.regexes import prices
from gatewright.regexes.places import largest
from tests.harness import seeds

SIZE: Final = 4096
ATOMS: Final = (
    *("a", "b", "ab", ".", "[ab]", "(a|b)", "[^a]", "[a-z]", r"\w", r"\pL", "[^>]", "(?:a|ab|b)", r"\d", r"\s"),
    *("\u00e9", "[a-z\u00e9]", "(?i:k)"),
)
REPEATS: Final = ("", "", "", "*", "+", "?", "{2}", "{0,3}", "{1,9}", "{0,30}", "{3,60}", "{0,200}", "{5,}")
WORST: Final = (
    "[^>]{0,1000}x",
    "(?i)<script[^>]{0,500}>",
    "a.{0,100}b.{0,100}c",
    "(a|b)*a(a|b){20}c",
    "(a|b)*a" + "(a|b)" * 20 + "c",
    ".*(a.{5}|b.{7}|c.{9}|d.{11}).*z",
    r".*\pL{2,30}.*x",
    r"(\p{L}{1,60} )*x",
    r"[^a](?:[a-z]?(?i:k){0,3}\w{0,30}){5,}\d",
)
DRAWN: Final = 12
LOADED: Final = 4
"""So many times a price may be exceeded: figures are those of a core that nobody shares."""


def text(chance: random.Random, letters: str) -> bytes:
    return "".join(chance.choices(letters, k=SIZE)).encode()[:SIZE]


def texts() -> list[bytes]:
    chance = random.Random(1)
    wide = "".join(map(chr, range(0x80, 0xD7FF)))
    return [text(chance, letters) for letters in ("ab", "aaaaaaab", "abc >k", "\u00e9\u65e5a\u0416\U0001f600kK", wide)]


def drawn(chance: random.Random) -> str:
    """A pattern."""
    parts = []
    for _ in range(chance.randint(1, 10)):
        group = [chance.choice(ATOMS) + chance.choice(REPEATS) for _ in range(chance.choice((1, 1, 1, 3)))]
        parts.append(group[0] if len(group) == 1 else f"(?:{''.join(group)}){chance.choice(REPEATS)}")
    return "".join(parts)


def seconds(match: Any, anchor: object, value: bytes) -> float:
    """The least of some calls, as others use the machine."""
    least = 1.0
    for _ in range(3):
        began = thread_time()
        match(anchor, value, 0, len(value))
        least = min(least, thread_time() - began)
    return least


@pytest.mark.parametrize("row", range(len(WORST) + DRAWN))
def test_the_worst_text_takes_no_longer_than_its_price(row: int) -> None:
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, 4 << 20
    pattern = WORST[row] if row < len(WORST) else drawn(seeds.rolls("prices", row))
    try:
        compiled = re2.compile(pattern.encode(), options)._regexp
    except re2.error:
        return  # too large
    size = compiled.ProgramSize()
    anchors = re2._re2.RE2.Anchor
    for anchor, price in (
        (anchors.UNANCHORED, prices.of_search(pattern, size)),
        (anchors.ANCHOR_BOTH, prices.of_match(pattern, size)),
    ):
        for value in texts():
            if price * len(value) <= 2 * prices.MOST:
                assert seconds(compiled.Match, anchor, value) < LOADED * price * len(value) / 1e9 + 0.001, pattern


@pytest.mark.parametrize(
    ("pattern", "has_one"),
    [
        ("abc", True),
        ("a*a", False),
        ("a{2,3}", True),
        ("(a{2,3})*", False),
        ("(a{2,3}b)*", True),
        ("(a{0,3}b?)*c", False),
        ("a?a", False),
        ("(a?){2}", False),
        ("(a{0,2}){2}", False),
        ("a{2}a?b", True),
        ("a{0,3}b?c", True),
        ("(a{3}){2}a", True),
        ("a{0}a", True),
        ("(a*b){2,5}a", False),
        ("(a*b){2,5}c", True),
        ("(?:a|b){3,}c", True),
        ("(ab|ac)", False),
        ("(ab|cd)*x", True),
        ("[^>]{0,1000}>", True),
        ("[^>]{0,1000}x", False),
        (r"\p{L}{1,60}", True),
        (r"\p{L}{1,60}\d", True),
        (r"\p{L}{1,60}\w", False),
        ("(?i)k|\u212a", False),
        (".*foo", False),
        (r"\Qa*\Ea", True),
        ("(?i)bearer .*", True),
        ("(a|b)*a(a|b){20}c", False),
        ("x" * 5000, False),
    ],
)
def test_whether_a_pattern_has_one_way_to_read_a_text(pattern: str, has_one: bool) -> None:
    assert (largest(pattern) is not None) is has_one


@pytest.mark.parametrize(
    ("pattern", "few"),
    [
        ("/api/v[0-9]+/.*", True),
        ("(red|green|blue|" + "|".join(map(str, range(500))) + ")", True),
        ("[0-9]{3}", False),
        ("[ab]" * 13, False),
        (r"\." * 40, True),
    ],
)
def test_few_open_places_without_numbers_make_few_states(pattern: str, few: bool) -> None:
    assert prices.has_few_states(pattern) is few
    assert prices.of_search(pattern, 5_000) == (prices.LEAST if few else 2 * 5_200)
    assert prices.of_search(pattern, 20) == prices.LEAST


@pytest.mark.parametrize("pattern", ["/api/v[0-9]+/.*", "(?i)kelvinks", r"\D\S\W" * 20, "." * 100, "[[:alpha:]]+x?"])
def test_instructions_that_are_seen_from_the_text_are_not_too_few(pattern: str) -> None:
    size = prices.size_of(pattern)
    assert size is not None and size >= re2.compile(pattern)._regexp.ProgramSize()


@pytest.mark.parametrize("pattern", ["a{3}", r"\pL", "[^a]", "\u00e9"])
def test_instructions_that_are_not_seen_from_the_text_are_not_guessed(pattern: str) -> None:
    assert prices.size_of(pattern) is None
