"""What the answers of an authorization server may take in memory, and which requests share one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.filters.steps.ext_auth.cache import ENTRIES, LONG, Cache, key_of
from dataplane.filters.steps.ext_auth.verdict import Verdict
from gatewright.cel.errors import Fault
from gatewright.cel.program import Program
from gatewright.cel.values import Redacted, Uint

HALF = 16 << 20


def verdict(size: int) -> Verdict:
    return Verdict(size=size)


def test_a_policy_keeps_32_mebibytes() -> None:
    cache, (one, two, three) = Cache(10), map(verdict, (HALF, HALF, 1))
    cache.put("one", one, 60.0)
    cache.put("two", two, 60.0)
    assert (cache.get("one", 0.0), cache.get("two", 0.0)) == (one, two)
    cache.put("three", three, 60.0)
    assert (cache.get("one", 0.0), cache.get("two", 0.0), cache.get("three", 0.0)) == (None, two, three)
    cache.put("four", one, 60.0)
    assert cache.get("two", 0.0) is None and cache.size == HALF + 1


def test_what_has_expired_takes_nothing() -> None:
    cache = Cache(10)
    cache.put("one", verdict(HALF), 60.0)
    assert cache.get("one", 60.0) is None and cache.size == 0


def test_ten_thousand_where_a_policy_does_not_say() -> None:
    assert ENTRIES == 10_000


def part(values: Sequence[object]) -> Program:
    """An expression that has these values, one after the other; an error where it is one."""
    left = iter(values)

    def evaluate(_x: object) -> object:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return SimpleNamespace(evaluate=evaluate)  # type: ignore[return-value]  # all that is asked of it


def keys(*values: tuple[object, object], beside: bool) -> tuple[Hashable, Hashable]:
    """The keys of two requests whose parts have these values. `beside`: there is another part, of both the same."""
    programs = [part(("same", "same"))] * beside + [part(each) for each in values]
    key = key_of(programs)
    return key(X), key(X)


X: Any = None
LONGER = "x" * (LONG + 1)


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (LONGER, LONGER, True),
        (LONGER, LONGER + "x", False),
        ("x" * LONG, LONGER, False),
        (Redacted("a"), Redacted("a"), True),
        (Redacted("a"), Redacted("b"), False),
        (1, True, False),
        (1, Uint(1), False),
        (1, 1.0, False),
        (2, 2, True),
        (0.5, 0.5, True),
        (b"a", "a", False),
        (b"a", b"a", True),
        (b"a" * (LONG + 1), b"a" * (LONG + 2), False),
        ("1", 1, False),
    ],
)
def test_requests_with_equal_parts_share_an_answer(one: object, other: object, is_same: bool, beside: bool) -> None:
    first, second = keys((one, other), beside=beside)
    assert first is not None and second is not None
    assert (first == second) == is_same


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize(
    "value", [None, [], {}, math.nan, "a <redacted> b", LONGER + "<redacted>", Fault("no such value")], ids=repr
)
def test_a_part_that_tells_requests_not_apart_makes_no_key(value: object, beside: bool) -> None:
    assert keys((value, value), beside=beside) == (None, None)


def test_a_key_shows_no_secret() -> None:
    (key, _) = keys((Redacted("hush"), "a"), beside=True)
    assert "hush" not in repr(key)
