"""Local rate limits: how many requests, or tokens of models, one proxy lets through.

Each limit is a bucket that fills all the time and holds `rate + burst`; there is one for each policy and target,
counted once per proxy (`link/buckets`). Of several limits all are checked, then all are taken from: what one refuses
costs the others nothing. How many tokens a request needs is known at its end, so a limit of tokens asks for one that is
there, and the end takes what it was; a bucket may owe tokens until it has filled again.

A limit with a key has a bucket for each value of an expression (`link/keyed`). Requests for which it fails, or has a
value that is no text, share one: a client that makes it fail gets the same bucket as all who do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataplane.chain import expressions, limits
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import EndHook, Env, Filter, Refused, RequestHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.link import keyed
from dataplane.link.buckets import Meter, Rate
from gatewright.cel.errors import CelError
from gatewright.cel.values import NONE, Optional, Redacted
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

NAME = "rate_limit"

_SECONDS = {
    traffic_pb2.UNIT_SECONDS: 1,
    traffic_pb2.UNIT_MINUTES: 60,
    traffic_pb2.UNIT_HOURS: 3600,
}


def build(config: traffic_pb2.RateLimit, env: Env) -> Filter | None:
    """Of `local`. Raises `Refused` for a limit without an amount or a unit, and where there is nothing to count in."""
    if not config.local:
        return None
    if env.buckets is None:
        raise Refused("there is nothing to count in")
    rates = tuple(_rate(limit, f"local[{index}]") for index, limit in enumerate(config.local))
    names = tuple(
        Name(f"{env.origin} local[{index}]", _shown(limit, rate))
        for index, (limit, rate) in enumerate(zip(config.local, rates, strict=True))
    )
    at_end = tuple(index for index, rate in enumerate(rates) if not rate.is_charged)

    def refuse(levels: Sequence[float]) -> Reply:
        return _refusal(rates, names, levels)

    programs = _programs(config)
    if programs:
        return _keyed(config, env, rates, programs, refuse, at_end)
    meter = env.buckets.meter(env.origin.key, rates)
    return Filter(
        NAME,
        request=_request_hook(meter, env.clock, refuse, rates if at_end else ()),
        end=_end_hook(meter, env.clock, at_end) if at_end else None,
    )


class Name(NamedTuple):
    """Of a limit: for the log, and for the client that it refuses."""

    full: str
    shown: str


def _shown(limit: traffic_pb2.LocalRateLimit, rate: Rate) -> str:
    what, unit = limit.WhichOneof("amount"), traffic_pb2.Unit.Name(limit.unit).removeprefix("UNIT_").lower()
    extra = f", {limit.burst} more at once" if limit.burst else ""
    return f"{getattr(limit, what)} {what} per {unit.removesuffix('s')}{extra}"


def _rate(limit: traffic_pb2.LocalRateLimit, where: str) -> Rate:
    amount = limit.WhichOneof("amount")
    count = 0 if amount is None else getattr(limit, amount)
    seconds = _SECONDS.get(limit.unit)
    if not count:
        raise Refused(f"{where}: requests or tokens must be at least 1")
    if seconds is None:
        raise Refused(f"{where}.unit: {limit.unit} is not known to this proxy")
    return Rate(seconds / count, count + limit.burst, is_charged=amount == "requests")


Refuse = Callable[[Sequence[float]], Reply]


def _request_hook(
    meter: Meter, clock: Callable[[], float], refuse: Refuse, lasting: Sequence[Rate] = ()
) -> RequestHook:
    """`lasting`: the rates, where an exchange that lasts is counted on its way."""
    take = meter.take

    def limit(x: Exchange) -> Reply | None:
        levels = take(clock())
        if levels is not None:
            return refuse(levels)
        if lasting and x.upgrade:
            limits.add(x, Lasting(lasting, take, meter.spend, clock, refuse))
        return None

    return limit


class Lasting:
    """Of an exchange that lasts (`limits.Running`): its tokens are taken as it goes on."""

    __slots__ = ("_clock", "_rates", "_refuse", "_spend", "_take")

    def __init__(
        self,
        rates: Sequence[Rate],
        take: Callable[[float], Sequence[float] | None],
        spend: Callable[[float, int, float], None],
        clock: Callable[[], float],
        refuse: Refuse,
    ) -> None:
        self._rates, self._take, self._spend, self._clock, self._refuse = rates, take, spend, clock, refuse

    def used(self, tokens: int) -> None:
        for index, rate in enumerate(self._rates):
            if not rate.is_charged:
                self._spend(self._clock(), index, tokens)

    def refusal(self) -> Reply | None:
        """Of limits of tokens alone: the exchange was counted as a request when it began."""
        now = self._clock()
        levels = self._take(now)
        if levels is None:
            for index, rate in enumerate(self._rates):
                if rate.is_charged:
                    self._spend(now, index, -1)  # it was none
            return None
        of_tokens = [0.0 if rate.is_charged else level for rate, level in zip(self._rates, levels, strict=True)]
        if all(level <= rate.tolerance for rate, level in zip(self._rates, of_tokens, strict=True)):
            return None
        return self._refuse(of_tokens)


def _programs(config: traffic_pb2.RateLimit) -> dict[str, Program]:
    """Of the keys of limits. Raises `Refused`."""
    texts = dict.fromkeys(limit.key for limit in config.local if limit.key)
    return {text: expressions.compiled(text, "request", _where(config, text)) for text in texts}


def _keyed(
    config: traffic_pb2.RateLimit,
    env: Env,
    rates: Sequence[Rate],
    programs: Mapping[str, Program],
    refuse: Refuse,
    at_end: Sequence[int],
) -> Filter:
    """Where a limit has a key. Limits with the same one ask for its value once, when the request is let through: what
    it comes to is taken from the buckets of the same values."""
    assert env.buckets is not None
    texts = list(programs)
    found = [
        keyed.Limit(rate, texts.index(limit.key) if limit.key else None)
        for limit, rate in zip(config.local, rates, strict=True)
    ]
    origin, clock = env.origin, env.clock
    policy = f"{origin.policy}|{origin.field}|{origin.digest}|{origin.item}"
    take, spend = keyed.meter_of(env.buckets, origin.key, policy, found)
    keys = tuple(map(_key_of, programs.values()))
    state = f"rateLimit.keys|{origin.key}"

    def limit(x: Exchange) -> Reply | None:
        values = [key(x) for key in keys]
        levels = take(clock(), values)
        if levels is not None:
            return refuse(levels)
        if at_end:
            x.leave(state, values)
            if x.upgrade:
                limits.add(x, lasting(values))
        return None

    def lasting(values: list[bytes]) -> Lasting:
        def take_again(now: float) -> Sequence[float] | None:
            return take(now, values)

        def spend_again(now: float, index: int, tokens: float) -> None:
            spend(now, index, values, tokens)

        return Lasting(rates, take_again, spend_again, clock, refuse)

    def charge(x: Exchange) -> None:
        values: Any = None if x.attributes is None else x.attributes.get(state)
        used = _tokens_left(x)
        if values is not None and used:
            now = clock()
            for index in at_end:
                spend(now, index, values, used)

    whose = expressions.reads_request_body(programs.values())
    return Filter(
        NAME,
        request=buffering(limit, env.buffer_limit, made("BodyTooLarge", str(origin)), whose) if whose else limit,
        end=charge if at_end else None,
        writes=expressions.headers_read(programs.values()),
    )


def _where(config: traffic_pb2.RateLimit, text: str) -> str:
    return f"local[{[limit.key for limit in config.local].index(text)}].key"


NO_VALUE: Final = b""
"""What all requests have in common for which a key fails; values have something before them."""


def _key_of(program: Program) -> Callable[[Exchange], bytes]:
    evaluate = program.evaluate

    def key(x: Exchange) -> bytes:
        try:
            return _key(evaluate(x))
        except CelError:
            return NO_VALUE

    return key


def _key(value: Any) -> bytes:
    """A value as a key: equal texts are equal keys, and a secret is only equal to itself."""
    if isinstance(value, str):
        text = value.unredacted() if type(value) is Redacted else value
        return b"=" + text.encode("utf-8", "surrogatepass")
    if type(value) is Optional:
        return NO_VALUE if value is NONE else _key(value.value)
    found = expressions.header_value(value)
    if found is None:
        found = _address(value)
    return NO_VALUE if found is None else b"=" + found


def _address(value: Any) -> bytes | None:
    from gatewright.cel.functions import network  # here: it is loaded with the first expression

    if isinstance(value, network.Address):
        return network.ip_text(value).encode()
    return network.cidr_text(value).encode() if isinstance(value, network.Network) else None


def _end_hook(meter: Meter, clock: Callable[[], float], at_end: Sequence[int]) -> EndHook:
    spend = meter.spend

    def charge(x: Exchange) -> None:
        used = _tokens_left(x)
        if used:
            now = clock()
            for index in at_end:
                spend(now, index, used)

    return charge


def tokens_used(x: Exchange) -> int:
    """By a model for a request, input and output; 0 where none has answered."""
    llm: Any = None if x.attributes is None else x.attributes.get("llm")
    found = None if llm is None else llm.get("totalTokens")
    return found if isinstance(found, int) and found > 0 else 0


def _tokens_left(x: Exchange) -> int:
    """Those that were not counted on its way."""
    used = tokens_used(x)
    return used - limits.charged(x) if used and x.upgrade else used


def _refusal(rates: Sequence[Rate], names: Sequence[Name], levels: Sequence[float]) -> Reply:
    """Of the limit that makes one wait longest; `levels` as `buckets.Take` answers."""
    waits = [level - rate.tolerance for rate, level in zip(rates, levels, strict=True)]
    wait = max(waits)
    index = waits.index(wait)
    rate, level = rates[index], levels[index]
    remaining = max(0, math.floor(rate.capacity - level / rate.interval))
    return _reply(names[index], rate.capacity, remaining, math.ceil(level), max(1, math.ceil(wait)))


@lru_cache(256)
def _reply(name: Name, limit: int, remaining: int, reset: int, retry_after: int) -> Reply:
    """`reset`: seconds until the bucket is full; `retry_after`: until it has a token (RFC 9110 10.2.3)."""
    headers = b"retry-after: %d\r\nx-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"
    reply = made("RateLimited", name.full, headers % (retry_after, limit, remaining, reset))
    return replace(reply, hint=f"limit of {name.shown}; try again in {retry_after} s")
