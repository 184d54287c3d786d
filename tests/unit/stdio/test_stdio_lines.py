"""Lines of a process, from any split of its bytes."""

from __future__ import annotations

import pytest

from dataplane.stdio.lines import EDGE, ENDLESS, Cut, Lines

SAID = b"one\n\n \t\r\n two \r\n" + b"x" * 200 + b"end\n" + b"y" * 100 + b"\nlast"
FOUND = [b"one", b" two \r", Cut(b"x" * 200 + b"end", b"x" * 200 + b"end"), b"y" * 100, b"last"]


@pytest.mark.parametrize("size", [1, 2, 7, 150, 1000])
def test_lines_are_the_same_however_they_come(size: int) -> None:
    lines = Lines(100)
    found = [line for at in range(0, len(SAID), size) for line in lines.feed(SAID[at : at + size])]
    found += lines.rest()
    shown = [Cut(b"x" * 200 + b"end", each.end) if isinstance(each, Cut) else each for each in found]
    assert shown == FOUND and lines.rest() == []


@pytest.mark.parametrize("size", [1000, 40_000])
def test_of_one_that_is_too_long_two_ends_are_held(size: int) -> None:
    lines = Lines(5000)
    for _ in range(5000 * ENDLESS // size):
        assert lines.feed(b"a" * size) == []
        assert repr(lines) <= f"Lines({max(5000, EDGE)} bytes)"
    assert not lines.is_endless
    assert lines.feed(b"z\nb\n") == [Cut(b"a" * EDGE, b"a" * (EDGE - 1) + b"z"), b"b"]


def test_one_that_does_not_end_is_no_line() -> None:
    lines = Lines(10)
    lines.feed(b"a" * 10 * ENDLESS)
    assert not lines.is_endless
    lines.feed(b"a")
    assert lines.is_endless
