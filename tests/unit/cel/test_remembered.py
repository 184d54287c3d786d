"""Texts that several expressions parse: once each, few of them, and errors too."""

from __future__ import annotations

import pytest

from gatewright.cel.budget import START
from gatewright.cel.errors import Fault, TooMany
from gatewright.cel.functions import json_text
from gatewright.cel.remembered import LONG, SHORT, TEXTS, Remembered

calls: list[str] = []


def _parse(text: str) -> dict[str, int]:
    calls.append(text)
    if text.startswith("bad"):
        raise Fault("not good")
    if text.startswith("many"):
        raise TooMany("too many")
    return {"size": len(text)}


@pytest.fixture
def parse() -> Remembered[str, dict[str, int]]:
    calls.clear()
    return Remembered(_parse)


def text(start: str, size: int = SHORT + 1) -> str:
    return start.ljust(size, ".")


def test_a_long_text_is_parsed_once(parse: Remembered[str, dict[str, int]]) -> None:
    first = parse(text("a"))
    assert first == {"size": SHORT + 1} and parse(text("a")) is first and len(calls) == 1


@pytest.mark.parametrize("size", [1, SHORT, LONG + 1])
def test_short_and_huge_ones_are_parsed_each_time(parse: Remembered[str, dict[str, int]], size: int) -> None:
    assert parse(text("a", size)) == parse(text("a", size)) == {"size": size}
    assert len(calls) == 2


@pytest.mark.parametrize(("start", "error"), [("bad", Fault), ("many", TooMany)])
def test_errors_are_remembered_and_each_is_a_new_one(
    parse: Remembered[str, dict[str, int]], start: str, error: type[Exception]
) -> None:
    raised = []
    for _ in range(3):
        with pytest.raises(error) as caught:
            parse(text(start))
        raised.append(caught.value)
    assert len(calls) == 1 and len(set(map(id, raised))) == 3 and len({str(each) for each in raised}) == 1


def test_the_oldest_makes_room(parse: Remembered[str, dict[str, int]]) -> None:
    for number in range(TEXTS + 1):
        parse(text(str(number)))
    parse(text(str(TEXTS)))
    parse(text("1"))
    assert len(calls) == TEXTS + 1
    parse(text("0"))
    assert len(calls) == TEXTS + 2


def test_json_of_a_text_is_parsed_once_and_that_of_bytes_is_not_kept() -> None:
    """A text is what several expressions ask about. Bytes are a body, of which there may be many, and large ones."""
    written = f"[{'1,' * SHORT}1]"
    assert json_text.parse(list(START), written) is json_text.parse(list(START), written)
    content = written.encode()
    assert json_text.parse(list(START), content) is not json_text.parse(list(START), content)


def test_what_clients_sent_is_not_in_its_repr(parse: Remembered[str, dict[str, int]]) -> None:
    parse(text("secret"))
    assert "secret" not in repr(parse) and "1 texts" in repr(parse)
