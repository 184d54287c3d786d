"""What the head of a request says to MCP, and what is remembered of heads that are alike."""

from __future__ import annotations

from dataplane.mcp.asked import LONGEST, MOST, Heads

LINES = b"\r\nhost: a\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nx-own: 1\r\n"
ID = b"x-request-id: %d\r\n"


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
