"""JSON that is decoded piece by piece is what one call makes of it, and no piece is large."""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import pytest

from dataplane.llm import pieces
from dataplane.llm.body import Body, Malformed
from gatewright.turns import at_once

TURN = {"role": "user", "content": "hi"}
ROUND = {"role": "user", "content": [{"type": "text", "text": "a"}] * 20_000}
LARGE: dict[str, Any] = {
    "messages": [TURN] * 55_000,
    "one message of many parts": [ROUND],
    "messages of a kilobyte": [{"role": "user", "content": "x" * 1_000}] * 1_000,
    "names within names": {"a": {"b": {"c": [TURN] * 10_000}}, "d": 1, "e": None},
    "a long text": "x" * 1_000_000,
    "deeper than is cut": [[[[[[[[[[[[[[[[[[[TURN] * 4_000]]]]]]]]]]]]]]]]]],
    "more names than are found at once": {f"k{number}": [number] for number in range(20_000)},
    "many names, and values that look like more": {f'{number},"': ',"a":{[' for number in range(20_000)},
    "many names, deeper than they are cut": [[[[[{f"k{number}": 1 for number in range(20_000)}]]]]],
    "many names, and a large value": {"a": [TURN] * 20_000, **{f"k{number}": "\\" for number in range(20_000)}},
    "numbers": [1, -2.5, 1e300, 2**64] * 10_000,
}


def steps(data: bytes) -> tuple[Any, int]:
    """The value, and how many pauses there were."""
    work, number = pieces.decoded(data), 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, number
        number += 1


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("space", [b"", b" \n"])
def test_it_is_what_one_call_makes(name: str, space: bytes) -> None:
    data = space + msgspec.json.format(msgspec.json.encode(LARGE[name]), indent=len(space))
    assert at_once(pieces.decoded(data)) == msgspec.json.decode(data) == LARGE[name]


def test_it_pauses_between_pieces() -> None:
    for name in ("messages", "one message of many parts", "messages of a kilobyte", "names within names"):
        data = msgspec.json.encode(LARGE[name])
        assert steps(data)[1] >= len(data) // pieces.PIECE, name
    assert steps(msgspec.json.encode([TURN] * 100))[1] == 0, "what is small is one piece"


def test_of_many_names_few_are_found_between_two_pauses() -> None:
    data = msgspec.json.encode({f"k{number}": 1 for number in range(150_000)})
    assert steps(data)[1] >= 2 * len(data) // pieces.PIECE


def test_what_is_wrong_with_many_names_is_wrong_piece_by_piece_as_well() -> None:
    """Bytes of a valid object are replaced, removed and repeated."""
    draw = random.Random(random.random())
    valid = msgspec.json.encode({f"k{number}": [number, ',"\\'][: number % 3] for number in range(9_000)})
    for _ in range(60):
        at = draw.choice([draw.randrange(len(valid)), draw.randrange(len(valid) - 9, len(valid))])
        instead = draw.choice([b"", b",", b'"', b"}", b"]", b"\\", b" ", b",,", b"}}", b"{", valid[at - 7 : at + 7]])
        data = valid[:at] + instead + valid[at + draw.randrange(3) :]
        try:
            expected = msgspec.json.decode(data)
        except msgspec.DecodeError:
            with pytest.raises(msgspec.DecodeError):
                steps(data)
        else:
            assert steps(data)[0] == expected


def test_a_string_without_an_end_is_looked_at_once() -> None:
    data = b'{"a":1,"b":"%b' % (b'\\"' * 1_000_000) + b":" * 5_000
    for bad in (data, data + b"\\"):
        began = time.thread_time()
        with pytest.raises(msgspec.DecodeError):
            steps(bad)
        assert time.thread_time() - began < 2.0


def test_random_values_are_the_same() -> None:
    draw = random.Random(random.random())

    def value(depth: int) -> Any:
        kind = draw.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(draw.randrange(60))]
        if kind == 5:
            return {draw.choice("abcdefgh") * draw.randrange(9): value(depth - 1) for _ in range(draw.randrange(60))}
        return [draw.random(), None, "é\n" * draw.randrange(900), draw.randrange(-9, 9)][kind]

    for _ in range(30):
        data = msgspec.json.encode([value(3) for _ in range(40)])
        assert steps(data)[0] == msgspec.json.decode(data)


def test_the_last_of_two_fields_of_one_name_counts() -> None:
    data = b'{"a":1,"b":"%b","a":2}' % (b"x" * pieces.PIECE)
    assert steps(data)[0]["a"] == msgspec.json.decode(data)["a"] == 2


@pytest.mark.parametrize("bad", [b'{"a":"\xff"}', b'"\xff"'])
def test_a_value_that_is_none_is_told_as_at_once(bad: bytes) -> None:
    many = b"[" + b",".join([b"[1]"] * 40_000) + b"," + bad + b"]"
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        steps(many)
    body = Body(b'{"a":%b}' % many)
    at_once(body.prepare(["a"]))
    for _ in range(2):
        with pytest.raises(Malformed, match="a: "):
            body.value("a")


def test_what_was_prepared_is_what_is_asked_for() -> None:
    body = Body(msgspec.json.encode({"messages": LARGE["messages"], "b": 1}))
    at_once(body.prepare(["messages", "b", "c"]))
    assert body.value("messages") is body.value("messages") == LARGE["messages"]
    body.set("messages", b"2")
    assert body.value("messages") == 2 and body.value("b") == 1
