"""The conditional pattern: of several sets of a policy's fields, the first whose condition is true acts.

Used by the builders of policies that have it. The choice is made with the request and holds for the response; when no
item matches, nothing runs. A condition that fails is not true, but one that is cut off at the limits of an evaluation
refuses the request: otherwise clients that send much to look through would choose which policy applies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.chain import expressions, readings, streaming
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import WHOLE, EndHook, Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from gatewright.cel.errors import CelError, OverBudget

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

Build = Callable[[Any, Env], Filter | None]
Choose = Callable[["Exchange"], int]

NONE, UNKNOWN = -1, -2
"""No item applies; a condition costs too much to evaluate."""


def conditional(name: str, items: Any, env: Env, build: Build) -> Filter | None:
    """One filter of the items of `conditional` (messages with `condition` and `policy`).

    `build` makes a filter of one item's policy. Each item is a policy of its own for what is counted per policy. Raises
    `Refused`, naming the item.
    """
    programs, choose = _chooser(items)
    filters = [_built(index, item, env, build) for index, item in enumerate(items)]
    present = [each for each in filters if each is not None]
    if not present:
        return None
    whose = expressions.reads_request_body(programs)
    # Conditions that could not read the body would let a client that sends a large one choose which policy applies.
    too_large = made("BodyTooLarge", str(env.origin))
    key = f"?{id(choose)}"  # which lives as long as the hooks: no other filter of the chain has it
    unknown = made("PolicyUnusable", f"{env.origin} conditional: a condition costs too much to evaluate")
    request = _request(choose, filters, key, unknown)
    return Filter(
        name,
        request=buffering(request, env.buffer_limit, too_large, whose) if whose else request,
        response=_response(filters, key) if any(map(_on_response, present)) else None,
        end=_end(filters, key) if any(each.end for each in present) else None,
        response_body=_most({each.response_body for each in present}),
        makes_stages=any(each.makes_stages or each.request_stream or each.response_stream for each in present),
        takes_body=bool(whose) or any(each.takes_body for each in present),
        writes=expressions.headers_read(programs).union(*(each.writes for each in present)),
    )


_on_response = streaming.on_response


def _most(sizes: set[int]) -> int:
    return WHOLE if WHOLE in sizes else max(sizes)


def _built(index: int, item: Any, env: Env, build: Build) -> Filter | None:
    which = f"conditional[{index}]"
    origin = replace(env.origin, target=f"{env.origin.target}?{index}", item=which)
    try:
        return build(item.policy, replace(env, origin=origin))
    except Refused as error:
        raise Refused(f"{which}.policy: {error}") from None


def _chooser(items: Any) -> tuple[list[Program], Choose]:
    """The compiled conditions, and what gives the index of the first item that applies, `NONE` or `UNKNOWN`."""
    programs = [
        expressions.compiled(item.condition, "request", f"conditional[{index}].condition")
        for index, item in enumerate(items)
        if item.condition
    ]
    evaluations = [program.evaluate for program in programs]
    otherwise = len(programs) if len(programs) < len(items) else NONE  # only the last may be without one

    def choose(x: Exchange) -> int:
        for index, evaluate in enumerate(evaluations):
            try:
                if evaluate(x) is True:
                    return index
            except OverBudget:
                return UNKNOWN
            except CelError:
                continue
        return otherwise

    return programs, choose


def _request(choose: Choose, filters: list[Filter | None], key: str, unknown: Reply) -> RequestHook:
    hooks = [None if each is None else streaming.on_request(each) for each in filters]
    remembers = [each is not None and bool(_on_response(each) or each.end) for each in filters]

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        index = choose(x)
        if x.readings and any(found != index for found in readings.each(x, choose)):
            return readings.AMBIGUOUS
        if index < 0:
            return None if index == NONE else unknown
        if remembers[index]:
            x.leave(key, index)
        hook = hooks[index]
        return None if hook is None else hook(x)

    return run


def _response(filters: list[Filter | None], key: str) -> ResponseHook:
    hooks = [None if each is None else _on_response(each) for each in filters]

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        index: Any = NONE if x.attributes is None else x.attributes.get(key, NONE)
        hook = None if index == NONE else hooks[index]
        return None if hook is None else hook(x)

    return run


def _end(filters: list[Filter | None], key: str) -> EndHook:
    hooks = [None if each is None else each.end for each in filters]

    def run(x: Exchange) -> None:
        index: Any = NONE if x.attributes is None else x.attributes.get(key, NONE)
        hook = None if index == NONE else hooks[index]
        if hook is not None:
            hook(x)

    return run
