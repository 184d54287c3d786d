"""A provider of models, by the environment of the SDKs (`llm-python`): it takes requests by the types that the SDKs
publish, answers by theirs, and misbehaves when the model's name says so. `loopback/test_llm_sdks` starts it.

It prints its port. `GET /seen` has what it got, and what was wrong with it. A stream of the model `held` goes on behind
its first event when `POST /go` was asked.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from aiohttp import web
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParams
from google.genai import types
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParams
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter, ValidationError
from web_apps import serve_until_left

Value = Any
Events = Iterator[tuple[str, Value]]

KEY = "sk-provider"
WORDS = ("Grüße", " 世界", " 🌍", "!")
TEXT = "".join(WORDS)
TOOL, ARGUMENTS = "weather", '{"city":"Bern"}'
SHAPED = '{"name":"Ann","age":7}'
MOST = 32 << 20

# --- what a request must be


def problems(adapter: TypeAdapter[Any], body: Value) -> list[str]:
    """Against a published type. Its iterables are read to their end, and what the type has no field for is compared."""
    try:
        read = _walked(adapter.validate_python(body, strict=True))
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]]
    return list(_lost(body, read, ""))


def _walked(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _walked(each) for name, each in value.items()}
    if isinstance(value, (str, bytes, int, float, type(None))):
        return value
    return [_walked(each) for each in value]


def _lost(given: Value, read: Value, at: str) -> Iterator[str]:
    if isinstance(given, dict):
        for name, each in given.items():
            if name not in read:
                yield f"{at}{name}: the type has no such field"
            else:
                yield from _lost(each, read[name], f"{at}{name}.")
    elif isinstance(given, list):
        for number, each in enumerate(given):
            yield from _lost(each, read[number], f"{at}{number}.")
    elif given != read:
        yield f"{at}: {given!r} was read as {read!r}"


OF_RERANK = {"model": str, "query": str, "documents": list, "top_n": int, "max_tokens_per_doc": int}
"""Cohere publishes no type of requests."""


def problems_of_rerank(body: Value) -> list[str]:
    wrong = [name for name, each in body.items() if type(each) is not OF_RERANK.get(name)]
    absent = [name for name in ("model", "query", "documents") if name not in body]
    return [f"{name}: is wrong or not there" for name in (*wrong, *absent)]


# --- what it says


def calls_tool(body: Value) -> bool:
    return bool(body.get("tools")) and body.get("tool_choice") not in ("none", {"type": "none"})


def text_of(body: Value) -> tuple[str, ...]:
    wants = body.get("response_format") or (body.get("text") or body.get("output_config") or {}).get("format") or {}
    return (SHAPED[:9], SHAPED[9:]) if wants.get("type") == "json_schema" else WORDS


def completion(body: Value) -> Value:
    call = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": ARGUMENTS}}
    said = {"content": None, "tool_calls": [call]} if calls_tool(body) else {"content": "".join(text_of(body))}
    reason = "tool_calls" if calls_tool(body) else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
    return {**of_chat(body, "chat.completion"), "choices": [choice], "usage": CHAT_USAGE}


CHAT_USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 4,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 1},
}


def of_chat(body: Value, kind: str) -> Value:
    return {"id": "c1", "object": kind, "created": 1, "model": f"{body.get('model', 'deployed')}-1"}


def chunks(body: Value) -> Events:
    head = of_chat(body, "chat.completion.chunk")

    def chunk(delta: Value, reason: str | None = None) -> tuple[str, Value]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    if calls_tool(body):
        first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for piece in (ARGUMENTS[:5], ARGUMENTS[5:]):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        yield from (chunk({"content": word}) for word in text_of(body))
    yield chunk({}, "tool_calls" if calls_tool(body) else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield "", {**head, "choices": [], "usage": CHAT_USAGE}
    yield "", "[DONE]"


def message(body: Value) -> Value:
    block = {"type": "text", "text": "".join(text_of(body))}
    if calls_tool(body):
        block = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": json.loads(ARGUMENTS)}
    return of_message(body, [block], "tool_use" if calls_tool(body) else "end_turn", 4)


def of_message(body: Value, content: list[Value], reason: str | None, output: int) -> Value:
    usage = {"input_tokens": 8, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 0, "output_tokens": output}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": f"{body['model']}-1"}
    return {**head, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def message_events(body: Value) -> Events:
    for kind, data in _message_events(body):
        yield kind, {"type": kind, **data}


def _message_events(body: Value) -> Events:
    yield "message_start", {"message": of_message(body, [], None, 1)}
    yield "ping", {}
    start, pieces = {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in text_of(body)]
    if calls_tool(body):
        start = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": each} for each in (ARGUMENTS[:5], ARGUMENTS[5:])]
    yield "content_block_start", {"index": 0, "content_block": start}
    yield from (("content_block_delta", {"index": 0, "delta": each}) for each in pieces)
    yield "content_block_stop", {"index": 0}
    reason = "tool_use" if calls_tool(body) else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 4}}
    yield "message_stop", {}


def response(body: Value, status: str = "completed") -> Value:
    cached = {"cached_tokens": 3, "cache_write_tokens": 2}
    details = {"input_tokens_details": cached, "output_tokens_details": {"reasoning_tokens": 1}}
    usage = {"input_tokens": 11, "output_tokens": 4, "total_tokens": 15, **details}
    is_over = status == "completed"
    fixed = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None}
    head = {"id": "r1", "object": "response", "created_at": 1, "model": f"{body['model']}-1", "status": status}
    output = [item(body, True)] if is_over else []
    rest = {"instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0}
    return {**head, **fixed, **rest, "output": output, "usage": usage if is_over else None}


def item(body: Value, is_over: bool) -> Value:
    status = "completed" if is_over else "in_progress"
    if calls_tool(body):
        arguments = ARGUMENTS if is_over else ""
        head = {"type": "function_call", "id": "i1", "call_id": "call_1", "name": TOOL}
        return {**head, "arguments": arguments, "status": status}
    content = [part("".join(text_of(body)))] if is_over else []
    return {"type": "message", "id": "i1", "role": "assistant", "status": status, "content": content}


def part(text: str) -> Value:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def response_events(body: Value) -> Events:
    for number, (kind, data) in enumerate(_response_events(body)):
        yield kind, {"type": kind, "sequence_number": number, **data}


def _response_events(body: Value) -> Events:
    for kind in ("response.created", "response.in_progress"):
        yield kind, {"response": response(body, "in_progress")}
    yield "response.output_item.added", {"output_index": 0, "item": item(body, False)}
    at: Value = {"item_id": "i1", "output_index": 0}
    if calls_tool(body):
        for piece in (ARGUMENTS[:5], ARGUMENTS[5:]):
            yield "response.function_call_arguments.delta", {**at, "delta": piece}
        yield "response.function_call_arguments.done", {**at, "arguments": ARGUMENTS, "name": TOOL}
    else:
        at["content_index"], text = 0, "".join(text_of(body))
        yield "response.content_part.added", {**at, "part": part("")}
        for word in text_of(body):
            yield "response.output_text.delta", {**at, "delta": word, "logprobs": []}
        yield "response.output_text.done", {**at, "text": text, "logprobs": []}
        yield "response.content_part.done", {**at, "part": part(text)}
    yield "response.output_item.done", {"output_index": 0, "item": item(body, True)}
    yield "response.completed", {"response": response(body)}


def embeddings(body: Value) -> Value:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vector: Value = [0.5, 0.25]
    if body.get("encoding_format") == "base64":
        vector = base64.b64encode(struct.pack("<2f", *vector)).decode()
    data = [{"object": "embedding", "index": number, "embedding": vector} for number, _ in enumerate(texts)]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    return {"object": "list", "model": f"{body['model']}-1", "data": data, "usage": usage}


def count(_: Value) -> Value:
    return {"input_tokens": 8}


def reranked(body: Value) -> Value:
    results = [{"index": n, "relevance_score": 0.5} for n in range(body.get("top_n", len(body["documents"])))]
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": "rr", "results": results, "meta": meta}


OPENAI_ERROR = {"error": {"message": "no more", "type": "server_error", "param": None, "code": None}}
ANTHROPIC_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "no more"}}
RESPONSES_ERROR = {"type": "error", "code": "server_error", "message": "no more", "param": None, "sequence_number": 3}


class Api(NamedTuple):
    """`keys`: headers that a credential may stand in. `failed`: an error event."""

    problems: Callable[[Value], list[str]]
    keys: tuple[tuple[str, str], ...]
    answer: Callable[[Value], Value]
    answers: TypeAdapter[Any] | None = None
    events: Callable[[Value], Events] | None = None
    event: TypeAdapter[Any] | None = None
    failed: tuple[str, Value] = ("", OPENAI_ERROR)


def published(kind: Any) -> Callable[[Value], list[str]]:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return lambda body: problems(adapter, body)


BEARER = (("authorization", f"Bearer {KEY}"),)
OF_ANTHROPIC = (*BEARER, ("x-api-key", KEY))
OF_AZURE = (("api-key", KEY),)
CHAT = Api(
    published(CompletionCreateParams),
    BEARER,
    completion,
    TypeAdapter(ChatCompletion),
    chunks,
    TypeAdapter(ChatCompletionChunk),
)
RESPONSES = Api(
    published(ResponseCreateParams),
    BEARER,
    response,
    TypeAdapter(Response),
    response_events,
    TypeAdapter(ResponseStreamEvent),
    ("error", RESPONSES_ERROR),
)
MESSAGES = Api(
    published(MessageCreateParams),
    OF_ANTHROPIC,
    message,
    TypeAdapter(Message),
    message_events,
    TypeAdapter(RawMessageStreamEvent),
    ("error", ANTHROPIC_ERROR),
)
EMBEDDINGS = Api(published(EmbeddingCreateParams), BEARER, embeddings)  # the type has no base64, for which clients ask
COUNT = Api(published(MessageCountTokensParams), OF_ANTHROPIC, count, TypeAdapter(MessageTokensCount))
DEPLOYMENT = "/openai/deployments/{deployment}"
APIS = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/embeddings": EMBEDDINGS,
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": COUNT,
    "/v2/rerank": Api(problems_of_rerank, BEARER, reranked),
    f"{DEPLOYMENT}/chat/completions": CHAT._replace(keys=OF_AZURE),
    f"{DEPLOYMENT}/embeddings": EMBEDDINGS._replace(keys=OF_AZURE),
}

# --- Gemini's own API

OF_GEMINI = (("x-goog-api-key", KEY),)
GEMINI_USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 4, "totalTokenCount": 15, "cachedContentTokenCount": 3}


def problems_of_gemini(method: str, body: Value) -> list[str]:
    """By the models of google-genai, which forbid what they have no field for. What is counted may be a whole request
    for an answer, with its model."""
    whole = body.get("generateContentRequest")
    if method == "countTokens" and whole:
        named = {name: value for name, value in whole.items() if name != "model"}
        is_other = len(body) > 1 or not str(whole.get("model")).startswith("models/")
        return ["the request is not all"] if is_other else problems_of_gemini("generateContent", named)
    found = []
    parts: dict[str, Value] = {"contents": list[types.Content]}
    if method != "countTokens":
        parts |= {"generationConfig": types.GenerationConfig, "systemInstruction": types.Content}
        parts |= {"tools": list[types.Tool], "toolConfig": types.ToolConfig}
    for name, value in body.items():
        if name not in parts:
            found.append(f"{name}: {method} has no such field")
            continue
        try:
            TypeAdapter(parts[name]).validate_python(value)
        except ValidationError as error:
            found += [f"{name}.{each['loc']}: {each['msg']}" for each in error.errors()[:5]]
    return found


def gemini_chunks(body: Value) -> list[Value]:
    if body.get("tools"):
        parts: list[Value] = [{"functionCall": {"name": TOOL, "args": json.loads(ARGUMENTS)}}]
    else:
        parts = [{"text": word} for word in WORDS]
    chunks: list[Value] = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}], "modelVersion": "gemini-1"}
        for part in parts
    ]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = GEMINI_USAGE
    return [types.GenerateContentResponse.model_validate(each) and each for each in chunks]


def gemini_answer(method: str, body: Value) -> Value:
    if method == "countTokens":
        return {"totalTokens": 11}
    chunks = gemini_chunks(body)
    parts = [part for each in chunks for part in each["candidates"][0]["content"]["parts"]]
    last = chunks[-1]
    return {**last, "candidates": [{**last["candidates"][0], "content": {"role": "model", "parts": parts}}]}


# --- how it misbehaves

LIMITS = {"retry-after": "7", "x-ratelimit-remaining-requests": "0"}
ERRORS: dict[str, Callable[[Api], web.Response]] = {
    "limited": lambda api: web.json_response(api.failed[1], status=429, headers=LIMITS),
    "limited-bare": lambda _: web.Response(status=429),
    "broken": lambda api: web.json_response(api.failed[1], status=500),
    "html": lambda _: web.Response(status=502, text="<h1>Bad Gateway</h1>", content_type="text/html"),
}


class Provider:
    def __init__(self) -> None:
        self.seen: list[Value] = []
        self.go = asyncio.Event()

    async def serve(self, request: web.Request, api: Api) -> web.StreamResponse:
        body = json.loads(await request.read())
        found = api.problems({"model": request.match_info["deployment"], **body} if request.match_info else body)
        if not any(request.headers.get(header) == value for header, value in api.keys):
            found.append(f"the key is wrong: {dict(request.headers)}")
        if api.keys is OF_ANTHROPIC and "anthropic-version" not in request.headers:
            found.append("anthropic-version: is not there")
        if request.headers["content-type"] != "application/json":
            found.append(f"content-type: {request.headers['content-type']}")
        self.seen.append(
            {"path": request.path_qs, "model": body.get("model"), "problems": found, "bytes": len(str(body))}
        )
        if found:
            return web.json_response({"error": {"message": "; ".join(found)}}, status=422)
        model = body.get("model", "")
        if model in ERRORS:
            return ERRORS[model](api)
        if body.get("stream") and api.events is not None:
            return await self.stream(request, api, body, model)
        answer = api.answer(body)
        if api.answers is not None:
            api.answers.validate_python(answer)
        return web.json_response(answer)

    async def gemini(self, request: web.Request) -> web.StreamResponse:
        model, _, method = request.match_info["call"].partition(":")
        body = json.loads(await request.read())
        found = problems_of_gemini(method, body)
        if not any(request.headers.get(header) == value for header, value in OF_GEMINI):
            found.append(f"the key is wrong: {dict(request.headers)}")
        self.seen.append({"path": request.path_qs, "model": model, "problems": found, "bytes": len(str(body))})
        if found:
            return web.json_response({"error": {"code": 400, "message": "; ".join(found)}}, status=400)
        if model == "limited":
            refusal = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}
            return web.json_response({"error": refusal}, status=429, headers=LIMITS)
        if method != "streamGenerateContent":
            return web.json_response(gemini_answer(method, body))
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for each in gemini_chunks(body):
            await answer.write(encoded("", each))
        await answer.write_eof()
        return answer

    async def stream(self, request: web.Request, api: Api, body: Value, how: str) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await answer.prepare(request)
        for number, event in enumerate(self.written(api, body)):
            if how == "held" and number == 1:
                await self.go.wait()
                self.go.clear()
            if how in ("cut", "half", "short", "error-event") and number == 3:
                return await self.broken(answer, request, api, event, how)
            for piece in [event[n : n + 1] for n in range(len(event))] if how == "bytes" else [event]:
                await answer.write(piece)
        await answer.write_eof()
        return answer

    @staticmethod
    async def broken(
        answer: web.StreamResponse, request: web.Request, api: Api, event: bytes, how: str
    ) -> web.StreamResponse:
        if how == "error-event":
            await answer.write(encoded(*api.failed))
        if how == "half":
            await answer.write(event[: len(event) // 2])
        if how in ("cut", "half"):
            assert request.transport is not None
            request.transport.close()
        else:
            await answer.write_eof()
        return answer

    @staticmethod
    def written(api: Api, body: Value) -> Iterator[bytes]:
        assert api.events is not None and api.event is not None
        for name, data in api.events(body):
            if data != "[DONE]" and name != "ping":
                api.event.validate_python(data)
            yield encoded(name, data)

    async def report(self, _: web.Request) -> web.Response:
        seen, self.seen = self.seen, []
        return web.json_response(seen)

    async def proceed(self, _: web.Request) -> web.Response:
        self.go.set()
        return web.Response()


def encoded(name: str, data: Value) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


async def main() -> None:
    provider, app = Provider(), web.Application(client_max_size=MOST)
    for path, api in APIS.items():
        app.router.add_post(path, lambda request, api=api: provider.serve(request, api))
    app.router.add_post(r"/{version:v1|v1beta}/models/{call}", provider.gemini)
    app.router.add_get("/seen", provider.report)
    app.router.add_post("/go", provider.proceed)
    await serve_until_left(app)


if __name__ == "__main__":
    asyncio.run(main())
