"""This compiler beside two libraries, on random expressions that make sense: the same value, or an error of both.

Where we differ on purpose or a library is wrong, a row of `DIFFERENCES` says so, with an expression that shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.cel.values import Timestamp
from tests.harness.seeds import times
from tests.oracles import typed
from tests.oracles.peers import LIBRARIES, Case, Outcome, comparable, ours
from tests.unit.cel.conformance import same

CPP, PYTHON = "cel-expr-python", "cel-python"
FORMS = {CPP: typed.FULL, PYTHON: typed.CORE}
ERROR = object()


@dataclass(frozen=True)
class Difference:
    """`text` gives `our` here and `their` in the library; `why` says who is right by the specification.

    Random cases with the same cause are known by signs, patterns found in the text and in what each side answered. A
    row without signs is about a form that the random expressions leave out.
    """

    library: str
    text: str
    our: Any
    their: Any
    why: str
    text_sign: str = ""
    our_sign: str = ""
    their_sign: str = ""


DIFFERENCES = (
    Difference(CPP, "''.split('')", [], [""], "we: cel-go, where the extension comes from, gives no element"),
    Difference(
        CPP, "base64.decode('-_8=')", b"\xfb\xff", ERROR, "we take the URL alphabet, too: tokens are written so"
    ),
    Difference(CPP, "base64.decode('YW I=')", ERROR, b"ab", "we: RFC 4648 section 3.3 wants other characters refused"),
    Difference(
        CPP, "{'a': 1}.transformMap(k, v, v)", {"a": 1}, ERROR, "we: the library lacks a function its macro calls"
    ),
    Difference(
        CPP,
        "[].sort() + ['a']",
        ["a"],
        ERROR,
        "we: an empty list has elements of any type; the library's checker takes them for ints",
        their_sign="no matching overload for",
    ),
    Difference(
        CPP,
        "timestamp('9999-12-31T23:59:59Z').getHours('+05:30')",
        ERROR,
        5,
        "they: the local time is in the year 10000, which Python's calendar does not have",
        our_sign="out of range in that zone",
    ),
    Difference(
        CPP, "size({0: 1, 0u: 2})", ERROR, 2, "we: keys that are equal are one key, and a repeated key is an error"
    ),
    Difference(
        CPP,
        "string(-1e308 * 10.0)",
        "-Inf",
        "-inf",
        "the specification does not say; we write what cel-go writes",
        text_sign=r"string\(|%s|%f",
    ),
    Difference(
        CPP,
        "('é' + 'b').substring(0, 2)",
        "éb",
        ERROR,
        "we: characters are code points; the library mistakes the size of a sum of strings that are not ASCII",
        their_sign=r"is greater than <string>\.size\(\)",
    ),
    Difference(
        CPP,
        "double(' -1')",
        ERROR,
        -1.0,
        "we: the text is a number and nothing else, as in cel-go; the library skips white space",
        text_sign=r"double\(",
        our_sign="not a double",
    ),
    Difference(
        CPP,
        "v_ints.exists_one(i, v_ints.sortBy(i, i).exists_one(i, v_map.filter(s, true).sort().exists(s, v_bool)))",
        False,
        ERROR,
        "we: the library loses what some nested loops run over",
        their_sign="<iter_range>",
    ),
    Difference(
        PYTHON, "(0.0 * 1.0) / (0.0 * 1.0) == 0.0", False, ERROR, "we: IEEE 754", their_sign="float division by zero"
    ),
    Difference(
        PYTHON, "dyn(1) == 1.0", True, ERROR, "we: numbers are compared across their types; so CORE has one type each"
    ),
    Difference(PYTHON, "timestamp(1)", Timestamp(10**9), ERROR, "we: the specification has timestamp(int)"),
    Difference(PYTHON, "has([1].a)", ERROR, False, "we: has() of what has no fields is an error"),
    Difference(
        PYTHON,
        "timestamp('2024-01-01T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')",
        ERROR,
        Exception,
        "we: a duration has 64 bits of nanoseconds, 292 years",
    ),
    Difference(
        PYTHON,
        "[1, 2][-1]",
        ERROR,
        2,
        "we: a list has no negative positions",
        our_sign="index out of range: -",
    ),
    Difference(
        PYTHON,
        "{'a': 1 / 0}.all(k, k == 'a')",
        ERROR,
        True,
        "we: an element that fails makes the map fail; the library keeps the error as a value",
        text_sign="{.*:",
    ),
    Difference(
        PYTHON,
        "('a' + 'b').contains('b')",
        True,
        ERROR,
        "we: the library's sum of strings or durations is a plain Python value, of which its functions know nothing",
        their_sign="object has no attribute",
    ),
    Difference(
        PYTHON,
        "-1.0 / 0.0",
        float("-inf"),
        float("inf"),
        "we: IEEE 754; the library divides every double by 0.0 to positive infinity, from which it may go on",
        text_sign="/",
        our_sign="nan|inf",
        their_sign="inf",
    ),
)


def agree(one: Outcome, two: Outcome) -> bool:
    if one.kind == "value" and two.kind == "value":
        return same(comparable(one.value), comparable(two.value))
    return one.kind != "value" and two.kind != "value"


def is_known(case: Case, library: str, our: Outcome, their: Outcome) -> bool:
    return any(signed(row, case.text, our, their) for row in DIFFERENCES if row.library == library and has_signs(row))


def has_signs(row: Difference) -> bool:
    return bool(row.text_sign or row.our_sign or row.their_sign)


def signed(row: Difference, text: str, our: Outcome, their: Outcome) -> bool:
    """Which side has an error is a sign, too."""
    signs = ((row.text_sign, text), (row.our_sign, _said(our)), (row.their_sign, _said(their)))
    kinds = ((row.our, our), (row.their, their))
    return all((wanted is ERROR) == (found.kind != "value") for wanted, found in kinds) and all(
        re.search(sign, found) for sign, found in signs
    )


def _said(found: Outcome) -> str:
    return repr(found.value) if found.kind == "value" else found.message


def compare(library: str, seed: int, depth: int) -> None:
    case = typed.case(seed, depth, FORMS[library])
    our, their = ours(case), LIBRARIES[library](case)
    told = f"{case.text}\n{case.values}\n{our}\n{their}"
    assert agree(our, their) or is_known(case, library, our, their) or is_its_own(library, case, our), told


def is_its_own(library: str, case: Case, our: Outcome) -> bool:
    """Whether a difference is the Python library's alone: the other one, which all of its cases suit, answers as we."""
    return library == PYTHON and CPP in LIBRARIES and agree(our, LIBRARIES[CPP](case))


SEEDS = st.integers(0, 2**48)
IS_LONG = times(1) > 1
"""The libraries have bugs of their own, and a new seed may find another one of theirs: that is for a person to judge,
in a long run. An ordinary run asks what was judged once."""


@pytest.mark.skipif(CPP not in LIBRARIES, reason="cel-expr-python is not made for this system")
@given(SEEDS, st.integers(1, 4))
@settings(max_examples=500, derandomize=not IS_LONG)
def test_the_same_as_cel_cpp(seed: int, depth: int) -> None:
    compare(CPP, seed, depth)


@given(SEEDS, st.integers(1, 3))
@settings(max_examples=120, derandomize=not IS_LONG)
def test_the_same_as_cel_python(seed: int, depth: int) -> None:
    compare(PYTHON, seed, depth)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_on_many_more(library: str, dice: Random) -> None:
    for number in range(times(3000 if library == CPP else 600)):
        compare(library, dice.randrange(2**48) if IS_LONG else number, 1 + number % 4)


SAMPLE = {"v_ints": [2, 1], "v_map": {"a": 1, "b": 2}, "v_bool": True}


def shows(outcome: Outcome, wanted: Any) -> bool:
    if wanted is ERROR:
        return outcome.kind != "value"
    if wanted is Exception:  # a value that we do not have
        return outcome.kind == "value"
    return outcome.kind == "value" and same(comparable(outcome.value), wanted)


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.text)
def test_a_known_difference_is_still_one(row: Difference) -> None:
    if row.library not in LIBRARIES:
        pytest.skip("cel-expr-python is not made for this system")
    case = Case(row.text, {name: typed.DECLARED[name] for name in SAMPLE}, SAMPLE)
    our, their = ours(case), LIBRARIES[row.library](case)
    assert shows(our, row.our), our
    assert shows(their, row.their), their
    assert signed(row, row.text, our, their)


def test_the_random_expressions_are_mostly_about_something() -> None:
    """Of the cases, most have a value, and every type and every form is reached. Always the same 700: this is about the
    generator, and a form that is rare is not in every 700."""
    cases = [typed.case(seed, 3, typed.FULL) for seed in range(700)]
    kinds = [ours(case).kind for case in cases]
    assert kinds.count("value") > 400
    assert kinds.count("refused") + kinds.count("syntax") < 30
    text = " ".join(case.text for case in cases)
    names = {name for forms in typed.FULL.values() for form in forms for name in re.findall(r"\.(\w+)\(", form)}
    assert {name for name in names if f"{name}(" not in text} == set()
