"""Answers and errors of Responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dataplane.llm import chat, usage
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.formats import signatures
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import Raw, content, dicts, encode, failure, of_peer, part, put, said
from dataplane.llm.formats.responses import thought, written
from dataplane.llm.routes import Format

FAILED: Final = frozenset(("failed", "cancelled"))
TIERS: Final = frozenset(("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"))
_BOUND: Final = {"reason": "max_output_tokens"}
_FILTER: Final = {"reason": "content_filter"}

# --- read


def read_answer(body: bytes) -> chat.Answer:
    found = of_peer(body)
    status = found.get("status")
    if status in FAILED:
        raise Unreadable(said(part(found, "error"), "message") or f"the answer is {status}")
    parts = [made for item in content(found, "output") for made in _parts(item)]
    report = usage.of_answer(Format.RESPONSES, found)
    return chat.Answer(
        said(found, "id"),
        report.model,
        tuple(parts),
        stop(found, {type(each) for each in parts}),
        usage=report.usage,
        tier=report.tier,
    )


def stop(found: Raw, kinds: set[type]) -> Stop:
    """`kinds`: of the parts of the answer."""
    if found.get("status") == "incomplete":
        return Stop.REFUSAL if part(found, "incomplete_details") == _FILTER else Stop.MAX_TOKENS
    return Stop.TOOLS if chat.ToolCall in kinds else Stop.REFUSAL if chat.Refused in kinds else Stop.END


def _parts(item: Raw) -> Iterable[chat.Part]:
    kind = item.get("type")
    if kind == "message":
        for each in dicts(item.get("content")):
            if each.get("type") == "output_text" and each.get("text"):
                yield chat.Text(said(each, "text"))
            elif each.get("type") == "refusal":
                yield chat.Refused(said(each, "refusal"))
    elif kind == "function_call":
        yield chat.ToolCall(said(item, "call_id"), said(item, "name"), said(item, "arguments"))
    elif kind == "reasoning":
        texts = [said(each, "text") for each in dicts(item.get("summary"))]
        texts = texts or [said(each, "text") for each in dicts(item.get("content"))]
        signature, origin = signature_of(item)
        if texts or signature:
            yield chat.Thinking("\n\n".join(texts), signature, origin)


def signature_of(item: Raw) -> tuple[str, Origin]:
    signature = thought.signed(said(item, "id"), said(item, "encrypted_content"))
    return signature, Origin.OPENAI if signature else Origin.UNSIGNED


def read_error(status: int, body: bytes) -> chat.Failure:
    return failure(status, body, _error)


def _error(found: Raw) -> tuple[Any, Any]:
    error = part(found, "error")
    return error.get("message") or found.get("message"), error.get("type") or error.get("code")


# --- written


def write_answer(answer: chat.Answer, asked: chat.Asked) -> bytes:
    answer_id = answer.id or asked.id
    items = [item for index, each in enumerate(answer.parts) for item in _item(each, item_id(answer_id, index))]
    whole = response(answer_id, answer.model, asked, items)
    return encode({**whole, **ending(answer.stop, items), **tier(answer.tier), "usage": spent(answer.usage)})


def item_id(answer_id: str, index: int) -> str:
    """Of an item of an answer: the same in all that says something of it."""
    return f"{answer_id}_{index}"


def response(answer_id: str, model: str, asked: chat.Asked, items: list[Raw]) -> Raw:
    """An answer that is under way."""
    talk = asked.talk
    sampling = talk.sampling
    return {
        "id": answer_id,
        "object": "response",
        "created_at": asked.created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": sampling.max_tokens,
        "metadata": dict(talk.metadata),
        "model": model or talk.model,
        "output": items,
        "parallel_tool_calls": talk.parallel is not False,
        "previous_response_id": None,
        "reasoning": {"effort": (talk.reasoning.effort or None) if talk.reasoning else None, "summary": None},
        "store": False,
        "temperature": sampling.temperature,
        "text": {"format": {"type": "text"}, **written.text(talk)},
        "tool_choice": written.choice(talk.choice) if talk.choice else "auto",
        "tools": [written.tool(each) for each in talk.tools],
        "top_p": sampling.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def ending(stopped: Stop, items: list[Raw]) -> Raw:
    """What says why an answer ended. A refusal that is in its text is a complete answer."""
    if stopped in (Stop.MAX_TOKENS, Stop.CONTEXT):
        return {"status": "incomplete", "incomplete_details": _BOUND}
    if stopped is Stop.REFUSAL and not any(_is_refusal(item) for item in items):
        return {"status": "incomplete", "incomplete_details": _FILTER}
    return {"status": "completed"}


def _is_refusal(item: Raw) -> bool:
    return any(each["type"] == "refusal" for each in item.get("content") or ())


def tier(name: str) -> Raw:
    return {"service_tier": name} if name in TIERS else {}


def message(made_id: str, content: list[Raw], status: str = "completed") -> Raw:
    return {"id": made_id, "type": "message", "role": "assistant", "status": status, "content": content}


def output_text(text: str) -> Raw:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal(text: str) -> Raw:
    return {"type": "refusal", "refusal": text}


def call(made_id: str, call_id: str, name: str, arguments: str, status: str = "completed") -> Raw:
    return {
        "id": made_id,
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def reasoning(made_id: str, text: str, signature: str, origin: Origin, is_redacted: bool = False) -> Raw:
    if origin is Origin.OPENAI:
        made_id, encrypted = thought.parts(signature)
    else:
        encrypted = signatures.write(signature, origin, Origin.OPENAI, is_redacted)
    summary = [{"type": "summary_text", "text": text}] if text else []
    return put({"id": made_id, "type": "reasoning", "summary": summary}, encrypted_content=encrypted)


def _item(made: chat.Part, made_id: str) -> Iterable[Raw]:
    match made:
        case chat.Text():
            yield message(made_id, [output_text(made.text)])
        case chat.Refused():
            yield message(made_id, [refusal(made.text)])
        case chat.ToolCall():
            yield call(made_id, made.id, made.name, made.arguments or "{}")
        case chat.Thinking():
            yield reasoning(made_id, made.text, made.signature, made.origin, made.is_redacted)
        case _:
            return


def spent(used: usage.Usage) -> Raw:
    """`usage` as the format has it."""
    return {
        "input_tokens": used.input_tokens or 0,
        "input_tokens_details": {
            "cached_tokens": used.cached_input_tokens or 0,
            "cache_write_tokens": used.cache_creation_input_tokens or 0,
        },
        "output_tokens": used.output_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens or 0},
        "total_tokens": used.total_tokens or 0,
    }
