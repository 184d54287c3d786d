"""Steps with stages: at their place in the order they install the stage, then their hook says what becomes of it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from dataplane.chain import streaming
from dataplane.chain.filter import Filter
from dataplane.chain.reply import Reply
from dataplane.http.body import TooLarge

REPLY = Reply(403, "Test")


class Carried:
    """An exchange, as far as stages are installed on it: `installing` is what that answers or raises."""

    def __init__(self, installing: Any = None) -> None:
        self.installing = installing
        self.done: list[str] = []

    def stream_request(self, _stream: Any) -> None:
        self.done.append("request stage")

    def stream_response(self, _stream: Any) -> Awaitable[None] | None:
        self.done.append("response stage")
        if self.installing is TooLarge:
            raise TooLarge
        return None if self.installing is None else self._later()

    async def _later(self) -> None:
        if self.installing is not True:
            raise self.installing
        self.done.append("installed")


def said(answer: Reply | None, later: bool) -> Any:
    """A hook that says so, at once or when it is waited for."""

    async def wait() -> Reply | None:
        return answer

    def hook(x: Carried) -> Any:
        x.done.append("hook")
        return wait() if later else answer

    return hook


def stage(_x: Any, _outlet: Any) -> Any:
    return None


async def outcome(given: Any) -> Reply | None:
    found: Reply | None = given if given is None or isinstance(given, Reply) else await given
    return found


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("answer", [None, REPLY], ids=["goes on", "answered"])
@pytest.mark.parametrize("installing", [None, True], ids=["installed", "waited for"])
async def test_a_hook_comes_after_its_stage(installing: Any, answer: Reply | None, later: bool) -> None:
    hook = said(answer, later)
    step = Filter("toy", request=hook, response=hook, request_stream=stage, response_stream=stage)
    for made, first in (
        (streaming.on_request(step), ["request stage"]),
        (streaming.on_response(step), ["response stage", "installed"] if installing else ["response stage"]),
    ):
        x: Any = Carried(installing)
        assert made is not None
        assert await outcome(made(x)) is answer
        assert x.done == [*first, "hook"]


@pytest.mark.parametrize("installing", [None, True], ids=["installed", "waited for"])
async def test_a_stage_needs_no_hook(installing: Any) -> None:
    step = Filter("toy", request_stream=stage, response_stream=stage)
    for made in (streaming.on_request(step), streaming.on_response(step)):
        assert made is not None
        x: Any = Carried(installing)
        assert await outcome(made(x)) is None and len(x.done) in (1, 2)


@pytest.mark.parametrize("installing", [TooLarge, TooLarge()], ids=["at once", "later"])
async def test_what_a_stage_made_may_be_too_large(installing: Any) -> None:
    made = streaming.on_response(Filter("toy", response=said(None, False), response_stream=stage))
    x: Any = Carried(installing)
    assert made is not None
    answer = await outcome(made(x))
    assert answer is not None and (answer.status, answer.reason) == (502, "ResponseTooLarge")
    assert x.done == ["response stage"]


def test_steps_without_stages_are_their_hooks() -> None:
    hook = said(None, False)
    step = Filter("toy", request=hook, response=hook)
    assert streaming.on_request(step) is streaming.on_response(step) is hook
    assert streaming.on_request(Filter("toy")) is streaming.on_response(Filter("toy")) is None
