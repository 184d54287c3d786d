"""Content that stages change while it passes (`dataplane/streams`), over each carrier."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from dataplane.chain.buffering import buffering
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import STEP, WHOLE, Env, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.chain.streaming import transforming
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.sse import Event, EventReader, comment, write
from dataplane.streams import MOST_AHEAD, Outlet, Stage
from tests.carriers import Carrier, Request, Response, Run
from tests.fakes.policy_run import served
from tests.fakes.stages import INNER, POLICIES, Noting, both, ending, proxy_with, upper


def joined() -> Callable[[bytes, bool], bytes]:
    """Holds all back and rewrites it as JSON."""
    held = bytearray()

    def rewrite(data: bytes, end: bool) -> bytes:
        held.extend(data)
        return json.dumps({**json.loads(held), "seen": True}).encode() if end else b""

    return rewrite


DESCRIBING = [
    *(("etag", '"1"'), ("accept-ranges", "bytes"), ("content-digest", "sha-256=:AA==:"), ("digest", "a")),
    *(("repr-digest", "sha-256=:AA==:"), ("content-md5", "AA=="), ("content-type", "text/plain")),
]


@pytest.mark.parametrize("body", [b"some body", [b"some", b" ", b"body"]])
@pytest.mark.parametrize("sized", [True, False])
def test_content_is_changed_both_ways(body: bytes | Sequence[bytes], sized: bool, carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=both(upper))
    seen = run.carry(
        Request("PUT", headers=DESCRIBING, body=body, sized=sized),
        Response(200, [*DESCRIBING, ("content-encoding", "x")], body, sized=sized),
    )
    assert (seen.received.body, seen.received.ended) == (b"SOME BODY", True)
    assert seen.received.passed == {"content-type": "text/plain"}
    assert (seen.answer.body, seen.answer.ended) == (b"SOME BODY", True)
    assert seen.answer.headers.but("content-length") == {"content-type": "text/plain", "content-encoding": "x"}
    assert seen.answer.headers.get("content-length") in (None, "9")
    assert " request.bytes=9 response.bytes=9 " in seen.line


def test_trailers_follow_the_last_content(carrier: Carrier) -> None:
    run = proxy_with(carrier, csrf=ending(b"o"), header_modifiers=ending(b"i"))
    trailers = [("x-sum", "1")]
    seen = run.carry(Request(), Response(200, body=[b"a", b"b"], trailers=trailers, sized=False))
    assert (seen.answer.body, seen.answer.trailers, seen.answer.ended) == (b"abio", {"x-sum": "1"}, True)


def test_requests_pass_in_the_order_of_the_chain_and_responses_in_reverse(carrier: Carrier) -> None:
    run = proxy_with(carrier, csrf=ending(b"1"), buffer=ending(b"2"), header_modifiers=ending(b"3"))
    seen = run.carry(Request("POST", body=b"a"), Response(200, body=b"b"))
    assert (seen.received.body, seen.answer.body) == (b"a123", b"b321")


def test_content_that_no_stage_is_made_for_passes_as_it_is(carrier: Carrier) -> None:
    nobody = transforming(lambda x: None)
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=nobody, response_stream=nobody))
    seen = run.carry(Request("POST", body=b"a"), Response(200, [("etag", '"1"')], b"b"))
    assert (seen.received.headers["content-length"], seen.answer.headers["etag"]) == ("1", '"1"')
    assert (seen.received.body, seen.answer.body) == (b"a", b"b")


class Item(NamedTuple):
    condition: str
    policy: bytes


def test_of_a_conditional_policy_the_stages_of_the_chosen_item_stand(carrier: Carrier) -> None:
    items = [Item("request.path == '/a'", b"a"), Item("", b"b")]
    run = proxy_with(
        carrier, header_modifiers=lambda env: conditional("test", items, env, lambda name, env: ending(name))
    )
    for path, name in (("/a", b"a"), ("/", b"b")):
        seen = run.carry(Request("POST", path, body=b"x"), Response(200, body=b"y"))
        assert (seen.received.body, seen.answer.body) == (b"x" + name, b"y" + name)


def test_a_request_without_content_has_no_stage(carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=stage))
    assert run.carry(Request()).answer.status == 200
    assert stage.outlet is None


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_a_head_without_content_says_nothing_of_it(method: str, status: int, carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=stage))
    seen = run.carry(Request(method), Response(status, [*DESCRIBING, ("x-b", "1")]))
    assert (seen.answer.status, seen.answer.ended, stage.outlet) == (status, True, None)
    assert seen.answer.headers == {"content-type": "text/plain", "x-b": "1"}


def test_json_is_rewritten_as_a_whole(carrier: Carrier) -> None:
    hook = transforming(lambda x: joined())
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=hook, response_stream=hook))
    seen = run.carry(Request("POST", body=[b'{"a"', b": 1}"]), Response(200, body=[b'{"b": ', b"2}"]))
    assert json.loads(seen.received.body) == {"a": 1, "seen": True}
    assert json.loads(seen.answer.body) == {"b": 2, "seen": True}


def rewriting(x: Exchange) -> Callable[[bytes, bool], bytes]:
    reader = EventReader()
    return lambda data, end: b"".join(
        write(replace(event, data=event.data.upper(), type=b"loud")) for event in reader.feed(data)
    )


EVENTS = b"\xef\xbb\xbf: hello\r\ndata: one\r\n\r\nid: 7\rdata: two\rdata: lines\r\revent: x\ndata\n\n"


def test_events_are_rewritten_over_any_split(carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=transforming(rewriting)))
    events = [Event(b"ONE", b"loud"), Event(b"TWO\nLINES", b"loud", b"7"), Event(b"", b"loud")]
    for size in range(1, len(EVENTS)):
        body = [EVENTS[start : start + size] for start in range(0, len(EVENTS), size)]
        answer = run.ask(Request(), Response(200, [("content-type", "text/event-stream")], body, sized=False))
        assert EventReader().feed(answer.body) == events


class Beating:
    """A stage that says that it lives, once a second while nothing comes."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def __call__(self, x: Exchange, outlet: Outlet) -> Stage:
        made = Beating(self.env)
        made.outlet = outlet
        made.arm()
        return made

    outlet: Outlet
    timer: Any = None

    def arm(self) -> None:
        self.timer = self.env.call_at(self.env.clock() + 1, self.beat)

    def beat(self) -> None:
        self.outlet.content(comment(b"beat"), False)
        self.arm()

    def content(self, data: bytes, end: bool) -> None:
        self.outlet.content(data, end)
        if end:
            self.timer.cancel()

    def pause(self) -> None:
        self.timer.cancel()

    def resume(self) -> None:
        self.arm()

    def cancel(self) -> None:
        self.timer.cancel()


@pytest.mark.parametrize("ends", [True, False])
def test_a_stage_gives_without_input(ends: bool, carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=lambda env: Filter("test", response_stream=Beating(env)))
    asked = run.send(Request())
    run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
    for count in range(3):
        assert asked.answer.body == b": beat\n" * count
        run.advance(1.0)
    run.arrival.content(b"data: a\n\n")
    if ends:
        run.arrival.end()
        assert asked.answer.body == b": beat\n" * 3 + b"data: a\n\n" and asked.answer.ended
    else:
        asked.cancel()
    assert not [call for _, call in run.memory.timers if getattr(call, "__name__", "") == "beat"]


def test_what_is_buffered_is_released_at_the_end(carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.answer(Response(200, body=[b"a", b"b"]))
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (200, b"", False)
    assert stage.given == b"ab" and stage.told[-1][1]
    stage.outlet.content(b"all ", False)
    assert asked.answer.body == b"all "
    stage.outlet.content(b"of it", True)
    assert asked.answer.body == b"all of it" and asked.answer.ended


# --- tries and mirrors


def test_another_try_and_mirrors_get_what_left_the_last_stage(carrier: Carrier) -> None:
    text = """
    policies:
      headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}
      retry: {attempts: 2, codes: [503], backoff: 1ms}
      requestMirror: {host: '127.0.0.2:9000'}
    """
    step = Filter("test", request_stream=transforming(lambda x: upper))
    rows = tuple(Row(r.name, lambda *_: step, STEP, "test") if r.name == INNER else r for r in ROWS)
    run = carrier.proxy(served(text), rows=rows)
    asked = run.send(Request("PUT", body=[b"so", b"me"]))
    tries = [each for each in run.arrivals if each.endpoint.address == "127.0.0.1"]
    tries[0].answer(Response(503))
    run.advance(1.0)
    run.serve()
    assert asked.answer.status == 200
    assert [(each.received.body, each.received.ended) for each in run.arrivals] == [(b"SOME", True)] * 3
    assert {each.endpoint.address for each in run.arrivals} == {"127.0.0.1", "127.0.0.2"}


def test_a_mirror_gets_nothing_past_a_stage(carrier: Carrier) -> None:
    """The answer comes while the stage still holds back: what it has not passed is no mirror's."""
    text = """
    policies:
      headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}
      requestMirror: {host: '127.0.0.2:9000'}
    """
    stage = Noting()
    step = Filter("test", request_stream=stage)
    rows = tuple(Row(r.name, lambda *_: step, STEP, "test") if r.name == INNER else r for r in ROWS)
    run = carrier.proxy(served(text), rows=rows)
    run.hold_connections()
    asked = run.begin(Request("POST"))
    asked.content(b"secret")
    run.refuse_connections()
    run.release_connections()
    assert asked.answer.status == 503 and stage.told[-1] == "cancel"
    assert not run.arrivals and run.counted("mirrors_total")["aborted"] == 1


# --- pace


def taken(run: Run, asked: Any, arrival: Any) -> int:
    """Feed an endpoint's answer to a client that does not read until the endpoint is not read; bytes that went in."""
    sent = 0
    while arrival.is_read:
        arrival.content(bytes(1000))
        sent += 1000
        assert sent < 10_000_000, "nobody stops it"
    return sent


def test_a_slow_client_stops_the_endpoint_through_stages(carrier: Carrier) -> None:
    run = proxy_with(
        carrier, csrf=both(lambda data, end: data * 10), header_modifiers=both(lambda data, end: data * 10)
    )
    asked = run.send(Request())
    run.arrival.head(Response(200))
    asked.pause()
    sent = taken(run, asked, run.arrival)
    assert sent <= 2000, "what is on the way already, and no more"
    asked.resume()
    assert run.arrival.is_read
    run.arrival.end()
    assert len(asked.answer.body) == sent * 100 and asked.answer.ended


def test_a_client_that_is_slow_from_the_beginning(carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=both(lambda data, end: data * 10))
    asked = run.send(Request())
    asked.pause()
    run.arrival.head(Response(200))
    sent = taken(run, asked, run.arrival)
    asked.resume()
    run.arrival.end()
    assert len(asked.answer.body) == sent * 10 and asked.answer.ended


def test_a_stage_that_holds_all_back_of_a_client_that_is_slow_from_the_beginning(carrier: Carrier) -> None:
    class Holding(Noting):
        def pause(self) -> None:
            self.told.append("pause")

        def resume(self) -> None:
            self.told.append("resume")

    stage = Holding()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    asked.pause()
    run.arrival.head(Response(200))
    run.arrival.content(b"a")
    assert run.arrival.is_read, "the stage takes it"
    run.arrival.end()
    asked.resume()
    stage.outlet.content(b"b", True)
    assert asked.answer.body == b"b" and asked.answer.ended


def test_an_upstream_that_is_not_there_yet_stops_the_client_through_stages(carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=both(lambda data, end: data * 10))
    run.hold_connections()
    asked = run.begin(Request("POST"))
    sent = 0
    while asked.is_read:
        asked.content(bytes(1000))
        sent += 1000
        assert sent < 100_000, "nobody stops it"
    run.release_connections()
    assert asked.is_read
    asked.end()
    assert len(run.arrival.received.body) == sent * 10 and run.arrival.received.ended
    run.serve()


def test_a_stage_may_ask_for_less(carrier: Carrier) -> None:
    stage = Noting(passes=True)
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=stage))
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    for _ in range(1000):
        stage.outlet.pause()
        stage.outlet.pause()
        assert not asked.is_read
        stage.outlet.resume()
        stage.outlet.resume()
        assert asked.is_read
    asked.content(b"b")
    asked.end()
    assert run.arrival.received.body == b"ab"
    run.serve()


def test_a_thousand_pauses_change_nothing(carrier: Carrier) -> None:
    run = proxy_with(carrier, csrf=both(upper), header_modifiers=both(upper))
    asked = run.send(Request())
    run.arrival.head(Response(200))
    for _ in range(1000):
        asked.pause()
        run.arrival.content(b"a")
        asked.resume()
    run.arrival.end()
    assert asked.answer.body == b"A" * 1000 and asked.answer.ended


def test_a_stage_that_gives_on_although_it_was_asked_to_pause_is_cut(carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.head(Response(200))
    asked.pause()
    for _ in range(MOST_AHEAD // 1_000_000 + 2):  # the first may be what a window still takes
        stage.outlet.content(bytes(1_000_000), False)
    assert stage.told[-1] == "cancel" and run.arrival.is_cancelled
    assert asked.answer.reset


# --- bodies that steps read


@pytest.mark.parametrize("later", [False, True])
def test_steps_see_what_left_the_stages_before_them(later: bool, carrier: Carrier) -> None:
    seen: list[bytes | None] = []

    def reads(x: Exchange) -> None:
        seen.append(x.body)

    stage = Noting(passes=not later)
    outer = Filter("test", lambda x: None, request_stream=stage)
    run = proxy_with(carrier, csrf=outer, header_modifiers=Filter("test", buffering(reads, 100)))
    asked = run.begin(Request("POST"))
    asked.content(b"ab")
    asked.end()
    if later:
        assert stage.given == b"ab" and seen == []
        stage.outlet.content(b"AB", True)
    assert seen == [b"AB" if later else b"ab"]
    run.serve()
    assert asked.answer.status == 200 and run.arrival.received.body == seen[0]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_response_steps_outside_a_stage_see_what_left_it(later: bool, own: bool, carrier: Carrier) -> None:
    seen: list[bytes | None] = []

    def reads(x: Exchange) -> None:
        seen.append(x.response_body)

    stage = Noting()
    hook = stage if later else transforming(lambda x: upper)
    inner = Filter("test", response_stream=hook)
    run = proxy_with(carrier, csrf=Filter("test", response=reads, response_body=WHOLE), header_modifiers=inner)
    if own:
        run.refuse_connections()
    asked = run.send(Request())
    if not own:
        run.arrival.answer(Response(200, [("etag", "1")], [b"ab", b"cd"]))
    if later:
        assert seen == [] and asked.answer.status is None
        stage.outlet.content(b"AB", False)
        stage.outlet.content(b"CD", True)
    expected = b"ABCD" if later or not own else b"UPSTREAM CONNECTION FAILED"
    assert seen == [expected]
    assert asked.answer.body == expected and asked.answer.headers["content-length"] == str(len(expected))
    assert asked.answer.status == (503 if own else 200) and "etag" not in asked.answer.headers


def test_a_stage_outside_a_step_that_makes_another_body(carrier: Carrier) -> None:
    def makes(x: Exchange) -> None:
        assert x.response_body == b"old"
        x.response_body, x.response_body_changed = b"new", True

    inner = Filter("test", response=makes, response_body=WHOLE)
    run = proxy_with(carrier, csrf=both(upper), header_modifiers=inner)
    assert run.ask(Request(), Response(200, body=b"old")).body == b"NEW"


def test_a_step_outside_may_make_another_body_of_a_stream(carrier: Carrier) -> None:
    def makes(x: Exchange) -> None:
        x.response_body, x.response_body_changed = b"new", True

    stage = Noting()
    inner = Filter("test", response_stream=stage)
    run = proxy_with(carrier, csrf=Filter("test", response=makes), header_modifiers=inner)
    assert run.ask(Request(), Response(200, body=b"old")).body == b"new"
    assert stage.told == ["cancel"]


def test_a_step_behind_a_stage_may_make_another_request_body(carrier: Carrier) -> None:
    stage = Noting()
    inner = Filter("test", request=lambda x: x.replace_body(b"new"))
    run = proxy_with(carrier, csrf=Filter("test", request_stream=stage), header_modifiers=inner)
    asked = run.begin(Request("POST"))
    asked.content(b"old")
    asked.end()
    run.serve()
    assert asked.answer.status == 200
    assert (run.arrival.received.body, run.arrival.received.headers["content-length"]) == (b"new", "3")
    assert stage.told[-1] == "cancel"


def test_a_stage_behind_a_step_that_read_the_body(carrier: Carrier) -> None:
    reads = Filter("test", buffering(lambda x: None, 100))
    run = proxy_with(carrier, csrf=reads, header_modifiers=both(upper))
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    asked.content(b"b")
    assert not run.arrivals
    asked.end()
    run.serve()
    assert run.arrival.received.body == b"AB" and run.memory.context.body_memory.used == 0


def test_a_body_that_a_stage_makes_too_large_to_be_buffered(carrier: Carrier) -> None:
    inner = both(lambda data, end: bytes(5_000_000) if end else b"")
    run = proxy_with(carrier, csrf=Filter("test", response=lambda x: None, response_body=10), header_modifiers=inner)
    seen = run.carry(Request(), Response(200, body=b"a"))
    assert (seen.answer.status, seen.reason) == (502, "ResponseTooLarge")


# --- steps that wait


def test_content_passes_while_steps_wait(carrier: Carrier) -> None:
    """As for a service that wants to see content before it says what becomes of the head."""
    stage = Noting(passes=True)
    waits: list[Any] = []

    def build(env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            waits.append(env.make_future())
            await waits[-1]

        return Filter("test", wait, wait, request_stream=stage, response_stream=stage)

    run = proxy_with(carrier, header_modifiers=build)
    asked = run.begin(Request("POST", headers=[("content-length", "3"), ("expect", "100-continue")]))
    assert [status for status, _ in asked.answer.interim] == [100]
    asked.content(b"abc")
    asked.end()
    assert stage.given == b"abc" and not run.arrivals
    waits[0].set_result(None)
    assert run.arrival.received.body == b"abc"
    stage.told.clear()
    run.arrival.head(Response(200))
    run.arrival.content(b"d")
    assert stage.told == [(b"d", False)] and asked.answer.status is None
    run.arrival.content(b"e")
    waits[1].set_result(None)
    assert (asked.answer.status, asked.answer.body) == (200, b"de")
    run.arrival.end()
    assert asked.answer.ended


def test_stages_that_come_after_a_step_has_waited(carrier: Carrier) -> None:
    waits: list[Any] = []

    def build(env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            waits.append(env.make_future())
            await waits[-1]

        return Filter("test", response=wait)

    run = proxy_with(carrier, csrf=both(upper), buffer=build, header_modifiers=ending(b"i"))
    asked = run.send(Request())
    run.arrival.answer(Response(200, body=[b"a", b"b"]))
    assert asked.answer.status is None
    waits[0].set_result(None)
    assert asked.answer.body == b"ABI" and asked.answer.ended


# --- ends


@pytest.mark.parametrize("who", ["client", "endpoint"])
def test_stages_are_cancelled_when_one_side_leaves(who: str, carrier: Carrier) -> None:
    out, back = Noting(passes=True), Noting(passes=True)
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=out, response_stream=back))
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    run.arrival.head(Response(200))
    run.arrival.content(b"b")
    assert asked.answer.body == b"b"
    if who == "client":
        asked.cancel()
        assert run.arrival.is_cancelled
    else:
        run.arrival.reset()
    assert (out.told[-1], back.told[-1]) == ("cancel", "cancel")
    for each in (out, back):
        each.outlet.content(b"late", False)
        each.outlet.content(b"later", True)
        each.outlet.content(b"much later", True)
        each.outlet.pause()
        each.outlet.resume()
    assert asked.answer.reset and len(run.new_lines()) == 1


def test_a_stage_may_end_a_response_early(carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, csrf=both(upper), header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.head(Response(200))
    run.arrival.content(b"a")
    stage.outlet.content(b"enough", True)
    assert asked.answer.body == b"ENOUGH" and asked.answer.ended
    assert run.arrival.is_cancelled and "cancel" not in stage.told
    assert run.new_lines()[0].count("reason=") == 0


def test_a_stage_may_end_a_request_early(carrier: Carrier) -> None:
    inner, outer = Noting(), Noting(passes=True)
    run = proxy_with(
        carrier, csrf=Filter("test", request_stream=outer), header_modifiers=Filter("test", request_stream=inner)
    )
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    inner.outlet.pause()
    inner.outlet.content(b"enough", True)
    assert run.arrival.received.body == b"enough" and run.arrival.received.ended
    assert outer.told[-1] == "cancel" and "cancel" not in inner.told
    assert asked.is_read
    asked.content(b"for nobody")
    asked.end()
    run.serve()
    assert asked.answer.status == 200 and run.arrival.received.body == b"enough"
    assert inner.given == b"a"


def fails(data: bytes, end: bool) -> bytes:
    if b"bad" in data:
        raise ZeroDivisionError
    return data


def test_a_stage_that_fails_before_the_head_is_out_is_answered_with_500(carrier: Carrier) -> None:
    run = proxy_with(carrier, header_modifiers=both(fails))
    seen = run.carry(Request(), Response(200, body=b"bad"))
    assert (seen.answer.status, seen.reason) == (500, "InternalError")
    seen = run.carry(Request("POST", body=b"bad"))
    assert (seen.answer.status, seen.reason, seen.reached) == (500, "InternalError", ())


def test_a_stage_that_fails_midway_breaks_off(carrier: Carrier) -> None:
    other = Noting(passes=True)
    run = proxy_with(carrier, csrf=Filter("test", response_stream=other), header_modifiers=both(fails))
    asked = run.send(Request())
    run.arrival.answer(Response(200, body=[b"good", b"bad"]))
    assert (asked.answer.status, asked.answer.body, asked.answer.reset) == (200, b"good", True)
    assert other.told[-1] == "cancel"
    asked = run.begin(Request("POST"))
    asked.content(b"good")
    asked.content(b"bad")
    assert asked.answer.status == 500 and run.arrival.is_cancelled
    assert not run.arrival.received.ended, "the endpoint must not take half a request for a whole one"


def test_a_stage_that_never_ends_is_ended_by_the_deadline(carrier: Carrier) -> None:
    stage = Noting()
    step = Filter("test", response_stream=stage)
    run = proxy_with(carrier, ", timeouts: {request: 2s}", header_modifiers=step)
    asked = run.send(Request())
    run.arrival.answer(Response(200, body=b"a"))
    assert stage.told == [(b"a", True)]
    run.advance(2.05)
    assert asked.answer.reset and stage.told[-1] == "cancel"
    assert "reason=RequestDeadline" in run.new_lines()[0]


def test_a_request_stage_that_never_ends_is_ended_by_the_deadline(carrier: Carrier) -> None:
    stage = Noting()
    step = Filter("test", request_stream=stage)
    run = proxy_with(carrier, ", timeouts: {request: 2s}", header_modifiers=step)
    asked = run.send(Request("POST", body=b"a"))
    run.advance(2.05)
    assert asked.answer.status == 504 and run.arrival.is_cancelled and stage.told[-1] == "cancel"


def test_content_after_the_end_is_refused(carrier: Carrier) -> None:
    stage = Noting()
    outer = Noting()
    run = proxy_with(
        carrier, csrf=Filter("test", response_stream=outer), header_modifiers=Filter("test", response_stream=stage)
    )
    asked = run.send(Request())
    run.arrival.head(Response(200))
    stage.outlet.content(b"a", True)
    with pytest.raises(RuntimeError, match="after the end"):
        stage.outlet.content(b"b", False)
    outer.outlet.content(b"done", True)
    assert asked.answer.body == b"done"


def test_a_hook_gives_nothing_before_its_stage_stands(carrier: Carrier) -> None:
    def hook(x: Exchange, outlet: Outlet) -> None:
        outlet.content(b"too early", False)

    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=hook))
    seen = run.carry(Request(), Response(200, body=b"a"))
    assert (seen.answer.status, seen.reason) == (500, "InternalError")


def test_a_stage_that_cannot_be_cancelled_keeps_nothing_from_its_end(carrier: Carrier) -> None:
    class Broken(Noting):
        def cancel(self) -> None:
            raise ZeroDivisionError

    run = proxy_with(carrier, csrf=Filter("test", response_stream=Broken()), header_modifiers=both(upper))
    asked = run.send(Request())
    run.arrival.head(Response(200))
    asked.cancel()
    assert len(run.new_lines()) == 1 and run.arrival.is_cancelled


def test_answers_of_our_own_pass_the_stages_of_the_steps_that_see_them(carrier: Carrier) -> None:
    refuses = Filter("test", request=lambda x: Reply(418, "Teapot", b"short and stout"), response_stream=Noting())
    run = proxy_with(carrier, csrf=both(upper), header_modifiers=refuses)
    seen = run.carry(Request())
    assert (seen.answer.status, seen.answer.body, seen.reason) == (418, b"SHORT AND STOUT", "Teapot")
    assert seen.answer.headers["content-length"] == "15"


def test_nothing_stays_of_what_an_answer_of_our_own_replaces(carrier: Carrier) -> None:
    stage = Noting(passes=True)
    outer = Filter("test", response=lambda x: Reply(418, "Teapot", b"a") if x.status == 200 else None)
    run = proxy_with(carrier, csrf=outer, header_modifiers=Filter("test", response_stream=stage))
    seen = run.carry(Request(), Response(200, body=b"a"))
    assert (seen.answer.status, stage.told) == (418, ["cancel"])


# --- rows that ask for a Task


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("leaves", [True, False])
def test_only_hooks_of_rows_that_ask_for_a_task_get_one(asks: bool, leaves: bool, carrier: Carrier) -> None:
    spawned: list[Any] = []
    steps: list[str] = []
    waits: list[Any] = []

    def build(_: object, env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            waits.append(env.make_future())
            try:
                await waits[-1]
                steps.append("went on")
            finally:
                steps.append("clean")

        return Filter("test", wait, wait)

    rows = tuple(Row(r.name, build, STEP, "test", task=asks) if r.name == INNER else r for r in ROWS)
    run = carrier.proxy(served(f"policies: {{{POLICIES}}}"), rows=rows)
    env = run.memory.applier.interns.env
    spawn = env.spawn

    def counted(work: Any) -> Any:
        spawned.append(spawn(work))
        return spawned[-1]

    object.__setattr__(env, "spawn", counted)
    asked = run.send(Request())
    if leaves:
        asked.cancel()
        assert steps == ["clean"] and len(spawned) == asks and len(run.new_lines()) == 1
        return
    waits[0].set_result(None)
    run.arrival.answer(Response(200))
    waits[1].set_result(None)
    assert asked.answer.status == 200
    assert steps == ["went on", "clean"] * 2 and len(spawned) == 2 * asks
