"""Log fields of LLM providers: `llm.*` of a call, by the names of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_field import OWN, Field, Group, Value
from dataplane.telemetry.log_values import cut

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def _of_call(name: str) -> Value:
    known = dict.get  # nothing of these is made when it is asked for, as messages are

    def value(x: Exchange, took: float) -> str | int | None:
        values: Any = None if x.attributes is None else x.attributes.get("llm")  # a dict of attributes, or None
        found = None if values is None else known(values, name)
        if found is None:
            return None
        return cut(found) or None if isinstance(found, str) else int(found)

    return value


def _cost(x: Exchange, took: float) -> str | None:
    values: Any = None if x.attributes is None else x.attributes.get("llm")  # as above
    cost = None if values is None else values.get("cost")
    total = None if cost is None else cost.get("total")
    return None if total is None else f"{total:.9f}".rstrip("0").rstrip(".")


def _milliseconds(name: str) -> Value:
    of_call = _of_call(name)

    def value(x: Exchange, took: float) -> int | None:
        found = of_call(x, took)
        return None if not isinstance(found, int) else found // 1_000_000

    return value


def _mark(name: str) -> Value:
    of_call = _of_call(name)

    def value(x: Exchange, took: float) -> str | None:
        return "true" if of_call(x, took) else None

    return value


GROUP: Final = Group(
    lambda x: x.attributes is not None and "llm" in x.attributes,
    (
        Field(
            "gen_ai.operation.name",
            "chat, embeddings, rerank, count_tokens or the route type",
            _of_call("operation"),
            fact="operation",
        ),
        Field("gen_ai.provider.name", "the provider that was asked", _of_call("provider"), fact="provider"),
        Field("gen_ai.request.model", "the model that the client names", _of_call("requestModel"), fact="requestModel"),
        Field("gen_ai.response.model", "the model that has answered", _of_call("responseModel"), fact="responseModel"),
        Field(
            "gen_ai.usage.input_tokens",
            "tokens of the request, cached ones included",
            _of_call("inputTokens"),
            fact="inputTokens",
        ),
        Field("gen_ai.usage.output_tokens", "tokens of the answer", _of_call("outputTokens"), fact="outputTokens"),
        Field(
            "gen_ai.usage.cache_read.input_tokens",
            "of the input, read from a cache",
            _of_call("cachedInputTokens"),
            fact="cachedInputTokens",
        ),
        Field(
            "gen_ai.usage.cache_creation.input_tokens",
            "of the input, written to a cache",
            _of_call("cacheCreationInputTokens"),
            fact="cacheCreationInputTokens",
        ),
        Field(
            "gen_ai.usage.reasoning_tokens",
            "of the output, spent on reasoning",
            _of_call("reasoningTokens"),
            fact="reasoningTokens",
            attribute="gen_ai.usage.reasoning.output_tokens",
        ),
        Field(
            "llm.time_to_first_token_ms",
            "milliseconds to the first token of a stream",
            _milliseconds("timeToFirstToken"),
            fact="timeToFirstToken",
            attribute=f"{OWN}llm.time_to_first_token_ms",
        ),
        Field(
            "llm.time_per_output_token_ms",
            "milliseconds between two tokens of a stream, on average",
            _milliseconds("timePerOutputToken"),
            fact="timePerOutputToken",
            attribute=f"{OWN}llm.time_per_output_token_ms",
        ),
        Field(
            "llm.usage_estimated",
            "true: the provider reported no tokens before the call ended, or does not count them; they are estimated",
            _mark("usageEstimated"),
            fact="usageEstimated",
            attribute=f"{OWN}llm.usage_estimated",
        ),
        Field(
            "llm.dropped",
            "fields of the request that the provider's API cannot carry",
            _of_call("dropped"),
            fact="dropped",
            attribute=f"{OWN}llm.dropped",
        ),
        Field(
            "llm.cost_usd",
            "what the call cost; absent where its model has no price",
            _cost,
            fact="cost",
            attribute=f"{OWN}llm.cost_usd",
        ),
        Field(
            "llm.candidates",
            "providers that were asked, each with what came of it and milliseconds",
            _of_call("candidates"),
            fact="candidates",
            attribute=f"{OWN}llm.candidates",
        ),
    ),
    facts="llm",
    answers=("llm.completion", "llm.toolCalls"),
)
