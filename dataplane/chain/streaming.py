"""Stream hooks as steps of a chain: at its place in the order a filter installs its stage, then its hook runs.

Done when a chain is made: chains without stages have nothing of this. Here is also the simple form of a stage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.body import TooLarge
from dataplane.streams import Transforming

if TYPE_CHECKING:
    from dataplane.chain.filter import Filter, RequestHook, ResponseHook
    from dataplane.exchange import Exchange, StreamHook
    from dataplane.streams import Outlet, Stage, Transform

HookT = TypeVar("HookT", bound="RequestHook | ResponseHook")


def on_request(step: Filter) -> RequestHook | None:
    """What a chain calls with a request."""
    stream, hook = step.request_stream, step.request
    if stream is None:
        return hook

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        answer = x.stream_request(stream)
        return answer if answer is not None or hook is None else hook(x)

    return run


def known_as(step: Filter, hook: HookT) -> HookT:
    """A hook of a step that makes stages: they know whose they are, for the answers that they give later."""

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        x.installing = step
        return hook(x)

    return run  # type: ignore[return-value]  # hooks of both kinds have this form


def on_response(step: Filter) -> ResponseHook | None:
    """What a chain calls with a response."""
    stream, hook = step.response_stream, step.response
    if stream is None:
        return hook

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        try:
            installed = x.stream_response(stream)
        except TooLarge:
            return TOO_LARGE
        if installed is None:
            return None if hook is None else hook(x)
        return installed if isinstance(installed, Reply) else _then(installed, hook, x)

    return run


async def _then(installed: Awaitable[Reply | None], hook: ResponseHook | None, x: Exchange) -> Reply | None:
    try:
        answer = await installed
    except TooLarge:
        return TOO_LARGE
    if answer is not None:
        return answer
    given = None if hook is None else hook(x)
    return given if given is None or isinstance(given, Reply) else await given


TOO_LARGE = made("ResponseTooLarge", "what a stage made of a body that was buffered")


def transforming(make: Callable[[Exchange], Transform | None]) -> StreamHook:
    """A stream hook of functions `(bytes, end) -> bytes`; `make` gives one for an exchange, or None."""

    def hook(x: Exchange, outlet: Outlet) -> Stage | None:
        transform = make(x)
        return None if transform is None else Transforming(transform, outlet)

    return hook
