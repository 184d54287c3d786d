"""Requests of Responses, written for a provider. Nothing is stored there: the conversation is all in the request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dataplane.llm import chat
from dataplane.llm.chat import Choosing, Media, Origin, Role
from dataplane.llm.formats.contract import Written
from dataplane.llm.formats.reading import Raw, encode, put
from dataplane.llm.formats.responses import thought

if TYPE_CHECKING:
    from dataplane.llm.providers import Provider

ENCRYPTED: Final = "reasoning.encrypted_content"
_TIERS: Final = {"standard_only": "default"}
LEAST: Final = 16
"""Tokens of output that the API takes as a bound."""


def write(talk: chat.Conversation, provider: Provider) -> Written:
    sampling = talk.sampling
    leading, rest = _leading(talk.turns)
    body: Raw = {"model": talk.model, "input": [item for turn in rest for item in _items(turn)], "store": False}
    most = sampling.max_tokens
    put(
        body,
        instructions=leading,
        max_output_tokens=most if most is None else max(LEAST, most),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        text=text(talk),
        user=chat.user_of(talk.user),
        metadata=dict(talk.metadata),
        service_tier=_TIERS.get(talk.tier, talk.tier),
        reasoning=reasoning(talk.reasoning),
    )
    if talk.reasoning is not None:
        body["include"] = [ENCRYPTED]
    if talk.tools:
        body["tools"] = [tool(each) for each in talk.tools]
        put(body, tool_choice=choice(talk.choice) if talk.choice else None, parallel_tool_calls=talk.parallel)
    if talk.stream:
        body["stream"] = True
    return Written(encode(body))


def _leading(turns: tuple[chat.Turn, ...]) -> tuple[str, tuple[chat.Turn, ...]]:
    """Instructions at the beginning, and the rest. There must be an input: of instructions alone it is made."""
    count = next((index for index, turn in enumerate(turns) if turn.role not in chat.INSTRUCTIONS), 0)
    return "\n\n".join(chat.texts(turn.parts) for turn in turns[:count]), turns[count:]


BUDGETS: Final = ((1024, "low"), (4096, "medium"))
"""Tokens of thinking up to which it is that effort; above, it is high."""


def reasoning(wanted: chat.Reasoning | None) -> Raw | None:
    if wanted is None:
        return None
    effort = wanted.effort
    if not effort and wanted.budget is not None:
        effort = next((name for most, name in BUDGETS if wanted.budget <= most), "high")
    return put({}, effort=effort, summary="auto" if wanted.shows else "")


def text(talk: chat.Conversation) -> Raw:
    return put({}, format=_format(talk.output) if talk.output else None, verbosity=talk.verbosity)


def _format(output: chat.Output) -> Raw:
    if output.schema is None:
        return {"type": "json_object"}
    found = {"type": "json_schema", "name": output.name or "output", "schema": output.schema}
    return put(found, description=output.description, strict=output.strict)


def tool(each: chat.Tool) -> Raw:
    found = put({"type": "function", "name": each.name}, description=each.description)
    return {**found, "parameters": chat.schema_of(each.parameters) or None, "strict": bool(each.strict)}


def choice(made: chat.Choice) -> object:
    if made.mode is Choosing.NAMED:
        return {"type": "function", "name": made.name}
    return made.mode.value


# --- items


def _items(turn: chat.Turn) -> Iterator[Raw]:
    """Texts and files of a user together are a message; all else is an item of its own, in its order."""
    content: list[Raw] = []
    for part in turn.parts:
        if turn.role is not Role.ASSISTANT and isinstance(part, (chat.Text, chat.File)):
            content.append(_content(part))
            continue
        if content:
            yield {"type": "message", "role": turn.role.value, "content": content}
            content = []
        item = _item(part)
        if item is not None:
            yield item
    if content:
        yield {"type": "message", "role": turn.role.value, "content": content}


def _item(part: chat.Part) -> Raw | None:
    match part:
        case chat.Text() | chat.Refused():
            return {"type": "message", "role": "assistant", "content": part.text} if part.text else None
        case chat.ToolCall():
            return {
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": part.arguments or "{}",
            }
        case chat.ToolResult():
            return {"type": "function_call_output", "call_id": part.call_id, "output": _output(part)}
        case chat.Thinking() if part.origin is Origin.OPENAI:
            item_id, encrypted = thought.parts(part.signature)
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}
        case _:
            return None


def _output(result: chat.ToolResult) -> object:
    if all(isinstance(part, chat.Text) for part in result.parts):
        return chat.texts(result.parts)
    return [_content(part) for part in result.parts]


def _content(part: chat.Text | chat.File) -> Raw:
    if isinstance(part, chat.Text):
        return {"type": "input_text", "text": part.text}
    data = f"data:{part.media_type};base64,{part.data}"
    if part.media is Media.IMAGE:
        found: Raw = {"type": "input_image", "detail": part.detail or "auto"}
        return put(found, file_id=part.file_id, image_url="" if part.file_id else part.url or data)
    if part.file_id or part.url:
        return put({"type": "input_file"}, file_id=part.file_id, file_url=part.url)
    return {"type": "input_file", "filename": part.name or "document", "file_data": data}
