"""What policies make of the body of a request, in the order that is decided (docs/llm/shaping.md). Pure.

Expressions are evaluated by the caller, on the body as it came: `results` are JSON. Each edit writes fields at the top
of the body (`body.Body`); what none writes keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from dataplane.llm.body import SPACE, Malformed
from dataplane.llm.routes import CHATS, Format
from dataplane.llm.shape import Message, Shape

if TYPE_CHECKING:
    from dataplane.llm.body import Body

_encode: Final = msgspec.json.Encoder().encode
SYSTEM: Final = frozenset(("system", "developer"))
"""Roles that speak for the operator of an application."""
MODEL: Final = "model"


class Given(NamedTuple):
    """For one request and one provider. `results`: of transformations, None for a field that is to go; `model`: the
    provider's, "" for the request's own."""

    route: Format
    shape: Shape
    results: tuple[tuple[str, bytes | None], ...] = ()
    model: str = ""


class Edit(NamedTuple):
    name: str
    why: str
    """Of its place in the order."""
    apply: Callable[[Body, Given], None]


def _overrides(body: Body, given: Given) -> None:
    for name, value in given.shape.overrides:
        body.set(name, value)


def _results(body: Body, given: Given) -> None:
    for name, value in given.results:
        if value is None:
            body.remove(name)
        else:
            body.set(name, value)


def _defaults(body: Body, given: Given) -> None:
    for name, value in given.shape.defaults:
        if name not in body:
            body.set(name, value)


def _provider_model(body: Body, given: Given) -> None:
    if given.model:
        body.set(MODEL, _encode(given.model))


def _aliases(body: Body, given: Given) -> None:
    if given.shape.aliases:
        named = body.text(MODEL)
        meant = None if named is None else given.shape.aliases.get(named)
        if meant is not None:
            body.set(MODEL, _encode(meant))


def _prompt(body: Body, given: Given) -> None:
    shape = given.shape
    if given.route in CHATS and (shape.prepend or shape.append):
        ENRICHMENTS[given.route](body, shape.prepend, shape.append)


EDITS: Final = (
    Edit("overrides", "over what the request has", _overrides),
    Edit("transformations", "they win over overrides of the same field", _results),
    Edit("defaults", "for what is absent by now", _defaults),
    Edit(
        "model",
        "the provider's own wins over overrides: groups keep their models",
        _provider_model,
    ),
    Edit("aliases", "of whatever names the model by now", _aliases),
    Edit("prompt", "around all messages", _prompt),
)


def shape(body: Body, given: Given) -> None:
    """Raises `Malformed`."""
    for edit in EDITS:
        edit.apply(body, given)


# --- messages around a conversation

_Messages = tuple[Message, ...]


def _items(body: Body, name: str) -> list[Any]:
    """A field that is a list; its items stay raw."""
    raw = body.raw(name)
    if raw is None or raw == b"null":
        return []
    try:
        return _raw_list.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise Malformed(name, "must be an array") from None


_raw_list: Final = msgspec.json.Decoder(list[msgspec.Raw])


def _turns(messages: _Messages) -> list[dict[str, str]]:
    return [{"role": each.role, "content": each.content} for each in messages]


def _around(body: Body, name: str, prepend: _Messages, append: _Messages) -> None:
    """What stands there keeps its bytes, and is not read."""
    if not prepend and not append:
        return
    raw = (body.raw(name) or b"null").strip(SPACE)
    if raw == b"null":
        raw = b"[]"
    elif raw[:1] != b"[":
        raise Malformed(name, "must be an array")
    parts = (_encode(_turns(prepend))[1:-1], raw[1:-1].strip(SPACE), _encode(_turns(append))[1:-1])
    body.set(name, b"[%b]" % b",".join(filter(None, parts)))


def _of_completions(body: Body, prepend: _Messages, append: _Messages) -> None:
    _around(body, "messages", prepend, append)


def _split(messages: _Messages) -> tuple[list[Message], _Messages]:
    """Those of the operator, and the others."""
    others = tuple(each for each in messages if each.role not in SYSTEM)
    return [each for each in messages if each.role in SYSTEM], others


def _of_messages(body: Body, prepend: _Messages, append: _Messages) -> None:
    """System messages are blocks of `system` (Anthropic, Messages): a text of the request becomes one."""
    before, first = _split(prepend)
    after, last = _split(append)
    if before or after:
        text = body.text("system")
        own: list[Any] = _items(body, "system") if text is None else [{"type": "text", "text": text}]
        body.set("system", _encode([*_blocks(before), *own, *_blocks(after)]))
    _around(body, "messages", first, last)


def _blocks(messages: list[Message]) -> list[dict[str, str]]:
    return [{"type": "text", "text": each.content} for each in messages]


def _of_responses(body: Body, prepend: _Messages, append: _Messages) -> None:
    """System messages before the others go around `instructions` where the request has some, since what is there comes
    before all items; else they are items. An input that is a text becomes one."""
    before, first = _split(prepend)
    own = body.text("instructions")
    if own and before:
        body.set("instructions", _encode("\n\n".join([*(each.content for each in before), own])))
        prepend = first
    text = body.text("input")
    if text is not None:
        body.set("input", _encode([*_turns(prepend), {"role": "user", "content": text}, *_turns(append)]))
    else:
        _around(body, "input", prepend, append)


ENRICHMENTS: Final[dict[Format, Callable[[Body, _Messages, _Messages], None]]] = {
    Format.COMPLETIONS: _of_completions,
    Format.MESSAGES: _of_messages,
    Format.RESPONSES: _of_responses,
}
