"""Parameters of a query: what one pass finds is what looking for each name found."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewright.cel.errors import TooMany
from gatewright.cel.parameters import MAX_PARAMETERS, read

PIECES = st.sampled_from(
    [b"a", b"b", b"A", b"=", b"&", b"+", b"%", b"%61", b"%3d", b"%26", b"%2B", b"%ff", b"%0", b"%zz"]
)
QUERIES = st.lists(PIECES, max_size=12).map(b"".join)


def looked_for(query: bytes, name: bytes) -> bytes | None:
    """The first value of a parameter, by looking at each one from the beginning."""
    for part in query.split(b"&"):
        key, _, value = part.partition(b"=")
        if unquote_to_bytes(key.replace(b"+", b" ")) == name and part:
            return unquote_to_bytes(value.replace(b"+", b" "))
    return None


@given(QUERIES, st.lists(PIECES, max_size=2).map(b"".join))
@example(b"a=%61&%61=b", b"a")
@example(b"=x", b"")
@example(b"&&", b"")
def test_first_values_are_those_of_a_search(query: bytes, name: bytes) -> None:
    found = read(query)
    assert found.get(name) == looked_for(query, name)
    for each, value in found.items():
        assert looked_for(query, each) == value


def test_more_than_a_limit_are_not_read() -> None:
    assert len(read(b"&".join(b"%d=" % number for number in range(MAX_PARAMETERS)))) == 1000
    with pytest.raises(TooMany, match="more than 1,000 query parameters"):
        read(b"&".join(b"%d=" % number for number in range(MAX_PARAMETERS + 1)))
    assert read(b"a=1", 1) == {b"a": b"1"}
    with pytest.raises(TooMany, match="more than 1 query parameters"):
        read(b"a=1&", 1)
