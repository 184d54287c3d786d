"""`promptGuard` on realtime sessions: texts are masked or rejected in both directions, however they are cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.realtime_talk import Event, Talk, config, created, done, piece

SSN = "536-22-8765"
SAID, MASKED = f"my number is {SSN}, ok", "my number is <SSN>, ok"
MASK = "{regex: {builtins: [Ssn]}}"
REJECT = "{regex: {matches: ['forbidden \\w+'], action: Reject}, response: {message: Not this, statusCode: 422}}"
HOOK = "{webhook: {host: '127.0.0.1:9005'}}"


def guarded(request: str = "", response: str = "") -> str:
    lists = (f"request: [{request}]" if request else "", f"response: [{response}]" if response else "")
    return config(f"promptGuard: {{{', '.join(filter(None, lists))}}}")


def message(said: str, role: str = "user") -> Event:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"id": "i1", "type": "message", "role": role, "content": [{"type": kind, "text": said}]}


def asked(said: str) -> dict[str, Event]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": json.dumps({"a": said})}
    return {
        "item": {"type": "conversation.item.create", "item": message(said)},
        "system item": {"type": "conversation.item.create", "item": message(said, "system")},
        "tool output": {
            "type": "conversation.item.create",
            "item": {"type": "function_call_output", "call_id": "c", "output": said},
        },
        "tool input": {"type": "conversation.item.create", "item": call},
        "instructions": {"type": "session.update", "session": {"type": "realtime", "instructions": said}},
        "response": {"type": "response.create", "response": {"instructions": said}},
        "input": {"type": "response.create", "response": {"input": [message(said)]}},
        "an event that nobody knows": {"type": "new.event", "words": [said]},
        "audio that is none": {"type": "new.event", "audio": said},
    }


@pytest.mark.parametrize("name", asked(""))
def test_texts_of_clients_are_masked_wherever_they_stand(name: str) -> None:
    talk = Talk(guarded(MASK))
    assert talk.ask(asked(SAID)[name]) == [asked(MASKED)[name]]
    assert SSN.encode() not in talk.upstream.received


@pytest.mark.parametrize("name", asked(""))
def test_what_is_rejected_is_not_sent_and_its_client_reads_why(name: str) -> None:
    talk = Talk(guarded(REJECT))
    assert talk.ask({**asked("a forbidden word")[name], "event_id": "e7"}) == []
    (told,) = talk.got()
    assert told["type"] == "error"
    expected = {"message": "Not this", "code": "PromptRejected", "event_id": "e7", "param": None}
    assert told["error"] == {**expected, "type": "invalid_request_error"}
    assert talk.ask(asked("fine")["item"]) == [asked("fine")["item"]]
    talk.leave()
    assert "PromptRejected" in talk.line and "forbidden" not in talk.line


def test_sound_is_not_judged_as_text() -> None:
    talk = Talk(guarded("{regex: {matches: ['.+']}}", "{regex: {matches: ['[a-z]+']}}"))
    sound = {"type": "input_audio_buffer.append", "event_id": "e", "audio": "abcd"}
    assert talk.ask(sound) == [sound]
    events = [created(), piece("abcd", kind="output_audio")]
    assert talk.say(*events) == events


def test_what_the_client_would_say_in_two_spellings_is_said_as_it_was_judged() -> None:
    talk = Talk(guarded(MASK))
    (got,) = talk.ask(f'{{"type":"new.event","a":"{SSN}","a":"\\u0035\\u0033\\u0036-22-8765 ssn"}}')
    assert got == {"type": "new.event", "a": "<SSN> ssn"}


# --- answers


def repeated(said: str) -> list[Event]:
    item = message(said, "assistant")
    places = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    return [
        {"type": "response.output_text.done", "event_id": "x", **places, "text": said},
        {"type": "response.content_part.done", "event_id": "x", **places, "part": {"type": "text", "text": said}},
        {"type": "response.output_item.done", "event_id": "x", "response_id": "r1", "item": item},
        {"type": "conversation.item.done", "event_id": "x", "item": item},
        done(output=(item,)),
    ]


def said_by(events: list[Event], kind: str = "output_text") -> str:
    return "".join(each["delta"] for each in events if each["type"] == f"response.{kind}.delta")


@pytest.mark.parametrize("kind", ["output_text", "output_audio_transcript", "function_call_arguments"])
@given(st.sets(st.integers(1, len(SAID) - 1)))
def test_masks_do_not_depend_on_how_a_text_is_cut(kind: str, cuts: set[int]) -> None:
    talk = Talk(guarded(response=MASK))
    parts = [SAID[begin:end] for begin, end in pairwise((0, *sorted(cuts), len(SAID)))]
    got = talk.say(created(), *(piece(each, kind=kind) for each in parts), done())
    assert said_by(got, kind) == MASKED
    assert SSN not in json.dumps(got)
    ids = [each["event_id"] for each in got if each["event_id"] != "p"]
    assert len(ids) == len(set(ids))


def test_events_that_repeat_a_text_say_what_its_pieces_said() -> None:
    talk = Talk(guarded(response=MASK))
    got = talk.say(created(), piece(SAID[:20]), piece(SAID[20:]), *repeated(SAID))
    assert got[-5:] == repeated(MASKED)
    assert said_by(got) == MASKED
    again = talk.say(created(2), piece("ho", 2), done(2))
    assert said_by(again) == "ho"


def test_what_users_said_aloud_is_masked_too() -> None:
    talk = Talk(guarded(response=MASK))
    said = {"type": "conversation.item.input_audio_transcription.completed", "event_id": "t", "item_id": "u1"}
    (got,) = talk.say({**said, "content_index": 0, "transcript": SAID})
    assert got["transcript"] == MASKED


def test_text_waits_no_longer_than_a_match_may_go_on() -> None:
    talk = Talk(guarded(response=MASK))
    got = talk.say(created(), piece("words before it, and then "))
    assert said_by(got).startswith("words before it")


def test_an_answer_that_cannot_be_read_is_not_given() -> None:
    talk = Talk(guarded(response=MASK))
    talk.server.send_text(b"[1]")
    talk._from_server()
    assert talk.got() == []
    assert talk.code == 1008


# --- servers that judge


def hooked(talk: Talk, action: object) -> list[str]:
    """The webhook's answer; what it was asked."""
    hook = talk.proxy.upstream
    request = hook.take()
    body = json.dumps({"action": action}).encode()
    hook.answer(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    asked = json.loads(request.partition(b"\r\n\r\n")[2])["body"]
    return [each["content"] for each in asked.get("messages") or [one["message"] for one in asked["choices"]]]


def test_a_server_judges_what_is_asked_before_it_is_sent() -> None:
    talk = Talk(guarded(HOOK))
    assert talk.ask(asked(SAID)["item"]) == []
    assert hooked(talk, {"body": {"messages": [{"role": "user", "content": "less"}]}}) == [SAID]
    assert talk.arrived() == [asked("less")["item"]]


def test_a_response_that_a_server_rejects_ends_and_no_byte_of_it_passes() -> None:
    talk = Talk(guarded(response=HOOK))
    got = talk.say(created(), piece("a secret plan"))
    assert said_by(got) == ""
    end = {
        "type": "response.output_text.done",
        "event_id": "x",
        "response_id": "r1",
        "item_id": "i1",
        "content_index": 0,
    }
    assert talk.say({**end, "text": "a secret plan"}) == []
    assert hooked(talk, {"body": "Not this", "status_code": 422}) == ["a secret plan"]
    (told,) = talk.got()
    assert (told["type"], told["error"]["code"], told["error"]["message"]) == ("error", "AnswerRejected", "Not this")
    (cancelled,) = talk.arrived()
    assert (cancelled["type"], cancelled["response_id"]) == ("response.cancel", "r1")
    item = message("a secret plan", "assistant")
    sound = piece("AAAA", kind="output_audio")
    rest = talk.say(piece("more"), sound, {"type": "conversation.item.done", "event_id": "x", "item": item})
    assert rest == []
    (last,) = talk.say(done(output=(item,)))
    assert last == done()
    assert b"secret" not in talk.end.received
    talk.leave()
    assert "gen_ai.usage.output_tokens=10" in talk.line and "AnswerRejected" in talk.line
