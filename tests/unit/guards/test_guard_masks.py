"""What is masked in a text: matches, overlaps, long ones; and that pieces of a text come to what the whole does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.chain.filter import Refused
from dataplane.guards.masking import Masker, is_found, masked
from dataplane.guards.patterns import Pattern, of_user
from gatewright.turns import at_once

BOUND = 16


def patterns(*texts: str) -> tuple[Pattern, ...]:
    return tuple(map(of_user, texts))


def whole(text: str, *written: str, bound: int = BOUND) -> str:
    return masked(patterns(*written), text.encode(), bound).decode()


@pytest.mark.parametrize(
    ("written", "text", "expected"),
    [
        (["secret"], "a secret, a SECRET", "a <masked>, a SECRET"),
        (["(?i)secret"], "a secret, a SECRET", "a <masked>, a <masked>"),
        (["abc", "cde"], "abcde", "<masked>"),
        (["abc", "def"], "abcdef", "<masked><masked>"),
        (["a*"], "baab", "b<masked>b"),
        (["^a"], "aba\na", "<masked>ba\na"),
        (["(?m)^a"], "aba\na", "<masked>ba\n<masked>"),
        ([r"\bcat\b"], "cat concat cats cat", "<masked> concat cats <masked>"),
        (["é+"], "caféé!", "caf<masked>!"),
        ([r"\d+"], "1" * 40, "<masked>" * 3),
        (["a.*z"], "a" + "b" * 20 + "z", "a" + "b" * 20 + "z"),
        (["é+"], "é" * 9, "<masked><masked>"),
        (["x"], "", ""),
    ],
    ids=repr,
)
def test_matches_are_masked(written: list[str], text: str, expected: str) -> None:
    assert whole(text, *written) == expected


@pytest.mark.parametrize("written", ["a(", "(?=a)", r"(a)\1", "a" * 10 + "{1000}" * 3, "\ud800"])
def test_what_is_no_pattern_is_refused(written: str) -> None:
    with pytest.raises(Refused):
        of_user(written)


WRITTEN = [
    *("ab", "a+b", "a.*b", "a.*?b", "(?i)AB", "[ab]{2,5}", "a{3}", "(a|bb)+", r"\ba\b", "a$", "^a", "(?m)a$", r"a\B"),
    *(
        "(?s)a.b",
        "é|b",
        "a|ab|abc",
        r"\pL+",
        r"[[:alpha:]]\d",
        r"\Qa.b\E",
        "(?P<n>a)b?",
        "a*",
        "(?:)",
        r"\x61b",
        "[^a]b",
    ),
    *(
        "(ab)*c",
        "a(b(c(d)?)?)?e",
        "b??a",
        r"\s+a",
        "(?U)a.*b",
        r"a\Cb",
        "[]a]b",
        r"[\]a]b",
        "a{2,}?b",
        "a{,2}",
        "a.{14}b",
    ),
]
LETTERS = st.text("abcdAB .1é\n", max_size=60)


@given(
    st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=3),
    LETTERS,
    st.lists(st.integers(0, 60)),
    st.integers(4, 20),
)
def test_a_text_in_pieces_is_masked_as_the_whole(written: list[str], text: str, cuts: list[int], bound: int) -> None:
    used = patterns(*written)
    masker = Masker(used, bound)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end].encode() for start, end in pairwise(places)]
    given_ = [at_once(masker.feed(piece)) for piece in pieces] + [at_once(masker.feed(b"", True))]
    assert b"".join(given_) == masked(used, text.encode(), bound)


@given(st.sampled_from(WRITTEN), LETTERS)
def test_no_more_is_held_than_a_match_may_have(written: str, text: str) -> None:
    masker = Masker(patterns(written), BOUND)
    for letter in text:
        at_once(masker.feed(letter.encode()))
        assert masker.held <= BOUND + 8


@pytest.mark.parametrize(
    ("written", "text", "held"),
    [
        ("secret", "nothing of it", 0),
        ("secret", "this is sec", 3),
        ("secret", "this is secr.", 0),
        (r"sk-[a-z]{20}", "a key: sk-abc", 6),
        (r"\d{4}-\d{4}", "12 1234-", 5),
        (r"(?i)password: *\w+", "the Pass", 4),
        (r"[[:digit:]]{4}", "a 12", 2),
    ],
)
def test_only_what_may_become_a_match_waits(written: str, text: str, held: int) -> None:
    masker = Masker(patterns(written))
    at_once(masker.feed(text.encode()))
    assert masker.held == held


def test_overlaps_without_end_wait_for_nothing() -> None:
    masker = Masker(patterns("ab.", ".ab"), BOUND)
    given_ = [at_once(masker.feed(b"abab")) for _ in range(100)]
    assert masker.held <= BOUND and b"".join(given_).count(b"<masked>") >= 1


def found(text: str, *written: str) -> bool:
    work = is_found(patterns(*written), text.encode(), BOUND)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return bool(end.value)


def test_a_match_of_any_length_rejects() -> None:
    assert found("a" + "b" * 5000 + "z", "x", "a.*z")
    assert not found("bbbb", "a*", "z")
    assert found("bbba", "a*")


def test_pauses_come_often() -> None:
    """Between two of them there are at most so many matches, of one pattern in one piece."""
    work = Masker(patterns("[a-z]", ".")).feed(b"ab " * 4000, True)
    assert sum(1 for _ in work) > 12_000 / 64


@given(st.text("ab(|)*[]", max_size=8))
def test_whatever_re2_takes_can_be_held_back(written: str) -> None:
    try:
        used = of_user(written)
    except Refused:
        return
    text = "abab(|)*[]ab"
    masker = Masker((used,), BOUND)
    pieces = [at_once(masker.feed(letter.encode())) for letter in text] + [at_once(masker.feed(b"", True))]
    assert b"".join(pieces) == masked((used,), text.encode(), BOUND)
