"""Refusals as hostile peers write them."""

from __future__ import annotations

import json

import pytest

from controlplane.answers.nacks import MOST_REFUSALS, MOST_TEXT, Refusal, note, noted, parse

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


def refusing(**errors: str) -> str:
    return json.dumps([{"key": key, "error": error} for key, error in errors.items()])


def test_what_is_new_is_added_behind_what_is_known() -> None:
    known = {"a": Refusal("a", "x"), "b": Refusal("b", "x")}
    note(known, refusing(a="y", c="z"))
    assert {key: refusal.error for key, refusal in known.items()} == {"a": "y", "b": "x", "c": "z"}


def test_what_was_known_stays_as_it_is_and_what_many_say_is_kept_once() -> None:
    known = {"a": Refusal("a", "x")}
    assert set(noted(known, refusing(b="y"))) == {"a", "b"} and set(known) == {"a"}
    one, other = noted({}, refusing(b="y")), noted({}, refusing(b="y"))
    assert one is other and one == {"b": Refusal("b", "y")}
    assert noted({}, refusing(b="z")) is not one


@pytest.mark.parametrize("more", [0, 1])
def test_a_thousand_are_named_however_many_nacks_name_them(more: int) -> None:
    known: dict[str, Refusal] = {}
    if more:
        note(known, "a reason without a name")
    note(known, refusing(**{f"r{number}": "x" for number in range(MOST_REFUSALS - 2)}))
    note(known, refusing(p="x", q="x", r="x"))
    assert len(known) == MOST_REFUSALS + 1 and {"p", "q"} <= set(known) and "r" not in known
    assert known[""].error == ("a reason without a name" if more else "and 1 more")


@pytest.mark.parametrize("over", [0, 1])
def test_a_newer_reason_may_fill_the_room(over: int) -> None:
    known = {f"r{number:02}": Refusal(f"r{number:02}", "x" * 1997) for number in range(65)}
    room = MOST_TEXT - 65 * 2000
    known["z"] = Refusal("z", "x")
    note(known, refusing(z="y" * (room - 1 + over)))
    assert known["z"].error[0] == ("y" if not over else "x")


def test_lengths_that_are_still_read() -> None:
    assert parse(refusing(**{"k" * 1024: "x"})) == (Refusal("k" * 1024, "x"),)
    assert parse(refusing(**{"k" * 1025: "x"}))[0].key == ""
    text = refusing(a="x")
    assert parse(text + " " * ((1 << 20) - len(text))) == (Refusal("a", "x"),)
    assert parse(text + " " * ((1 << 20) - len(text) + 1))[0].key == ""


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
