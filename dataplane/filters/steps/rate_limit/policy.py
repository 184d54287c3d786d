"""The filter of rate limits: what the proxy counts itself comes before what a server counts."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from dataplane.chain.conditional import conditional
from dataplane.chain.filter import EndHook, Env, Filter, RequestHook
from dataplane.chain.reply import Reply
from dataplane.filters.steps.rate_limit import local
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def build(config: traffic_pb2.RateLimit, env: Env) -> Filter | None:
    """Raises `Refused` for limits that cannot be counted."""
    if config.conditional:
        return conditional(local.NAME, config.conditional, env, build)
    here = local.build(config, env)
    if not config.HasField("remote"):
        return here
    from dataplane.filters.steps.rate_limit import remote  # its messages are loaded with the first policy that has it

    there = remote.build(config.remote, env)
    return there if here is None else _both(here, there)


def _both(first: Filter, second: Filter) -> Filter:
    assert first.request is not None and second.request is not None
    return Filter(
        local.NAME,
        request=_one_after_the_other(first.request, second.request),
        response=second.response,
        end=_both_ends(first.end, second.end),
        writes=first.writes | second.writes,
    )


def _one_after_the_other(first: RequestHook, second: RequestHook) -> RequestHook:
    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        answer = first(x)
        if answer is None:
            return second(x)
        return answer if isinstance(answer, Reply) else _later(answer, second, x)

    return run


async def _later(answer: Awaitable[Reply | None], second: RequestHook, x: Exchange) -> Reply | None:
    reply = await answer
    following = second(x) if reply is None else reply
    return following if following is None or isinstance(following, Reply) else await following


def _both_ends(first: EndHook | None, second: EndHook | None) -> EndHook | None:
    if first is None or second is None:
        return first or second

    def run(x: Exchange) -> None:
        try:
            first(x)
        finally:
            second(x)

    return run
