"""Answers of proxies as one controller sends them to another: the form of a message. Pure.

A message is JSON: the changes of a batch, or a part of it, and whether more of the batch follows. Who sends and who
reads may be of different versions while controllers are replaced, so what is not known in a message is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from controlplane.answers.nacks import Refusal
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change

METHOD: Final = "/gatewright.controllers.v1.Answers/Report"
SERVICE: Final = "gatewright.controllers.v1.Answers"
ORIGIN: Final = "gatewright-origin"
"""Metadata of a call: the controller that makes it."""
PIECE: Final = 100
"""Answers of one message: one holds 128 KiB of reasons at most (`nacks.MOST_TEXT`)."""
MOST: Final = 16 << 20
"""Bytes of one message."""
LONGEST: Final = 1024
"""Characters of a reason: it becomes a part of a condition."""

Changes = Sequence[Change[AnswerKey, Answer]]


class Unreadable(Exception):
    """A message is not of the form."""


def written(changes: Changes) -> Iterator[bytes]:
    """A batch as messages; one of nothing is one message."""
    pieces = [changes[start : start + PIECE] for start in range(0, len(changes), PIECE)] or [changes]
    for number, piece in enumerate(pieces, 1):
        rows = [[change.key.gateway, change.key.instance, _answer(change.new)] for change in piece]
        yield json.dumps({"changes": rows, "more": number < len(pieces)}, separators=(",", ":")).encode()


def read(message: bytes, origin: str) -> tuple[list[Change[AnswerKey, Answer]], bool]:
    """The changes of a message, and whether more of the batch follows. Raises Unreadable."""
    try:
        found = json.loads(message)
        rows = [_row(row, origin) for row in found["changes"]]
        return rows, found["more"] is True
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable(f"a message of {origin} cannot be read: {type(error).__name__}") from None


def _answer(answer: Answer | None) -> Any:  # Any: JSON
    if answer is None:
        return None
    refusals = {name: refusal.error[:LONGEST] for name, refusal in answer.refusals.items()}
    return {"version": answer.version, "refusals": refusals}


def _row(row: Any, origin: str) -> Change[AnswerKey, Answer]:  # Any: JSON
    gateway, instance, answer = row
    if not isinstance(gateway, str) or not isinstance(instance, str):
        raise TypeError("names are texts")
    key = AnswerKey(origin, gateway, instance)
    return Change(
        key, None, None if answer is None else Answer(_text(answer["version"]), _refusals(answer["refusals"]))
    )


def _refusals(found: Mapping[str, Any]) -> Mapping[str, Refusal]:
    return {_text(key): Refusal(key, _text(error)) for key, error in found.items()}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
