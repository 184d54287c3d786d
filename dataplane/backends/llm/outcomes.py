"""Calls of LLMs as metrics, with the names and units of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import facts as known_facts
from dataplane.llm.routes import Format
from dataplane.telemetry.metric_rows.llm import COST, DURATION, FIRST_TOKEN, NANO, PER_TOKEN, TOKENS, UNPRICED

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.exchange import TracedCall
    from dataplane.llm.routes import RouteType
    from dataplane.telemetry.metric import Extra

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


MOST_USD: Final = 10_000
"""Of one call that are counted: a number of tokens is whatever a provider says."""


def operation(route: RouteType) -> str:
    return OPERATIONS.get(route) or route.lower()


def _labels(route: RouteType, facts: Facts) -> tuple[str, str, str, str]:
    """Operation, provider, model of the request, model of the answer."""
    known = _known  # none of these is made later
    return (
        operation(route),
        known(facts, "provider", ""),
        known(facts, "requestModel", ""),
        known(facts, "responseModel", ""),
    )


_known: Final = dict.get


def first_token(x: LlmExchange, route: RouteType, facts: Facts, seconds: float) -> None:
    x.context.recorder.observe_for(x, FIRST_TOKEN, seconds, *_labels(route, facts)[:3])


def record(x: LlmExchange, route: RouteType, facts: Facts, seconds: float, traced: TracedCall | None = None) -> None:
    """A call is over, that many seconds after it began. `traced`: its span."""
    facts["operation"] = operation(route)
    labels = _labels(route, facts)
    if traced is not None:
        describe(traced, route, facts)
    counts = [(kind, count) for kind, name in TYPES if (count := _known(facts, name))]
    first, tokens = _known(facts, "timeToFirstToken"), _known(facts, "outputTokens")
    each = None
    if first is not None and tokens and tokens > 1:
        each = (seconds - first / 1e9) / (tokens - 1)
        facts["timePerOutputToken"] = known_facts.seconds(each)
    metrics, of_call = x.context.recorder.metrics, labels[:3]

    def note(extra: Extra) -> None:
        metrics.observe(metrics.labelled(DURATION, of_call, extra), seconds)
        for kind, amount in counts:
            metrics.observe_amount(metrics.labelled(TOKENS, (*labels, kind), extra), amount)
        if each is not None:
            metrics.observe(metrics.labelled(PER_TOKEN, of_call, extra), each)

    x.context.recorder.measure(x, note)
    _record_cost(x, facts, labels)


def describe(traced: TracedCall, route: RouteType, facts: Facts) -> None:
    """Say of the span of a candidate what was asked and what is known of its answer."""
    traced.describe(*_about(_labels(route, facts), facts))


def _about(labels: tuple[str, str, str, str], facts: Facts) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Name and attributes of the span of a candidate, by the conventions for generative AI."""
    names = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model")
    found: list[tuple[str, Any]] = [(name, value) for name, value in zip(names, labels, strict=True) if value]
    for name, key in (("gen_ai.usage.input_tokens", "inputTokens"), ("gen_ai.usage.output_tokens", "outputTokens")):
        if (count := _known(facts, key)) is not None:
            found.append((name, count))
    return f"{labels[0]} {labels[2]}".rstrip(), tuple(found)


def _record_cost(x: LlmExchange, facts: Facts, labels: tuple[str, str, str, str]) -> None:
    cost = facts.get("cost")
    total = None if cost is None else cost.get("total")
    if total is not None:
        x.context.recorder.add_for(x, COST, round(min(total, MOST_USD) * NANO), *labels)
    elif facts.get("totalTokens"):
        _, provider, asked, answered = labels
        x.context.recorder.count(UNPRICED, provider, answered or asked)
