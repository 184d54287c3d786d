"""A server of the user's that decides: it lets pass, masks or rejects. Pure.

`POST /request` with `{"body": {"messages": [{"role", "content"}]}}`, `POST /response` with `{"body": {"choices":
[{"message": {"role", "content"}}]}}`. It answers `{"action": ...}`, whose shape says which: `{"body": {"messages" or
"choices"}}` masks, `{"body": "text", "status_code": 403}` rejects, one without a body lets pass; each may have a
`reason`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.guards.servers.contract import Question
from dataplane.guards.servers.reading import field_of, object_of
from dataplane.guards.values import Phase
from dataplane.guards.verdicts import PASSED, Unreadable, Verdict

if TYPE_CHECKING:
    from dataplane.guards.values import Text

TARGETS: Final = {Phase.REQUEST: b"/request", Phase.RESPONSE: b"/response"}
_LEAST, _MOST = 200, 599
"""Status of an answer."""


@dataclass(frozen=True, slots=True)
class Webhook:
    backend: str
    fails_open: bool
    headers: tuple[tuple[bytes, Callable[[bytes], object]], ...] = field(default=(), repr=False)
    """Names in lower case, and what a value must be like."""

    def question(self, phase: Phase, texts: Sequence[Text]) -> Question:
        messages: list[dict[str, Any]] = [{"role": each.role, "content": each.text} for each in texts]
        body: dict[str, Any] = (
            {"messages": messages} if phase is Phase.REQUEST else {"choices": [{"message": each} for each in messages]}
        )
        return Question(TARGETS[phase], msgspec.json.encode({"body": body}))

    def verdict(self, phase: Phase, texts: Sequence[Text], body: bytes) -> Verdict:
        action = field_of(object_of(body), "action", dict)
        said = action.get("body")
        if said is None:
            if "status_code" in action:
                raise Unreadable("action of its answer has a status_code and no body")
            return PASSED
        if type(said) is str:
            return _rejection(said, action.get("status_code"))
        if type(said) is not dict:
            raise Unreadable("body of its action is neither a text nor an object")
        return Verdict(texts=_masked(phase, said, len(texts)))

    def forwards(self, name: bytes, value: bytes) -> bool:
        return any(wanted == name and fits(value) for wanted, fits in self.headers)


def _rejection(message: str, status: Any) -> Verdict:
    if type(status) is not int or not _LEAST <= status <= _MOST:
        raise Unreadable(f"status_code of its action is no number from {_LEAST} to {_MOST}")
    return Verdict(is_rejected=True, message=message, status=status)


def _masked(phase: Phase, said: dict[str, Any], count: int) -> tuple[str, ...]:
    items = field_of(said, "messages" if phase is Phase.REQUEST else "choices", list)
    if len(items) != count:
        raise Unreadable(f"its answer has {len(items)} texts in place of {count}")
    return tuple(_content(each, phase) for each in items)


def _content(item: Any, phase: Phase) -> str:
    if type(item) is dict and phase is Phase.RESPONSE:
        item = item.get("message")
    if type(item) is not dict:
        raise Unreadable("a message of its answer is no object")
    content: str = field_of(item, "content", str)
    return content
