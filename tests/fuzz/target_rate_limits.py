"""Target `rate_limits`: token buckets that several workers share, and the filter before them, at any moments.

The bytes are a script: which worker takes or spends at which bucket, how much time passes, which worker begins anew.
The oracle is a bucket of fractions that is filled step by step. Promises: whoever asks, a token is granted when the
oracle has one, and refused when it has not (the thousandth of a token that `Rate.tolerance` allows for rounding is all
that they may differ by), so that in no time more is granted than capacity and rate come to; of several limits none is
charged when one refuses; what is spent at the end may be owed; a refusal says when it is worth asking again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from dataplane.chain.filter import Env, Filter, Origin
from dataplane.filters.steps import rate_limit
from dataplane.link.buckets import GROUP, STANDS, Buckets
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.table_state import exchange
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require

LONGEST = 300
WORKERS = 3
UNITS = ((traffic_pb2.UNIT_SECONDS, 1), (traffic_pb2.UNIT_MINUTES, 60), (traffic_pb2.UNIT_HOURS, 3600))
COUNTS = (1, 2, 3, 7, 10, 60, 1000)
BURSTS = (0, 0, 1, 5, 100)
STARTS = (0.0, 1000.0, 86_400.0 * 300 + 0.1)
"""Seconds that the system has been up."""
PASSES = (0.0, 1e-6, 0.001, 0.1, 1 / 3, 0.5, 1.0, 7.0, 60.0, 3600.0)
TOKENS = (1, 2, 10, 500, 10_000)
_HEADER = re.compile(rb"([a-z-]+): (\d+)\r\n")

# script: moment, policies (for each limit unit, count, burst, kind), steps
SEEDS = (
    b"",
    bytes((0, 0, 0, 0, 2, 0, 0, *[0, 0, 0] * 6, 3, 6, 0, 0, 0)),
    bytes((1, 1, 1, 0, 3, 2, 1, 1, 0, 0, *[0, 1, 0] * 12, 3, 7, 0, 2, 0)),
    bytes((2, 0, 0, 0, 6, 1, 2, *[2, 0, 4] * 4, 3, 8, 0, 0, 0)),
    bytes((0, 2, 2, 1, 1, 4, 0, 0, 0, 0, 2, 0, 5, 0, *[0, 2, 1] * 9, 5, 1, 0, 1, 0)),
)


@dataclass(slots=True)
class Limit:
    """One bucket of fractions."""

    interval: Fraction
    capacity: int
    charged: bool
    level: Fraction
    last: Fraction

    def fill(self, now: Fraction) -> None:
        self.level = min(Fraction(self.capacity), self.level + (now - self.last) / self.interval)
        self.last = now

    @property
    def slack(self) -> Fraction:
        """In tokens: what `Rate.tolerance` leaves for rounding, and the digits of the clock."""
        return min(Fraction(1, 1000) + Fraction(self.capacity * 2, 10**9) / self.interval, Fraction(1, 2)) * 2


@dataclass(slots=True)
class Policy:
    name: str
    config: traffic_pb2.RateLimit
    limits: list[Limit]


@cache
def section() -> memoryview:
    """One group of buckets, which every key is in."""
    return memoryview(bytearray(GROUP * 16))


class Run:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.now = dice.one_of(STARTS)
        section()[:] = bytes(GROUP * 16)
        self.policies = [self._policy(str(number)) for number in range(1 + dice.below(3))]
        self.workers = [self._worker() for _ in range(WORKERS)]
        self.until: dict[str, float] = {}

    def _policy(self, name: str) -> Policy:
        config, limits = traffic_pb2.RateLimit(), []
        for _ in range(1 + self.dice.below(3)):
            unit, seconds = self.dice.one_of(UNITS)
            count, burst, charged = self.dice.one_of(COUNTS), self.dice.one_of(BURSTS), not self.dice.chance(3)
            amount = {"requests": count} if charged else {"tokens": count}
            config.local.append(traffic_pb2.LocalRateLimit(unit=unit, burst=burst, **amount))
            full = Fraction(count + burst)
            limits.append(Limit(Fraction(seconds, count), count + burst, charged, full, Fraction(self.now)))
        return Policy(name, config, limits)

    def _worker(self) -> tuple[Buckets, list[Filter]]:
        """A process that was just started: what it knows is in the section."""
        buckets = Buckets(section(), None)
        made = [self._filter(buckets, policy) for policy in self.policies]
        return buckets, made

    def _filter(self, buckets: Buckets, policy: Policy) -> Filter:
        origin = Origin(f"GatewayPolicy default/{policy.name}", "rate_limit", "HTTPRoute default/r")
        env = Env(clock=lambda: self.now, random=lambda: 0.0, buckets=buckets, origin=origin)
        made = rate_limit.build(policy.config, env)
        assert made is not None
        return made

    def play(self) -> None:
        for _ in range(80):
            if self.dice.empty:
                return
            action, worker, which = (self.dice.byte() for _ in range(3))
            match action % 6:
                case 3:
                    self.now += PASSES[worker % len(PASSES)] * (1 + which % 16)
                case 4:
                    self.sign(self.workers[worker % WORKERS][0], "ab"[which % 2], bool(which & 2))
                case 5:
                    self.workers[worker % WORKERS] = self._worker()
                case _:
                    number = which % len(self.policies)
                    made = self.workers[worker % WORKERS][1][number]
                    self.ask(made, self.policies[number], TOKENS[action % len(TOKENS)])

    def ask(self, made: Filter, policy: Policy, tokens: int) -> None:
        """A request, from its beginning to its end, which leaves so many tokens of a model."""
        x = exchange()
        require(made.request is not None, "no step")
        answer: Any = made.request(x)  # type: ignore[misc]
        limits, now = policy.limits, Fraction(self.now)
        for limit in limits:
            limit.fill(now)
        if answer is None:
            for limit in limits:
                require(limit.level >= 1 - limit.slack, f"granted with {float(limit.level)} tokens")
                limit.level -= limit.charged
            x.leave("llm", {"totalTokens": tokens})
        else:
            require(any(limit.level < 1 + limit.slack for limit in limits), "refused although all have a token")
            self.judge(answer, limits)
        if made.end is not None:
            made.end(x)
        if answer is None:
            for limit in limits:
                limit.level -= 0 if limit.charged else tokens

    def judge(self, answer: Any, limits: list[Limit]) -> None:
        """What a refusal says is true of the limit that one has to wait for longest."""
        require(answer.status == 429, f"status {answer.status}")
        said = {name: int(value) for name, value in _HEADER.findall(answer.headers)}
        waits = [(1 - limit.level) * limit.interval for limit in limits]
        spare = max(limit.slack * limit.interval for limit in limits) + Fraction(1, 10**5)
        longest = max(waits)
        seconds = said[b"retry-after"]
        require(longest <= seconds + spare, f"retry-after {seconds}, but nothing before {float(longest)}")
        require(seconds == 1 or seconds - 1 <= longest + spare, f"retry-after {seconds} instead of {float(longest)}")
        fits = [
            limit
            for limit, wait in zip(limits, waits, strict=True)
            if wait >= longest - spare
            and limit.capacity == said[b"x-ratelimit-limit"]
            and abs(said[b"x-ratelimit-remaining"] - max(limit.level, 0)) <= 1 + limit.slack
            and abs(said[b"x-ratelimit-reset"] - (limit.capacity - limit.level) * limit.interval) <= 1 + spare
        ]
        require(fits, f"{said} of {limits}")

    def sign(self, buckets: Buckets, name: str, up: bool) -> None:
        """One of all workers tells of a change."""
        sign = buckets.sign(name)
        stood = self.until.get(name, 0.0) > self.now
        require((sign.put if up else sign.take_down)(self.now) == (stood is not up), f"sign {name}: {stood} before")
        self.until[name] = self.now + STANDS if up else 0.0


def check(data: bytes) -> None:
    if len(data) <= LONGEST:
        Run(Dice(data)).play()
