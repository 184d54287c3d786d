"""Answers and events of the API server, as far as they can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.kube.reading.events import (
    DEEPEST,
    EXPIRED,
    TOO_DEEP,
    Expired,
    Failed,
    bare,
    opened,
    page,
    shallow,
    tree,
)


def nested(levels: int, is_list: bool = False, value: Any = 1) -> Any:
    for _ in range(levels):
        value = [value] if is_list else {"a": value}
    return value


def cut(levels: int, is_list: bool) -> Any:
    return nested(levels, is_list, json.loads(TOO_DEEP))


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("levels", [1, DEEPEST - 1, DEEPEST, DEEPEST + 1, DEEPEST + 2, 200, 5000])
def test_objects_are_read_down_to_a_depth_that_none_has(levels: int, is_list: bool) -> None:
    below = (
        "[" * (levels - 1) + "1" + "]" * (levels - 1) if is_list else '{"a":' * (levels - 1) + "1" + "}" * (levels - 1)
    )
    expected = nested(levels - 1, is_list) if levels <= DEEPEST else cut(DEEPEST - 1, is_list)
    assert tree(b'{"spec": %s}' % below.encode()) == {"spec": expected}


@pytest.mark.parametrize("raw", [b"5", b"null", b'"text"', b"[]", b"[[]]", b"[" * 5000 + b"]" * 5000])
def test_what_is_no_object_is_not_taken_for_one(raw: bytes) -> None:
    with pytest.raises(Failed, match="it is none"):
        tree(raw)


def test_what_is_nested_too_deeply_goes_alone_and_brackets_in_texts_count_for_nothing() -> None:
    text = '{"[{" \\\\ \\" }]'
    value = {"first": text, "deep": nested(DEEPEST + 5), "last": [text, {"b": 2}, nested(70, True)], "end": 1}
    found = tree(json.dumps(value).encode())
    assert found == {**value, "deep": cut(DEEPEST - 1, False), "last": [text, {"b": 2}, cut(DEEPEST - 2, True)]}
    assert shallow(b'{"a": "]"}') == b'{"a": "]"}'


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"code": 500, "message": "no", "reason": "Why"}, "no"),
        ({"code": 500, "reason": "Why"}, "Why"),
        ({}, "unknown error"),
        ({"code": EXPIRED - 1, "message": "no"}, "no"),
    ],
)
def test_an_error_ends_a_watch_with_its_text(status: dict[str, Any], text: str) -> None:
    with pytest.raises(Failed, match=f"^{text}$"):
        opened(json.dumps({"type": "ERROR", "object": status}).encode())


def test_a_watch_may_be_too_old() -> None:
    with pytest.raises(Expired):
        opened(json.dumps({"type": "ERROR", "object": {"code": EXPIRED}}).encode())


@pytest.mark.parametrize(
    ("read", "raw", "what"),
    [(opened, b"{", "an event"), (bare, b"[]", "an object"), (page, b'{"items": 5}', "a list")],
)
def test_what_cannot_be_read_is_said(read: Callable[[bytes], Any], raw: bytes, what: str) -> None:
    with pytest.raises(Failed, match=f"^{what} that cannot be read: "):
        read(raw)


def test_what_is_read_of_an_object_and_of_a_page() -> None:
    metadata = {"name": "a", "namespace": "shop", "resourceVersion": "7", "uid": "1"}
    found = bare(json.dumps({"metadata": metadata, "spec": {}}).encode())
    assert (found.name, found.namespace, found.version) == ("a", "shop", "7")
    found = bare(b"{}")
    assert (found.name, found.namespace, found.version) == ("", None, "")
    part = page(b'{"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [{}, {}]}')
    assert (part.metadata.version, part.metadata.more, len(part.items or ())) == ("9", "x", 2)
    part = page(b'{"metadata": {"resourceVersion": "9"}}')
    assert (part.metadata.version, part.metadata.more, part.items) == ("9", "", None)


@pytest.mark.parametrize("raw", [b"{}", b'{"items": []}', b'{"metadata": {"resourceVersion": ""}, "items": []}'])
def test_a_list_without_a_moment_is_none(raw: bytes) -> None:
    """Else whatever answers {} to everything would be an empty cluster."""
    with pytest.raises(Failed, match="it has no resourceVersion"):
        page(raw)
