"""Steps that read the request body: at once when it is here, else when it has come; too large is a verdict or a gap."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.buffering import buffering
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.http.body import BodyBuffer, Gone
from tests.fakes.memory_proxy import Pending
from tests.fakes.table_state import exchange

TOO_LARGE = Reply(413, "TooLarge")
STOP = Reply(403, "Stop")


class Run:
    """An exchange with a body, and what a hook that reads it answered."""

    def __init__(self, length: int | None = None, answer: Any = None, too_large: Reply | None = None) -> None:
        self.x: Exchange = exchange()
        self.buffer = self.x.buffer = BodyBuffer(Pending, lambda: None, length)
        self.x.has_body = True
        self.seen: list[bytes | None] = []
        self.answer = answer
        self.hook = buffering(self._step, 4, too_large)

    def _step(self, x: Exchange) -> Any:
        self.seen.append(x.body)
        return self.answer

    def start(self) -> Any:
        """What the hook says now: an answer, or a coroutine that was begun."""
        said: Any = self.hook(self.x)
        if said is None or isinstance(said, Reply):
            return said
        said.send(None)
        return said

    def end(self, coroutine: Any) -> Any:
        """What a coroutine that was begun comes to."""
        with pytest.raises(StopIteration) as stopped:
            while True:
                coroutine.send(None)
        return stopped.value.value


def test_what_is_here_is_read_at_once() -> None:
    run = Run(answer=STOP)
    run.buffer.push(b"ab")
    run.buffer.push(b"cd")
    run.buffer.end()
    assert run.start() is STOP
    assert run.seen == [b"abcd"]
    assert run.buffer.take() == b"abcd", "it stays until it is sent"


def test_what_has_not_come_is_waited_for() -> None:
    run = Run(answer=STOP)
    run.buffer.push(b"ab")
    later = run.start()
    assert run.seen == [] and run.buffer.wanted == 5
    run.buffer.push(b"cd")
    run.buffer.end()
    assert run.end(later) is STOP
    assert run.seen == [b"abcd"]


@pytest.mark.parametrize("length", [5, None])
@pytest.mark.parametrize(("too_large", "seen"), [(TOO_LARGE, []), (None, [None])])
def test_too_large(length: int | None, too_large: Reply | None, seen: list[None]) -> None:
    run = Run(length, too_large=too_large)
    said = run.start()
    if length is None:  # nobody knows before it comes
        run.buffer.push(b"abcde")
        said = run.end(said)
    assert said is too_large
    assert run.seen == seen


def test_too_large_by_what_is_here() -> None:
    run = Run(too_large=TOO_LARGE)
    run.buffer.push(b"abcde")
    assert run.start() is TOO_LARGE


def test_the_limit_itself_is_not_too_large() -> None:
    run = Run(4, too_large=TOO_LARGE)
    later = run.start()
    run.buffer.push(b"abcd")
    run.buffer.end()
    assert run.end(later) is None
    assert run.seen == [b"abcd"]


def test_without_a_body_nothing_is_waited_for() -> None:
    run = Run()
    run.x.buffer = None
    assert run.start() is None
    assert run.seen == [None]


def test_what_is_here_already_is_not_waited_for() -> None:
    run = Run()
    run.x.body = b"made"
    assert run.start() is None
    assert run.seen == [b"made"]


def test_a_step_that_waits_itself_is_awaited() -> None:
    async def answer() -> Reply:
        return STOP

    run = Run(answer=answer())
    later = run.start()
    run.buffer.end()
    assert run.end(later) is STOP


def test_a_client_that_leaves_ends_the_wait() -> None:
    run = Run()
    later = run.start()
    run.buffer.fail()
    with pytest.raises(Gone):
        later.send(None)
    assert run.seen == []


@pytest.mark.parametrize("length", [None, 6])
def test_expressions_see_no_more_of_a_larger_one_than_the_limit(length: int | None) -> None:
    run = Run(length)
    if length is not None:
        run.buffer.push(b"abcdef")
    said = run.start()
    if length is None:
        run.buffer.push(b"abcdef")
        assert run.end(said) is None
    assert run.x.request_body is None
    assert run.x.request_body_prefix == b"abcd"
    assert run.buffer.take() == b"abcdef", "all of it goes upstream"
