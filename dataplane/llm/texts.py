"""Which texts of bodies guards judge, and where they stand. Pure.

Every string counts but those that are names of types, ids, addresses or encoded data: a field that is new, or one of
another spelling, holds text as long as nothing here says otherwise. What a text is (`plan.Scope`) is said by what is
around it: the role of a message, a call of a tool, its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dataplane.guards.values import Scope
from dataplane.llm.body import Malformed
from dataplane.llm.pieces import ITEMS, Steps
from dataplane.llm.places import OPAQUE, Found, Slot, Slots, is_opaque, walked
from dataplane.llm.routes import CHATS, Format
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.llm.body import Body

_ECHOED: Final = frozenset(
    (
        *("usage", "tools", "tool_choice", "instructions", "metadata", "system_fingerprint", "created", "text"),
        *("reasoning", "prompt", "prompt_cache_key", "safety_identifier", "user", "truncation", "conversation"),
    )
)
"""Fields of an answer as a whole, beside these: of the provider, or what the request has said (Responses)."""
_TOKENS: Final = "logprobs"
"""They repeat the text, token by token."""
_SYSTEM: Final = frozenset(("system", "developer"))
_RESULTS: Final = frozenset(("tool", "function"))
"""Roles of results."""


# --- requests


def _messages(holder: dict[str, Any], name: str) -> Slots:
    """Conversations of all three formats."""
    items = holder[name]
    if type(items) is not list:
        yield from _texts(holder, name, Scope.MESSAGES)
        return
    for place, item in enumerate(items):
        if place % ITEMS == 0:
            yield None
        role = item.get("role") if type(item) is dict else None
        role = role if type(role) is str else "user"
        yield from _texts(items, place, _of_role(item, role), role)


def _of_role(item: Any, role: str) -> Scope:
    if role in _SYSTEM:
        return Scope.SYSTEM_PROMPT
    return Scope.TOOL_OUTPUT if role in _RESULTS else Scope.MESSAGES


def _texts(holder: Any, key: Any, scope: Scope, role: str = "user") -> Slots:
    return (found and found[0] for found in walked(holder, key, scope, role))


def _system(holder: dict[str, Any], name: str) -> Slots:
    return _texts(holder, name, Scope.SYSTEM_PROMPT, "system")


def _plain(holder: dict[str, Any], name: str) -> Slots:
    return _texts(holder, name, Scope.MESSAGES)


_Read = Callable[[dict[str, Any], str], Slots]
FIELDS: Final[dict[Format, tuple[tuple[str, _Read], ...]]] = {
    Format.COMPLETIONS: (("messages", _messages), ("prompt", _plain), ("suffix", _plain), ("prediction", _plain)),
    Format.MESSAGES: (("system", _system), ("messages", _messages)),
    Format.RESPONSES: (("instructions", _system), ("input", _messages), ("prompt", _plain)),
    Format.EMBEDDINGS: (("input", _plain), ("inputs", _plain), ("texts", _plain)),
    Format.RERANK: (("query", _plain), ("documents", _plain)),
}
"""Fields of requests with text. Formats that are not here are not judged."""


class Asked:
    """The texts of one request, and the fields that they stand in."""

    def __init__(self, form: Format, body: Body) -> None:
        self._form, self._body = form, body
        self._values: dict[str, Any] = {}
        self.found = Found()

    def read(self) -> Steps[None]:
        """Find them. Raises `Malformed` where it cannot be said what the provider would read."""
        body = self._body
        for name, read in FIELDS[self._form]:
            if body.is_twice(name):
                raise Malformed(name, "stands in the body more than once")
            other = body.other_spelling(name)
            if other:
                raise Malformed(name, f"is written as {other} as well or instead")
            value = body.value(name)
            if value is None:
                continue
            if _has_tokens(self._form, name, value):
                raise Malformed(name, "must be text: tokens cannot be judged by the prompt guard")
            yield
            self._values[name] = value
            yield from self.found.take(read(self._values, name))

    def write(self, encode: Callable[[Any], bytes]) -> None:
        """What was judged goes to the provider in place of what came: of a name that stands in an object twice, the one
        that was judged."""
        for name, value in self._values.items():
            self._body.set(name, encode(value))


def _has_tokens(form: Format, name: str, value: Any) -> bool:
    """Texts as numbers, which some APIs take."""
    if form not in (Format.COMPLETIONS, Format.EMBEDDINGS) or name == "messages" or type(value) is not list:
        return False
    return any(type(each) is int or (type(each) is list and any(type(one) is int for one in each)) for each in value)


# --- events of a realtime session


def of_event(event: dict[str, Any]) -> list[Slot]:
    """Texts of an event of a client: instructions of a session and of a response, items, and, of an unknown
    event, all that it has."""
    found: list[Slot | None] = []
    for name, value in event.items():
        if name in _INSTRUCTED and type(value) is dict:
            found += _of_instructed(value)
        elif name == "item" and type(value) is dict:
            found += _messages({"item": [value]}, "item")
        elif not is_opaque(event, name):
            found += _texts(event, name, Scope.MESSAGES)
    return [slot for slot in found if slot is not None and slot.text.text]


_INSTRUCTED: Final = ("session", "response")


def _of_instructed(holder: dict[str, Any]) -> Slots:
    """Of a session, or of a response that is asked for: as of a request of Responses."""
    for name, read in FIELDS[Format.RESPONSES]:
        if name in holder:
            yield from read(holder, name)


# --- answers


def of_answer(answer: dict[str, Any]) -> list[Slot]:
    """Texts of a whole answer. What repeats them in another form is taken out."""
    return at_once(in_answer(answer)).slots


def in_answer(answer: dict[str, Any]) -> Steps[Found]:
    """As `of_answer`, in steps."""
    yield from _without_tokens(answer)
    found = Found()
    for name, value in answer.items():
        if name not in OPAQUE and (name not in _ECHOED or type(value) is str):
            yield from found.take(_texts(answer, name, Scope.MESSAGES, "assistant"))
    return found


def _without_tokens(answer: Any) -> Steps[None]:
    waiting, looked = [answer], 0
    while waiting:
        looked += 1
        if looked % ITEMS == 0:
            yield
        value = waiting.pop()
        if type(value) is dict:
            if value.get(_TOKENS):
                value[_TOKENS] = [] if type(value[_TOKENS]) is list else None
            waiting += value.values()
        elif type(value) is list:
            waiting += value


JUDGED: Final = CHATS | {Format.EMBEDDINGS, Format.RERANK, Format.REALTIME}
