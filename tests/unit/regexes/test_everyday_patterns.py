"""Patterns that people have: none of them is refused, over texts much longer than theirs."""

from __future__ import annotations

from collections.abc import Generator
from time import thread_time
from typing import TypeVar

import pytest
import re2

from dataplane.guards.judging import MAX_SECONDS
from dataplane.guards.masking import is_found, masked
from dataplane.guards.patterns import MASKED, of_user
from tests.fakes.table_state import TableRun, bind, listener, match, route
from tests.unit.regexes.everyday import OF_GUARDS, OF_ROUTES

T = TypeVar("T")
LONG = 8192
MAX_BODY = 256 << 10


def finished(work: Generator[None, None, T]) -> T:
    """Without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


@pytest.mark.parametrize("pattern", OF_ROUTES)
def test_a_pattern_of_a_route_is_asked_for_short_and_for_long_values(pattern: str) -> None:
    run = TableRun()
    run.apply(bind(), listener(), route("r", match(headers={"x": f"~{pattern}"})))
    assert run.refused == {}
    fits, long = OF_ROUTES[pattern].encode(), b"<" * LONG
    assert run.find(headers=b"x: %b\r\n" % fits) == "r"
    assert run.find(headers=b"x: %b\r\n" % (fits + long)) == (
        "r" if re2.fullmatch(pattern.encode(), fits + long) else None
    )


@pytest.mark.parametrize("rejects", [True, False])
@pytest.mark.parametrize("pattern", OF_GUARDS)
def test_a_pattern_of_a_guard_is_looked_for_in_long_texts(pattern: str, rejects: bool) -> None:
    """At the end of the longest one: all of it was looked at."""
    used = (of_user(pattern),)
    text = (b"said and done; " * (MAX_BODY // 15))[: MAX_BODY - 100] + b" "
    found = OF_GUARDS[pattern].encode()
    began = thread_time()
    if rejects:
        assert finished(is_found(used, text + found)) and not finished(is_found(used, text))
    else:
        assert masked(used, text + found).endswith(MASKED)
    assert thread_time() - began < MAX_SECONDS
