"""The catalogue of prices: models that many call, at the list prices that their providers have published.

Name, then USD of a million tokens: input, output, cached input that is read, cached input that is written; and the
tiers of service that cost half of it. Prices change: a user's own stand over these (docs/llm/prices.md).

As of November 2026. Each row is held against LiteLLM 1.110.2's table of published prices by
`tests/loopback/test_llm_price_list`; a model whose price that does not have is left out.
"""

from __future__ import annotations

from typing import Final

_HALF: Final = ("batch", "flex")

ROWS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("gpt-4o", "2.50 10 1.25", ("batch",)),
    ("gpt-4o-mini", "0.15 0.60 0.075", ("batch",)),
    ("gpt-4.1", "2 8 0.50", ("batch",)),
    ("gpt-4.1-mini", "0.40 1.60 0.10", ("batch",)),
    ("gpt-4.1-nano", "0.10 0.40 0.025", ("batch",)),
    ("gpt-5", "1.25 10 0.125", _HALF),
    ("gpt-5-mini", "0.25 2 0.025", _HALF),
    ("gpt-5-nano", "0.05 0.40 0.005", _HALF),
    ("o1", "15 60 7.50", ("batch",)),
    ("o3", "2 8 0.50", _HALF),
    ("o3-mini", "1.10 4.40 0.55", ("batch",)),
    ("o4-mini", "1.10 4.40 0.275", _HALF),
    ("text-embedding-3-small", "0.02", ("batch",)),
    ("text-embedding-3-large", "0.13", ("batch",)),
    ("claude-opus-4-5", "5 25 0.50 6.25", ("batch",)),
    ("claude-sonnet-4-5", "3 15 0.30 3.75", ("batch",)),
    ("claude-haiku-4-5", "1 5 0.10 1.25", ("batch",)),
    ("gemini-2.5-flash", "0.30 2.50 0.03", _HALF),
    ("gemini-2.5-flash-lite", "0.10 0.40 0.01", _HALF),
)
