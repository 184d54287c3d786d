"""What comes of a call to one MCP server: its answer as it is given or read, each with its bounds. No network."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.backends.mcp import relay
from dataplane.backends.mcp.answers import AnswerRefused, Answers, Opened, TargetFailed
from dataplane.backends.mcp.relay import Rewrite
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed
from dataplane.http.heads import Head
from dataplane.http.sse import Event, EventReader
from dataplane.mcp import asked, names
from dataplane.upstream.settings import Settings


class Parts:
    """`answers.Answering`: what a call answers, part by part; an exception is raised."""

    endpoint = None

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)
        self.is_given_up = False

    async def receive(self) -> bytes:
        part = self.parts.pop(0) if self.parts else b""
        if isinstance(part, Exception):
            raise part
        return part

    def cancel(self) -> None:
        self.is_given_up = True


# --- who is called


ROUTE, OWN, ABOVE = (Settings(tcp=name) for name in ("route", "own", "above"))  # type: ignore[arg-type]


OWN_HEALTH, OTHER_HEALTH, SOME_LIMITS = (object() for _ in range(3))


OWN_LINES = (
    *("host", "accept", "accept-encoding", "mcp-session-id", "last-event-id", "expect", "range", "content-length"),
    *("content-type", "content-encoding", "transfer-encoding", "trailer", "te", "connection", "keep-alive", "upgrade"),
    *("proxy-connection", "if-none-match", "if-modified-since", "mcp-name"),
)


@pytest.mark.parametrize("name", [*OWN_LINES, "x-other", "mcp-method", "authorization"])
def test_lines_of_a_client_that_go_on(name: str) -> None:
    line = f"{name.title()}: 1\r\n".encode()
    head = Head(b"\r\na: 1\r\n" + line)
    assert asked.passing(head) == b"a: 1\r\n" + (b"" if name in OWN_LINES else line)


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
    return Answers(services, lambda size: True, most), sleepers


@pytest.mark.parametrize(
    "given",
    [
        opened(ANSWER[:9], ANSWER[9:]),
        opened(ANSWER, lines=b""),
        opened(b"id: 1\ndata:\n\n" + event(ANSWER.replace(b"1,", b"2,")) + event(ANSWER) + b"data: {", lines=STREAM),
        opened(event(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), event(ANSWER), lines=STREAM),
    ],
)
async def test_the_answer_to_a_request_is_found(given: Opened) -> None:
    read, sleepers = reading()
    found = await read.read(given, 1, "one")
    assert (found.is_response, found.request_id) == (True, 1) and not sleepers


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

    def hold(self, size: int) -> bool:
        return True

    async def pour(self, given: Parts) -> None:
        while data := await given.receive():
            self.did.append(data)

    def end(self) -> None:
        self.did.append("end")


PLAN: Any = SimpleNamespace(max_answer=1000)


def visit(takes_json: bool = True) -> Any:
    made: Any = SimpleNamespace(out=Out(), takes_json=takes_json, given=[], plan=PLAN)
    made.give = lambda body, lines=b"": made.given.append((body, lines))
    return made


PASSED = b"content-type: text/plain\r\n"


async def test_a_whole_answer_is_bounded() -> None:
    reads = visit()
    reads.plan = SimpleNamespace(max_answer=4)
    assert await relay.whole(reads, opened(b"ab", b"cd")) == b"abcd"
    with pytest.raises(AnswerRefused, match=r"^one: its answer has more than 4 bytes \(mcp.maxAnswerSize\)$"):
        await relay.whole(reads, opened(b"ab", b"cd", b"e"))


# --- an answer whose names become ours


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def rewrite(renames: bool = True, tags: bool = True, hides: Any = None, is_resumed: bool = False) -> Rewrite:
    return Rewrite("t", 1, renames, names.tagged if tags else None, hides, is_resumed)


def said(made: Rewrite, text: bytes) -> Any:
    found = made.message(text)
    return None if found is None else json.loads(found)


RELATED = "io.modelcontextprotocol/related-task"


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"id": 5, "method": "roots/list"}, {"id": "gw:t:n:5", "method": "roots/list"}),
        (
            {"id": 5, "method": "x", "params": {"_meta": {"progressToken": "p"}}},
            {"id": "gw:t:n:5", "method": "x", "params": {"_meta": {"progressToken": "gw:t:s:p"}}},
        ),
        ({"id": 1, "result": {"content": []}}, {"id": 1, "result": {"content": []}}),
        (
            {"id": 1, "result": {"task": {"taskId": "a"}}},
            {"id": 1, "result": {"task": {"taskId": "t+a"}}},
        ),
        (
            {"id": 1, "result": {"contents": [{"uri": "u"}]}},
            {"id": 1, "result": {"contents": [{"uri": "t+u"}]}},
        ),
        ({"id": 1, "result": {"taskId": "a"}}, {"id": 1, "result": {"taskId": "t+a"}}),
        (
            {"id": 1, "error": {"code": 1, "message": "taskId"}},
            {"id": 1, "error": {"code": 1, "message": "taskId"}},
        ),
        ({"id": None, "error": {"code": 1}}, {"id": None, "error": {"code": 1}}),
        ({"id": 2, "result": {"taskId": "a"}}, None),
        (
            {"id": 1, "result": {"_meta": {RELATED: {"taskId": "a"}}}},
            {"id": 1, "result": {"_meta": {RELATED: {"taskId": "t+a"}}}},
        ),
        (
            {"method": "notifications/message", "params": {"_meta": {RELATED: {"taskId": "a"}}}},
            {"method": "notifications/message", "params": {"_meta": {RELATED: {"taskId": "t+a"}}}},
        ),
        (
            {"method": "notifications/cancelled", "params": {"requestId": 5}},
            {"method": "notifications/cancelled", "params": {"requestId": "gw:t:n:5"}},
        ),
        (
            {"method": "notifications/resources/updated", "params": {"uri": "u"}},
            {"method": "notifications/resources/updated", "params": {"uri": "t+u"}},
        ),
        (
            {"method": "notifications/other", "params": {"uri": "u"}},
            {"method": "notifications/other", "params": {"uri": "u"}},
        ),
    ],
)
def test_names_and_ids_of_one_of_several_servers_become_ours(given: Any, seen: Any) -> None:
    found = said(rewrite(), line(**given))
    assert found == (None if seen is None else {"jsonrpc": "2.0", **seen})
    only = rewrite(renames=False, tags=False)
    assert said(only, line(**given)) == {"jsonrpc": "2.0", **given}, "those of the only one stay"


def test_on_a_stream_that_goes_on_answers_may_be_of_any_request() -> None:
    answer = line(id=2, result={})
    assert rewrite().message(answer) is None
    for made in (rewrite(is_resumed=True), rewrite(renames=False)):
        assert said(made, answer) == json.loads(answer)


@pytest.mark.parametrize(
    ("renames", "given", "seen"),
    [
        (True, Event(line(id=1, result={}), b"message", b"7"), (line(id=1, result={}), b"t:7")),
        (False, Event(line(id=1, result={}), b"message", b"7"), (line(id=1, result={}), b"7")),
        (True, Event(b"", b"", b"7"), (b"", b"t:7")),
        (True, Event(line(method="x"), b"message"), (line(method="x"), b"")),
    ],
)
def test_ids_of_events_name_their_server(renames: bool, given: Event, seen: tuple[bytes, bytes]) -> None:
    (found,) = EventReader().feed(rewrite(renames).event(given)) or [Event(b"", b"", b"t:7")]
    assert found.data == seen[0] and (found.id or b"") == seen[1]


READ = b'{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"u"}]}}'


def reading_resource(renames: bool = True, hides: Any = None) -> Rewrite:
    return rewrite(renames, renames, hides)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (opened(READ.replace(b"1,", b"2,")), "it answered what was not asked"),
        (opened(b"{"), "its answer is not readable: the message is not JSON"),
        (opened(READ, lines=PASSED), "its answer is neither JSON nor a stream of events"),
        (opened(b"data: x\n\n", lines=STREAM), "its answer is not readable: the message is not JSON"),
        (opened(CallFailed("lost", "it broke"), lines=STREAM), "it broke"),
        (opened(b"data: " + b"x" * 101, lines=STREAM), r"its answer has more than 100 bytes \(mcp.maxAnswerSize\)"),
    ],
)
async def test_what_cannot_become_ours_is_a_failure(given: Opened, why: str) -> None:
    asked = visit()
    asked.plan = SimpleNamespace(max_answer=100)
    asked.out.give = asked.out.did.append
    with pytest.raises(TargetFailed, match=rf"^t: {why}$"):
        await relay.relay_rewritten(asked, given, reading_resource())


def test_an_event_that_is_not_for_the_client_is_none() -> None:
    assert rewrite().event(Event(line(id=2, result={}), b"message", b"7")) == b""
