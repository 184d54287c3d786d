"""JSON with many names deep within it is what one call makes of it; no piece is large; what is wrong stays wrong."""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import pytest

from dataplane.llm import deep_pieces, pieces
from gatewright.turns import at_once

NAMES = {f"k{number}": number for number in range(30_000)}


def deep(value: Any, levels: int = 6) -> Any:
    for _ in range(levels):
        value = {"before": [1, {"x": 2}], "a": value, "behind": {}}
    return value


LARGE: dict[str, Any] = {
    "names": deep(NAMES),
    "names in arrays": [[[[NAMES]]], 1, [NAMES, [], NAMES]],
    "names beside each other": deep({"one": NAMES, "two": NAMES, "three": [NAMES]}),
    "arrays of small objects": deep([{"role": "user", "content": ',"}{\\'}] * 20_000),
    "a long text": deep({"text": "x" * 200_000, "b": "y" * 200_000, **NAMES}),
    "little": deep({"a": []}),
    "nothing": {},
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("indent", [0, 1])
def test_it_is_what_one_call_makes(name: str, indent: int) -> None:
    data = msgspec.json.format(msgspec.json.encode(LARGE[name]), indent=indent)
    assert at_once(deep_pieces.decoded(data)) == LARGE[name]
    assert at_once(pieces.decoded(b" " + data + b"\n")) == LARGE[name]


def test_the_last_of_two_fields_of_one_name_counts() -> None:
    large = msgspec.json.encode(NAMES)
    for text in (b'{"a":%b,"a":1,"b":2}', b'{"a":1,"a":%b,"b":2}', b'{"a":1,"b":2,"a":%b}'):
        data = text % large
        assert at_once(deep_pieces.decoded(data)) == msgspec.json.decode(data)


def test_no_piece_is_large() -> None:
    longest, work = 0.0, pieces.decoded(msgspec.json.encode(deep({f"k{number}": 1 for number in range(170_000)})))
    began = time.thread_time()
    for _ in work:
        longest, began = max(longest, time.thread_time() - began), time.thread_time()
    assert longest < 0.030


WRONG = [b'{"a":1%b}', b'{"a"%b}', b"{%b}", b'{"a":%b%b}', b'{"a":%b,}', b'{"a":%b"b":1}', b'{,"a":%b}', b"[%b 1]"]
WRONG += [b"[1 %b]", b"[,%b]", b"[%b,]", b"[%b", b"%b]", b"x%b", b"%b x", b"[%b}", b'{"a":%b]', b'{"a":-%b}']


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_around_a_large_value_is_wrong(text: bytes) -> None:
    data = text.replace(b"%b", msgspec.json.encode(NAMES))
    for bad in (data, b'{"x":[%b]}' % data):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(bad)
        with pytest.raises(msgspec.DecodeError):
            at_once(deep_pieces.decoded(bad))


def test_bytes_that_are_replaced_removed_and_repeated_are_as_wrong_as_at_once() -> None:
    draw = random.Random(random.random())
    valid = msgspec.json.encode(deep({"a": [{"b": number, "c": ',"\\'} for number in range(3_000)]}))
    for _ in range(120):
        at = draw.choice([draw.randrange(len(valid)), draw.randrange(len(valid) - 60, len(valid)), draw.randrange(90)])
        instead = draw.choice([b"", b",", b'"', b"}", b"]", b"\\", b" ", b",,", b"}}", b"{", b"0", valid[at : at + 7]])
        data = valid[:at] + instead + valid[at + draw.randrange(3) :]
        try:
            expected = msgspec.json.decode(data)
        except msgspec.DecodeError:
            with pytest.raises(msgspec.DecodeError):
                at_once(deep_pieces.decoded(data))
        else:
            assert at_once(deep_pieces.decoded(data)) == expected


def test_random_values_are_the_same() -> None:
    draw = random.Random(random.random())

    def value(depth: int) -> Any:
        kind = draw.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(draw.randrange(60))]
        if kind == 5:
            return {draw.choice("abcdefgh") * draw.randrange(9): value(depth - 1) for _ in range(draw.randrange(60))}
        return [draw.random(), None, "é\n" * draw.randrange(900), draw.randrange(-9, 9)][kind]

    for _ in range(10):
        data = msgspec.json.encode([value(3) for _ in range(40)])
        assert at_once(deep_pieces.decoded(data)) == msgspec.json.decode(data)


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(RecursionError):
        at_once(deep_pieces.decoded(b'{"a":' * 5_000 + b"1" + b"}" * 5_000))
