"""What models cost: a small catalogue of Gatewright's, and a user's prices over it (docs/llm/prices.md). Decimal, and
pure.

A price is of a million tokens, in USD. A model without a price has none: its cost is unknown, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple

MILLION: Final = Decimal(1_000_000)
_DATE: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
"""What providers put behind the name of a model for one version of it."""


class Rates(NamedTuple):
    """None: it has no price of its own. Then cached input and sound are input, reasoning and sound are output."""

    input: Decimal
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None
    input_audio: Decimal | None = None
    output_audio: Decimal | None = None


class Price(NamedTuple):
    """Of one model. `tiers`: of requests that the provider served in a tier of this name ("batch", "flex")."""

    rates: Rates
    tiers: Mapping[str, Rates] = {}


class Prices:
    """By model, or by `<provider>/<model>`, which wins."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, Price]) -> None:
        self._rows = rows

    def over(self, less: Prices) -> Prices:
        """These, and those of `less` for models that these do not have."""
        return Prices({**less._rows, **self._rows})

    def rates(self, provider: str, models: Iterable[str], tier: str = "") -> Rates | None:
        """Of the first of `models` that has a price; of one with a date behind it, also by its name without."""
        for model in models:
            for name in _names(provider, model):
                price = self._rows.get(name)
                if price is not None:
                    return price.tiers.get(tier, price.rates)
        return None

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Prices({len(self._rows)} models)"


def _names(provider: str, model: str) -> Iterator[str]:
    plain = _DATE.sub("", model)
    for name in (model, plain) if plain != model else (model,):
        yield f"{provider}/{name}"
        yield name


# --- what a call cost


class Part(NamedTuple):
    """Some of the tokens of a call. `apart`: of whose number these are a part, which is priced without them."""

    name: str
    tokens: str
    rate: str
    otherwise: str
    apart: tuple[str, ...] = ()


_OF_INPUT: Final = ("cachedInputTokens", "cacheCreationInputTokens", "inputAudioTokens")
_OF_OUTPUT: Final = ("reasoningTokens", "outputAudioTokens")
PARTS: Final = (
    Part("input", "inputTokens", "input", "input", _OF_INPUT),
    Part("cacheRead", "cachedInputTokens", "cache_read", "input"),
    Part("cacheWrite", "cacheCreationInputTokens", "cache_write", "input"),
    Part("inputAudio", "inputAudioTokens", "input_audio", "input"),
    Part("output", "outputTokens", "output", "output", _OF_OUTPUT),
    Part("reasoning", "reasoningTokens", "reasoning", "output"),
    Part("outputAudio", "outputAudioTokens", "output_audio", "output"),
)
"""Parts of `llm.cost`, and which of `llm.*` counts each."""


def cost(rates: Rates, counts: Mapping[str, Any]) -> dict[str, Decimal] | None:
    """USD, by name of `PARTS`, and `total`. `counts`: `llm.*`. None: nothing was counted, or what was has no price."""
    if counts.get("inputTokens") is None and counts.get("outputTokens") is None:
        return None
    found: dict[str, Decimal] = {}
    for part in PARTS:
        tokens = _count(counts, part.tokens) - sum(_count(counts, each) for each in part.apart)
        rate = _rate(rates, part)
        if tokens > 0 and rate is None:
            return None
        found[part.name] = max(tokens, 0) * (rate or Decimal()) / MILLION
    found["total"] = sum(found.values(), Decimal())
    return found


def _count(counts: Mapping[str, Any], name: str) -> int:
    found = counts.get(name)
    return found if isinstance(found, int) else 0


def _rate(rates: Rates, part: Part) -> Decimal | None:
    own: Decimal | None = getattr(rates, part.rate)
    return getattr(rates, part.otherwise) if own is None else own


def shown(rates: Rates) -> dict[str, float]:
    """`llm.costRates`: those that count, a million tokens each."""
    found = {part.name: _rate(rates, part) for part in PARTS}
    return {name: float(rate) for name, rate in found.items() if rate is not None}


# --- where they come from


def price(text: str) -> Decimal:
    """Of a wire message, or a row of the catalogue. Raises `ValueError`."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,12})?", text):
        raise ValueError(f"{text!r} is no price")
    return Decimal(text)


@cache
def catalogue() -> Prices:
    """Gatewright's own."""
    from dataplane.llm.price_list import ROWS  # by the first cost

    return Prices({name: _priced(cells, discounts) for name, cells, discounts in ROWS})


def _priced(cells: str, discounts: tuple[str, ...] = ()) -> Price:
    """`cells`: input, output, cached input read and written, "-" for none; `discounts`: tiers at half of it."""
    found = [None if cell == "-" else price(cell) for cell in cells.split()]
    assert found[0] is not None  # every row has it
    rates = Rates(found[0], *found[1:])
    half = Rates(*(None if rate is None else rate / 2 for rate in rates))  # type: ignore[arg-type]  # input is there
    return Price(rates, dict.fromkeys(discounts, half))
