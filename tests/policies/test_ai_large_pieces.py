"""Translated streams of which much comes at once, and bodies with many things in them: others do not wait for them, and
clients get all that they would get otherwise."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable

import pytest

from dataplane.llm.deltas import Sum
from dataplane.llm.formats.reading import MAX_ITEMS
from dataplane.llm.formats.registry import PROVIDERS
from dataplane.llm.routes import Format
from dataplane.net import turns
from tests.carriers import Carrier, Response, Run
from tests.carriers.contract import Conversation
from tests.fakes import aws_frames
from tests.fakes.llm_talks import event
from tests.fakes.llm_toys import CHAT, EVENTS, as_json, error, of_backend, post, text
from tests.policies.test_ai_clouds import CLAUDE, FRAMES, bedrock

WORDS = [f"word-{number} " for number in range(3_000)]
MESSAGES = text("custom: {formats: [{type: Messages}]}, host: 127.0.0.1, port: 9001")
STREAMED = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
BEGUN = [
    {"type": "message_start", "message": {"id": "m1", "model": "m", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
]
SAID = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}} for each in WORDS]
ENDED = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice takes all of a turn."""
    monkeypatch.setattr(turns, "SHARE", 0.0)


def said(form: Format, body: bytes) -> Sum:
    reader, found = PROVIDERS[form].reader(), Sum()
    found.add([*reader.feed(body), *reader.end()])
    return found


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_stream_that_comes_at_once_arrives_whole(is_whole: bool, carrier: Carrier) -> None:
    """Whether its end is said by its length or not."""
    data = b"".join(event(each, each["type"]) for each in (*BEGUN, *SAID, *ENDED))
    answer = Response(headers=EVENTS, body=data if is_whole else [data[:200_000], data[200_000:], b""])
    carried = carrier.proxy(MESSAGES).carry(post("/v1/chat/completions", STREAMED), answer)
    found = said(Format.COMPLETIONS, carried.answer.body)
    assert found.failed is None
    (part,) = found.answer().parts
    assert part.text == "".join(WORDS)  # type: ignore[union-attr]
    assert found.answer().usage.output_tokens == 9
    assert carried.answer.body.endswith(b"data: [DONE]\n\n")
    assert "gen_ai.usage.output_tokens=9" in carried.line


def test_frames_that_come_at_once_arrive_whole(carrier: Carrier) -> None:
    data = b"".join(map(aws_frames.chunk, (*BEGUN, *SAID, *ENDED)))
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/messages", {**STREAMED, "model": CLAUDE, "max_tokens": 9}), Response(headers=FRAMES, body=[data])
    )
    (part,) = said(Format.MESSAGES, carried.answer.body).answer().parts
    assert part.text == "".join(WORDS)  # type: ignore[union-attr]


TURNS = 200


class Later:
    """What a proxy puts off to the next turns of its loop."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._soon: deque[Callable[[], None]] = deque()
        self._turns = run.memory.context.turns
        monkeypatch.setattr(self._turns, "_call_soon", self._soon.append)

    def __len__(self) -> int:
        return len(self._turns)

    def turn(self) -> None:
        """Those who wait may leave one pass of the loop to others; then they have their turn."""
        before = self._turns.number
        for _ in range(2):
            for _ in range(len(self._soon)):
                self._soon.popleft()()
            if self._turns.number != before:
                return

    def until(self, asked: Conversation, is_done: Callable[[], object]) -> int:
        """How many it takes, at most TURNS; clients take more, and endpoints send more, when they may."""
        for count in range(TURNS):
            if is_done():
                return count
            self.turn()
            assert asked.answer is not None and all(each.received for each in self._run.arrivals)
        return TURNS

    def all(self, asked: Conversation) -> None:
        """As many as it takes; clients take more, and endpoints send more, when they may."""
        for _ in range(TURNS):
            self.turn()
            assert asked.answer.status and self._run.arrival.received.method


def begun(run: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[Conversation, Later]:
    asked = run.send(post("/v1/chat/completions", STREAMED))
    later = Later(run, monkeypatch)  # of what comes of the answer
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(b"".join(event(each, each["type"]) for each in (*BEGUN, *SAID)))
    return asked, later


def test_a_stream_goes_on_turn_by_turn(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = carrier.proxy(MESSAGES)
    asked, later = begun(run, monkeypatch)
    assert len(later) == 1
    later.until(asked, lambda: asked.answer.body)
    assert WORDS[0].encode() in asked.answer.body and WORDS[-1].encode() not in asked.answer.body
    sizes = [len(asked.answer.body)]
    for _ in range(3):
        later.until(asked, lambda: len(asked.answer.body) > sizes[-1])
        sizes.append(len(asked.answer.body))
    assert sizes == sorted(set(sizes)), "each turn gives more of it"
    run.arrival.content(b"".join(event(each, each["type"]) for each in ENDED))
    run.arrival.end()
    later.all(asked)
    assert asked.answer.ended and asked.answer.body.endswith(b"data: [DONE]\n\n")
    (part,) = said(Format.COMPLETIONS, asked.answer.body).answer().parts
    assert part.text == "".join(WORDS)  # type: ignore[union-attr]


def test_a_stream_that_breaks_off_while_it_waits_ends_with_an_error(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(MESSAGES)
    asked, later = begun(run, monkeypatch)
    run.arrival.reset()
    later.all(asked)
    assert asked.answer.ended or asked.answer.reset
    assert b"[DONE]" not in asked.answer.body and b'"error"' in asked.answer.body


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_client_that_leaves_while_a_stream_waits_is_no_trouble(
    has_ended: bool, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(MESSAGES)
    asked, later = begun(run, monkeypatch)
    if has_ended:
        run.arrival.end()
    asked.cancel()
    later.all(asked)
    assert not later
    (line,) = run.new_lines()
    assert "llm.usage_estimated=true" in line


def test_a_client_that_takes_no_more_holds_a_stream_that_waits(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(MESSAGES)
    asked, later = begun(run, monkeypatch)
    assert not run.arrival.is_read, "the provider is not read while its stream waits"
    asked.pause()
    later.all(asked)
    assert not run.arrival.is_read, "nor while the client is not"
    asked.resume()
    later.all(asked)
    assert run.arrival.is_read


def test_a_request_with_too_many_things_is_refused_and_not_read(carrier: Carrier) -> None:
    turn = {"role": "user", "content": "hi"}
    run = carrier.proxy(MESSAGES)
    carried = run.carry(post("/v1/chat/completions", {**CHAT, "messages": [turn] * (MAX_ITEMS + 1)}))
    assert (carried.answer.status, carried.reached) == (400, ())
    assert error(carried.answer)["error"]["param"] == "messages"
    parts = [{"type": "text", "text": "a"}] * (MAX_ITEMS // 2)
    body = {**CHAT, "messages": [{"role": "user", "content": parts}] * 3}
    assert run.carry(post("/v1/chat/completions", body)).answer.status == 400


def test_turns_of_one_role_are_one_in_linear_time() -> None:
    from dataplane.llm.chat import Role, Text, Turn, merged

    def seconds(count: int) -> float:
        many = [Turn(Role.USER, (Text("a"),))] * count
        begun = time.thread_time()
        (one,) = merged(many)
        assert len(one.parts) == count
        return time.thread_time() - begun

    assert min(seconds(40_000) for _ in range(3)) < 40 * max(min(seconds(4_000) for _ in range(5)), 0.0005)


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [{"type": "text", "text": ""}] * (MAX_ITEMS + 1)},
        {"content": [], "later": [[] for _ in range(100_001)]},
    ],
)
def test_an_answer_with_too_many_things_is_an_error(answer: object, carrier: Carrier) -> None:
    carried = carrier.proxy(MESSAGES).carry(post("/v1/chat/completions", CHAT), as_json(answer))
    assert carried.answer.status == 502
    assert "more than" in carried.line and json.loads(carried.answer.body)["error"]


def test_an_event_with_too_many_things_ends_the_stream(carrier: Carrier) -> None:
    gemini = of_backend("provider: {gemini: {}, host: 127.0.0.1, port: 9001}")
    parts = [{"text": "a"}] * (MAX_ITEMS + 1)
    data = event({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    carried = carrier.proxy(gemini).carry(
        post("/v1/messages", {**CHAT, "max_tokens": 9, "stream": True}), Response(headers=EVENTS, body=[data])
    )
    assert b"event: error" in carried.answer.body and b"message_stop" not in carried.answer.body


# --- answers that are read beside, by a worker whose turn is used up

OWN = text("custom: {formats: [{type: Completions}]}, host: 127.0.0.1, port: 9001")
COMPLETION = {
    "model": "m",
    "choices": [{"message": {"content": "hi"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 9},
}


MESSAGE = {
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 9},
}
JSON = [("content-type", "application/json")]


def answering(run: Run, monkeypatch: pytest.MonkeyPatch, body: dict[str, object]) -> tuple[Conversation, Later]:
    """The turn in which the answer comes has no time left for it."""
    asked = run.send(post("/v1/chat/completions", body))
    later = Later(run, monkeypatch)
    run.memory.context.turns.begin()
    return asked, later


@pytest.mark.parametrize("provider", [OWN, MESSAGES])
def test_an_answer_is_read_when_a_turn_has_time_for_it(
    provider: str, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(provider)
    asked, later = answering(run, monkeypatch, CHAT)
    body = json.dumps(COMPLETION if provider is OWN else MESSAGE).encode()
    run.arrival.answer(Response(headers=JSON, body=body))
    assert not asked.answer.status and len(later) == 1
    later.turn()
    assert asked.answer.status == 200 and json.loads(asked.answer.body)["choices"][0]["message"]["content"] == "hi"
    (line,) = run.new_lines()
    assert "gen_ai.usage.output_tokens=9" in line
    assert not run.memory.context.body_memory.used, "what waited takes no room any more"


def test_a_client_that_leaves_while_an_answer_waits_is_no_trouble(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(OWN)
    asked, later = answering(run, monkeypatch, CHAT)
    run.arrival.answer(Response(headers=JSON, body=json.dumps(COMPLETION).encode()))
    asked.cancel()
    for _ in range(3):
        later.turn()
    assert not later and not run.memory.context.body_memory.used
    (line,) = run.new_lines()
    assert "llm.usage_estimated=true" in line


def test_what_came_of_a_stream_before_it_broke_off_arrives(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = carrier.proxy(OWN)
    asked, later = answering(run, monkeypatch, STREAMED)
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(event({"choices": [{"index": 0, "delta": {"content": "hi"}}]}))
    run.arrival.reset()
    assert not asked.answer.body
    for _ in range(3):
        later.turn()
    assert asked.answer.body.startswith(b"data: ") and b"hi" in asked.answer.body and b'"error"' in asked.answer.body


# --- requests that are served in stages

LARGE = {**CHAT, "messages": [{"role": "user", "content": "hi"}] * 4_000}
RULE = "authorization: {action: Deny, policy: {matchExpressions: ['llm.prompt.exists(m, m.content == \"no\")']}}"
SHAPED = f"prompt: {{prepend: [{{role: system, content: s}}]}}, {RULE}"
SHAPES = text("custom: {formats: [{type: Completions}]}, host: 127.0.0.1, port: 9001", SHAPED)


def test_a_large_request_lets_others_have_their_turns(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = carrier.proxy(SHAPES)
    later = Later(run, monkeypatch)
    asked = run.send(post("/v1/chat/completions", LARGE))
    assert TURNS > later.until(asked, lambda: run.arrivals) > 10, "it is one piece"
    assert json.loads(run.arrival.received.body)["messages"][1:] == LARGE["messages"]
    run.arrival.answer(Response(headers=JSON, body=json.dumps(COMPLETION).encode()))
    later.until(asked, lambda: asked.answer.ended)
    assert asked.answer.status == 200


def test_a_client_that_leaves_between_two_stages_is_no_trouble(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(SHAPES)
    later = Later(run, monkeypatch)
    asked = run.send(post("/v1/chat/completions", LARGE))
    for _ in range(5):
        later.turn()
    asked.cancel()
    for _ in range(TURNS):
        later.turn()
    assert not later and not run.arrivals and not run.memory.context.body_memory.used
    (line,) = run.new_lines()
    assert "499" in line


@pytest.mark.parametrize("provider", ["Completions", "Messages"])
def test_a_large_request_is_refused_as_others_are(provider: str, carrier: Carrier) -> None:
    """By a rule that reads the prompt, and for what the format does not have."""
    run = carrier.proxy(text(f"custom: {{formats: [{{type: {provider}}}]}}, host: 127.0.0.1, port: 9001", SHAPED))
    no = {**LARGE, "messages": [*LARGE["messages"], {"role": "user", "content": "no"}]}
    assert run.carry(post("/v1/chat/completions", no)).answer.status == 403
    wrong = run.carry(post("/v1/chat/completions", {**LARGE, "messages": "x" * 70_000}))
    assert (wrong.answer.status, wrong.reached) == (400, ())
    assert error(wrong.answer)["error"]["param"] == "messages"
    assert run.carry(post("/v1/chat/completions", b'{"messages":"%b' % (b"x" * 70_000))).answer.status == 400


def test_candidates_of_a_large_request_that_fail_at_once_are_asked_one_after_the_other(carrier: Carrier) -> None:
    two = of_backend(
        "groups: [{providers: [{name: one, openai: {}, host: 127.0.0.1, port: 9001}]},"
        " {providers: [{name: two, openai: {}, host: 127.0.0.2, port: 9001}]}]"
    )
    run = carrier.proxy(two)
    run.refuse_connections()
    asked = run.send(post("/v1/chat/completions", LARGE))
    run.advance(1)
    assert asked.answer.ended and asked.answer.status in (502, 503)
    (line,) = run.new_lines()
    assert "one:connect" in line and "two:connect" in line
    assert not run.memory.context.body_memory.used


# --- large answers that are read beside

MANY = {**COMPLETION, "choices": [{"index": number, "message": {"content": "hi"}} for number in range(4_000)]}


def test_a_large_answer_is_read_piece_by_piece(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = carrier.proxy(OWN + "frontendPolicies: {accessLog: {add: {n: 'size(llm.completion)'}}}\n")
    asked, later = answering(run, monkeypatch, CHAT)
    run.arrival.answer(Response(headers=JSON, body=json.dumps(MANY).encode()))
    assert TURNS > later.until(asked, lambda: asked.answer.status) > 4, "it is one piece"
    later.until(asked, lambda: asked.answer.ended)
    assert asked.answer.status == 200 and json.loads(asked.answer.body) == MANY
    for _ in range(TURNS):
        later.turn()
    (line,) = run.new_lines()
    assert "gen_ai.usage.output_tokens=9" in line and "n=4000" in line
    assert not run.memory.context.body_memory.used


def test_a_client_that_leaves_while_a_large_answer_is_read_is_no_trouble(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = carrier.proxy(OWN)
    asked, later = answering(run, monkeypatch, CHAT)
    run.arrival.answer(Response(headers=JSON, body=json.dumps(MANY).encode()))
    for _ in range(3):
        later.turn()
    assert not asked.answer.status
    asked.cancel()
    for _ in range(TURNS):
        later.turn()
    assert not later and not run.memory.context.body_memory.used
    assert len(run.new_lines()) == 1


def test_usage_that_is_larger_than_any_is_not_read(carrier: Carrier) -> None:
    usage = {f"k{number}": number for number in range(10_000)}
    answer = {**COMPLETION, "usage": {**usage, **COMPLETION["usage"]}}  # type: ignore[dict-item]
    carried = carrier.proxy(OWN).carry(post("/v1/chat/completions", CHAT), as_json(answer))
    assert (carried.answer.status, json.loads(carried.answer.body)) == (200, answer)
    assert "output_tokens" not in carried.line and "gen_ai.response.model=m" in carried.line


def test_the_prompt_of_a_large_request_has_a_value_where_a_rule_reads_it(carrier: Carrier) -> None:
    log = "frontendPolicies: {accessLog: {add: {n: 'size(llm.prompt)'}}}\n"
    run = carrier.proxy(SHAPES + log)
    assert "n=4000" in run.carry(post("/v1/chat/completions", LARGE), as_json(COMPLETION)).line
    assert " n=" not in carrier.proxy(OWN + log).carry(post("/v1/chat/completions", LARGE), as_json(COMPLETION)).line
