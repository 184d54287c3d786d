"""What models of LLM providers cost: the prices of a configuration, over the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.filter import Refused
from dataplane.table.store import decode

if TYPE_CHECKING:
    from dataplane.llm.prices import Prices, Rates
    from dataplane.table.swap import Swap
    from gatewright.wire.v1 import ai_pb2


def change_prices(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`; the last good version stays then."""
    store = swap.of.store
    if store.prices.get(key) == value:
        return
    if value is None:
        del store.prices[key]
    else:
        _read(decode(key, value).prices)
        store.prices[key] = value
    swap.prices = merged(store.prices)


def merged(prices: dict[str, bytes]) -> Prices | None:
    """All of them over each other, in the order of their keys, and over the catalogue. None: there are none."""
    from dataplane.llm.prices import catalogue

    if not prices:
        return None
    found = catalogue()
    for key in sorted(prices):
        found = _read(decode(key, prices[key]).prices).over(found)
    return found


def _read(message: ai_pb2.Prices) -> Prices:
    from dataplane.llm.prices import Price, Prices  # by the first prices

    rows = {}
    for each in message.models:
        try:
            tiers = {name: _rates(each.tiers[name]) for name in sorted(each.tiers)}
            rows[each.model] = Price(_rates(each.prices), tiers)
        except ValueError as error:
            raise Refused(f"models[{each.model}]: {error}") from None
    return Prices(rows)


def _rates(message: ai_pb2.TokenPrices) -> Rates:
    from dataplane.llm.prices import Rates, price

    given = {field.name: price(text) for field, text in message.ListFields()}
    if "input" not in given:
        raise ValueError("input: must be set")
    return Rates(**given)
