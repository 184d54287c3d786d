"""Requests of generateContent, written for a provider."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from dataplane.llm import chat
from dataplane.llm.chat import Choosing, Origin, Role
from dataplane.llm.formats.contract import Written
from dataplane.llm.formats.reading import Raw, encode, put

if TYPE_CHECKING:
    from dataplane.llm.providers import Provider

BUDGETS: Final = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 24_576,
    "max": 24_576,
}
"""Tokens of thinking by effort, for models that take a number."""
LEVELS: Final = {"none": "minimal", "xhigh": "high", "max": "high"}
"""Efforts that have another name at models that take a level."""
LEVELLED: Final = re.compile(r"gemini-(?:[3-9]|\d\d)")
UNSIGNED: Final = "skip_thought_signature_validator"
"""Signature of a call of a tool that another model made: what Google's documentation has for them, since newer models
refuse a history without."""
_MODES: Final = {Choosing.AUTO: "AUTO", Choosing.REQUIRED: "ANY", Choosing.NONE: "NONE", Choosing.NAMED: "ANY"}
_ROLES: Final = {Role.USER: "user", Role.ASSISTANT: "model"}
_TYPES: Final = {"image/jpg": "image/jpeg", "audio/mpeg": "audio/mp3"}
BLANK: Final = " "


def write(talk: chat.Conversation, provider: Provider) -> Written:
    """The model and whether it is a stream stand in the path."""
    system, turns = chat.apart(talk.turns)
    body: Raw = {"contents": list(_contents(turns, bool(LEVELLED.search(talk.model))))}
    if system:
        body["systemInstruction"] = {"parts": [{"text": each.text} for each in system]}
    if talk.tools:
        body["tools"] = [{"functionDeclarations": [_tool(each) for each in talk.tools]}]
    if talk.choice is not None and talk.tools:
        names = [talk.choice.name] if talk.choice.name else []
        calling = put({"mode": _MODES[talk.choice.mode]}, allowedFunctionNames=names)
        body["toolConfig"] = {"functionCallingConfig": calling}
    return Written(encode(put(body, generationConfig=_config(talk))))


def _tool(tool: chat.Tool) -> Raw:
    return put({"name": tool.name}, description=tool.description, parametersJsonSchema=tool.parameters)


def _config(talk: chat.Conversation) -> Raw:
    sampling, output = talk.sampling, talk.output
    return put(
        {},
        maxOutputTokens=sampling.max_tokens,
        temperature=sampling.temperature,
        topP=sampling.top_p,
        topK=sampling.top_k,
        seed=sampling.seed,
        frequencyPenalty=sampling.frequency_penalty,
        presencePenalty=sampling.presence_penalty,
        stopSequences=list(sampling.stop),
        responseMimeType="application/json" if output else "",
        responseJsonSchema=output.schema if output else None,
        thinkingConfig=_thinking(talk),
    )


def _thinking(talk: chat.Conversation) -> Raw | None:
    wanted = talk.reasoning
    if wanted is None:
        return None
    if wanted.effort and LEVELLED.search(talk.model):
        return {"includeThoughts": True, "thinkingLevel": LEVELS.get(wanted.effort, wanted.effort).upper()}
    budget = BUDGETS.get(wanted.effort) if wanted.budget is None else wanted.budget
    return put({"includeThoughts": budget != 0}, thinkingBudget=budget)


# --- contents


def _contents(turns: Iterable[chat.Turn], must_sign: bool) -> Iterator[Raw]:
    names = {part.id: part.name for turn in turns for part in turn.parts if isinstance(part, chat.ToolCall)}
    order = {call: index for index, call in enumerate(names)}
    for turn in turns:
        parts = list(_parts(_ordered(turn, order), names, must_sign))
        yield {"role": _ROLES[turn.role], "parts": parts or [{"text": BLANK}]}


def _ordered(turn: chat.Turn, order: dict[str, int]) -> list[chat.Part]:
    """Results of tools come first, in the order of their calls: they are matched by it."""
    last = len(order)
    return sorted(
        turn.parts, key=lambda each: order.get(each.call_id, last) if isinstance(each, chat.ToolResult) else last
    )


def _parts(parts: Iterable[chat.Part], names: dict[str, str], must_sign: bool) -> Iterator[Raw]:
    signature, is_first = "", True
    files: list[chat.File] = []  # of results: they follow all of these, which must stand together
    for part in parts:
        if files and not isinstance(part, chat.ToolResult):
            yield from map(_file, files)
            files = []
        match part:
            case chat.Thinking():
                signature = part.signature if part.origin is Origin.GOOGLE else signature
            case chat.Text() | chat.Refused():
                if part.text:
                    yield put({"text": part.text}, thoughtSignature=signature)
                    signature = ""
            case chat.ToolCall():
                signed = signature or (UNSIGNED if must_sign and is_first else "")
                call = {"name": part.name, "args": chat.arguments(part.arguments)}
                yield put({"functionCall": call}, thoughtSignature=signed)
                signature, is_first = "", False
            case chat.ToolResult():
                yield _result(part, names.get(part.call_id, part.call_id))
                files += [each for each in part.parts if isinstance(each, chat.File)]
            case chat.File():
                yield _file(part)
    yield from map(_file, files)


def _result(part: chat.ToolResult, name: str) -> Raw:
    key = "error" if part.is_error else "output"
    return {"functionResponse": {"name": name, "response": {key: chat.texts(part.parts)}}}


def _file(part: chat.File) -> Raw:
    return {"inlineData": {"mimeType": _TYPES.get(part.media_type, part.media_type), "data": part.data}}
