"""What an answer says: texts and calls of tools, for expressions that ask for them (`llm.completion`, `llm.toolCalls`);
and whether an event has any of it, which is when the first token was there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

Raw = dict[str, Any]  # Any: JSON of a provider


def _dicts(found: Any) -> Iterator[Raw]:
    if type(found) is list:
        yield from (each for each in found if type(each) is dict)


def _is_text(found: Any) -> bool:
    return type(found) is str and found != ""


# --- the first token


def _completions_token(event: Raw) -> bool:
    for choice in _dicts(event.get("choices")):
        delta = choice.get("delta")
        if type(delta) is dict and (
            any(_is_text(delta.get(name)) for name in ("content", "refusal", "reasoning_content", "reasoning"))
            or delta.get("tool_calls")
        ):
            return True
        if _is_text(choice.get("text")):
            return True
    return False


def _messages_token(event: Raw) -> bool:
    return event.get("type") == "content_block_delta"


def _responses_token(event: Raw) -> bool:
    kind = event.get("type")
    return type(kind) is str and kind.endswith(".delta")


_TOKENS: Final[dict[Format, Callable[[Raw], bool]]] = {
    Format.COMPLETIONS: _completions_token,
    Format.MESSAGES: _messages_token,
    Format.RESPONSES: _responses_token,
}


def has_token(form: Format, event: Any) -> bool:
    """Whether an event of a stream has something of the answer itself."""
    return type(event) is dict and form in _TOKENS and _TOKENS[form](event)


# --- whole answers

Said = tuple[list[str], list[dict[str, Any]]]
"""Texts, and tools that are called: id, name, arguments as their text."""


def _tool(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def _completions(answer: Raw) -> Said:
    texts, tools = [], []
    for choice in _dicts(answer.get("choices")):
        message = choice.get("message")
        if type(message) is not dict:
            continue
        if _is_text(message.get("content")):
            texts.append(message["content"])
        for call in _dicts(message.get("tool_calls")):
            function = call.get("function")
            function = function if type(function) is dict else {}
            tools.append(_tool(call.get("id"), function.get("name"), function.get("arguments")))
    return texts, tools


def _messages(answer: Raw) -> Said:
    texts, tools = [], []
    for block in _dicts(answer.get("content")):
        if block.get("type") == "text" and _is_text(block.get("text")):
            texts.append(block["text"])
        elif block.get("type") == "tool_use":
            tools.append(_tool(block.get("id"), block.get("name"), block.get("input")))
    return texts, tools


def _responses(answer: Raw) -> Said:
    texts, tools = [], []
    for item in _dicts(answer.get("output")):
        if item.get("type") == "message":
            texts += [part["text"] for part in _dicts(item.get("content")) if _is_text(part.get("text"))]
        elif item.get("type") == "function_call":
            tools.append(_tool(item.get("call_id"), item.get("name"), item.get("arguments")))
    return texts, tools


_ANSWERS: Final[dict[Format, Callable[[Raw], Said]]] = {
    Format.COMPLETIONS: _completions,
    Format.MESSAGES: _messages,
    Format.RESPONSES: _responses,
}


def of_answer(form: Format, answer: Any) -> Said:
    return _ANSWERS[form](answer) if type(answer) is dict and form in _ANSWERS else ([], [])


# --- streams


class Spoken(NamedTuple):
    """What events have said together. `tools`: as of a whole answer."""

    texts: list[str]
    tools: list[dict[str, Any]]
    thoughts: list[str]

    @property
    def arguments(self) -> list[str]:
        return [each["arguments"] for each in self.tools]


class _Spoken:
    """The same while it grows, by what events call their parts."""

    def __init__(self) -> None:
        self._texts: dict[Any, list[str]] = {}
        self._thoughts: list[str] = []
        self._tools: dict[Any, dict[str, Any]] = {}

    def say(self, part: Any, text: Any) -> None:
        if _is_text(text):
            self._texts.setdefault(part, []).append(text)

    def think(self, text: Any) -> None:
        if _is_text(text):
            self._thoughts.append(text)

    def call(self, part: Any, call_id: Any, name: Any, arguments: Any) -> None:
        found = self._tools.setdefault(part, {"id": None, "name": None, "arguments": []})
        found["id"], found["name"] = found["id"] or call_id, found["name"] or name
        if _is_text(arguments):
            found["arguments"].append(arguments)

    def all(self) -> Spoken:
        texts = ["".join(pieces) for pieces in self._texts.values()]
        tools = [_tool(each["id"], each["name"], "".join(each["arguments"])) for each in self._tools.values()]
        return Spoken(texts, tools, ["".join(self._thoughts)])


def _number(found: Any) -> int:
    """Of a part; a provider may leave out that of the first."""
    return found if type(found) is int else 0


def _completions_said(event: Raw, spoken: _Spoken) -> None:
    for choice in _dicts(event.get("choices")):
        number, delta = _number(choice.get("index")), choice.get("delta")
        if type(delta) is not dict:
            spoken.say(number, choice.get("text"))
            continue
        spoken.say(number, delta.get("content"))
        spoken.think(delta.get("reasoning_content") or delta.get("reasoning"))
        for call in _dicts(delta.get("tool_calls")):
            function = call.get("function")
            function = function if type(function) is dict else {}
            place = number, _number(call.get("index"))
            spoken.call(place, call.get("id"), function.get("name"), function.get("arguments"))


def _messages_said(event: Raw, spoken: _Spoken) -> None:
    number, block, delta = _number(event.get("index")), event.get("content_block"), event.get("delta")
    if type(block) is dict and block.get("type") == "tool_use":
        spoken.call(number, block.get("id"), block.get("name"), "")
    elif type(delta) is dict and event.get("type") == "content_block_delta":
        spoken.say(number, delta.get("text"))
        spoken.think(delta.get("thinking"))
        if "partial_json" in delta:
            spoken.call(number, None, None, delta["partial_json"])


def _responses_said(event: Raw, spoken: _Spoken) -> None:
    kind, number, item = event.get("type"), _number(event.get("output_index")), event.get("item")
    if kind == "response.output_text.delta":
        spoken.say((number, _number(event.get("content_index"))), event.get("delta"))
    elif kind == "response.function_call_arguments.delta":
        spoken.call(number, None, None, event.get("delta"))
    elif kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
        spoken.think(event.get("delta"))
    elif kind == "response.output_item.added" and type(item) is dict and item.get("type") == "function_call":
        spoken.call(number, item.get("call_id"), item.get("name"), "")


_SAID: Final[dict[Format, Callable[[Raw, _Spoken], None]]] = {
    Format.COMPLETIONS: _completions_said,
    Format.MESSAGES: _messages_said,
    Format.RESPONSES: _responses_said,
}


def of_events(form: Format, events: Iterable[Any]) -> Spoken:
    """Of the events of a stream, in their order."""
    spoken, add = _Spoken(), _SAID.get(form)
    for event in events:
        if add is not None and type(event) is dict:
            add(event, spoken)
    return spoken.all()


# --- prompts


def texts(prompt: Iterable[Raw]) -> Iterator[str]:
    """All texts of messages (`prompt`); of tools and images nothing."""
    for message in prompt:
        content = message.get("content")
        if type(content) is str:
            yield content
        else:
            yield from (part["text"] for part in _dicts(content) if _is_text(part.get("text")))


def prompt(form: Format, body: Raw) -> list[dict[str, Any]]:
    """The messages of a request as the client wrote them, each with role and content; instructions first."""
    found: list[dict[str, Any]] = []
    for role, name in (("system", "system"), ("system", "instructions")):
        if body.get(name) and form in (Format.MESSAGES, Format.RESPONSES):
            found.append({"role": role, "content": body[name]})
    texts = body.get("input") if form in (Format.RESPONSES, Format.EMBEDDINGS) else None
    if _is_text(texts):
        found.append({"role": "user", "content": texts})
    items = texts if form is Format.RESPONSES else body.get("messages")
    found += [
        each if "content" in each else {**each, "content": None}
        for each in (items if type(items) is list else ())
        if type(each) is dict and "role" in each
    ]
    return found
