"""What comes of a call to one MCP server: its answer as it is given or read, each with its bounds. No network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import relay
from dataplane.backends.mcp.answers import AnswerRefused, Answers, Opened, TargetFailed
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed
from dataplane.http.heads import Head
from dataplane.upstream.settings import Settings
from tests.fakes.calls import Parts
from tests.fakes.mcp_memory import claim

# --- who is called


ROUTE, OWN, ABOVE = (Settings(tcp=name) for name in ("route", "own", "above"))  # type: ignore[arg-type]


OWN_HEALTH, OTHER_HEALTH, SOME_LIMITS = (object() for _ in range(3))


# --- an answer that is read


JSON, STREAM = b"content-type: application/json\r\n", b"content-type: Text/Event-Stream; charset=utf-8\r\n"
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def opened(*parts: bytes | Exception, lines: bytes = JSON, status: int = 200, until: float = FOR_EVER) -> Opened:
    return Opened(Parts(*parts), CallAnswer(status, Head(b"\r\n" + lines), b""), "one", until)


def event(data: bytes) -> bytes:
    return b"data: %b\n\n" % data


def reading(most: int = 1000) -> tuple[Answers, list[tuple[float, Any]]]:
    sleepers: list[tuple[float, Any]] = []
    services: Any = SimpleNamespace(wake_at=lambda at, whom: sleepers.append((at, whom)))
    return Answers(services, claim(), most), sleepers


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (opened(ANSWER.replace(b"1,", b"2,")), "it answered what was not asked"),
        (opened(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), "it answered what was not asked"),
        (opened(b"{"), "its answer is not readable: the message is not JSON"),
        (opened(b"data: x\n\n", lines=STREAM), "its answer is not readable: the message is not JSON"),
        (opened(event(ANSWER.replace(b"1,", b"2,")), lines=STREAM), "its stream ended without an answer"),
        (opened(CallFailed("lost", "it broke")), "it broke"),
    ],
)
async def test_what_is_no_answer_is_a_failure(given: Opened, why: str) -> None:
    with pytest.raises(TargetFailed, match=rf"^one: {why}$"):
        await reading()[0].read(given, 1, "one")


async def test_one_answer_is_bounded_and_so_are_all() -> None:
    most = len(ANSWER) + 2
    read, _ = reading(most)
    for _ in range(4):
        await read.read(opened(ANSWER + b"  "), 1, "one")
    with pytest.raises(AnswerRefused, match=rf"^one: all answers have more than {4 * most} bytes$"):
        await read.read(opened(b" "), 1, "one")
    read, _ = reading(most)
    with pytest.raises(AnswerRefused, match=rf"^one: its answer has more than {most} bytes \(mcp.maxAnswerSize\)$"):
        await read.read(opened(ANSWER, b"  ", b" "), 1, "one")


# --- an answer that passes


class Out:
    """`contract.Answer`, as far as a relay needs it."""

    is_paused = True

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.has_begun = False

    def head(self, status: int, lines: bytes, length: int = -1, first: bytes = b"", end: bool = False) -> None:
        self.has_begun = True
        self.did.append((status, lines, length, first, end))

    async def pour(self, given: Parts) -> None:
        while data := await given.receive():
            self.did.append(data)

    def end(self) -> None:
        self.did.append("end")


PLAN: Any = SimpleNamespace(max_answer=1000)


def visit(takes_json: bool = True) -> Any:
    made: Any = SimpleNamespace(out=Out(), takes_json=takes_json, given=[], plan=PLAN, claim=claim())
    made.give = lambda body, lines=b"": made.given.append((body, lines))
    return made


async def test_a_whole_answer_is_bounded() -> None:
    reads = visit()
    reads.plan = SimpleNamespace(max_answer=4)
    assert await relay.whole(reads, opened(b"ab", b"cd")) == b"abcd"
    with pytest.raises(AnswerRefused, match=r"^one: its answer has more than 4 bytes \(mcp.maxAnswerSize\)$"):
        await relay.whole(reads, opened(b"ab", b"cd", b"e"))
