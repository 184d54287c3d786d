"""Who hears what a server says over one channel: answers, progress, its own requests, and what nobody is there for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dataplane.mcp import dialogue, hearing, messages
from dataplane.mcp.dialogue import Dialogue, TooMuchNoise
from dataplane.mcp.hearing import Hearing, Signal


class Ear:
    """A listener."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.has_answer = self.is_over = self.is_behind = False

    def hear(self, text: bytes, last: bool) -> None:
        self.heard.append(json.loads(text))
        self.has_answer |= last

    def leave(self) -> None:
        self.is_over = True

    @property
    def methods(self) -> list[str]:
        return [each.get("method", "(answer)") for each in self.heard]


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def ask(talk: Dialogue, number: Any, **params: Any) -> Ear:
    ear = Ear()
    talk.ask(messages.read(line(id=number, method="tools/call", params=params)), ear)
    return ear


def test_each_answer_goes_to_whoever_asked_whatever_the_order() -> None:
    talk = Dialogue()
    ears = {number: ask(talk, number) for number in (1, "1", 2)}
    for number in ("1", 2, 1):
        talk.say(line(id=number, result={"of": repr(number)}))
    for number, ear in ears.items():
        assert ear.has_answer and [each["result"] for each in ear.heard] == [{"of": repr(number)}]
    assert talk.is_idle


LOST = {"code": -32603, "message": "too large", "data": {"bound": 7}}


@pytest.mark.parametrize(
    ("beginning", "end", "whose"),
    [
        (b'{"jsonrpc":"2.0","id":2,"result":{"x', b'x"}}', [2]),
        (b'{"jsonrpc": "2.0", "id": "a\\"b", "result": {"x', b'x"}}', ['a"b']),
        (b'{"id":2,"jsonrpc":"2.0","result":{"x', b'x"}}', [2]),
        (b'{"result":{"content":["x', b'x"]},"jsonrpc":"2.0","id":2}', [2]),
        (b'{"jsonrpc":"2.0","result":{"x', b'x"},"id": 2 , "jsonrpc" : "2.0" } \r', [2]),
        (b'{"result":{"id":1,"x', b'x"},"id":"a\\"b"}', ['a"b']),
        (b'{"result":{"x', b'x","id":1}}', [1, 2, 'a"b']),
        (b"x", b"x", [1, 2, 'a"b']),
        (b'{"jsonrpc":"2.0","id":7,"result":{"x', b'x"}}', []),
        (b'{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"x', b'x"}}', []),
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{"x', b'x"},"id":2}', []),
    ],
)
def test_who_waits_for_an_answer_that_is_too_long_gets_an_error(beginning: bytes, end: bytes, whose: list[Any]) -> None:
    talk = Dialogue()
    ears = {number: ask(talk, number) for number in (1, 2, 'a"b')}
    talk.lose(beginning, end, "too large", {"bound": 7})
    assert [number for number, ear in ears.items() if ear.has_answer] == whose
    for number in whose:
        assert ears[number].heard == [{"jsonrpc": "2.0", "id": number, "error": LOST}]
    for number in ears.keys() - set(whose):
        talk.say(line(id=number, result={}))
        assert ears[number].has_answer, "others go on"


def test_progress_of_what_was_answered_goes_to_no_later_request_of_the_same_id() -> None:
    talk = Dialogue()
    ask(talk, 1, _meta={"progressToken": "t"})
    talk.say(line(id=1, result={}))
    again, newest = ask(talk, 1), ask(talk, 2)
    talk.say(line(method="notifications/progress", params={"progressToken": "t", "progress": 1}))
    assert again.heard == [] and newest.methods == ["notifications/progress"]


def test_of_several_requests_the_newest_is_asked_and_told_what_is_for_nobody_else() -> None:
    talk = Dialogue()
    older, newer = ask(talk, 1), ask(talk, 2, _meta={"progressToken": "t"})
    talk.say(line(id=6, method="sampling/createMessage"))
    talk.say(line(method="notifications/message"))
    for params in ({"progressToken": "x"}, {}, {"progressToken": [1]}):
        talk.say(line(method="notifications/progress", params=params))
    assert older.heard == [] and len(newer.heard) == 5
    stream = Ear()
    talk.open(stream)
    talk.say(line(method="notifications/progress", params={"progressToken": "x"}))
    talk.say(line(method="notifications/progress", params={"progressToken": "t"}))
    assert len(stream.heard) == 1 and len(newer.heard) == 6


def test_what_nobody_was_there_for_is_heard_by_the_next_one_and_is_bounded() -> None:
    talk = Dialogue()
    for _ in range(dialogue.MAX_UNHEARD):
        assert not talk.is_full
        talk.say(line(method="notifications/message"))
    assert talk.is_full
    stream = Ear()
    talk.open(stream)
    assert len(stream.heard) == dialogue.MAX_UNHEARD and not talk.is_full
    large = Dialogue()
    large.say(line(method="notifications/message", params={"data": "x" * dialogue.MAX_UNHEARD_BYTES}))
    assert large.is_full
    large.open(Ear())
    assert not large.is_full


def test_a_listener_that_is_behind_makes_the_server_wait() -> None:
    talk = Dialogue()
    ear = ask(talk, 1)
    ear.is_behind = True
    assert talk.is_full
    talk.forget(ear)
    assert not talk.is_full and talk.is_idle


def test_a_request_that_was_cancelled_is_waited_for_by_nobody() -> None:
    talk = Dialogue()
    ear = ask(talk, 1)
    talk.cancel(messages.read(line(method="notifications/cancelled", params={"requestId": 1})))
    assert ear.is_over and talk.is_idle
    talk.cancel(messages.read(line(method="notifications/cancelled", params={"requestId": [1]})))
    talk.cancel(messages.read(line(method="notifications/cancelled")))


@pytest.mark.parametrize("text", [b"no message", line(id=9, result={}), b"[]", b"{}"])
def test_noise_without_end_is_an_error_and_one_message_makes_it_good(text: bytes) -> None:
    talk = Dialogue()
    for _ in range(dialogue.MAX_NOISE):
        talk.say(text)
    talk.say(line(method="notifications/message"))
    for _ in range(dialogue.MAX_NOISE):
        talk.say(text)
    with pytest.raises(TooMuchNoise):
        talk.say(text)


def test_an_answer_makes_noise_good_as_well() -> None:
    talk = Dialogue()
    ask(talk, 1)
    for _ in range(dialogue.MAX_NOISE):
        talk.say(b"no message")
    talk.say(line(id=1, result={}))
    for _ in range(dialogue.MAX_NOISE):
        talk.say(b"no message")
    with pytest.raises(TooMuchNoise):
        talk.say(b"no message")


@pytest.mark.parametrize("rounds", [1, 2])
def test_bytes_that_nobody_heard_are_counted(rounds: int) -> None:
    talk = Dialogue()
    rest = dialogue.MAX_UNHEARD_BYTES - len(line(method="x", params={"data": ""}))
    for _ in range(rounds):
        talk.say(line(method="x", params={"data": "x" * (rest - 1)}))
        assert not talk.is_full, "a byte less than the bound"
        ear = ask(talk, 1)
        assert not ear.has_answer and talk.is_full is False
        talk.forget(ear)
    talk.say(line(method="x", params={"data": "x" * rest}))
    assert talk.is_full


async def test_what_is_short_of_the_bound_is_not_too_much() -> None:
    made = Hearing(asyncio.get_running_loop().create_future)
    made.hear(b"x" * (hearing.MAX_BEHIND_BYTES - 1), False)
    assert not made.is_behind
    made.hear(b"x", False)
    assert made.is_behind


@pytest.mark.parametrize(("count", "size"), [(hearing.MAX_BEHIND, 1), (1, hearing.MAX_BEHIND_BYTES)])
async def test_what_nobody_takes_of_an_answer_is_bounded(count: int, size: int) -> None:
    made = Hearing(asyncio.get_running_loop().create_future)
    for number in range(count):
        assert not made.is_behind
        made.hear(b"x" * size + b"\r\n", number == count - 1)
    assert made.is_behind
    for number in range(count):
        assert await made.next() == (b"x" * size, number == count - 1)
        assert not made.is_behind
    made.leave()
    assert await made.next() is None


async def test_who_does_not_wait_any_more_is_forgotten() -> None:
    signal = Signal(asyncio.get_running_loop().create_future)
    one, other = asyncio.ensure_future(signal.wait()), asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.wait([one])
    assert len(signal._waiting) == 1
    signal.set()
    await other
    assert not signal._waiting
