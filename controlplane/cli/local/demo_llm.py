"""A demo provider of models: the APIs of OpenAI and Anthropic as far as their SDKs look, without a model. It says what
it was asked, word by word; a token is a word. `demo` serves it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Value = dict[str, Any]  # Any: JSON
_CREATED = 1_700_000_000
"""When everything was made, in seconds since 1970: a demonstration says the same each time."""
_DIMENSIONS = 8
"""Numbers of an embedding."""


class Server(Protocol):
    """What a demo server is asked here."""

    @property
    def service(self) -> str: ...


class Asked:
    """One request, whichever API it is of: its model, what the answer says, how many tokens both have."""

    def __init__(self, body: Value) -> None:
        self.body = body
        self.model = str(body.get("model", "demo"))
        self.streams = body.get("stream") is True
        texts = [text for name in ("system", "instructions", "messages", "input") for text in _texts(body.get(name))]
        self.answer = f"You said: {texts[-1] if texts else 'nothing'}"
        self.words = self.answer.split(" ")
        self.input = sum(len(text.split()) for text in texts)
        self.output = len(self.words)

    def pieces(self) -> Iterator[str]:
        """What the answer says, token by token."""
        yield self.words[0]
        yield from (f" {word}" for word in self.words[1:])


def _texts(value: Any) -> Iterator[str]:
    """Texts of messages, of items, of parts, wherever an API has them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _texts(value.get("content", value.get("text")))


Events = Iterator[tuple[str, Value]]
"""Names of events, "" for those that have none, and their data."""
Answering = Callable[[Asked], Value]
Streaming = Callable[[Asked], Events]


# --- OpenAI, chat completions


def _completion(asked: Asked) -> Value:
    message = {"role": "assistant", "content": asked.answer, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**_chat(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, "prompt", "completion")}


def _chat(asked: Asked, kind: str) -> Value:
    return {"id": "chatcmpl-demo", "object": kind, "created": _CREATED, "model": asked.model}


def _usage(asked: Asked, inputs: str, outputs: str) -> Value:
    return {
        f"{inputs}_tokens": asked.input,
        f"{outputs}_tokens": asked.output,
        "total_tokens": asked.input + asked.output,
    }


def _chunks(asked: Asked) -> Events:
    head = _chat(asked, "chat.completion.chunk")
    for number, piece in enumerate(asked.pieces()):
        delta = {"content": piece} if number else {"role": "assistant", "content": piece}
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    options = asked.body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") is True:
        yield "", {**head, "choices": [], "usage": _usage(asked, "prompt", "completion")}
    yield "", {}  # `[DONE]`


# --- OpenAI, responses


def _response(asked: Asked, text: str | None = None, status: str = "completed") -> Value:
    """`text`: None for what has no item yet."""
    cached = {"cached_tokens": 0, "cache_write_tokens": 0}
    details: Value = {"input_tokens_details": cached, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp-demo",
        "object": "response",
        "created_at": _CREATED,
        "model": asked.model,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.body.get("instructions"),
        "metadata": {},
        "output": [] if text is None else [_item(text)],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**_usage(asked, "input", "output"), **details} if status == "completed" else None,
    }


def _item(text: str | None) -> Value:
    content = [] if text is None else [_part(text)]
    state = "in_progress" if text is None else "completed"
    return {"id": "msg-demo", "type": "message", "role": "assistant", "status": state, "content": content}


def _part(text: str) -> Value:
    return {"type": "output_text", "text": text, "annotations": []}


def _whole_response(asked: Asked) -> Value:
    return _response(asked, asked.answer)


def _response_events(asked: Asked) -> Events:
    for number, (kind, data) in enumerate(_unnumbered(asked)):
        yield kind, {"type": kind, "sequence_number": number, **data}


def _unnumbered(asked: Asked) -> Events:
    place: Value = {"item_id": "msg-demo", "output_index": 0, "content_index": 0}
    yield "response.created", {"response": _response(asked, status="in_progress")}
    yield "response.in_progress", {"response": _response(asked, status="in_progress")}
    yield "response.output_item.added", {"output_index": 0, "item": _item(None)}
    yield "response.content_part.added", {**place, "part": _part("")}
    for piece in asked.pieces():
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": asked.answer, "logprobs": []}
    yield "response.content_part.done", {**place, "part": _part(asked.answer)}
    yield "response.output_item.done", {"output_index": 0, "item": _item(asked.answer)}
    yield "response.completed", {"response": _whole_response(asked)}


# --- Anthropic, messages


def _message(asked: Asked, content: list[Value], stop: str | None, output: int) -> Value:
    return {
        "id": "msg-demo",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": asked.input, "output_tokens": output},
    }


def _whole_message(asked: Asked) -> Value:
    return _message(asked, [{"type": "text", "text": asked.answer}], "end_turn", asked.output)


def _message_events(asked: Asked) -> Events:
    for kind, data in _untyped(asked):
        yield kind, {"type": kind, **data}


def _untyped(asked: Asked) -> Events:
    yield "message_start", {"message": _message(asked, [], None, 1)}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in asked.pieces():
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"index": 0}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": asked.output}}
    yield "message_stop", {}


def _count(asked: Asked) -> Value:
    return {"input_tokens": asked.input}


# --- OpenAI, embeddings


def _embeddings(asked: Asked) -> Value:
    given = asked.body.get("input")
    texts = given if isinstance(given, list) else [given]
    data = [{"object": "embedding", "index": n, "embedding": _vector(str(text))} for n, text in enumerate(texts)]
    usage = {"prompt_tokens": asked.input, "total_tokens": asked.input}
    return {"object": "list", "model": asked.model, "data": data, "usage": usage}


def _vector(text: str) -> list[float]:
    """Equal texts have equal vectors; nothing else is to be had of them."""
    return [sum(map(ord, text[place::_DIMENSIONS])) % 1000 / 1000 for place in range(_DIMENSIONS)]


# --- HTTP


async def _written(events: Events) -> AsyncIterator[bytes]:
    for name, data in events:
        kind = f"event: {name}\n" if name else ""
        yield f"{kind}data: {json.dumps(data) if data else '[DONE]'}\n\n".encode()


def _api(answering: Answering, streaming: Streaming | None = None) -> Callable[[Server], Handler]:
    def build(server: Server) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            asked = _asked(await request.read())
            if asked is None:
                return web.json_response({"error": {"message": "the body must be a JSON object"}}, status=400)
            headers = {"x-demo-service": server.service}
            if not (asked.streams and streaming):
                return web.json_response(answering(asked), headers=headers)
            response = web.StreamResponse(headers={**headers, "content-type": "text/event-stream"})
            await response.prepare(request)
            async for event in _written(streaming(asked)):
                await response.write(event)
            await response.write_eof()
            return response

        return handle

    return build


def _asked(content: bytes) -> Asked | None:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return Asked(body) if isinstance(body, dict) else None


def _nothing(server: Server) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        said = {"error": {"message": f"{request.path}: the demo provider does not have this API"}}
        return web.json_response(said, status=404, headers={"x-demo-service": server.service})

    return handle


ROUTES: tuple[tuple[str, Callable[[Server], Handler]], ...] = (
    ("/v1/chat/completions", _api(_completion, _chunks)),
    ("/v1/responses", _api(_whole_response, _response_events)),
    ("/v1/embeddings", _api(_embeddings)),
    ("/v1/messages", _api(_whole_message, _message_events)),
    ("/v1/messages/count_tokens", _api(_count)),
    ("/{rest:.*}", _nothing),
)
