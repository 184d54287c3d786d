"""Keys of JSON are counted without parsing it: as many as a parser finds, whatever stands in strings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewright.cel.errors import TooMany
from gatewright.cel.functions import json_text

TEXTS = st.text(st.sampled_from('a,[]{}"\\:\n/é'), max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=20,
)


def keys(value: Any) -> int:
    """Members of objects and elements of arrays, one for each that is empty."""
    if isinstance(value, dict | list):
        return max(len(value), 1) + sum(map(keys, value.values() if isinstance(value, dict) else value))
    return 0


@given(VALUES, st.booleans(), st.booleans(), st.booleans())
@example(["\\", '"', '\\"', ",[{"], True, True, True)
def test_as_many_as_a_parser_finds(value: Any, ascii_only: bool, spaced: bool, as_bytes: bool) -> None:
    text: Any = json.dumps(value, ensure_ascii=ascii_only, indent=2 if spaced else None)
    text = text.encode() if as_bytes else text
    count = keys(value)
    json_text.limit(text, count)
    if count:
        with pytest.raises(TooMany, match="keys"):
            json_text.limit(text, count - 1)


@given(VALUES, st.sampled_from(['"', '\\"', "\\", '"\\\\"', "x", "]}"]))
def test_what_is_behind_a_mistake_hides_nothing_before_it(value: Any, rest: str) -> None:
    if count := keys(value):
        with pytest.raises(TooMany, match="keys"):
            json_text.limit(json.dumps(value) + rest, count - 1)
