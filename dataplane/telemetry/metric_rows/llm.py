"""Metrics of LLM providers, by the names of OpenTelemetry's conventions for generative AI. Models are those that
clients name: beyond the limit they are counted together."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric import AMOUNTS, Metric

TOKENS: Final = "gen_ai_client_token_usage"
DURATION: Final = "gen_ai_client_operation_duration_seconds"
FIRST_TOKEN: Final = "gen_ai_server_time_to_first_token_seconds"
PER_TOKEN: Final = "gen_ai_server_time_per_output_token_seconds"
GUARDS: Final = "llm_guard_checks_total"
UNGUARDED: Final = "llm_unguarded_requests_total"
FAILED_TRIES: Final = "llm_failed_tries_total"
COST: Final = "llm_cost_usd_total"
UNPRICED: Final = "llm_unpriced_requests_total"
NANO: Final = 1_000_000_000
_LABELS: Final = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")

ROWS: Final = (
    Metric(
        TOKENS,
        "histogram",
        "Tokens of a call of an LLM, by kind: input, output, and of these cache_read, cache_write, reasoning",
        (*_LABELS, "gen_ai_response_model", "gen_ai_token_type"),
        512,
        bounds=AMOUNTS,
        per_request=True,
    ),
    Metric(
        DURATION,
        "histogram",
        "From the begin of a call of an LLM to the end of its answer",
        _LABELS,
        64,
        per_request=True,
    ),
    Metric(
        FIRST_TOKEN, "histogram", "From the begin of a streamed call to the first token", _LABELS, 64, per_request=True
    ),
    Metric(
        PER_TOKEN, "histogram", "Between two tokens of a streamed answer, on average", _LABELS, 64, per_request=True
    ),
    Metric(
        GUARDS,
        "counter",
        "What guards have judged: Request or Response; Allow, Mask, Reject, Unavailable or FailOpen",
        ("guard", "phase", "action"),
        64,
    ),
    Metric(
        UNGUARDED,
        "counter",
        "Requests that no guard has judged on routes with guards, by route type",
        ("route_type",),
        16,
    ),
    Metric(
        COST,
        "counter",
        "What calls of LLMs cost, in USD, by prices of the configuration and of the proxy's catalogue",
        (*_LABELS, "gen_ai_response_model"),
        256,
        per_unit=NANO,
        per_request=True,
    ),
    Metric(
        UNPRICED,
        "counter",
        "Calls of LLMs with tokens and without a cost: their model has no price",
        ("gen_ai_provider_name", "gen_ai_response_model"),
        64,
    ),
    Metric(
        FAILED_TRIES,
        "counter",
        "Tries at LLM providers that failed, after which another one was asked, by what they came to",
        ("provider", "outcome"),
        128,
    ),
)
