"""Builtin kinds of text on a corpus of lines: `+` has one, `-` has none, though it may look like it."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.guards.builtins import BUILTINS, builtin
from dataplane.guards.judging import Judge
from dataplane.guards.masking import Masker, masked
from dataplane.guards.patterns import of_user
from dataplane.guards.plan import Guard, Guards
from dataplane.guards.values import Phase, Text
from gatewright.turns import at_once

CORPUS = Path(__file__).parent / "corpus"
LEAST = 0.95


def lines(name: str) -> list[tuple[bool, str]]:
    found = (CORPUS / f"{name}.txt").read_text().splitlines()
    return [(line.startswith("+ "), line[2:]) for line in found]


def is_found(name: str, text: str) -> bool:
    pattern = builtin(name)
    return pattern.label in masked((pattern,), text.encode())


@pytest.mark.parametrize("name", BUILTINS)
def test_precision_and_recall(name: str) -> None:
    rows = lines(name)
    assert sum(expected for expected, _ in rows) >= 150 and len(rows) >= 300
    found = [(expected, is_found(name, text)) for expected, text in rows]
    right = sum(expected and hit for expected, hit in found)
    assert right / sum(hit for _, hit in found) >= LEAST
    assert right / sum(expected for expected, _ in found) >= LEAST


@pytest.mark.parametrize("name", BUILTINS)
def test_precision_and_recall_on_independent_lines(name: str) -> None:
    """Written without knowledge of the patterns, as people and programs write: forms, logs, chats, files."""
    rows = lines(f"independent/{name}")
    assert len(rows) >= 45
    found = [(expected, is_found(name, text)) for expected, text in rows]
    right = sum(expected and hit for expected, hit in found)
    assert right / sum(hit for _, hit in found) >= LEAST
    assert right / sum(expected for expected, _ in found) >= LEAST


@pytest.mark.parametrize(
    ("name", "nobodys", "somebodys"),
    [
        (
            "Ssn",
            ["123-45-6789", "078-05-1120", "219-09-9999", "000-22-8765", "666-22-8765", "987-22-8765"],
            "536-22-8765",
        ),
        ("Ssn", ["536-00-8765", "536-22-0000", "555-55-5555"], "536-22-8765"),
        ("CaSin", ["046 454 286", "846 454 287", "130 692 545", "777 777 777"], "130 692 544"),
    ],
)
def test_numbers_that_nobody_has_are_not_found(name: str, nobodys: list[str], somebodys: str) -> None:
    assert [each for each in nobodys if is_found(name, f"my SSN, or SIN, is {each}")] == []
    assert is_found(name, f"my SSN, or SIN, is {somebodys}")


SPELLINGS = {
    r"{\"a\": \"ssn:\n536-22-8765\"}": "<SSN>",
    r"{\"a\": \"1\n536-22-8765\"}": "<SSN>",
    r"x\t4111111111111111": "<CREDIT_CARD>",
    r"call\r\n(415) 555-2671": "<PHONE_NUMBER>",
    r"sin\u00a0130-692-544": "<CA_SIN>",
    r"hi\njane@acme.com": "<EMAIL_ADDRESS>",
    r"\u00e9ric@acme.com": "<EMAIL_ADDRESS>",
    "536\u201122\u20118765": "<SSN>",
    "SSN\uff1a536-22-8765": "<SSN>",
    "\u201c4111 1111 1111 1111\u201d": "<CREDIT_CARD>",
    "4111\xa01111\xa01111\xa01111": "<CREDIT_CARD>",
    "\u5361\u53f74111111111111111\u3002": "<CREDIT_CARD>",
    "\uff15\uff13\uff16-\uff12\uff12-\uff18\uff17\uff16\uff15": "<SSN>",
    "call +1\u202f415\u202f555\u202f2671": "<PHONE_NUMBER>",
    "(415)\xa0555\u20112671": "<PHONE_NUMBER>",
    "my number\u2014415-555-2671\u2014please": "<PHONE_NUMBER>",
    "?mail=jane%40acme.com&x": "<EMAIL_ADDRESS>",
    "jane&#64;acme.com": "<EMAIL_ADDRESS>",
    "jane\uff20acme.com": "<EMAIL_ADDRESS>",
    "phone=%2B1": "",
    "5\u200b36-22-8765": "",
    "five three six, 22 8765": "",
    "NTM2LTIyLTg3NjU=": "",
    "jane at acme dot com": "",
}
"""What the page says of spellings: seen, or not ("")."""


@pytest.mark.parametrize("text", SPELLINGS)
def test_spellings(text: str) -> None:
    said = masked(tuple(map(builtin, BUILTINS)), text.encode()).decode()
    assert [
        part for part in ("<SSN>", "<CREDIT_CARD>", "<PHONE_NUMBER>", "<CA_SIN>", "<EMAIL_ADDRESS>") if part in said
    ] == ([SPELLINGS[text]] if SPELLINGS[text] else [])


@given(
    st.lists(
        st.sampled_from(
            ["jane@acme.com", "\n", "\t", "\\", '"', "\xe9", "\u2028", "n", "u", "00", "4111111111111111", " "]
        ),
        max_size=12,
    ),
    st.integers(0, 200),
    st.booleans(),
)
@example(["\\", "n", "jane@acme.com"], 0, True)
@example(["\xe9", "jane@acme.com"], 9, True)
def test_text_that_is_json_stays_json(parts: list[str], cut: int, is_ascii: bool) -> None:
    """What a tool is called with: no label stands behind half an escape, wherever the text was split."""
    text = json.dumps({"a": "".join(parts)}, ensure_ascii=is_ascii).encode()
    used = (*map(builtin, BUILTINS), of_user("[a-z]+"), of_user(r"\d+"))
    masker = Masker(used[: len(BUILTINS)])
    said = at_once(masker.feed(text[:cut])) + at_once(masker.feed(text[cut:], True))
    assert said == masked(used[: len(BUILTINS)], text)
    assert json.loads(said).keys() == {"a"}
    assert len(json.loads(masked(used, text))) == 1


@pytest.mark.parametrize("name", BUILTINS)
@given(st.data())
def test_a_text_in_pieces_is_masked_as_the_whole(name: str, data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.sampled_from(lines(name)), min_size=1, max_size=3))
    text = "\n".join(line for _, line in picked).encode()
    used = tuple(map(builtin, BUILTINS))
    masker = Masker(used)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    places = [0, *cuts, len(text)]
    given_ = [at_once(masker.feed(text[start:end])) for start, end in pairwise(places)]
    assert b"".join((*given_, at_once(masker.feed(b"", True)))) == masked(used, text)


def test_a_text_is_split_within_a_character() -> None:
    """A long one is, by who looks at it in pieces."""
    used = tuple(map(builtin, BUILTINS))
    for begin in range(4_080, 4_100):
        text = (" " * begin + "M.Müller01@dev.to, dd").encode()
        assert masked(used, text) == b" " * begin + b"<EMAIL_ADDRESS>, dd", begin


HOSTILE = {
    "words": "a long prompt of plain words, 12 of them. ",
    "digits": "4111 1111 1111 1112 ",
    "nine digits": "536228765 ssn ",
    "phones": "+1 415 555 26 tel 020 7946 09 ",
    "addresses": "a.b.c@d.e.f@g.h.i ",
    "one letter": "a",
    "separators": "1-1-1-1-1-1-1 ",
}
PATTERNS = [
    *(r"a.*z", r"(?s)a.*b.*c", r"(a|aa)+$", r"(x+x+)+y", r"\d{3}-\d{4}", r"(?i)secret", r"[a-z]+ing\b", r"[^a]z"),
    *(r"(a+)+$", r"\bword\b.*\bother\b", r"\pL{5,}q", r"(foo|bar|baz)+qux", r"a{2,100}!", r"\s+$", r"1(-1)*x", r"\w+@"),
]


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_large_prompt_holds_a_worker_no_longer_than_a_turn(shape: str) -> None:
    """1 MiB, 16 patterns and all builtins: CPU time between two turns, 50 ms at most (docs/hostile-streams.md)."""
    unit = HOSTILE[shape]
    text = unit * (2**20 // len(unit) // (1 if shape in ("words", "one letter") else 8))
    used = (*map(of_user, PATTERNS), *map(builtin, BUILTINS))
    guard = Guard("request[0].regex", "no", patterns=used)

    async def ask(*_: object) -> object:
        raise AssertionError("nobody is asked")

    judge = Judge(Guards((guard,)), Phase.REQUEST, ask, lambda *_: None)  # type: ignore[arg-type]
    work = judge.texts((Text(text),))
    longest, turns = 0.0, 0
    while True:
        began = time.thread_time()
        try:
            work.send(None)
        except StopIteration:
            break
        longest = max(longest, time.thread_time() - began)
        turns += 1
    assert turns > 5
    assert longest < 0.05, longest
