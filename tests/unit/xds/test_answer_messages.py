"""What one controller sends to another of its proxies' answers."""

from __future__ import annotations

import json

import pytest

from controlplane.answers.nacks import Refusal
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change
from controlplane.xds import answer_messages
from controlplane.xds.answer_messages import PIECE, Unreadable

GONE = Change(AnswerKey("one", "shop/web", "shop/web/b"), Answer("v1"), None)
REFUSING = Answer("v1", {"route/x": Refusal("route/x", "no"), "": Refusal("", "all of it")})


def test_what_is_written_is_read_with_the_origin_of_the_call() -> None:
    batch = [Change(AnswerKey("one", "shop/web", "shop/web/a"), None, REFUSING), GONE]
    (message,) = answer_messages.written(batch)
    found, more = answer_messages.read(message, "two")
    assert not more
    assert found == [
        Change(AnswerKey("two", "shop/web", "shop/web/a"), None, REFUSING),
        Change(AnswerKey("two", "shop/web", "shop/web/b"), None, None),
    ]


def test_a_batch_of_nothing_is_a_message() -> None:
    (message,) = answer_messages.written([])
    assert answer_messages.read(message, "one") == ([], False)


def test_a_large_batch_is_several_messages() -> None:
    batch = [Change(AnswerKey("one", "shop/web", f"shop/web/{n}"), None, Answer("v")) for n in range(2 * PIECE + 1)]
    parts = [answer_messages.read(message, "one") for message in answer_messages.written(batch)]
    assert [more for _, more in parts] == [True, True, False]
    assert [change for changes, _ in parts for change in changes] == batch


def test_what_a_newer_controller_adds_is_passed_over() -> None:
    message = {"changes": [["g", "i", {"version": "v", "refusals": {}, "new": 1}]], "more": False, "new": {}}
    (change,), _ = answer_messages.read(json.dumps(message).encode(), "one")
    assert change.new == Answer("v")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[]",
        b"{}",
        b'{"changes": 7, "more": false}',
        b'{"changes": [["g"]], "more": false}',
        b'{"changes": [["g", 7, null]], "more": false}',
        b'{"changes": [["g", "i", {"version": 7, "refusals": {}}]], "more": false}',
        b'{"changes": [["g", "i", {"version": "v", "refusals": {"k": 7}}]], "more": false}',
        b'{"changes": [["g", "i", {"version": "v", "refusals": []}]], "more": false}',
        b"[" * 100_000,
    ],
)
def test_messages_of_another_form_are_refused(message: bytes) -> None:
    with pytest.raises(Unreadable, match="a message of one cannot be read"):
        answer_messages.read(message, "one")
