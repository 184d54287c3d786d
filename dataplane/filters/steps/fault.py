"""Fault injection, a Gatewright extension: some requests wait, some are answered with an error in place of their
backend.

Which ones is drawn for each request and each of the two faults by itself. A request that is to meet both waits first.
An expression that fails chooses no request: what was configured for tests does no harm beyond them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.reply import Reply
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

NAME = "fault"

REASON: Final = "FaultInjected"
LONGEST: Final = 300_000
"""Milliseconds of a delay."""

Chosen = Callable[["Exchange"], bool]


def build(config: traffic_pb2.Fault, env: Env) -> Filter:
    """Raises `Refused` for a status that is no error, a delay above five minutes, a share above all requests, and an
    expression that cannot work."""
    programs: list[Program] = []
    delayed: Chosen = _never
    aborted: Chosen = _never
    seconds = 0.0
    if config.HasField("delay"):
        if not 0 < config.delay.duration_ms <= LONGEST:
            raise Refused(f"delay.duration: {config.delay.duration_ms}ms is not from 1ms to 5m")
        seconds = config.delay.duration_ms / 1000
        delayed = _chosen(config.delay, "delay", env, programs)
    if config.HasField("abort"):
        aborted = _chosen(config.abort, "abort", env, programs)
    answer = _answer(config.abort, str(env.origin)) if config.HasField("abort") else None

    async def wait(then: Reply | None) -> Reply | None:
        await env.sleep(seconds)
        return then

    def meet(x: Exchange) -> Awaitable[Reply | None] | Reply | None:
        then = answer if aborted(x) else None
        return wait(then) if delayed(x) else then

    whose = expressions.reads_request_body(programs)
    return Filter(NAME, request=buffering(meet, env.buffer_limit, whose=whose) if whose else meet)


def _never(x: Exchange) -> bool:
    return False


def _chosen(
    config: traffic_pb2.FaultDelay | traffic_pb2.FaultAbort, where: str, env: Env, programs: list[Program]
) -> Chosen:
    """Which requests meet a fault. The expression is asked first: the share is one of those that it is about."""
    fraction = config.fraction if config.HasField("fraction") else traffic_pb2.FaultFraction(numerator=1, denominator=1)
    if not fraction.denominator or fraction.numerator > fraction.denominator:
        raise Refused(f"{where}.fraction: {fraction.numerator} of {fraction.denominator} is no share")
    share, random = fraction.numerator / fraction.denominator, env.random
    if not config.condition:
        return lambda x: random() < share
    program = expressions.compiled(config.condition, "request", f"{where}.condition")
    programs.append(program)
    holds = expressions.condition(program)
    return lambda x: holds(x) and random() < share


def _answer(config: traffic_pb2.FaultAbort, origin: str) -> Reply:
    if not 400 <= config.status <= 599:
        raise Refused(f"abort.status: {config.status} is not between 400 and 599")
    return Reply(config.status, REASON, config.body.encode() or b"fault injected", detail=origin)
