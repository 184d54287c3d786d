"""Response steps: in reverse order, from where the descent stopped outward, for upstream's answers and for our own."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataplane.chain.chain import Chain
    from dataplane.exchange import Exchange

GATEWAY, ROUTE, TARGET, UPSTREAM = range(4)
"""`Exchange.stage`: how far the descent came."""


def chains_of(x: Exchange) -> list[Chain]:
    """The chains whose steps were entered, innermost first."""
    chains: list[Chain] = []
    if x.target_plan is not None and x.stage >= TARGET:
        chains.append(x.target_plan.chain)
    if x.policies is not None and x.stage >= ROUTE:
        chains.append(x.policies.chain)
    if x.listener is not None:
        chains.append(x.listener.chain)
    return chains


def run(x: Exchange) -> Coroutine[Any, Any, None] | None:
    """Run what need not wait. None: all ran; otherwise the rest, to be awaited.

    The step that ended the descent is not run: it made the answer, those outside it see the answer.
    """
    chains = chains_of(x)
    start = x.stopped - 1 if x.stopped >= 0 else None
    for position, chain in enumerate(chains):
        first = len(chain.response_hooks) - 1 if start is None else start
        start = None
        for index in range(first, -1, -1):
            hook = chain.response_hooks[index]
            answer = None if hook is None else hook(x)
            if answer is not None:
                return _rest(x, chains[position:], index, answer)
    return None


async def _rest(x: Exchange, chains: list[Chain], index: int, answer: Awaitable[None]) -> None:
    await answer
    hooks = list(chains[0].response_hooks[:index])[::-1]
    for chain in chains[1:]:
        hooks.extend(reversed(chain.response_hooks))
    for hook in hooks:
        waited = None if hook is None else hook(x)
        if waited is not None:
            await waited
