"""A body between who sends it and who reads it: what is buffered, what is waited for, what it may come to."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dataplane.http.body import BodyBuffer, BodyMemoryFull, Gone, TooLarge, gather


def test_small_pieces_are_joined_and_large_ones_are_left_alone() -> None:
    pieces: list[bytes] = []
    for data in (b"a" * 2047, b"b", b"c" * 2048, b"d"):
        gather(pieces, data)
    assert pieces == [b"a" * 2047 + b"b", b"c" * 2048, b"d"]


class Sent:
    """A body and who sends it: `asked` are the bytes that were wanted each time that something changed."""

    def __init__(self, length: int | None = None) -> None:
        self.asked: list[int] = []
        self.buffer = BodyBuffer(asyncio.get_running_loop().create_future, self._pace, length)

    def _pace(self) -> None:
        self.asked.append(self.buffer.wanted)

    async def reading(self, work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        task = asyncio.create_task(work)
        await asyncio.sleep(0)
        return task


async def test_whoever_waits_has_the_whole_body_and_it_stays() -> None:
    sent = Sent()
    buffer = sent.buffer
    assert not buffer.is_awaited
    task = await sent.reading(buffer.whole(4))
    assert buffer.is_awaited and sent.asked == [5]
    buffer.push(b"ab")
    buffer.push(b"cd")
    assert buffer.is_awaited  # whether it is whole nobody knows yet
    buffer.end()
    assert not buffer.is_awaited and await task == b"abcd"
    assert (buffer.size, buffer.wanted, buffer.peek()) == (4, 5, b"abcd")
    assert buffer.take() == b"abcd" and (buffer.size, buffer.wanted, buffer.take()) == (0, 0, b"")


@pytest.mark.parametrize(("length", "limit"), [(5, 4), (1, 0)])
async def test_one_whose_head_says_too_much_is_refused_at_once(length: int, limit: int) -> None:
    sent = Sent(length)
    assert sent.buffer.is_over(limit) and not sent.buffer.is_over(limit + 1)
    with pytest.raises(TooLarge):
        await sent.buffer.whole(limit)
    assert sent.asked == []


async def test_one_that_turns_out_too_large_is_refused_with_its_first_byte_too_many() -> None:
    sent = Sent()
    task = await sent.reading(sent.buffer.whole(4))
    sent.buffer.push(b"abcd")
    assert sent.buffer.is_awaited and not sent.buffer.is_over(4)
    sent.buffer.push(b"e")
    assert not sent.buffer.is_awaited and sent.buffer.is_over(4)
    with pytest.raises(TooLarge):
        await task


async def test_who_leaves_or_finds_no_room_is_told_of() -> None:
    for what, error in (("fail", Gone), ("crowd", BodyMemoryFull)):
        sent = Sent()
        task = await sent.reading(sent.buffer.whole(100))
        if what == "fail":
            sent.buffer.fail()
        else:
            sent.buffer.crowded = True
            sent.buffer.push(b"a")
        assert not sent.buffer.is_awaited
        with pytest.raises(error):
            await task


async def test_what_is_there_is_kept_while_there_is_room() -> None:
    sent = Sent(3)
    sent.buffer.push(b"abc")
    sent.buffer.end()
    assert await sent.buffer.whole(3) == b"abc" and sent.asked[-1] == 4
    sent.buffer.crowded = True
    with pytest.raises(BodyMemoryFull):
        sent.buffer.keep()


async def test_a_body_that_a_step_made_is_here_and_reading_goes_on() -> None:
    buffer = BodyBuffer.of(b"abc", asyncio.get_running_loop().create_future, lambda: None)
    assert (buffer.complete, buffer.length, buffer.size, buffer.wanted) == (True, 3, 3, 4)
    assert await buffer.whole(3) == b"abc"


async def test_what_expressions_see_of_a_larger_one() -> None:
    buffer = Sent().buffer
    assert buffer.peek() == buffer.beginning() == b""
    buffer.push(b"a" * 2048)
    buffer.push(b"b")
    assert buffer.beginning() == b"a" * 2048 + b"b" and len(buffer.pieces) == 1
    buffer.limit = 3
    assert buffer.beginning() == b"aaa" and len(buffer.peek()) == 2049


async def test_nobody_is_asked_for_more_when_the_exchange_is_over() -> None:
    sent = Sent()
    sent.buffer.push(b"a")
    sent.buffer.leave()
    sent.buffer.push(b"b")
    assert sent.asked == [0] and sent.buffer.peek() == b"ab"


async def test_who_gave_up_waiting_is_not_woken() -> None:
    sent = Sent()
    task = await sent.reading(sent.buffer.whole(4))
    task.cancel()
    await asyncio.wait({task})
    sent.buffer.end()
    assert task.cancelled() and not sent.buffer.is_awaited
