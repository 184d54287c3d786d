"""Header blocks edited as bytes, against a list of pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.heads import (
    Head,
    is_name,
    is_value,
    lines_of,
    lines_without,
    of_usual_names,
    plain_name,
    twin,
    twin_of_lines,
    unusual_lines,
    with_low_names,
    without,
    without_named,
)

NAMES = st.sampled_from([b"a", b"ab", b"b", b"x-a", b"x_a", b"X.A", b"x-long-name"])
PLAIN = {b"a": b"a", b"ab": b"ab", b"b": b"b", b"x-long-name": b"x-long-name"} | dict.fromkeys(
    (b"x-a", b"x_a", b"X.A"), b"x-a"
)
VALUES = st.sampled_from([b"", b"1", b"two words", b"A: b", b"Mixed"])


def test_look_ups_keep_the_case_of_values() -> None:
    head = Head(b"\r\nHost: Example\r\nX-A:  One \r\nx-a: two\r\n")
    assert head.get(b"host") == b"Example"
    assert head.get(b"x-a") == b"One"
    assert head.get_all(b"x-a") == [b"One", b"two"]
    assert head.get(b"x") is None
    assert head.get(b"one") is None
    assert head.items() == [(b"host", b"Example"), (b"x-a", b"One"), (b"x-a", b"two")]


def test_no_header_at_all() -> None:
    head = Head(b"\r\n")
    assert head.items() == []
    head.add(b"a", b"1")
    assert head.block == b"\r\na: 1\r\n"


def test_values_do_not_show() -> None:
    assert "secret" not in repr(Head(b"\r\nAuthorization: secret\r\n"))


@given(st.lists(st.tuples(st.sampled_from(["add", "set", "remove"]), NAMES, VALUES), max_size=20))
def test_edits_do_what_they_would_do_to_a_list(edits: list[tuple[str, bytes, bytes]]) -> None:
    head, pairs = Head(b"\r\n"), []
    for edit, name, value in edits:
        if edit != "add":
            pairs = [pair for pair in pairs if PLAIN[pair[0]] != PLAIN[name]]
        if edit != "remove":
            pairs.append((name, value))
        getattr(head, edit)(*((PLAIN[name],) if edit == "remove" else (name, value)))
    assert head.items() == [(name.lower(), value) for name, value in pairs]
    assert head.low == Head(head.block).low
    assert [len(line) for line in head.low.split(b"\r\n")] == [len(line) for line in head.block.split(b"\r\n")]
    for name in {name for _, name, _ in edits}:
        assert head.get_all(PLAIN[name]) == [value for known, value in pairs if PLAIN[known] == PLAIN[name]]


def test_the_twin_has_hyphens_in_names_alone() -> None:
    assert twin(b"\r\nX_A.b~C: D_e\r\nCookie: _g=1.2; X_A: 3\r\n") == b"\r\nx-a-b-c: d_e\r\ncookie: _g=1.2; x_a: 3\r\n"
    assert twin_of_lines(b"X_A: B_c\r\ny: 1\r\n") == b"x-a: b_c\r\ny: 1\r\n"
    assert twin(b"\r\n") == b"\r\n"
    assert {plain_name(bytes((octet,))) for octet in b"!#$%&'*+-.^_`|~"} == {b"-"}


def test_lines_of_unusual_names() -> None:
    block = b"\r\na-b: _\r\nX_A: 1\r\nc: x_a: 2\r\n.d: 3\r\n"
    assert [block[slice(*span)] for span in unusual_lines(block.lower())] == [b"\r\nX_A: 1", b"\r\n.d: 3"]
    assert unusual_lines(b"\r\n") == []


def test_what_may_stand_in_a_header() -> None:
    assert is_name(b"X-Custom_1")
    assert not is_name(b"")
    assert not is_name(b"a b")
    assert not is_name(b"a:")
    assert is_value(b"") and is_value(b"a\tb c") and is_value(b"caf\xe9")
    assert not is_value(b" a") and not is_value(b"a\r\nb") and not is_value(b"a\x00") and not is_value(b"\x7f")


def test_headers_named_by_connection_are_looked_for_once_each() -> None:
    class Counting(bytes):
        looks = 0

        def find(self, *args: int) -> int:
            Counting.looks += 1
            return super().find(*args)

    block = Counting(b"\r\na: 1\r\nx-hop: 2\r\nx-hop: 3\r\nb: 4\r\n")
    names = {b"%d" % number for number in range(10_000)} | {b"x-hop", b""}
    assert without_named(block, block, names) == (b"\r\na: 1\r\nb: 4\r\n",) * 2
    assert Counting.looks < 10


@pytest.mark.parametrize("space", [b"", b" ", b" \t "])
def test_a_value_is_found_whatever_space_is_before_it(space: bytes) -> None:
    head = Head(b"\r\nA:" + space + b"One\r\nB:" + space + b"\r\nX-A:" + space + b"Two" + space + b"\r\n")
    assert [head.get(name) for name in (b"a", b"b", b"x-a", b"x")] == [b"One", b"", b"Two", None]
    assert [head.get_all(name) for name in (b"a", b"b", b"x-a", b"x")] == [[b"One"], [b""], [b"Two"], []]


BLOCK = b"\r\nA: 1\r\nX-Hop: 2\r\nb:\r\nx-hop: A: 3\r\nX-Hop-Not: 4\r\nc: x-hop: 5\r\n"


def test_lines_of_a_name() -> None:
    low = BLOCK.lower()
    spans = lines_of(low, b"x-hop")
    assert [BLOCK[slice(*span)] for span in spans] == [b"\r\nX-Hop: 2", b"\r\nx-hop: A: 3"]
    assert [BLOCK[slice(*span)] for span in lines_of(low, b"c")] == [b"\r\nc: x-hop: 5"]
    assert lines_of(low, b"hop") == [] and lines_of(b"\r\n", b"a") == []
    kept = b"\r\nA: 1\r\nb:\r\nX-Hop-Not: 4\r\nc: x-hop: 5\r\n"
    assert without(BLOCK, low, spans) == (kept, kept.lower())
    assert without(BLOCK, low, spans[:1])[0] == BLOCK.replace(b"X-Hop: 2\r\n", b"")
    assert without(BLOCK, low, []) == (BLOCK, low)


def test_lines_without_some_names() -> None:
    assert lines_without(BLOCK, BLOCK.lower(), {b"x-hop", b"a"}) == b"b:\r\nX-Hop-Not: 4\r\nc: x-hop: 5\r\n"
    assert lines_without(BLOCK, BLOCK.lower(), {b"other"}) == BLOCK[2:]
    assert lines_without(b"\r\nA: 1\r\n", b"\r\na: 1\r\n", {b"a"}) == b""


def test_names_in_lower_case_leave_values_alone() -> None:
    assert with_low_names(b"\r\nX-A: B: C\r\nD:E\r\n") == b"\r\nx-a: B: C\r\nd:E\r\n"


def test_lines_of_usual_names_alone() -> None:
    assert of_usual_names(b"A-1: x_y\r\nB: 2\r\n") == b"A-1: x_y\r\nB: 2\r\n"
    assert of_usual_names(b"a_b: 1\r\nA-1: x_y\r\nc.d: 2\r\nE: 3\r\n") == b"A-1: x_y\r\nE: 3\r\n"
    assert of_usual_names(b"") == b""


@pytest.mark.parametrize(
    ("lines", "is_coded"),
    [
        (b"", False),
        (b"Content-Encoding: Identity\r\n", False),
        (b"content-encoding:\r\ncontent-encoding: , identity\r\n", False),
        (b"content-encoding: gzip\r\n", True),
        (b"content-encoding: identity, br\r\n", True),
        (b"content-encoding: identity\r\nContent-Encoding: zstd\r\n", True),
        (b"x-content-encoding: gzip\r\n", False),
    ],
)
def test_identity_is_no_coding(lines: bytes, is_coded: bool) -> None:
    assert Head(b"\r\n" + lines).is_coded is is_coded
