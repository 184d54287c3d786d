"""What an answer cost in tokens, in one form for all APIs; what else it says of itself. Pure.

Input always includes what was read from and written to the provider's cache (Anthropic reports those beside it). A
number that a provider did not report stays None: it is unknown, not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec

from dataplane.llm.routes import Format


@dataclass(frozen=True, slots=True)
class Usage:
    """Names of fields are those of `llm.*`, spelt as Python has them."""

    input_tokens: int | None = None
    provider_input_tokens: int | None = None
    """As the provider counts them."""
    input_image_tokens: int | None = None
    input_text_tokens: int | None = None
    input_audio_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None
    output_image_tokens: int | None = None
    output_text_tokens: int | None = None
    output_audio_tokens: int | None = None
    reasoning_tokens: int | None = None
    provider_total_tokens: int | None = None
    count_tokens: int | None = None
    """The answer to a request to count them."""

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def over(self, less: Usage) -> Usage:
        """These, and those of `less` where these say nothing: events of a stream report one after the other."""
        if less is NO_USAGE:
            return self
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(less, **{name: value for name, value in said.items() if value is not None})


NO_USAGE: Final = Usage()


@dataclass(frozen=True, slots=True)
class Report:
    """What an answer, or an event of one, says of itself. `failed`: an error event's message; "": it is none."""

    usage: Usage = NO_USAGE
    model: str = ""
    tier: str = ""
    failed: str = ""
    is_last: bool = False
    """The stream is complete with it, as its format has it."""


NOTHING: Final = Report()
Raw = dict[str, Any]  # Any: JSON of a provider


def _count(values: Raw, *names: str) -> int | None:
    """The first of them that is a number of tokens."""
    for name in names:
        found = values.get(name)
        if type(found) is int and 0 <= found <= MOST:
            return found
    return None


MOST: Final = 2**31
"""What is more is no number of tokens: a provider cannot make sums overflow."""


def _part(values: Raw, *names: str) -> Raw:
    for name in names:
        found = values.get(name)
        if type(found) is dict:
            return found
    return {}


def _text(values: Raw, name: str) -> str:
    found = values.get(name)
    return found if type(found) is str else ""


def openai(usage: Raw) -> Usage:
    """`usage` of Completions, Responses, Embeddings and Realtime: the same under several names."""
    took = _part(usage, "prompt_tokens_details", "input_tokens_details", "input_token_details")
    gave = _part(usage, "completion_tokens_details", "output_tokens_details", "output_token_details")
    inputs = _count(usage, "prompt_tokens", "input_tokens")
    return Usage(
        input_tokens=inputs,
        provider_input_tokens=inputs,
        input_image_tokens=_count(took, "image_tokens"),
        input_text_tokens=_count(took, "text_tokens"),
        input_audio_tokens=_count(took, "audio_tokens"),
        cached_input_tokens=_count(took, "cached_tokens"),
        cache_creation_input_tokens=_count(took, "cache_write_tokens"),
        output_tokens=_count(usage, "completion_tokens", "output_tokens"),
        output_image_tokens=_count(gave, "image_tokens"),
        output_text_tokens=_count(gave, "text_tokens"),
        output_audio_tokens=_count(gave, "audio_tokens"),
        reasoning_tokens=_count(gave, "reasoning_tokens"),
        provider_total_tokens=_count(usage, "total_tokens"),
    )


def anthropic(usage: Raw) -> Usage:
    """`usage` of Messages, whose input does not have what the cache had."""
    own = _count(usage, "input_tokens")
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=None if own is None else own + (read or 0) + (written or 0),
        provider_input_tokens=own,
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        output_tokens=_count(usage, "output_tokens"),
        reasoning_tokens=_count(_part(usage, "output_tokens_details"), "thinking_tokens", "reasoning_tokens"),
    )


def google(usage: Raw) -> Usage:
    """`usageMetadata` of generateContent, which counts thoughts beside the answer."""
    answered, thought = _count(usage, "candidatesTokenCount"), _count(usage, "thoughtsTokenCount")
    inputs = _count(usage, "promptTokenCount")
    tools = _count(usage, "toolUsePromptTokenCount") or 0
    return Usage(
        input_tokens=None if inputs is None else inputs + tools,
        provider_input_tokens=inputs,
        cached_input_tokens=_count(usage, "cachedContentTokenCount"),
        output_tokens=None if answered is None and thought is None else (answered or 0) + (thought or 0),
        reasoning_tokens=thought,
        provider_total_tokens=_count(usage, "totalTokenCount"),
    )


def bedrock(usage: Raw) -> Usage:
    """`usage` of Converse, whose input does not have what the cache had."""
    own = _count(usage, "inputTokens")
    read, written = _count(usage, "cacheReadInputTokens"), _count(usage, "cacheWriteInputTokens")
    return Usage(
        input_tokens=None if own is None else own + (read or 0) + (written or 0),
        provider_input_tokens=own,
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        output_tokens=_count(usage, "outputTokens"),
        provider_total_tokens=_count(usage, "totalTokens"),
    )


def cohere(answer: Raw) -> Usage:
    """`meta` of Rerank: tokens where they are reported; Jina and others have OpenAI's `usage`."""
    tokens = _part(_part(answer, "meta"), "tokens", "billed_units")
    if tokens:
        inputs = _count(tokens, "input_tokens")
        return Usage(inputs, inputs, output_tokens=_count(tokens, "output_tokens"))
    return openai(_part(answer, "usage"))


# --- whole answers


def _of_openai(answer: Raw) -> Report:
    return Report(openai(_part(answer, "usage")), _text(answer, "model"), _text(answer, "service_tier"))


def _of_messages(answer: Raw) -> Report:
    usage = _part(answer, "usage")
    return Report(anthropic(usage), _text(answer, "model"), _text(usage, "service_tier"))


def _of_rerank(answer: Raw) -> Report:
    return Report(cohere(answer), _text(answer, "model"))


def _of_token_count(answer: Raw) -> Report:
    return Report(Usage(count_tokens=_count(answer, "input_tokens")))


def _of_generate_content(answer: Raw) -> Report:
    return Report(google(_part(answer, "usageMetadata")), _text(answer, "modelVersion"))


def _of_converse(answer: Raw) -> Report:
    return Report(bedrock(_part(answer, "usage")), tier=_text(_part(answer, "serviceTier"), "type"))


def of_realtime(event: Raw) -> Report:
    """Of a `response.done`."""
    response = _part(event, "response")
    return Report(openai(_part(response, "usage")), _text(response, "model"), is_last=True)


def cached_audio(event: Raw) -> int:
    """Tokens of audio of a `response.done` that the provider's cache had: they are among those of audio as well."""
    took = _part(_part(_part(event, "response"), "usage"), "input_token_details")
    return _count(_part(took, "cached_tokens_details"), "audio_tokens") or 0


ANSWERS: Final[dict[Format, Callable[[Raw], Report]]] = {
    Format.COMPLETIONS: _of_openai,
    Format.MESSAGES: _of_messages,
    Format.RESPONSES: _of_openai,
    Format.GENERATE_CONTENT: _of_generate_content,
    Format.CONVERSE: _of_converse,
    Format.EMBEDDINGS: _of_openai,
    Format.RERANK: _of_rerank,
    Format.TOKEN_COUNT: _of_token_count,
}


def of_answer(form: Format, answer: Any) -> Report:  # Any: JSON of a provider
    """Of a whole body that is no error."""
    return ANSWERS[form](answer) if type(answer) is dict and form in ANSWERS else NOTHING


# --- events of streams


def _completions_event(event: Raw) -> Report:
    failed = event.get("error")
    if failed:
        return Report(failed=_message(failed))
    choices = event.get("choices")
    ends = type(choices) is list and any(type(each) is dict and each.get("finish_reason") for each in choices)
    return replace(_of_openai(event), is_last=ends)


def _messages_event(event: Raw) -> Report:
    kind = event.get("type")
    if kind == "message_start":
        return _of_messages(_part(event, "message"))
    if kind == "message_delta":
        return Report(anthropic(_part(event, "usage")))
    if kind == "error":
        return Report(failed=_message(event.get("error")))
    return Report(is_last=True) if kind == "message_stop" else NOTHING


_LAST_RESPONSES: Final = ("response.completed", "response.incomplete", "response.failed")


def _responses_event(event: Raw) -> Report:
    kind = event.get("type")
    if kind == "error":
        return Report(failed=_message(event))
    found = _of_openai(_part(event, "response"))
    return replace(found, is_last=True) if kind in _LAST_RESPONSES else found


def _message(error: Any) -> str:  # Any: as above
    text = error.get("message") if type(error) is dict else error
    return text if type(text) is str and text else "the provider reported an error"


EVENTS: Final[dict[Format, Callable[[Raw], Report]]] = {
    Format.COMPLETIONS: _completions_event,
    Format.MESSAGES: _messages_event,
    Format.RESPONSES: _responses_event,
}

DONE: Final = b"[DONE]"
"""The last event of a stream of Completions, which is no JSON."""
_json: Final = msgspec.json.Decoder()


def of_event(form: Format, data: bytes) -> Report:
    """`data` of an event; what is no JSON says nothing."""
    if data == DONE:
        return Report(is_last=True)
    event = parsed(data)
    return EVENTS[form](event) if type(event) is dict and form in EVENTS else NOTHING


def parsed(data: bytes) -> Any:  # Any: JSON of a provider
    """None where it is none."""
    try:
        return _json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
