"""Keys of LiteLLM's configuration: which are carried over, and why others are not."""

from __future__ import annotations

from typing import Final

BODY: Final = frozenset(
    ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "presence_penalty", "user",
     "frequency_penalty", "reasoning_effort", "n", "response_format", "logit_bias", "parallel_tool_calls")
)  # fmt: skip
"""Parameters that are fields of the body: defaults, as LiteLLM has them."""
READ: Final = frozenset(
    ("model", "api_key", "api_base", "base_url", "api_version", "timeout", "request_timeout", "input_cost_per_token",
     "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost")
)  # fmt: skip
UNKNOWN: Final = "not known here: not carried"
CARRIED: Final = {
    "litellm_settings": frozenset(
        ("fallbacks", "default_fallbacks", "num_retries", "request_timeout", "allowed_fails", "cooldown_time")
    ),
    "router_settings": frozenset(
        (
            "fallbacks",
            "default_fallbacks",
            "num_retries",
            "timeout",
            "allowed_fails",
            "cooldown_time",
            "model_group_alias",
        )
    ),
    "general_settings": frozenset(("master_key",)),
}
REASONS: Final = {
    "rpm": "limits of one deployment: see backend.limits and rateLimit",
    "tpm": "limits of one deployment: see rateLimit.local[].tokens",
    "weight": "providers of one group are equal: see their health",
    "order": "use groups: the first is asked first",
    "stream_timeout": "see backend.ai.firstEventTimeout",
    "database_url": "keys are Secrets here: see docs/llm/keys.md",
    "drop_params": "see backend.ai.unsupportedFields",
    "routing_strategy": "equal providers are chosen by latency, requests in flight and health",
    "callbacks": "see frontend.accessLog and frontend.tracing",
    "success_callback": "see frontend.accessLog and frontend.tracing",
    "failure_callback": "see frontend.accessLog and frontend.tracing",
    "guardrails": "see backend.ai.promptGuard",
    "cache": "answers are not cached",
    "cache_params": "answers are not cached",
    "redis_host": "counters of one proxy are its own; see gatewright ratelimit",
    "redis_port": "counters of one proxy are its own; see gatewright ratelimit",
    "redis_password": "counters of one proxy are its own; see gatewright ratelimit",
    "context_window_fallbacks": "an answer that blames the request passes: there is no other provider then",
    "content_policy_fallbacks": "an answer that blames the request passes: there is no other provider then",
}
