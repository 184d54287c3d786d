"""Hostname intersection, by the table of HTTPRouteSpec.hostnames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.attach.hostnames import intersect, listener_marks, meeting, route_marks

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
    ("*.test", "*.est", False),
    ("a.test", "*.est", False),
    ("atest", "*.test", False),
    ("*.test", "a.atest", False),
]


@pytest.mark.parametrize(("listener", "route", "meet"), TABLE)
def test_intersection(listener: str, route: str, meet: bool) -> None:
    assert intersect(listener, route) is meet


def test_only_the_routes_own_names_that_meet_are_kept() -> None:
    assert meeting("*.test", ["b.test", "a.other", "*.test"]) == ("b.test", "*.test")
    assert meeting("*.test", ["a.other"]) is None
    assert meeting("*.test", []) == ()
    assert meeting("*.TEST", ["B.test"]) == ("b.test",)


_LABELS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join)
_NAMES = st.one_of(_LABELS, _LABELS.map("*.{}".format))


@given(st.one_of(st.just(""), _NAMES), st.lists(_NAMES, max_size=3))
def test_marks_say_the_same_as_comparing(listener: str, route: list[str]) -> None:
    theirs, own = list(listener_marks(listener)), list(route_marks(route))
    assert (meeting(listener, route) is not None) is bool({*theirs} & {*own})
    assert len(theirs) == len({*theirs}) and len(own) == len({*own})
