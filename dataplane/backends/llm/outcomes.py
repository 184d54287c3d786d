"""Calls of LLMs as metrics, with the names and units of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.llm import facts as known_facts
from dataplane.llm.routes import Format
from dataplane.telemetry.metric_rows.llm import DURATION, FIRST_TOKEN, PER_TOKEN, TOKENS

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.llm.routes import RouteType

OPERATIONS: Final[dict[RouteType, str]] = {
    Format.COMPLETIONS: "chat",
    Format.MESSAGES: "chat",
    Format.RESPONSES: "chat",
    Format.EMBEDDINGS: "embeddings",
    Format.RERANK: "rerank",
    Format.TOKEN_COUNT: "count_tokens",
}
"""`gen_ai.operation.name`; of what is not read, its route type in lower case."""
TYPES: Final = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_read", "cachedInputTokens"),
    ("cache_write", "cacheCreationInputTokens"),
    ("reasoning", "reasoningTokens"),
)
"""Kinds of tokens, and the variables that count them. The last three are parts of the others."""


def operation(route: RouteType) -> str:
    return OPERATIONS.get(route) or route.lower()


def _labels(route: RouteType, facts: Facts) -> tuple[str, str, str, str]:
    """Operation, provider, model of the request, model of the answer."""
    return (
        operation(route),
        facts.get("provider", ""),
        facts.get("requestModel", ""),
        facts.get("responseModel", ""),
    )


def first_token(x: LlmExchange, route: RouteType, facts: Facts, seconds: float) -> None:
    x.context.recorder.observe_for(x, FIRST_TOKEN, seconds, *_labels(route, facts)[:3])


def record(x: LlmExchange, route: RouteType, facts: Facts, seconds: float) -> None:
    """A call is over, that many seconds after it began."""
    facts["operation"] = operation(route)
    labels = _labels(route, facts)
    recorder = x.context.recorder
    recorder.observe_for(x, DURATION, seconds, *labels[:3])
    for kind, name in TYPES:
        count = facts.get(name)
        if count:
            recorder.observe_amount_for(x, TOKENS, count, *labels, kind)
    first, tokens = facts.get("timeToFirstToken"), facts.get("outputTokens")
    if first is not None and tokens and tokens > 1:
        each = (seconds - first / 1e9) / (tokens - 1)
        facts["timePerOutputToken"] = known_facts.seconds(each)
        recorder.observe_for(x, PER_TOKEN, each, *labels[:3])
