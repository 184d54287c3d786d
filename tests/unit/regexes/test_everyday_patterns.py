"""Patterns that people have: none of them is refused, over texts much longer than theirs."""

from __future__ import annotations

import pytest
import re2

from tests.fakes.table_state import TableRun, bind, listener, match, route
from tests.unit.regexes.everyday import OF_ROUTES

LONG = 8192


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
