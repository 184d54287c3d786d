"""Response steps: in reverse order, from where the descent stopped outward, for upstream's answers and for our own.

Here is also what the answer's head says of its body once steps have changed the one or the other. Nothing is written
here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

from dataplane.chain.chain import Waiting
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from dataplane.http.rules import MAX_BUFFER, WHOLE_BODY
from dataplane.http.statuses import BODILESS, RESET_CONTENT

if TYPE_CHECKING:
    from dataplane.chain.chain import Chain
    from dataplane.chain.filter import Filter
    from dataplane.proxy.active import ActiveExchange

GATEWAY, ROUTE, TARGET, UPSTREAM, BACKEND = range(5)
"""`Exchange.stage`: how far the descent came."""

Outcome = Reply | Coroutine[Any, Any, Reply | None] | None
"""None: all steps ran; a Reply takes the place of the answer; a coroutine is the rest, to be awaited."""


def chains_of(x: ActiveExchange) -> list[tuple[int, Chain]]:
    """The chains whose steps were entered, with their stages, innermost first."""
    chains: list[tuple[int, Chain]] = []
    if x.stage == BACKEND and x.backend_plan.steps is not None:
        chains.append((BACKEND, x.backend_plan.steps))
    if x.target_plan is not None and x.stage >= TARGET:
        chains.append((TARGET, x.target_plan.chain))
    if x.policies is not None and x.stage >= ROUTE:
        chains.append((ROUTE, x.policies.chain))
    if x.listener is not None:
        chains.append((GATEWAY, x.listener.chain))
    return chains


def decided_by(x: ActiveExchange) -> str:
    """The name of the policy whose step ended the descent, or took the place of the answer (`Exchange.stopped`)."""
    chain = next((chain for stage, chain in chains_of(x) if stage == x.stage), None)
    return chain.filters[x.stopped].name if chain is not None and x.stopped < len(chain.filters) else ""


def most_buffered(x: ActiveExchange) -> int:
    """Bytes of the response body that its steps, or the condition of its retries, want buffered; 0: none."""
    chains = [chain for _, chain in chains_of(x)]
    most = max(chain.response_body for chain in chains)
    judged = x.retries is not None and not x.retries.decided
    held = x.may_hold(WHOLE_BODY)
    if held == MAX_BUFFER:
        return max(most, held) if judged else most
    return held if judged or any(chain.reads_whole for chain in chains) else min(most, held)


def is_read(x: ActiveExchange) -> bool:
    """Whether a step reads the response body, beside the condition of its retries."""
    return any(chain.response_body for _, chain in chains_of(x))


def is_stream(x: ActiveExchange) -> bool:
    """Whether the response is a stream of events, which has no end to wait for."""
    content_type = x.response.get(b"content-type") if x.response is not None else None
    return content_type is not None and content_type[:17].lower() == b"text/event-stream"


def run_fast(x: ActiveExchange) -> Outcome:
    """As `run`, for the answer of an upstream: in most cases the steps of the route are all, and one call."""
    route: Chain = x.policies.chain
    if x.stage == BACKEND or x.target_plan.chain.response is not None or x.listener.chain.response is not None:
        return run(x)
    answer = None if route.response is None else route.response(x)
    if answer is None:
        return None
    if isinstance(answer, Waiting):
        return _rest(x, [(ROUTE, route)], answer.index, answer.awaitable)
    x.stage = ROUTE
    return answer


async def run_later(x: ActiveExchange) -> Reply | None:
    """The same in another turn of the loop: this one is full."""
    outcome = run_fast(x)
    return outcome if outcome is None or isinstance(outcome, Reply) else await outcome


def run(x: ActiveExchange) -> Outcome:
    """Run what need not wait.

    The step that ended the descent is not run: it made the answer, those outside it see the answer. So is it with a
    step that answers a Reply to the response.
    """
    chains = chains_of(x)
    start = x.stopped - 1 if x.stopped >= 0 else None
    for position, (stage, chain) in enumerate(chains):
        first = len(chain.response_hooks) - 1 if start is None else start
        start = None
        for index in range(first, -1, -1):
            hook = chain.response_hooks[index]
            answer = None if hook is None else hook(x)
            if answer is not None:
                if isinstance(answer, Reply):
                    x.stage, x.stopped = stage, index
                    return answer
                return _rest(x, chains[position:], index, answer)
    return None


async def _rest(
    x: ActiveExchange, chains: list[tuple[int, Chain]], index: int, answer: Awaitable[Reply | None]
) -> Reply | None:
    """Await the step at `index` of the first of `chains`, then run those outside it."""
    stage = chains[0][0]
    reply = await answer
    left = [(chains[0][0], number, chains[0][1].response_hooks[number]) for number in range(index - 1, -1, -1)]
    for outer, chain in chains[1:]:
        hooks = chain.response_hooks
        left += [(outer, number, hooks[number]) for number in range(len(hooks) - 1, -1, -1)]
    for stage_of_hook, number, hook in left:
        if reply is not None:
            break
        if hook is None:
            continue
        stage, index = stage_of_hook, number
        given = hook(x)
        reply = given if given is None or isinstance(given, Reply) else await given
    if reply is not None:
        x.stage, x.stopped = stage, index
    return reply


def other(x: ActiveExchange, was: int) -> tuple[bytes, bytes] | None:
    """Header block and body of an answer that steps gave another body or another status than `was`; None when the body
    is what it was."""
    if x.status in BODILESS:
        return _reframed(x, None), b""
    if x.status == RESET_CONTENT:
        return _reframed(x, 0), b""
    if not x.response_body_changed and was not in BODILESS:
        return None
    body = (x.response_body or b"") if x.response_body_changed else b""
    return _reframed(x, len(body)), b"" if x.method == b"HEAD" else body


def stop_at(x: ActiveExchange, step: Filter | None) -> None:
    """This step answers: those outside it see the answer. None: all that were entered do."""
    for stage, chain in chains_of(x):
        for index, each in enumerate(chain.filters):
            if each is step:
                x.stage, x.stopped = stage, index
                return


def _reframed(x: ActiveExchange, length: int | None) -> bytes:
    """The header block for a body of `length` bytes; None: for none at all (RFC 9112 6.1, RFC 9110 8.6)."""
    assert x.response is not None  # the caller has checked that
    head = Head(x.response.block, x.response.low)
    for name in (b"content-length", b"trailer"):
        head.remove(name)
    return head.block if length is None else head.block + b"content-length: %d\r\n" % length
