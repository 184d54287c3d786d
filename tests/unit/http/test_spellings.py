"""What becomes of spellings of a path, and how others may read it."""

from __future__ import annotations

import pytest

from dataplane.http.spellings import CHANGE, KEEP, REJECT, PathRules, one_reading


@pytest.mark.parametrize(
    ("path", "readings"),
    [
        (b"/a/b", ()),
        (b"/a%20b", ()),
        (b"//a", (b"/a",)),
        (b"/a%2Fb", (b"/a/b",)),
        (b"/a;b", (b"/a",)),
        (b"/a/..;/b", (b"/a/b", b"/b")[1:]),
        (b"/a%2F..%5Cb", (b"/a%2F../b", b"/a/..%5Cb", b"/b")),
        (b"/a%2F%2Fb", (b"/a//b", b"/a/b")),
        (b"/;a/b", (b"//b", b"/b")),
    ],
)
def test_how_a_path_may_be_read(path: bytes, readings: tuple[bytes, ...]) -> None:
    assert one_reading(path, PathRules()) == (path, readings)


def test_there_are_few_readings() -> None:
    settled = one_reading(b"/a;b//c%2F;d%5C;%2F%5C//..;/" * 100, PathRules())
    assert settled is not None and len(settled[1]) <= 15


def test_a_kind_that_is_settled_is_read_in_one_way() -> None:
    assert one_reading(b"//a;b", PathRules(slashes=KEEP)) == (b"//a;b", (b"//a",))
    assert one_reading(b"//a;b", PathRules(slashes=CHANGE, parameters=CHANGE)) == (b"/a", ())
    assert one_reading(b"/a;b", PathRules(parameters=REJECT)) is None
    assert one_reading(b"/a%2F;b", PathRules(parameters=KEEP, escaped_slashes=CHANGE)) == (b"/a/;b", ())
    assert one_reading(b"/a%2Fb", PathRules(slashes=CHANGE)) == (b"/a%2Fb", (b"/a/b",))
