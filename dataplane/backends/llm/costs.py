"""What a call costs (`llm.cost`, `llm.costRates`), computed when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.llm.prices import cost as of_tokens
from dataplane.llm.prices import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.llm.facts import Facts
    from dataplane.llm.prices import Prices, Rates


class Money(dict[str, float]):
    """`llm.cost` or `llm.costRates`, made when it is first asked for; empty: the model has no price."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], dict[str, float]]) -> None:
        super().__init__()
        self._make: Callable[[], dict[str, float]] | None = make

    def get(self, name: str, default: Any = None) -> Any:  # Any: as of `dict`
        make, self._make = self._make, None
        if make is not None:
            self.update(make())
        return super().get(name, default)


def money(facts: Facts, prices: Prices, models: tuple[str, ...]) -> tuple[Money, Money]:
    """What the tokens that are known by now cost, and the rates. `models`: as the provider calls it, the surest name
    first."""

    def rates() -> Rates | None:
        return prices.rates(facts.get("provider", ""), models, facts.get("serviceTier", ""))

    def cost() -> dict[str, float]:
        found = rates()
        parts = None if found is None else of_tokens(found, facts)
        return {} if parts is None else {name: float(part) for name, part in parts.items()}

    def of_model() -> dict[str, float]:
        found = rates()
        return {} if found is None else shown(found)

    return Money(cost), Money(of_model)
