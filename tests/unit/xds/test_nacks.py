"""Refusals as hostile peers write them."""

from __future__ import annotations

import json

import pytest

from controlplane.xds.nacks import MOST_REFUSALS, MOST_TEXT, Refusal, note, parse

NO_REASON = "refused without a reason"

MESSAGES = [
    ('[{"key": "route/httproute/a/b/0", "error": "no"}]', (Refusal("route/httproute/a/b/0", "no"),)),
    ('[{"key": "a", "error": "x"}, {"key": "b", "error": "y"}]', (Refusal("a", "x"), Refusal("b", "y"))),
    ('[{"key": "a", "error": "first"}, {"key": "a", "error": "second"}]', (Refusal("a", "first"),)),
    ('[{"key": "a", "error": "x", "more": [1]}]', (Refusal("a", "x"),)),
    ('[{"key": "a", "error": ""}]', (Refusal("a", NO_REASON),)),
    ('[1, null, {"key": 5, "error": "x"}, {"key": "a"}, {"key": "b", "error": "y"}]', (Refusal("b", "y"),)),
    ('[{"key": "a\\nb", "error": "x\\u001b[31m\\u2028y\\ud800"}]', (Refusal("a b", "x [31m y"),)),
    ("Proto constraint validation failed", (Refusal("", "Proto constraint validation failed"),)),
    ("line\none\x00two", (Refusal("", "line one two"),)),
    ("", (Refusal("", NO_REASON),)),
    ("[]", (Refusal("", "[]"),)),
    ("[{]", (Refusal("", "[{]"),)),
    ('{"key": "a", "error": "x"}', (Refusal("", '{"key": "a", "error": "x"}'),)),
]


@pytest.mark.parametrize(("message", "refusals"), MESSAGES)
def test_parse(message: str, refusals: tuple[Refusal, ...]) -> None:
    assert parse(message) == refusals


def test_deep_nesting_is_text() -> None:
    (refusal,) = parse("[" * 500_000)
    assert (refusal.key, len(refusal.error)) == ("", 2000)


def test_bounds() -> None:
    *many, last = parse(json.dumps([{"key": str(number), "error": "x" * 5000} for number in range(150)]))
    assert {len(refusal.error) for refusal in many} == {2000}
    assert (len(many), last) == (65, Refusal("", "and 85 more"))
    assert len(parse(json.dumps([{"key": str(number), "error": "x"} for number in range(5000)]))) == 1000
    assert parse(json.dumps([{"key": "k" * 5000, "error": "x"}]))[0].key == ""
    assert parse(json.dumps([{"key": "a", "error": "x" * (2 << 20)}]))[0].key == ""


def test_many_nacks_keep_no_more_than_one() -> None:
    known: dict[str, Refusal] = {}
    for start in range(0, 5000, 500):
        note(known, json.dumps([{"key": f"r{start + n}", "error": "x" * 100} for n in range(500)]))
    assert sum(len(refusal.key) + len(refusal.error) for refusal in known.values()) <= MOST_TEXT
    assert len(known) <= MOST_REFUSALS + 1
    assert known[""].error.startswith("and ")
    note(known, '[{"key": "r0", "error": "newer"}]')
    assert known["r0"].error == "newer"


def test_a_full_list_keeps_what_it_knows_and_counts_what_is_new() -> None:
    known: dict[str, Refusal] = {}
    note(known, json.dumps([{"key": f"r{n}", "error": "x"} for n in range(MOST_REFUSALS)]))
    note(known, json.dumps([{"key": key, "error": "new"} for key in ("more", "r0", "r1")]))
    assert (known["r0"].error, known["r1"].error) == ("new", "new")
    assert known[""].error == "and 1 more" and "more" not in known


def test_a_newer_reason_that_finds_no_room_leaves_the_older_one() -> None:
    known: dict[str, Refusal] = {}
    for letter, length in (("x", 1000), ("y", 2000)):
        note(known, json.dumps([{"key": f"r{n:02}", "error": letter * length} for n in range(70)]))
    assert "".join(refusal.error[0] for key, refusal in known.items() if key) == "y" * 60 + "x" * 10
    assert sum(len(refusal.key) + len(refusal.error) for refusal in known.values()) <= MOST_TEXT


def test_what_fills_the_room_to_its_last_byte_is_kept() -> None:
    known: dict[str, Refusal] = {}
    whole, rest = divmod(MOST_TEXT, 2000)
    assert rest > 3
    lengths = [1997] * whole + [rest - 3]
    note(known, json.dumps([{"key": f"r{n:02}", "error": "x" * length} for n, length in enumerate(lengths)]))
    assert (len(known), "" in known) == (whole + 1, False)
    note(known, '[{"key": "z", "error": ""}]')
    assert known[""].error == "and 1 more"


def test_proxies_that_say_the_same_share_the_text() -> None:
    message = json.dumps([{"key": "route/httproute/a/b/0", "error": "no such filter: x"}])
    (one,), (other,) = parse(message), parse(message)
    assert (one.key is other.key, one.error is other.error) == (True, True)


def test_a_second_nack_finds_the_room_that_the_first_one_left() -> None:
    known: dict[str, Refusal] = {}
    for letter in ("a", "b", "c"):
        note(known, json.dumps([{"key": f"{letter}{n:02}", "error": "x" * 1500} for n in range(50)]))
    named = [refusal for key, refusal in known.items() if key]
    assert sum(len(refusal.key) + len(refusal.error) for refusal in named) <= MOST_TEXT
    assert len(named) == MOST_TEXT // 1503
