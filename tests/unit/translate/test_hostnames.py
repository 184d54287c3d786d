"""Hostname intersection, by the table of HTTPRouteSpec.hostnames."""

from __future__ import annotations

import pytest

from controlplane.translate.hostnames import intersect, meeting

TABLE = [
    # listener, route, meet
    ("", "a.test", True),
    ("a.test", "", True),
    ("a.test", "a.test", True),
    ("a.test", "b.test", False),
    ("*.test", "a.test", True),
    ("*.test", "b.a.test", True),
    ("*.test", "test", False),
    ("*.test", "atest", False),
    ("a.test", "*.test", True),
    ("test", "*.test", False),
    ("*.a.test", "*.test", True),
    ("*.test", "*.a.test", True),
    ("*.a.test", "*.b.test", False),
    ("*.test", "*.test", True),
    ("*.est", "*.test", False),
]


@pytest.mark.parametrize(("listener", "route", "meet"), TABLE)
def test_intersection(listener: str, route: str, meet: bool) -> None:
    assert intersect(listener, route) is meet


def test_only_the_routes_own_names_that_meet_are_kept() -> None:
    assert meeting("*.test", ["b.test", "a.other", "*.test"]) == ("b.test", "*.test")
    assert meeting("*.test", ["a.other"]) is None
    assert meeting("*.test", []) == ()
