"""What plans have in common: values that are equal are one object, and what is remembered of them is bounded."""

from __future__ import annotations

import time

from dataplane.chain.filter import Env
from dataplane.table import intern
from dataplane.table.intern import Interns


def test_equal_values_are_one_and_no_more_than_a_limit_is_remembered() -> None:
    interns = Interns((), Env(clock=time.monotonic, random=lambda: 0.0))
    first = (1, "a")
    assert interns.same(first) is first
    assert interns.same((1, "".join("a"))) is first
    for number in range(2 * intern.LIMIT + 10):
        assert interns.kept(number) is None
        assert interns.keep(number, str(number)) == str(number) == interns.kept(number)
        assert len(interns._values) <= intern.LIMIT
    other = (1, "".join("a"))
    assert interns.same(other) is other  # the first one was forgotten with the others
