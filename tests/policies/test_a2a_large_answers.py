"""Answers of A2A agents, read by a worker whose turn is used up: others do not wait for them, and clients get all that
they would get otherwise."""

from __future__ import annotations

import json

import pytest

from dataplane.net import turns
from tests.carriers import Carrier, Response, Run
from tests.carriers.contract import Conversation
from tests.policies.test_a2a import EVENTS, GRPC_TYPE, OLD, answering, event, frame, get, grpc, proxy, result, rpc, task
from tests.policies.test_ai_large_pieces import Later

STATES = b"".join(event(result(task("working", number=number))) for number in range(2_000))
LAST = event(result(task("completed", kind="task")))


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice takes all of a turn."""
    monkeypatch.setattr(turns, "SHARE", 0.0)


def begun(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Conversation, Later]:
    """Much of a stream came in a turn that has no time left for it."""
    run = proxy(carrier)
    asked = run.send(rpc("message/stream"))
    later = Later(run, monkeypatch)
    run.memory.context.turns.begin()
    run.arrival.head(Response(headers=[EVENTS]))
    run.arrival.content(STATES)
    assert len(later) == 1 and len(asked.answer.body) < len(STATES) // 2
    return run, asked, later


def test_a_stream_arrives_turn_by_turn_and_whole(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked, later = begun(carrier, monkeypatch)
    sizes = [len(asked.answer.body)]
    for _ in range(3):
        later.until(asked, lambda: len(asked.answer.body) > sizes[-1])
        sizes.append(len(asked.answer.body))
    assert sizes == sorted(set(sizes)), "each turn gives more of it"
    run.arrival.content(LAST)
    run.arrival.end()
    later.all(asked)
    assert asked.answer.ended and asked.answer.body == STATES + LAST
    (line,) = run.new_lines()
    assert " a2a.task.state=completed " in line


def test_what_came_before_a_stream_broke_off_arrives(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked, later = begun(carrier, monkeypatch)
    sent = len(asked.answer.body)
    run.arrival.reset()
    later.all(asked)
    assert STATES.startswith(asked.answer.body) and len(asked.answer.body) > sent and not later
    assert asked.answer.reset or not asked.answer.ended
    (line,) = run.new_lines()
    assert " a2a.task.state=working " in line


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_client_that_leaves_while_a_stream_waits_is_no_trouble(
    has_ended: bool, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, asked, later = begun(carrier, monkeypatch)
    if has_ended:
        run.arrival.end()
    asked.cancel()
    later.all(asked)
    assert not later and len(run.new_lines()) == 1


def test_a_client_that_takes_no_more_holds_a_stream_that_waits(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, asked, later = begun(carrier, monkeypatch)
    assert not run.arrival.is_read, "the agent is not read while its stream waits"
    asked.pause()
    later.all(asked)
    assert not run.arrival.is_read, "nor while the client is not"
    asked.resume()
    later.all(asked)
    assert run.arrival.is_read


def test_a_card_waits_for_a_turn_with_time(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = proxy(carrier)
    asked = run.send(get("/.well-known/agent-card.json"))
    later = Later(run, monkeypatch)
    run.memory.context.turns.begin()
    run.arrival.answer(answering({**OLD, "description": "x" * 100_000}))
    assert not asked.answer.status and len(later) == 1
    for _ in range(20):
        later.turn()
        assert run.arrival.received.method  # the agent sends more, when it may
    assert asked.answer.ended and json.loads(asked.answer.body)["url"].startswith("http://gw.example:8080/")


def test_trailers_come_behind_messages_that_waited(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    run = proxy(carrier)
    asked = run.send(grpc("SubscribeToTask", b"\x12\x02t9"))
    later = Later(run, monkeypatch)
    run.memory.context.turns.begin()
    messages = frame(b"\x22\x02ab") * 20_000
    run.arrival.answer(Response(200, [GRPC_TYPE], [messages], [("grpc-status", "0")], False))
    assert len(asked.answer.body) < len(messages) and not asked.answer.ended
    later.all(asked)
    assert asked.answer.ended and asked.answer.body == messages
    assert asked.answer.trailers["grpc-status"] == "0"
