"""Local rate limits: how many requests, or tokens of models, one proxy lets through (spec 2, Rate limits).

Each limit is a bucket that fills all the time and holds `rate + burst`; there is one for each policy and target,
counted once per proxy (`link/buckets`). Of several limits all are checked, then all are taken from: what one refuses
costs the others nothing. How many tokens a request needs is known at its end, so a limit of tokens asks for one that is
there, and the end takes what it was; a bucket may owe tokens until it has filled again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.conditional import conditional
from dataplane.chain.filter import EndHook, Env, Filter, Refused, RequestHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.link.buckets import Meter, Rate
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "rate_limit"

TOKENS: Final = "llm.totalTokens"
"""Where the model's backend leaves what a request came to."""

_SECONDS = {
    traffic_pb2.UNIT_SECONDS: 1,
    traffic_pb2.UNIT_MINUTES: 60,
    traffic_pb2.UNIT_HOURS: 3600,
}


def build(config: traffic_pb2.RateLimit, env: Env) -> Filter | None:
    """Raises `Refused` for a limit without an amount or a unit, and where there is nothing to count in."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    if not config.local:
        return None
    if env.buckets is None:
        raise Refused("there is nothing to count in")
    rates = tuple(_rate(limit, f"local[{index}]") for index, limit in enumerate(config.local))
    meter = env.buckets.meter(env.origin.key, rates)
    names = tuple(f"{env.origin} local[{index}]" for index in range(len(rates)))
    settled = tuple(index for index, rate in enumerate(rates) if not rate.is_charged)
    return Filter(
        NAME,
        request=_request_hook(meter, env.clock, lambda levels: _refusal(rates, names, levels)),
        end=_end_hook(meter, env.clock, settled) if settled else None,
    )


def _rate(limit: traffic_pb2.LocalRateLimit, where: str) -> Rate:
    amount = limit.WhichOneof("amount")
    count = 0 if amount is None else getattr(limit, amount)
    seconds = _SECONDS.get(limit.unit)
    if not count:
        raise Refused(f"{where}: requests or tokens must be at least 1")
    if seconds is None:
        raise Refused(f"{where}.unit: {limit.unit} is not known to this proxy")
    return Rate(seconds / count, count + limit.burst, is_charged=amount == "requests")


def _request_hook(meter: Meter, clock: Callable[[], float], refuse: Callable[[Sequence[float]], Reply]) -> RequestHook:
    take = meter.take

    def limit(x: Exchange) -> Reply | None:
        levels = take(clock())
        return None if levels is None else refuse(levels)

    return limit


def _end_hook(meter: Meter, clock: Callable[[], float], limits: Sequence[int]) -> EndHook:
    spend = meter.spend

    def settle(x: Exchange) -> None:
        tokens: Any = None if x.attributes is None else x.attributes.get(TOKENS)
        if isinstance(tokens, int) and tokens > 0:
            now = clock()
            for index in limits:
                spend(now, index, tokens)

    return settle


def _refusal(rates: Sequence[Rate], names: Sequence[str], levels: Sequence[float]) -> Reply:
    """Of the limit that makes one wait longest; `levels` as `buckets.Take` answers."""
    waits = [level - rate.room for rate, level in zip(rates, levels, strict=True)]
    wait = max(waits)
    index = waits.index(wait)
    rate, level = rates[index], levels[index]
    remaining = max(0, math.floor(rate.capacity - level / rate.interval))
    return _reply(names[index], rate.capacity, remaining, math.ceil(level), max(1, math.ceil(wait)))


@lru_cache(256)
def _reply(name: str, limit: int, remaining: int, reset: int, retry_after: int) -> Reply:
    """`reset`: seconds until the bucket is full; `retry_after`: until it has a token (RFC 9110 10.2.3)."""
    headers = b"retry-after: %d\r\nx-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"
    return made("RateLimited", name, headers % (retry_after, limit, remaining, reset))
