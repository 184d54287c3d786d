"""The steps of a route as one function.

The hooks of a chain are called from a generated function: one after the other, no loop, no index. Its code depends only
on which steps have a hook and which of these may answer, so code is compiled once per shape and bound to a route's
hooks by a closure (0.2 us). A single hook that never answers is the function itself.
A hook that has to wait hands over (index, awaitable); `drive` awaits it and resumes at the next step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from dataplane.chain.filter import BUFFER_LIMIT, WHOLE, EndHook, Filter, RequestHook, ResponseHook
from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


class Waiting:
    """A hook's awaitable and its place: `drive` continues after it."""

    __slots__ = ("awaitable", "index")

    def __init__(self, index: int, awaitable: Awaitable[Reply | None]) -> None:
        self.index = index
        self.awaitable = awaitable


RequestFunction = Callable[["Exchange"], "Reply | Waiting | None"]
ResponseFunction = Callable[["Exchange"], "Reply | Waiting | None"]


class Chain:
    """The finished steps of a route (or a listener's gateway phase). Immutable; shared by routes with equal policies.

    `request(exchange)` answers None (all steps passed), a Reply, or Waiting; so does `response(exchange)`, and it is
    None when no step has a response hook: then the response head is not even parsed.
    """

    __slots__ = (
        "__weakref__",
        "body",
        "end",
        "filters",
        "may_wait",
        "request",
        "request_hooks",
        "response",
        "response_body",
        "response_hooks",
    )

    def __init__(self, filters: Iterable[Filter]) -> None:
        self.filters = tuple(filters)
        requests, responses, ends, silent = [], [], [], []
        self.may_wait, self.body = False, 0
        self.response_body = 0
        """Bytes of a response body that are held for these steps at most; 0: none of them reads it."""
        for step in self.filters:
            requests.append(step.request)
            responses.append(step.response)
            silent.append(step.silent)
            if step.end is not None:
                ends.append(step.end)
            if step.may_wait:
                self.may_wait = True
            if step.body and self.body >= 0:
                self.body = max(step.body, self.body) if step.body > 0 else WHOLE
            if step.response_body:
                wanted = BUFFER_LIMIT if step.response_body == WHOLE else step.response_body
                self.response_body = max(wanted, self.response_body)
        self.request_hooks: tuple[RequestHook | None, ...] = _hooks(requests)
        self.response_hooks: tuple[ResponseHook | None, ...] = _hooks(responses)
        self.end: tuple[EndHook, ...] = tuple(ends)
        self.request: RequestFunction | None = _bind(self.request_hooks, silent, 1)
        self.response: ResponseFunction | None = _bind(self.response_hooks, silent, -1)

    def __repr__(self) -> str:
        return f"Chain({', '.join(f.name for f in self.filters)})"


def _hooks(hooks: list[Any]) -> tuple[Any, ...]:  # hooks of either kind
    """As a tuple; where there is no hook, one that all chains share."""
    return _NO_HOOKS[len(hooks)] if len(hooks) < len(_NO_HOOKS) and not any(hooks) else tuple(hooks)


_NO_HOOKS = tuple((None,) * length for length in range(16))


def _bind(hooks: tuple[Any, ...], silent: list[bool], order: int) -> Any:  # hooks of either kind
    """The function that calls the hooks that exist, in their order (1) or against it (-1); None when there are none."""
    if len(hooks) == 1 and (silent[0] or hooks[0] is None):  # most chains
        return hooks[0]
    used = tuple([(i, silent[i]) for i, hook in enumerate(hooks) if hook is not None][::order])
    if not used:
        return None
    if len(used) == 1 and used[0][1]:
        return hooks[used[0][0]]
    return maker(used)(_interrupted, *(hooks[i] for i, _ in used))


@cache
def maker(shape: tuple[tuple[int, bool], ...]) -> Any:
    """Compile the code of one shape: (index, silent) of the steps that it calls, in order."""
    names = ", ".join(f"s{i}" for i, _ in shape)
    calls = {True: "  s{0}(x)\n", False: "  r = s{0}(x)\n  if r is not None: return interrupted(x, {0}, r)\n"}
    body = "".join(calls[silent].format(i) for i, silent in shape)
    source = f"def make(interrupted, {names}):\n def run(x):\n{body}  return None\n return run\n"
    scope: dict[str, Any] = {}
    exec(compile(source, f"<chain {shape}>", "exec"), scope)  # the source holds only numbers of ours
    return scope["make"]


def _interrupted(exchange: Exchange, index: int, answer: Any) -> Any:
    if isinstance(answer, Reply):
        exchange.stopped = index
        return answer
    return Waiting(index, answer)


async def drive(exchange: Exchange, chain: Chain, waiting: Waiting) -> Reply | None:
    """Await the hook that waits, then run the rest of the request steps. Answers as `chain.request` does."""
    index, answer = waiting.index, await waiting.awaitable
    hooks = chain.request_hooks
    while answer is None:
        index += 1
        if index == len(hooks):
            return None
        hook = hooks[index]
        if hook is not None:
            given = hook(exchange)
            answer = given if given is None or isinstance(given, Reply) else await given
    exchange.stopped = index
    return answer


EMPTY = Chain(())
