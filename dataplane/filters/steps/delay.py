"""Delay, a Gatewright extension: a request waits before it goes on, for tests of what a slow service does to others.

Who leaves while it waits costs nothing more. `timeouts.request` begins when a request is sent on, so it does not count
this time. An expression that fails, or gives nothing above zero, is no delay: nothing is protected by waiting.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import durations, expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import Env, Filter, Refused
from gatewright.cel.errors import CelError
from gatewright.cel.values import Duration, Uint
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "delay"

LONGEST: Final = 300.0
"""Seconds: clients may choose what an expression gives."""
NANOSECONDS: Final = 1_000_000_000


def build(config: traffic_pb2.Delay, env: Env) -> Filter:
    """Raises `Refused` for a duration above five minutes, and for an expression that cannot work."""
    fixed = durations.seconds(config.duration)
    if fixed is None:
        return _computed(config.duration, env)
    if not 0 < fixed <= LONGEST:
        raise Refused(f"duration: {config.duration} is not from 1ms to 5m")
    return Filter(NAME, request=lambda x: _wait(env, fixed))


def _computed(text: str, env: Env) -> Filter:
    program = expressions.compiled(text, "request", "duration")
    length = _evaluated(program.evaluate)

    def wait(x: Exchange) -> Awaitable[None] | None:
        seconds = length(x)
        return _wait(env, seconds) if seconds > 0 else None

    whose = expressions.reads_request_body((program,))
    return Filter(NAME, request=buffering(wait, env.buffer_limit, whose=whose) if whose else wait)


def _evaluated(evaluate: Callable[[Exchange], Any]) -> Callable[[Exchange], float]:
    def length(x: Exchange) -> float:
        try:
            return min(_seconds(evaluate(x)), LONGEST)
        except CelError:
            return 0.0

    return length


def _seconds(value: Any) -> float:
    """0 for what is none."""
    kind = type(value)
    if kind is Duration:
        return int(value) / NANOSECONDS
    if kind is str:
        return durations.seconds(value) or 0.0
    if kind in (int, Uint, float) and not math.isnan(value):
        return float(value) / 1000
    return 0.0


async def _wait(env: Env, seconds: float) -> None:
    await env.sleep(seconds)
