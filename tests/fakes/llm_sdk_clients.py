"""The official clients of LLM providers, unchanged but for base URL and key, in the environment of the SDKs
(`llm-python`). `loopback/test_llm_sdks` starts it with the addresses as JSON, and writes one name of a function on each
line; each is answered with one line of JSON: null, or what was wrong.

Functions that begin with `sdk_` hold for a provider with and without the gateway before it; those that begin with
`gateway_` are about the gateway, `llama_` about llama.cpp behind it, and `demo` about the demo provider of
`gatewright up`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import traceback
import urllib.request
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import anthropic
import cohere
import openai
import pydantic
from anthropic.types import Message, RawMessageStreamEvent
from google import genai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import ResponseFunctionToolCall

TEXT = "Grüße 世界 🌍!"
HELLO: Any = [{"role": "user", "content": "hello"}]
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
MESSAGE_TOOLS: Any = [{"name": "weather", "description": "of a city", "input_schema": SCHEMA}]
RESPONSE_TOOLS: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]
GIVEN = json.loads(sys.argv[1])
"""Addresses by name: `openai`, `anthropic`, `azure`, `cohere`, `gemini`; `google`: its API for others' clients; `own`:
no key of the gateway's; `who`: it wants one of its clients; `large`: it takes large bodies; `provider`: without the
gateway. And `key`."""


class Person(pydantic.BaseModel):
    name: str
    age: int


def gpt(base: str = "openai", **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=GIVEN[base] + "/v1", api_key=GIVEN["key"], max_retries=0, **options)


def claude(base: str = "anthropic") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=GIVEN[base], api_key=GIVEN["key"], max_retries=0)


def azure() -> openai.AzureOpenAI:
    return openai.AzureOpenAI(
        azure_endpoint=GIVEN["azure"], api_version="2024-10-21", api_key=GIVEN["key"], max_retries=0
    )


def asked(path: str, method: str = "GET") -> Any:
    with urllib.request.urlopen(urllib.request.Request(GIVEN["provider"] + path, method=method)) as answer:
        return json.loads(answer.read() or b"null")


def seen() -> Any:
    """What the provider got since it was last asked."""
    return asked("/seen") if GIVEN.get("provider") else []


# --- openai, chat


def sdk_chat() -> None:
    done = gpt().chat.completions.create(model="gpt", messages=HELLO, temperature=0.5, seed=7, stop=["x"])
    assert (done.model, done.choices[0].message.content, done.choices[0].finish_reason) == ("gpt-1", TEXT, "stop")
    assert done.usage is not None and done.usage.prompt_tokens_details is not None
    assert (done.usage.total_tokens, done.usage.prompt_tokens_details.cached_tokens) == (15, 3)


def sdk_chat_stream() -> None:
    chunks = list(gpt().chat.completions.create(model="gpt", messages=HELLO, stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == TEXT
    assert [each.usage for each in chunks] == [None] * len(chunks), "nobody asked for usage"
    assert chunks[-1].choices[0].finish_reason == "stop"


def sdk_chat_stream_with_usage() -> None:
    options: Any = {"include_usage": True}
    *_, last = gpt().chat.completions.create(model="gpt", messages=HELLO, stream=True, stream_options=options)
    assert (last.choices, last.usage and last.usage.total_tokens) == ([], 15)


def sdk_chat_stream_by_the_helper() -> None:
    with gpt().chat.completions.stream(model="gpt", messages=HELLO) as stream:
        kinds = {event.type for event in stream}
        done = stream.get_final_completion()
    assert "content.delta" in kinds and done.choices[0].message.content == TEXT


def sdk_chat_stream_whatever_its_pieces() -> None:
    chunks = gpt().chat.completions.create(model="bytes", messages=HELLO, stream=True)
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == TEXT


def sdk_chat_stream_as_it_comes() -> None:
    """The first event is here before the provider has sent the second."""
    chunks = iter(gpt().chat.completions.create(model="held", messages=HELLO, stream=True))
    assert next(chunks).choices[0].delta.role == "assistant"
    asked("/go", "POST")
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == TEXT


def sdk_chat_tools() -> None:
    done = gpt().chat.completions.create(model="gpt", messages=HELLO, tools=CHAT_TOOLS, tool_choice="auto")
    (call,) = done.choices[0].message.tool_calls or []
    assert call.type == "function" and json.loads(call.function.arguments) == {"city": "Bern"}
    talk: Any = [*HELLO, done.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    again = gpt().chat.completions.create(model="gpt", messages=talk, tools=CHAT_TOOLS, tool_choice="none")
    assert again.choices[0].message.content == TEXT


def sdk_chat_tools_streamed() -> None:
    with gpt().chat.completions.stream(model="gpt", messages=HELLO, tools=CHAT_TOOLS) as stream:
        for _ in stream:
            pass
        (call,) = stream.get_final_completion().choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("weather", '{"city":"Bern"}')


def sdk_chat_vision() -> None:
    parts: Any = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}]
    done = gpt().chat.completions.create(model="gpt", messages=[{"role": "user", "content": parts}])
    assert done.choices[0].message.content == TEXT


def sdk_chat_structured() -> None:
    done = gpt().chat.completions.parse(model="gpt", messages=HELLO, response_format=Person)
    assert done.choices[0].message.parsed == Person(name="Ann", age=7)


def sdk_chat_of_the_async_client() -> None:
    async def run() -> str:
        async with openai.AsyncOpenAI(base_url=GIVEN["openai"] + "/v1", api_key=GIVEN["key"]) as client:
            stream = await client.chat.completions.create(model="gpt", messages=HELLO, stream=True)
            return "".join([each.choices[0].delta.content or "" async for each in stream])

    assert asyncio.run(run()) == TEXT


# --- openai, responses and embeddings


def sdk_response() -> None:
    done = gpt().responses.create(model="gpt", input="hello", instructions="be kind", max_output_tokens=64)
    assert (done.output_text, done.status, done.usage and done.usage.total_tokens) == (TEXT, "completed", 15)


def sdk_response_stream() -> None:
    with gpt().responses.stream(model="gpt", input="hello") as stream:
        events = list(stream)
        done = stream.get_final_response()
    assert [each.sequence_number for each in events] == list(range(len(events)))
    assert (events[-1].type, done.output_text) == ("response.completed", TEXT)


def sdk_response_tools() -> None:
    done = gpt().responses.create(model="gpt", input="hello", tools=RESPONSE_TOOLS)
    (call,) = done.output
    assert isinstance(call, ResponseFunctionToolCall) and json.loads(call.arguments) == {"city": "Bern"}
    answer: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    talk: Any = [{"role": "user", "content": "hello"}, call.model_dump(exclude_none=True), answer]
    assert gpt().responses.create(model="gpt", input=talk).output_text == TEXT


def sdk_response_tools_streamed() -> None:
    with gpt().responses.stream(model="gpt", input="hello", tools=RESPONSE_TOOLS) as stream:
        for _ in stream:
            pass
        (call,) = stream.get_final_response().output
    assert call.type == "function_call" and call.arguments == '{"city":"Bern"}'


def sdk_response_vision() -> None:
    image: Any = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    talk: Any = [{"role": "user", "content": [{"type": "input_text", "text": "?"}, image]}]
    assert gpt().responses.create(model="gpt", input=talk).output_text == TEXT


def sdk_response_structured() -> None:
    assert gpt().responses.parse(model="gpt", input="hello", text_format=Person).output_parsed == Person(
        name="Ann", age=7
    )


def sdk_embeddings() -> None:
    done = gpt().embeddings.create(model="embed", input=["one", "two"])  # it asks for base64 by itself
    assert [each.embedding for each in done.data] == [[0.5, 0.25]] * 2
    (plain,) = gpt().embeddings.create(model="embed", input="one", encoding_format="float", dimensions=2).data
    assert plain.embedding == [0.5, 0.25]


# --- openai, what goes wrong


def sdk_errors_keep_status_headers_and_body() -> None:
    for model, kind in (("limited", openai.RateLimitError), ("limited-bare", openai.RateLimitError)):
        error = raised(kind, lambda model=model: gpt().chat.completions.create(model=model, messages=HELLO))
        assert error.response.headers.get("retry-after") == ("7" if model == "limited" else None)
    error = raised(openai.InternalServerError, lambda: gpt().chat.completions.create(model="broken", messages=HELLO))
    assert error.body["message"] == "no more"
    error = raised(openai.InternalServerError, lambda: gpt().responses.create(model="html", input="hello"))
    assert (error.status_code, error.response.text) == (502, "<h1>Bad Gateway</h1>")
    for ask in (lambda: gpt().responses.create(model="limited", input="hello", stream=True),):
        assert raised(openai.RateLimitError, ask).response.headers["x-ratelimit-remaining-requests"] == "0"


def sdk_an_error_event_is_raised() -> None:
    def chat() -> None:
        list(gpt().chat.completions.create(model="error-event", messages=HELLO, stream=True))

    assert "no more" in raised(openai.APIError, chat).message
    events = list(gpt().responses.create(model="error-event", input="hello", stream=True))
    assert (events[-1].type, events[-1].message) == ("error", "no more")  # type: ignore[union-attr]
    claim = raised(anthropic.APIStatusError, lambda: list(claude_stream("error-event")))
    assert "no more" in claim.message, claim
    assert claim.body["error"]["type"] == "overloaded_error"


# --- anthropic


def claude_stream(model: str) -> Any:
    return claude().messages.create(model=model, max_tokens=64, messages=HELLO, stream=True)


def sdk_message() -> None:
    done = claude().messages.create(
        model="claude", max_tokens=64, messages=HELLO, system="be kind", stop_sequences=["x"]
    )
    assert (done.model, done.content[0].text, done.stop_reason) == ("claude-1", TEXT, "end_turn")
    assert (done.usage.input_tokens, done.usage.cache_read_input_tokens) == (8, 3)


def sdk_message_stream() -> None:
    with claude().messages.stream(model="claude", max_tokens=64, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == TEXT
        done = stream.get_final_message()
    assert (done.content[0].text, done.usage.output_tokens) == (TEXT, 4)
    assert [each.type for each in claude_stream("bytes")][-1] == "message_stop"


def sdk_message_tools() -> None:
    done = claude().messages.create(model="claude", max_tokens=64, messages=HELLO, tools=MESSAGE_TOOLS)
    (call,) = done.content
    assert (call.type, call.input, done.stop_reason) == ("tool_use", {"city": "Bern"}, "tool_use")
    result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    talk: Any = [*HELLO, {"role": "assistant", "content": done.content}, {"role": "user", "content": [result]}]
    none: Any = {"type": "none"}
    claude().messages.create(model="claude", max_tokens=64, messages=talk, tools=MESSAGE_TOOLS, tool_choice=none)


def sdk_message_tools_streamed() -> None:
    with claude().messages.stream(model="claude", max_tokens=64, messages=HELLO, tools=MESSAGE_TOOLS) as stream:
        (call,) = stream.get_final_message().content
    assert (call.type, call.input) == ("tool_use", {"city": "Bern"})


def sdk_message_with_image_cache_and_thinking() -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    cached: Any = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    talk: Any = [{"role": "user", "content": [image, {"type": "text", "text": "?"}]}]
    claude().messages.create(model="claude", max_tokens=2048, messages=talk, system=cached, thinking=thinking)


def sdk_message_count() -> None:
    assert claude().messages.count_tokens(model="claude", messages=HELLO).input_tokens == 8


def sdk_message_errors() -> None:
    def ask(model: str) -> Any:
        return lambda: claude().messages.create(model=model, max_tokens=64, messages=HELLO)

    assert raised(anthropic.RateLimitError, ask("limited")).response.headers["retry-after"] == "7"
    assert raised(anthropic.InternalServerError, ask("broken")).body["error"]["type"] == "overloaded_error"
    assert raised(anthropic.APIStatusError, ask("html")).status_code == 502


# --- azure, cohere, litellm


def sdk_azure() -> None:
    done = azure().chat.completions.create(model="deployed", messages=HELLO)
    assert done.choices[0].message.content == TEXT
    stream = azure().chat.completions.create(model="deployed", messages=HELLO, stream=True)
    assert "".join(each.choices[0].delta.content or "" for each in stream) == TEXT
    assert azure().embeddings.create(model="deployed", input="one").data[0].embedding == [0.5, 0.25]


def sdk_cohere_rerank() -> None:
    with cohere.ClientV2(api_key=GIVEN["key"], base_url=GIVEN["cohere"]) as client:
        done = client.rerank(model="rerank-v3.5", query="q", documents=["a", "b", "c"], top_n=2)
    assert [(each.index, each.relevance_score) for each in done.results] == [(0, 0.5), (1, 0.5)]


def sdk_litellm() -> None:
    import litellm  # takes seconds

    def ask(model: str, base: str, **options: Any) -> Any:
        return litellm.completion(model, HELLO, api_base=base, api_key=GIVEN["key"], num_retries=0, **options)

    for model, base in (("openai/gpt", GIVEN["openai"] + "/v1"), ("anthropic/claude-x", GIVEN["anthropic"])):
        assert ask(model, base).choices[0].message.content == TEXT
        pieces = [each.choices[0].delta.content or "" for each in ask(model, base, stream=True)]
        assert "".join(pieces) == TEXT
        (call,) = ask(model, base, tools=CHAT_TOOLS).choices[0].message.tool_calls
        assert json.loads(call.function.arguments) == {"city": "Bern"}


# --- what the gateway says


def gateway_models() -> None:
    assert [each.id for each in gpt().models.list()] == ["fast"]


def gateway_aliases() -> None:
    assert gpt().chat.completions.create(model="fast", messages=HELLO).model == "gpt-4o-mini-1"


def gateway_a_broken_stream_is_an_error_and_not_an_end() -> None:
    for model in ("cut", "short"):
        seen: list[Any] = []

        def chat(model: str = model, seen: list[Any] = seen) -> None:
            seen.extend(gpt().chat.completions.create(model=model, messages=HELLO, stream=True))

        assert raised(openai.APIError, chat).code == "LlmStreamBroken"
        assert seen, "what had come was passed on"
        events = list(gpt().responses.create(model=model, input="hello", stream=True))
        assert (events[-1].type, events[-1].code) == ("error", "LlmStreamBroken")  # type: ignore[union-attr]
        assert [each.sequence_number for each in events] == list(range(len(events)))
        raised(anthropic.APIStatusError, lambda model=model: list(claude_stream(model)))
    for ask in (
        lambda: list(gpt().chat.completions.create(model="half", messages=HELLO, stream=True)),
        lambda: list(claude_stream("half")),
    ):
        raised(Exception, ask)


def gateway_refuses_in_the_shape_of_the_api() -> None:
    """A client without a key of the gateway's own; a format that the provider lacks; a body of a strange shape."""
    error = raised(openai.AuthenticationError, lambda: gpt("who").chat.completions.create(model="gpt", messages=HELLO))
    assert error.type == "authentication_error" and error.code
    lacking = raised(openai.BadRequestError, lambda: gpt("anthropic").embeddings.create(model="gpt", input="a"))
    assert "Embeddings" in lacking.message and "Messages" in lacking.message
    denied = raised(openai.PermissionDeniedError, lambda: gpt().chat.completions.create(model="no", messages=HELLO))
    assert (denied.type, denied.code, denied.param) == ("permission_error", "LlmModelDenied", "model")
    other = raised(
        anthropic.AuthenticationError,
        lambda: claude("who").messages.create(model="claude", max_tokens=1, messages=HELLO),
    )
    assert other.body["error"]["type"] == "authentication_error"


def gateway_own_keys() -> None:
    """Where the gateway has no key for the provider, a client brings its own."""
    own = GIVEN["own"]
    chat = openai.OpenAI(base_url=own + "/v1", api_key="sk-provider", max_retries=0)
    assert chat.chat.completions.create(model="gpt", messages=HELLO).choices[0].message.content == TEXT
    for key in ({"api_key": "sk-provider"}, {"auth_token": "sk-provider"}):
        talk = anthropic.Anthropic(base_url=own, max_retries=0, **key)
        assert talk.messages.create(model="claude", max_tokens=64, messages=HELLO).model == "claude-1"


def gateway_counts_tokens_by_gemini() -> None:
    """As its own API counts them, of the whole request."""
    tools: Any = MESSAGE_TOOLS
    done = claude("google").messages.count_tokens(model="gemini-2", messages=HELLO, system="be kind", tools=tools)
    assert done.input_tokens == 11
    (found,) = seen()
    assert (found["path"], found["problems"]) == ("/v1beta/models/gemini-2:countTokens", [])


def gateway_large_bodies() -> None:
    """Five megabytes of an image are too much unless the gateway is configured for them."""
    url = "data:image/png;base64," + "A" * 5_000_000
    parts: Any = [{"type": "image_url", "image_url": {"url": url}}]
    talk: Any = [{"role": "user", "content": parts}]
    error = raised(openai.APIStatusError, lambda: gpt().chat.completions.create(model="gpt", messages=talk))
    assert error.status_code == 413 and "maxBufferSize" in error.message
    source: Any = {"type": "base64", "media_type": "image/png", "data": "A" * 5_000_000}
    image: Any = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    claim = raised(
        anthropic.APIStatusError, lambda: claude().messages.create(model="claude", max_tokens=1, messages=image)
    )
    assert (claim.status_code, claim.body["error"]["type"]) == (413, "request_too_large")
    assert gpt("large").chat.completions.create(model="gpt", messages=talk).choices[0].message.content == TEXT


# --- llama.cpp

RECITED = "The gateway saw this answer leave a real model."


def checked(kind: Any, found: Any) -> Any:
    """By the published type."""
    return pydantic.TypeAdapter(kind).validate_python(found.to_dict())


def llama_chat() -> None:
    done = gpt().chat.completions.create(model="chain", messages=HELLO, temperature=0)
    checked(ChatCompletion, done)
    text = done.choices[0].message.content or ""
    assert (text.strip(), done.choices[0].finish_reason) == (RECITED, "stop")
    assert done.usage is not None and done.usage.completion_tokens == 11
    short = gpt().chat.completions.create(model="chain", messages=HELLO, max_tokens=3, temperature=0)
    assert short.choices[0].finish_reason == "length"


def llama_chat_stream() -> None:
    options: Any = {"include_usage": True}
    chunks = list(
        gpt().chat.completions.create(model="chain", messages=HELLO, stream=True, temperature=0, stream_options=options)
    )
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices).strip() == RECITED
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens == 11
    for each in chunks:
        checked(ChatCompletionChunk, each)
    quiet = list(gpt().chat.completions.create(model="chain", messages=HELLO, stream=True, temperature=0))
    assert [each.usage for each in quiet if each.usage] == []


def llama_tools() -> None:
    tools: Any = [{"type": "function", "function": {"name": "weather", "description": "?", "parameters": SCHEMA}}]
    done = gpt().chat.completions.create(model="chain", messages=HELLO, tools=tools, temperature=0)
    (call,) = done.choices[0].message.tool_calls or []
    assert call.type == "function" and json.loads(call.function.arguments) == {"city": "Bern"}
    with gpt().chat.completions.stream(model="chain", messages=HELLO, tools=tools, temperature=0) as stream:
        stream.until_done()
        (same,) = stream.get_final_completion().choices[0].message.tool_calls or []
    assert json.loads(same.function.arguments) == {"city": "Bern"}


def llama_embeddings() -> None:
    one, two = gpt("embeddings").embeddings.create(model="chain", input=["a", "b"], encoding_format="float").data
    assert len(one.embedding) > 300 and one.embedding != two.embedding


def llama_messages() -> None:
    done = claude().messages.create(model="chain", max_tokens=64, messages=HELLO)
    checked(Message, done)
    assert (done.content[0].text.strip(), done.stop_reason) == (RECITED, "end_turn")
    for event in claude_stream("chain"):
        checked(RawMessageStreamEvent, event)
    with claude().messages.stream(model="chain", max_tokens=64, messages=HELLO, tools=MESSAGE_TOOLS) as stream:
        (call,) = stream.get_final_message().content
    assert (call.type, call.input) == ("tool_use", {"city": "Bern"})
    assert claude().messages.count_tokens(model="chain", messages=HELLO).input_tokens > 5


def llama_errors() -> None:
    long: Any = [{"role": "user", "content": "word " * 8000}]
    error = raised(openai.BadRequestError, lambda: gpt().chat.completions.create(model="chain", messages=long))
    assert "context" in error.message


# --- the demo provider


def demo() -> None:
    chat = gpt().chat.completions
    assert chat.create(model="m", messages=HELLO).choices[0].message.content == "You said: hello"
    with chat.stream(model="m", messages=HELLO) as stream:
        stream.until_done()
        assert stream.get_final_completion().choices[0].message.content == "You said: hello"
    assert gpt().responses.create(model="m", input="hello").output_text == "You said: hello"
    with gpt().responses.stream(model="m", input="hello") as events:
        events.until_done()
        assert events.get_final_response().output_text == "You said: hello"
    assert len(gpt().embeddings.create(model="m", input="hello", encoding_format="float").data) == 1
    with claude().messages.stream(model="m", max_tokens=64, messages=HELLO) as talk:
        assert talk.get_final_text() == "You said: hello"
    assert claude().messages.create(model="m", max_tokens=64, messages=HELLO).usage.output_tokens == 3
    assert claude().messages.count_tokens(model="m", messages=HELLO).input_tokens == 1


# --- google-genai, by its own API


@functools.cache
def google() -> Any:
    """Kept: one that nobody holds is closed."""
    options = genai.types.HttpOptions(base_url=GIVEN["gemini"], retry_options=genai.types.HttpRetryOptions(attempts=1))
    return genai.Client(api_key=GIVEN["key"], http_options=options)


def gemini() -> Any:
    return google().models


def sdk_gemini() -> None:
    config = {"temperature": 0.5, "seed": 7, "max_output_tokens": 9, "system_instruction": "Be brief."}
    done = gemini().generate_content(model="gemini-2", contents="hello", config=config)
    assert (done.text, done.model_version, done.candidates[0].finish_reason.value) == (TEXT, "gemini-1", "STOP")
    assert (done.usage_metadata.total_token_count, done.usage_metadata.cached_content_token_count) == (15, 3)


def sdk_gemini_stream() -> None:
    chunks = list(gemini().generate_content_stream(model="gemini-2", contents="hello"))
    assert len(chunks) > 1 and "".join(each.text or "" for each in chunks) == TEXT
    assert chunks[-1].usage_metadata.candidates_token_count == 4


def sdk_gemini_tools() -> None:
    schema = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
    tools = [{"function_declarations": [{"name": "weather", "parameters": schema}]}]
    (call,) = gemini().generate_content(model="gemini-2", contents="hello", config={"tools": tools}).function_calls
    assert (call.name, call.args) == ("weather", {"city": "Bern"})


def sdk_gemini_counts_tokens() -> None:
    assert gemini().count_tokens(model="gemini-2", contents="hello").total_tokens == 11


def sdk_gemini_is_told_of_errors() -> None:
    error = raised(genai.errors.ClientError, lambda: gemini().generate_content(model="limited", contents="hello"))
    assert (error.code, error.status) == (429, "RESOURCE_EXHAUSTED")


def raised(kind: type[Exception], ask: Any) -> Any:
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was to be raised")


def main() -> None:
    said, sys.stdout = sys.stdout, sys.stderr  # LiteLLM prints
    for line in sys.stdin:
        try:
            globals()[line.strip()]()
            wrong = [each for each in seen() if each["problems"]]
            print(json.dumps(f"the provider: {wrong}" if wrong else None), file=said, flush=True)
        except Exception:
            print(json.dumps(f"{traceback.format_exc()}\nthe provider: {seen()}"), file=said, flush=True)


if __name__ == "__main__":
    main()
