"""The steps of a route as one function.

What calls the hooks of a chain is made when the chain is: only steps that have a hook are in it, and a single hook that
never answers is the function itself. A hook that has to wait hands over (index, awaitable); `drive` awaits it and
resumes at the next step.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from dataplane.chain import streaming
from dataplane.chain.filter import BUFFER_LIMIT, WHOLE, EndHook, Filter, RequestHook, ResponseHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.variables import Unread

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
        "end",
        "filters",
        "is_long",
        "publishes",
        "reads_whole",
        "request",
        "request_hooks",
        "response",
        "response_body",
        "response_hooks",
        "takes_body",
        "writes",
    )

    def __init__(self, filters: Iterable[Filter]) -> None:
        self.filters = tuple(filters)
        self.is_long = False
        """Expressions of a request took long once (`variables/facts`): from then on its steps wait where somebody has
        filled the turn. Nothing else of a chain ever changes."""
        requests, responses, ends, silent = [], [], [], []
        self.response_body = 0
        """Bytes of a response body that are buffered for these steps at most; 0: none of them reads it. It holds where
        the listener has the default of `maxBufferSize`."""
        self.reads_whole = False
        """Of these bytes the listener's are some: a step reads the whole body."""
        self.publishes = any(step.publishes for step in self.filters)
        self.takes_body = any(step.takes_body for step in self.filters)
        """As `Filter.takes_body`, of one of them."""
        for step in self.filters:
            request, response = streaming.on_request(step), streaming.on_response(step)
            streams = step.makes_stages or step.request_stream is not None or step.response_stream is not None
            requests.append(streaming.known_as(step, request) if streams and request is not None else request)
            responses.append(streaming.known_as(step, response) if streams and response is not None else response)
            silent.append(step.silent and not streams)
            if step.end is not None:
                ends.append(step.end)
            if step.response_body:
                if step.response_body == WHOLE:
                    self.reads_whole = True
                wanted = BUFFER_LIMIT if step.response_body == WHOLE else step.response_body
                self.response_body = max(wanted, self.response_body)
        self.writes = frozenset[bytes]().union(*(step.writes for step in self.filters))
        """As `Filter.writes`, of all of them."""
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
    used = [(i, hook) for i, hook in enumerate(hooks) if hook is not None][::order]
    if not used:
        return None
    if len(used) == 1 and silent[used[0][0]]:
        return used[0][1]
    calls = tuple((i, hook, silent[i]) for i, hook in used)

    def run(x: Exchange) -> Reply | Waiting | None:
        try:
            for index, hook, is_silent in calls:
                answer = hook(x)
                if answer is not None and not is_silent:
                    return _interrupted(x, index, answer)
        except Unread as error:
            return _refused(x, index, error)
        return None

    return run


def _refused(exchange: Exchange, index: int, error: Unread) -> Reply:
    """The step at `index` asked for what is not read of this request: it has answered so."""
    exchange.stopped = index
    return made(error.reason, str(error))


def _interrupted(exchange: Exchange, index: int, answer: Reply | Awaitable[Reply | None]) -> Reply | Waiting:
    if isinstance(answer, Reply):
        exchange.stopped = index
        return answer
    return Waiting(index, answer)


def leave(work: Coroutine[Any, Any, object]) -> None:
    """Close a coroutine that has not begun, with those that it was to await: none of them runs, and none is reported as
    never awaited."""
    for value in inspect.getcoroutinelocals(work).values():
        inner = value.awaitable if isinstance(value, Waiting) else value
        if inspect.iscoroutine(inner) and inspect.getcoroutinestate(inner) == inspect.CORO_CREATED:
            leave(inner)
    work.close()


async def run_later(x: Exchange, chain: Chain) -> Reply | None:
    """Its request steps, in another turn of the loop: this one is full."""
    assert chain.request is not None  # else there is nothing to wait for
    answer = chain.request(x)
    return await drive(x, chain, answer) if isinstance(answer, Waiting) else answer


async def drive(exchange: Exchange, chain: Chain, waiting: Waiting) -> Reply | None:
    """Await the hook that waits, then run the rest of the request steps. Answers as `chain.request` does."""
    index = waiting.index
    hooks = chain.request_hooks
    try:
        answer = await waiting.awaitable
        while answer is None:
            index += 1
            if index == len(hooks):
                return None
            hook = hooks[index]
            if hook is not None:
                given = hook(exchange)
                answer = given if given is None or isinstance(given, Reply) else await given
    except Unread as error:
        return _refused(exchange, index, error)
    exchange.stopped = index
    return answer


EMPTY = Chain(())
