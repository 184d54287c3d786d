"""What the head of a request says to MCP, and what is remembered of heads that are alike."""

from __future__ import annotations

import pytest

from dataplane.http.heads import Head
from dataplane.mcp.asked import LONGEST, MOST, Heads, asked

LINES = b"\r\nhost: a\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nx-own: 1\r\n"
ID = b"x-request-id: %d\r\n"


@pytest.mark.parametrize(
    ("value", "is_json"),
    [
        *((b"application/json", True), (b"Application/JSON\t; charset=utf-8", True), (b"text/json", False)),
        *((b"application/jsonx", False), (b"", False)),
    ],
)
def test_what_says_that_it_is_json(value: bytes, is_json: bool) -> None:
    assert asked(Head(b"\r\ncontent-type: %b\r\n" % value)).has_json is is_json


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"mcp-session-id: s\r\nmcp-protocol-version: 2025-06-18\r\n",
        b"mcp-protocol-version: a\r\nMCP-Protocol-Version: b\r\n",
        b"accept: text/html\r\nauthorization: Bearer t\r\n",
        b"X-Request-Id: of the client\r\n",
    ],
)
def test_what_is_remembered_is_what_is_read(lines: bytes) -> None:
    heads = Heads()
    for number in (1, 2, 2):
        block = LINES + lines + ID % number
        found, read = heads.asked(block), asked(Head(block))
        assert found._replace(lasting=b"") == read._replace(lasting=b"")
        assert found.passing == found.lasting + ID % number
    assert heads.asked(LINES + lines) == asked(Head(LINES + lines))
    assert heads.asked(b"\r\n" + ID % 1).passing == ID % 1


def test_heads_that_differ_in_any_line_but_the_id_are_read_each() -> None:
    heads = Heads()
    one = heads.asked(LINES + b"mcp-session-id: one\r\n" + ID % 1)
    two = heads.asked(LINES + b"mcp-session-id: two\r\n" + ID % 1)
    assert (one.session, two.session) == (b"one", b"two")
    last = heads.asked(LINES + ID % 1 + b"mcp-session-id: last\r\n")
    assert last.session == b"last" and ID % 1 in last.passing


def test_few_heads_are_remembered_and_no_long_ones() -> None:
    heads = Heads()
    for number in range(MOST + 9):
        heads.asked(LINES + b"x-number: %d\r\n" % number + ID % 1)
    assert repr(heads) == f"Heads({MOST})"
    heads = Heads()
    for more, count in ((0, 1), (1, 1)):
        head = LINES + b"x: " + b"y" * (LONGEST - len(LINES) - 5 + more) + b"\r\n"
        assert len(head) == LONGEST + more
        assert heads.asked(head + ID % 1).passing.endswith(ID % 1) and repr(heads) == f"Heads({count})"
