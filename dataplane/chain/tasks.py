"""Hooks of rows that ask for a Task (`Row.task`): what they answer runs in a real one, with all that asyncio offers
there (`asyncio.timeout`, groups, sleep). A hook that knows its answer at once costs nothing more.

The exchange waits for the Task by a future of `Env`, as for anything else. Cancelled, it cancels the Task and waits for
its end; a Task that swallows this ends as it likes, and its answer is dropped.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.chain.chain import leave
from dataplane.chain.filter import Env, Filter
from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Hook = Callable[["Exchange"], "Reply | Awaitable[Reply | None] | None"]


def in_tasks(step: Filter, env: Env) -> Filter:
    """`step` with hooks whose awaitables run in Tasks."""
    return replace(
        step,
        request=None if step.request is None else _hook(step.request, env),
        response=None if step.response is None else _hook(step.response, env),
    )


def _hook(hook: Hook, env: Env) -> Hook:
    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        answer = hook(x)
        return answer if answer is None or isinstance(answer, Reply) else in_task(answer, env)

    return run


async def in_task(work: Awaitable[Reply | None], env: Env) -> Reply | None:
    """What `work` answers, or raises, from a Task of its own. Without a way to start one: from the present one."""
    if env.spawn is None:
        return await work
    outcome: list[Reply | Exception | None] = []
    done = env.make_future()
    has_begun = False

    async def run() -> None:
        nonlocal has_begun
        has_begun = True
        try:
            outcome.append(await work)
        except Exception as error:
            outcome.append(error)
        finally:
            done.set_result(None)

    task = env.spawn(run())
    try:
        await done
    except GeneratorExit:  # it is not driven on
        task.cancel()
        raise
    except BaseException:
        task.cancel()
        if not has_begun:  # nor does it: `done` is never set
            _leave(work)
        elif not done.done():
            await done
        raise
    if not outcome:
        raise RuntimeError("the Task of a step was cancelled")
    answer = outcome.pop()
    if isinstance(answer, Exception):
        try:
            raise answer
        finally:
            del answer  # see `gatewright/kept_errors`
    return answer


def _leave(work: Awaitable[Reply | None]) -> None:
    if inspect.iscoroutine(work):
        leave(work)
