"""Corners of an exchange, over the toy carriers of `test_exchange`: what is asked of whom, and how often."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.filter import WHOLE
from dataplane.chain.reply import Reply
from dataplane.http import grpc
from dataplane.http.body import SMALL
from dataplane.http.grpc import Call
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN, Peer, ResponseHead
from dataplane.http.rules import MAX_BUFFER
from dataplane.link.loads import REQUESTS
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.exchange import CarriedExchange
from dataplane.proxy.layers.grpc_web import WebCall
from dataplane.proxy.request.admission import LOOKS
from dataplane.proxy.steps import response_steps
from dataplane.streams import MOST_AHEAD
from dataplane.upstream.endpoint import Endpoint
from tests.fakes.memory_proxy import ROUTES, Pending
from tests.fakes.policy_run import served
from tests.unit.proxy.test_exchange import OK, STEP_ROUTE, World
from tests.unit.proxy.test_stages_model import Free

UNAVAILABLE = ResponseHead(503, b"HTTP/1.1 503 No", b"\r\n", b"\r\n", UNKNOWN, True)
RETRY = served("policies: {retry: {codes: [503]}}")


def limited(limits: str) -> str:
    return f"frontendPolicies:\n  limits: {limits}\n{ROUTES}"


class Waits:
    """A step that waits until the test goes on with it."""

    def __init__(self) -> None:
        self.pending = Pending()

    async def __call__(self, x: object) -> None:
        await self.pending

    def go_on(self) -> None:
        self.pending.set_result(None)


# --- responses that wait for steps


@pytest.mark.parametrize("first", [b"", b"all"])
def test_a_response_that_ended_while_steps_wait_ends_behind_them(first: bytes) -> None:
    step = Waits()
    world = World(response=step)
    x = world.exchange()
    x.upstream_head(OK, first, True)
    assert world.client.told == []
    step.go_on()
    assert world.client.told == [("head", UNKNOWN, first, False), ("trailers", b""), "over"]


def test_pieces_that_come_while_steps_wait_leave_as_one() -> None:
    step = Waits()
    world = World(response=step)
    x = world.exchange()
    x.upstream_head(OK, b"a" * SMALL, False)
    assert world.origin.told[1:] == ["pause"]
    x.upstream_content(b"b" * SMALL, False)
    x.upstream_content(b"c" * SMALL, True)
    step.go_on()
    body = b"a" * SMALL + b"b" * SMALL + b"c" * SMALL
    assert world.client.told == [("head", UNKNOWN, body, False), ("trailers", b""), "over"]


def test_two_pieces_are_not_one() -> None:
    step = Waits()
    world = World(response=step)
    x = world.exchange()
    x.upstream_head(OK, b"a" * SMALL, False)
    x.upstream_content(b"b" * SMALL, False)
    step.go_on()
    assert world.client.told == [("head", UNKNOWN, b"a" * SMALL + b"b" * SMALL, False)]
    assert world.origin.told[1:] == ["pause", "resume"] and world.client.joined == [world.origin]
    x.upstream_content(b"c", True)
    assert world.client.told[1:] == [("content", b"c", True), "over"]


@pytest.mark.parametrize("is_slow", [True, False])
def test_behind_steps_the_endpoint_is_read_as_fast_as_the_client_reads(is_slow: bool) -> None:
    step = Waits()
    world = World(response=step)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    world.client.is_blocked = is_slow
    step.go_on()
    assert world.origin.told[1:] == ["pause", "pause" if is_slow else "resume"]
    x.upstream_content(b"", True)


@pytest.mark.parametrize("length", [UNKNOWN, 5, 0])
def test_the_framing_is_shared_where_the_endpoint_s_is_kept(length: int) -> None:
    """Of content whose length is not announced, with steps and without."""
    for step in (None, lambda x: None):
        world = World(response=step)
        x = world.exchange()
        x.upstream_head(ResponseHead(200, b"HTTP/1.1 200 OK", b"\r\n", b"\r\n", length, True), b"", False)
        assert world.client.joined == ([world.origin] if length < 0 else [])
        x.upstream_content(b"hello", True)


# --- tries


def test_a_response_that_is_not_tried_again_is_not_held_back() -> None:
    world = World(text=RETRY)
    x = world.exchange()
    x.upstream_head(OK, b"first", False)
    assert world.client.told == [("head", UNKNOWN, b"first", False)]
    x.upstream_content(b"", True)


def test_between_tries_nobody_acts_on_the_carrier_of_the_last() -> None:
    world = World(text=RETRY)
    x = world.exchange()
    x.upstream_head(UNAVAILABLE, b"no", False)
    assert world.origin.told[1:] == ["discard"] and x.up is None and x.resendable is None
    x.downstream_blocked()
    x.downstream_drained()
    x.downstream_gone("ClientGone")
    assert world.origin.told[1:] == ["discard"]
    world.proxy.advance(1)
    assert world.origin.told[1:] == ["discard"]  # nor is there another try


def test_content_that_comes_between_tries_goes_with_the_next() -> None:
    world = World(text=served("policies: {retry: {codes: [503], attempts: 1}}"))
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"ab", False)
    x.upstream_head(UNAVAILABLE, b"", True)
    x.downstream_content(b"cd", False)
    world.proxy.advance(1)
    x.downstream_content(b"ef", True)
    begins = [("begin", b"", False), ("content", b"ab", False), ("begin", b"abcd", False), ("content", b"ef", True)]
    assert world.origin.told == begins
    x.upstream_head(UNAVAILABLE, b"", True)
    assert world.client.told[0] == ("head", UNKNOWN, b"", True)


# --- what is over


def test_an_exchange_that_is_over_asks_for_no_further_look() -> None:
    world = World()
    x = world.exchange()
    x.deadline = world.proxy.now
    assert x.wake(world.proxy.now) == NEVER
    assert "reason=RequestDeadline" in world.proxy.log_lines()[0]


def test_an_exchange_that_has_time_says_until_when() -> None:
    world = World()
    x = world.exchange()
    x.deadline, x.attempt_deadline = world.proxy.now + 5, world.proxy.now + 3
    assert x.wake(world.proxy.now) == world.proxy.now + 3
    x.upstream_head(OK, b"", False)
    assert x.wake(world.proxy.now + 5) == NEVER
    assert world.client.told[1:] == [("reset", "RequestDeadline")]


# --- limits of requests


def test_a_limit_of_idle_time_is_looked_at_four_times_in_it() -> None:
    world = World(text=limited("{streamIdleTimeout: 40s}"))
    x = world.exchange(UNKNOWN)
    began = world.proxy.now
    assert world.client.armed == [began + 40 / LOOKS]
    assert x.wake(began + 10) == began + 20
    assert x.wake(began + 39) == began + 40
    x.downstream_content(b"a", False)
    assert x.wake(began + 40) == began + 50  # something came since the last look
    assert x.wake(began + 79) == began + 80
    assert x.wake(began + 80) == NEVER
    assert "reason=RequestTimeout" in world.proxy.log_lines()[0]


@pytest.mark.parametrize(
    ("method", "upgrade", "reason"),
    [(b"GET", b"websocket", "UpstreamTimeout"), (b"CONNECT", b"CONNECT", "IdleTimeout")],
)
def test_why_a_tunnel_ends_in_which_nothing_moves(method: bytes, upgrade: bytes, reason: str) -> None:
    world = World(text=limited("{streamIdleTimeout: 40s}"))
    x = world.exchange(method=b"GET")
    x.method, x.upgrade = method, upgrade
    x.upstream_head(ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True, upgrade), b"", False)
    assert world.client.told == [("switch", b"")] and x.tunnel
    assert x.wake(world.proxy.now + 40) == NEVER
    (line,) = world.proxy.log_lines()
    assert f"reason={reason} " in line and world.client.told[1:] == [("reset", reason)]


def test_a_tunnel_of_connect_has_a_limit_of_its_own_where_none_is_configured() -> None:
    world = World()
    x = world.exchange(method=b"GET")
    x.method = x.upgrade = b"CONNECT"
    x.upstream_head(ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True, b"CONNECT"), b"", False)
    began, hour = world.proxy.now, 3600.0
    assert world.client.armed == [began + hour / LOOKS]
    assert x.wake(began + hour / LOOKS) == began + 2 * hour / LOOKS
    assert x.wake(began + hour - 1) == began + hour
    assert x.wake(began + hour) == NEVER and x.ended


@pytest.mark.parametrize(("length", "is_refused"), [(1024, False), (1025, True)])
def test_a_body_that_is_announced_larger_than_the_limit(length: int, is_refused: bool) -> None:
    world = World(text=limited("{maxRequestBytes: 1024}"))
    x = world.exchange(length)
    assert x.ended == is_refused and world.origin.told == ([] if is_refused else [("begin", b"", False)])
    if not is_refused:
        x.downstream_content(b"a" * length, False)
        assert not x.ended
        x.downstream_content(b"a", False)
    (line,) = world.proxy.log_lines()
    assert "reason=BodyTooLarge" in line


# --- stages


def stage_world(**steps: Any) -> tuple[World, Free]:
    stage = Free()
    hooks: dict[str, Any] = {name: stage if step is None else step for name, step in steps.items()}
    return World(**hooks), stage


def test_a_stage_may_give_so_much_after_it_was_asked_to_pause() -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    x.downstream_blocked()
    assert stage.told == "p"
    stage.give(b"a" * MOST_AHEAD, "give")
    assert not x.ended
    stage.give(b"a", "give")
    assert x.ended and world.client.told[-1] == ("reset", "InternalError")


@pytest.mark.parametrize("deed", ["pause", "resume"])
def test_a_stage_that_fails_when_it_is_asked_for_less_or_more_breaks_off(
    deed: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"", False)

    def fails() -> None:
        raise ZeroDivisionError

    setattr(stage, deed, fails)
    x.downstream_blocked()
    x.downstream_drained()
    assert x.ended and world.client.told[-1] == ("reset", "InternalError")
    assert any(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records)


def test_an_endpoint_that_was_stopped_before_there_was_a_stage_goes_on() -> None:
    """Its client could take nothing when the head came, and can by the time that the steps have run."""
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    world.client.is_blocked = True
    x.upstream_head(OK, b"", False)
    assert world.origin.told[1] == "pause"  # it has more to say
    world.client.is_blocked = False
    x.downstream_drained()
    world.origin.told.clear()
    step.go_on()
    assert "resume" in world.origin.told and world.origin.told[-1] == "resume"
    stage.give(b"a", "end")
    assert world.client.told[-2:] == [("content", b"a", True), "over"]


def test_content_that_waits_for_the_head_is_gathered_in_order() -> None:
    """Pieces that are too large to be joined at once."""
    for count in (1, 2, 3):
        step = Waits()
        world, stage = stage_world(response_stream=None, response=step)
        x = world.exchange()
        x.upstream_head(OK, b"", False)
        pieces = [letter * SMALL for letter in (b"a", b"b", b"c")[:count]]
        for piece in pieces:
            stage.give(piece, "give")
        step.go_on()
        body = b"".join(pieces)
        assert world.client.told == [("head", UNKNOWN, body, False)] and x.response_bytes == len(body)
        stage.give(b"", "end")
        assert world.client.told[1:] == [("content", b"", True), "over"]


@pytest.mark.parametrize(("trailers", "length"), [(b"", 4), (b"x-sum: 1\r\n", UNKNOWN)])
def test_content_that_has_ended_before_the_head_leaves_has_a_length(trailers: bytes, length: int) -> None:
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    x.upstream_content(b"in", False)
    if trailers:
        x.upstream_trailers(trailers)
    else:
        x.upstream_content(b"", True)
    stage.give(b"body", "end")
    step.go_on()
    ends = [("trailers", trailers)] if trailers else []
    assert world.client.told == [("head", length, b"body", not trailers), *ends, "over"]
    assert world.client.blocks == [b"\r\n" if trailers else b"\r\ncontent-length: 4\r\n"]
    assert "response.bytes=4 " in world.proxy.log_lines()[0]


def test_before_the_head_leaves_only_so_much_is_gathered() -> None:
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    most = world.proxy.context.limits.content_buffer
    stage.give(b"a" * (most - 1), "give")
    assert stage.told == ""
    stage.give(b"a", "give")
    assert stage.told == "p"
    step.go_on()
    assert stage.told == "pr"
    stage.give(b"", "end")


def test_a_stage_is_given_nothing_after_its_end() -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"a", False)
    x.upstream_content(b"b", True)
    assert stage.told == "ce" and stage.taken == b"ab"
    assert world.client.told == [("head", UNKNOWN, b"", False)]
    stage.outlet.pause()  # it has all: nobody is stopped
    assert "pause" not in world.origin.told
    stage.give(b"out", "end")
    assert world.client.told[1:] == [("content", b"out", True), "over"]


def test_a_stage_that_ends_early_is_given_no_more_and_the_endpoint_is_let_go() -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"a", False)
    stage.give(b"out", "end")
    assert stage.told == "c" and world.client.told[1:] == [("content", b"out", True), "over"]
    assert world.origin.told.count("reset") == 1 and world.origin.told[-1] == "reset"


def test_a_request_stage_that_asks_for_less_stops_the_client() -> None:
    world, stage = stage_world(request_stream=None)
    x = world.exchange(UNKNOWN)
    stage.outlet.pause()
    stage.outlet.pause()
    assert world.client.told == ["pause"]
    stage.outlet.resume()
    stage.outlet.resume()
    assert world.client.told == ["pause", "resume"]
    x.downstream_content(b"a", True)
    assert stage.told == "e" and world.origin.told == [("begin", b"", False)]
    stage.give(b"out", "end")
    assert world.origin.told[1:] == [("content", b"out", True)]
    x.upstream_head(OK, b"", True)


# --- what the log and others read


def test_what_is_not_to_be_indexed_is_the_client_s_carrier_s_to_say() -> None:
    world = World()
    x = world.exchange()
    world.client.never_indexed = frozenset((b"x-secret",))
    assert x.never_indexed == {b"x-secret"}
    x.upstream_head(OK, b"", True)


@pytest.mark.parametrize(("pieces", "kept"), [((), b""), ((b"a", b"b"), None), ((b"ab",), b"ab")])
def test_what_can_be_sent_again(pieces: tuple[bytes, ...], kept: bytes | None) -> None:
    """All of the content, while it left with the head and there is no response."""
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    held.holder = None
    x = world.exchange(len(pieces) and UNKNOWN)
    for piece in pieces[:-1]:
        x.downstream_content(piece, False)
    if len(pieces) == 1:
        x.downstream_content(pieces[0], True)
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    if len(pieces) > 1:
        x.downstream_content(pieces[-1], True)
    assert x.resendable == kept
    x.upstream_head(OK, b"", True)
    assert x.resendable is None


class Held:
    """A kind of backend whose carrier comes when the test likes."""

    holder: Any = None

    def begin(self, holder: Any, *rest: Any) -> None:
        self.holder = holder


held = Held()


@pytest.mark.parametrize("field", ["deadline", "attempt_deadline"])
@pytest.mark.parametrize(("late", "is_over"), [(-0.001, False), (0.0, True)])
def test_a_deadline_is_over_at_its_moment(field: str, late: float, is_over: bool) -> None:
    world = World()
    x = world.exchange()
    setattr(x, field, world.proxy.now + 5)
    x.wake(world.proxy.now + 5 + late)
    assert x.ended == is_over
    if not is_over:
        x.upstream_head(OK, b"", True)


def test_a_body_that_a_step_waits_for_has_its_time_and_more_for_what_has_come() -> None:
    async def read(x: Any) -> None:
        x.body = await x.buffer.whole(1 << 20)

    world = World(request=read)
    x = world.exchange(UNKNOWN)
    limits, began = world.proxy.context.limits, world.proxy.now
    assert world.client.armed == [began + limits.body_timeout]
    x.downstream_content(b"a" * limits.body_rate, False)
    due = began + limits.body_timeout + 1
    assert x.wake(due - 0.5) == due
    assert x.wake(due) == NEVER and "reason=RequestTimeout" in world.proxy.log_lines()[0]


def test_an_answer_of_ours_has_its_bytes_in_the_log() -> None:
    world = World(request=lambda x: Reply(403, "RouteDenied", body=b"no entry"))
    x = world.exchange(UNKNOWN)
    assert world.client.told == [("head", 8, b"no entry", True), "over"]
    assert " response.bytes=8 " in world.proxy.log_lines()[0]
    x.downstream_content(b"late", True)


def test_a_tunnel_in_which_as_much_comes_as_goes_is_not_quiet() -> None:
    world = World(text=limited("{streamIdleTimeout: 40s}"))
    x = world.exchange(method=b"GET")
    x.upgrade = b"chat"
    x.upstream_head(ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True, b"chat"), b"", False)
    began = world.proxy.now
    for turn in range(1, 9):
        x.downstream_content(b"echo", False)
        x.upstream_content(b"echo", False)
        assert x.wake(began + 10 * turn) == began + 10 * turn + 10
    x.upstream_lost("closed", False)


def test_an_answer_takes_what_is_left_of_a_request_from_its_stages() -> None:
    """Before the steps that see the answer have run."""
    wait = Waits()
    world, stage = stage_world(request_stream=None, response=wait)
    x = world.exchange(UNKNOWN)
    x.reply(Reply(502, "UpstreamFailed"))
    assert stage.told == "x" and not x.ended
    x.downstream_content(b"late", False)
    assert stage.taken == b""
    wait.go_on()
    assert x.ended and world.client.told[-1] == "over"


# --- content that a step makes


def replacing(body: bytes) -> Any:
    return lambda x: x.replace_body(body)


@pytest.mark.parametrize("invited", [True, False])
def test_a_body_that_a_step_makes_takes_the_place_of_the_client_s(invited: bool) -> None:
    """Which nobody waits for, and what still comes of it is dropped."""
    world = World(request=replacing(b"made"))
    world.proxy.context.leases.backends = {"static": held}  # of the carrier that comes later
    x = CarriedExchange(world.client, b"POST", b"/a", Head(b"\r\nhost: a\r\ncontent-length: 9\r\n"), world.proxy.now)
    x.context, x.bind = world.proxy.context, next(iter(world.proxy.applier.current.table.binds))
    x.path, x.host, x.client, x.peer = b"/a", b"a", Peer("192.0.2.9"), "192.0.2.9"
    x.context.recorder.active += 1
    x.expect(9)
    x.expects = invited
    x.start()
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.origin.told == [("begin", b"made", True)] and world.client.told == []
    assert x.request.get_all(b"content-length") == [b"4"] and x.length == 4
    x.downstream_content(b"unused", False)
    assert not x.request_done
    x.upstream_blocked()
    x.upstream_drained()
    assert world.client.told == ["pause", "resume"]  # an endpoint that is slow stops it all the same
    x.downstream_content(b"end", True)
    assert x.request_done and len(world.origin.told) == 1
    x.upstream_head(OK, b"", True)


@pytest.mark.parametrize("body", [b"made", b""])
def test_a_request_without_content_is_given_some(body: bytes) -> None:
    world = World(request=replacing(body))
    x = world.exchange()
    assert world.origin.told == [("begin", body, True)] and x.has_body == bool(body)
    assert x.request.get_all(b"content-length") == ([b"4"] if body else [])
    x.upstream_head(OK, b"", True)


def test_trailers_of_a_request_pass_where_steps_act_on_requests_but_for_those_of_its_headers() -> None:
    sums = [("trailers", b"x-sum: 1\r\n")]
    for request, lines, passed in (
        (None, b"x-sum: 1\r\nX-User: b\r\n", [("trailers", b"x-sum: 1\r\nX-User: b\r\n")]),
        (lambda x: x.request.set(b"x-user", b"a"), b"x-sum: 1\r\nX-User: b\r\n", sums),
        (lambda x: x.request.set(b"x-user", b"a"), b"X-User: b\r\n", [("content", b"", True)]),
    ):
        world = World(request=request)
        x = world.exchange(UNKNOWN)
        x.downstream_content(b"a", False)
        x.downstream_trailers(lines)
        assert world.origin.told[2:] == passed and x.request_done and x.resendable is None
        x.upstream_head(OK, b"", True)


def test_trailers_that_come_before_the_carrier_follow_the_content() -> None:
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"a", False)
    x.downstream_trailers(b"x-sum: 1\r\nx_odd: 2\r\n")
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.origin.told == [("begin", b"a", False), ("trailers", b"x-sum: 1\r\n")]
    x.upstream_head(OK, b"", True)


@pytest.mark.parametrize(("size", "is_paused"), [(3, False), (4, True), (5, True)])
def test_a_client_is_read_until_enough_is_buffered(size: int, is_paused: bool) -> None:
    world = World()
    world.client.may_buffer = 4
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"a" * size, False)
    assert world.client.told == (["pause"] if is_paused else [])
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.client.told == (["pause", "resume"] if is_paused else [])
    assert world.origin.told == [("begin", b"a" * size, False)]
    x.upstream_blocked()
    x.upstream_blocked()
    x.upstream_drained()
    assert world.client.told[2 * is_paused :] == ["pause", "resume"]
    x.downstream_content(b"", True)
    x.upstream_head(OK, b"", True)


def test_two_reasons_to_stop_a_client_are_two() -> None:
    world = World()
    world.client.may_buffer = 4
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"abcd", False)
    x.upstream_blocked()
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.client.told == ["pause"]
    x.upstream_drained()
    assert world.client.told == ["pause", "resume"]
    x.downstream_content(b"", True)
    x.upstream_head(OK, b"", True)


@pytest.mark.parametrize(("content", "is_invited"), [((), True), (((b"a", False),), False), (((b"", True),), False)])
def test_a_client_that_waits_is_invited_unless_it_has_begun(
    content: tuple[tuple[bytes, bool], ...], is_invited: bool
) -> None:
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(UNKNOWN)
    x.expects = True
    for data, end in content:
        x.downstream_content(data, end)
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.client.told == (["invite"] if is_invited else []) and not x.expects
    x.upstream_head(OK, b"", True)


def test_a_body_that_is_here_whole_leaves_with_the_head() -> None:
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(4)
    x.downstream_whole(b"body")
    assert (x.body_bytes, x.request_done) == (4, True)
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.origin.told == [("begin", b"body", True)] and x.resendable == b"body"
    assert world.client.told == ["resume"]  # it was not read meanwhile
    x.upstream_head(OK, b"", True)


def test_content_for_a_step_takes_room_until_it_is_over() -> None:
    async def read(x: Any) -> None:
        x.body = await x.buffer.whole(1 << 20)

    for end in ("complete", "gone", "reply"):
        world = World(request=read)
        x = world.exchange(UNKNOWN)
        room = world.proxy.context.room
        x.downstream_content(b"abc", False)
        x.downstream_content(b"de", False)
        assert room.used == x.claimed == 5
        if end == "complete":
            x.downstream_content(b"", True)
            assert room.used == 5  # it stays for expressions
            x.upstream_head(OK, b"", True)
        elif end == "gone":
            x.downstream_gone("ClientGone")
        else:
            x.reply(Reply(408, "RequestTimeout"))
        assert room.used == 0 and x.ended


@pytest.mark.parametrize(
    ("length", "data", "again"),
    [(0, b"", [("begin", b"", True)]), (UNKNOWN, b"body", [("begin", b"body", True)])],
)
def test_a_request_whose_connection_was_stale_is_sent_as_it_was(length: int, data: bytes, again: list[Any]) -> None:
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    x = world.exchange(length)
    if data:
        x.downstream_content(data, True)
    held.holder.up = world.origin
    held.holder.lease_ready(world.origin)
    assert world.origin.told == again
    x.lease_again(world.origin)
    assert world.origin.told == again * 2
    x.upstream_head(OK, b"", True)


# --- bodies that were buffered for a step


def whole_world(read: Any) -> tuple[World, Free]:
    """A step that reads the whole body of a response, which passes its stage first."""
    stage = Free()
    return World(response=read, response_stream=stage, response_body=WHOLE), stage


def test_a_body_that_was_buffered_passes_a_stage_as_a_whole() -> None:
    seen: list[bytes | None] = []
    world, stage = whole_world(lambda x: seen.append(x.response_body))
    x = world.exchange()
    x.upstream_head(OK, b"in", False)
    x.upstream_content(b"put", False)
    assert stage.told == "" and world.client.told == []
    x.upstream_content(b"", True)
    assert stage.told == "e" and stage.taken == b"input" and seen == []
    stage.give(b"a" * SMALL, "give")
    stage.give(b"b" * SMALL, "give")
    assert seen == [] and world.client.told == []
    stage.give(b"c", "end")
    body = b"a" * SMALL + b"b" * SMALL + b"c"
    assert seen == [body] and world.client.told == [("head", len(body), body, True), "over"]
    assert stage.told == "e"


@pytest.mark.parametrize(("over", "is_read"), [(0, True), (1, False)])
def test_what_a_stage_makes_of_a_body_is_bounded(over: int, is_read: bool) -> None:
    seen: list[int] = []
    world, stage = whole_world(lambda x: seen.append(len(x.response_body)))
    x = world.exchange()
    x.upstream_head(OK, b"input", True)
    most = response_steps.most_buffered(x)
    stage.give(b"a" * (most + over), "give")
    assert ("x" in stage.told) != is_read
    if is_read:
        stage.give(b"", "end")
    assert seen == ([most] if is_read else []) and x.ended
    assert ("reason=ResponseTooLarge" in world.proxy.log_lines()[0]) != is_read


def test_a_stage_that_makes_too_much_at_once_is_cancelled() -> None:
    class Flooding(Free):
        def content(self, data: bytes, end: bool) -> None:
            super().content(data, end)
            self.outlet.content(b"a" * (MAX_BUFFER + 1), False)

    stage = Flooding()
    world = World(response=lambda x: None, response_stream=stage, response_body=WHOLE)
    world.exchange().upstream_head(OK, b"input", True)
    assert stage.told == "ex" and world.client.told[-1] == "over"
    assert " reason=ResponseTooLarge " in world.proxy.log_lines()[0]


def test_a_stage_that_fails_on_a_whole_body_is_answered() -> None:
    class Failing(Free):
        def content(self, data: bytes, end: bool) -> None:
            raise ZeroDivisionError

    world = World(response=lambda x: None, response_stream=Failing(), response_body=WHOLE)
    world.exchange().upstream_head(OK, b"input", True)
    assert world.client.told[-2][0] == "head" and world.client.told[-1] == "over"
    assert "reason=InternalError" in world.proxy.log_lines()[0]


def test_a_client_that_leaves_cancels_the_stage_of_a_whole_body() -> None:
    world, stage = whole_world(lambda x: None)
    x = world.exchange()
    x.upstream_head(OK, b"input", True)
    x.downstream_gone("ClientGone")
    assert stage.told == "ex" and world.client.told == []


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304), (b"GET", 205)])
def test_a_response_without_content_has_no_stage(method: bytes, status: int) -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange(method=method)
    lines = b"\r\netag: a\r\ncontent-length: 5\r\nx-a: 1\r\n"
    x.upstream_head(ResponseHead(status, b"HTTP/1.1 200 OK", lines, lines, 0, True), b"", True)
    assert stage.outlet is None and world.client.told[-1] == "over"
    assert x.response is not None and x.response.get(b"etag") is None and x.response.get(b"x-a") == b"1"


# --- which bodies are buffered for steps that read them


def read_by(seen: list[Any]) -> World:
    return World(response=lambda x: seen.append((x.response_body, x.response_body_too_large)), response_body=10)


def response(status: int = 200, length: int = UNKNOWN, lines: bytes = b"\r\n") -> ResponseHead:
    return ResponseHead(status, b"HTTP/1.1 %d X" % status, lines, lines, length, True)


@pytest.mark.parametrize(
    ("method", "head", "seen"),
    [
        (b"HEAD", response(), (None, False)),
        (b"GET", response(204, 0), (b"", False)),
        (b"GET", response(304, 5), (None, False)),
        (b"GET", response(200, 0), (b"", False)),
    ],
)
def test_what_has_no_body_is_not_waited_for(method: bytes, head: ResponseHead, seen: Any) -> None:
    found: list[Any] = []
    world = read_by(found)
    world.exchange(method=method).upstream_head(head, b"", True)
    assert found == [seen] and world.client.told[-1] == "over"


def test_a_stream_of_events_is_not_waited_for() -> None:
    found: list[Any] = []
    world = read_by(found)
    x = world.exchange()
    x.upstream_head(response(lines=b"\r\ncontent-type: text/event-stream\r\n"), b"data", False)
    assert found == [(None, False)] and world.client.told == [("head", UNKNOWN, b"data", False)]
    x.upstream_content(b"", True)


@pytest.mark.parametrize(("length", "is_waited_for"), [(10, True), (11, False), (UNKNOWN, True)])
def test_a_body_that_is_announced_too_large_is_not_waited_for(length: int, is_waited_for: bool) -> None:
    found: list[Any] = []
    world = read_by(found)
    x = world.exchange()
    x.upstream_head(response(length=length), b"", False)
    assert found == ([] if is_waited_for else [(None, True)]) and bool(world.client.told) != is_waited_for
    x.upstream_content(b"a" * 10, True)
    assert found == ([(b"a" * 10, False)] if is_waited_for else [(None, True)])


@pytest.mark.parametrize(("sizes", "is_whole"), [((4, 6), True), ((10,), True), ((4, 7), False), ((11,), False)])
def test_a_body_is_buffered_up_to_the_limit(sizes: tuple[int, ...], is_whole: bool) -> None:
    found: list[Any] = []
    world = read_by(found)
    x = world.exchange()
    room = world.proxy.context.room
    x.upstream_head(response(), b"", False)
    assert "resume" in world.origin.told  # however slow the client is
    for size in sizes:
        x.upstream_content(b"a" * size, False)
    body = b"a" * sum(sizes)
    assert found == ([] if is_whole else [(None, True)]) and room.used == (len(body) if is_whole else 0)
    if not is_whole:
        assert world.client.told == [("head", UNKNOWN, body, False)]
    x.upstream_content(b"", True)
    assert found[0] == ((body, False) if is_whole else (None, True)) and room.used == 0 and x.ended


@pytest.mark.parametrize("grows", [True, False])
def test_how_fast_the_client_reads_does_not_matter_while_a_body_is_buffered(grows: bool) -> None:
    step = Waits()
    world = World(response=step, response_body=10 if grows else 0)
    x = world.exchange()
    x.upstream_head(response(), b"", False)
    world.origin.told.clear()
    x.downstream_blocked()
    assert world.origin.told == ([] if grows else ["pause"])
    x.downstream_drained()
    x.upstream_content(b"", True)
    step.go_on()
    assert x.ended


def test_no_room_for_a_body_that_a_step_reads_is_an_answer() -> None:
    found: list[Any] = []
    world = read_by(found)
    world.proxy.context.room.most = 4
    x = world.exchange()
    x.upstream_head(response(), b"abc", False)
    assert not x.ended
    x.upstream_content(b"d", False)
    assert x.ended and "reason=TooManyResponses" in world.proxy.log_lines()[0]
    assert world.origin.told[-1] == "reset" and world.proxy.context.room.used == 0


def test_trailers_follow_a_body_that_was_buffered() -> None:
    found: list[Any] = []
    world = read_by(found)
    x = world.exchange()
    x.upstream_head(response(), b"abc", False)
    x.upstream_trailers(b"x-sum: 1\r\n")
    assert found == [(b"abc", False)] and x.response_bytes == 3
    assert world.client.told == [("head", UNKNOWN, b"abc", False), ("trailers", b"x-sum: 1\r\n"), "over"]


@pytest.mark.parametrize("end", [True, False])
def test_a_body_that_a_step_made_takes_the_place_of_what_still_comes(end: bool) -> None:
    def make(x: Any) -> None:
        x.response_body, x.response_body_changed = b"made", True

    world = World(response=make)
    x = world.exchange()
    x.upstream_head(response(length=6), b"abc", end)
    assert world.client.told == [("head", 4, b"made", True), "over"]
    assert world.origin.told[1:] == ([] if end else ["reset"]) and "response.bytes=4 " in world.proxy.log_lines()[0]


def test_an_endpoint_that_breaks_off_while_steps_wait_is_an_answer() -> None:
    step = Waits()
    world = World(response=step)
    x = world.exchange()
    x.upstream_head(response(), b"abc", False)
    x.upstream_lost("reset", False)
    assert world.client.told == []  # the step waits for what it sees of the answer
    step.go_on()
    assert x.ended and "reason=UpstreamFailed" in world.proxy.log_lines()[0]
    assert [each[2] for each in world.client.told if each[0] == "head"] == [
        b"upstream closed the connection before it answered"
    ]


def test_a_client_that_can_take_more_before_the_head_has_left_asks_no_stage_to_go_on() -> None:
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    x.downstream_blocked()
    assert stage.told == "p"
    x.downstream_drained()
    assert stage.told == "p"  # what it gives is still gathered
    step.go_on()
    assert stage.told == "pr"
    stage.give(b"", "end")


@pytest.mark.parametrize("status", [200, 499, 500])
def test_who_watches_a_backend_sees_each_answer(status: int) -> None:
    seen: list[Any] = []
    world = World()
    x = world.exchange()
    guard = SimpleNamespace(answered=lambda *given: seen.append(given))
    plan: Any = SimpleNamespace(guard=guard)
    endpoint = Endpoint("127.0.0.1", 9000)
    endpoint.pending = 1
    x.leased, x.endpoint, x.backend_plan, x.attempt_deadline = True, endpoint, plan, 5.0
    head = response(status)
    x.upstream_head(head, b"", True)
    assert seen == [(endpoint, head, x, None)]
    assert (endpoint.pending, x.leased, x.attempt_deadline, endpoint.health) == (0, False, NEVER, 1.0)


@pytest.mark.parametrize(
    ("status", "before", "is_worse", "is_better"),
    [(200, 1.0, False, False), (499, 1.0, False, False), (500, 1.0, True, False), (200, 0.5, False, True)],
)
def test_an_answer_counts_for_the_health_of_its_endpoint(
    status: int, before: float, is_worse: bool, is_better: bool
) -> None:
    world = World()
    x = world.exchange()
    plan: Any = SimpleNamespace(guard=None)
    endpoint = Endpoint("127.0.0.1", 9000)
    endpoint.pending, endpoint.health = 1, before
    x.leased, x.endpoint, x.backend_plan = True, endpoint, plan
    x.upstream_head(response(status), b"", True)
    assert (endpoint.health < before, endpoint.health > before) == (is_worse, is_better)


def test_a_client_that_is_slow_when_the_head_leaves_stops_the_stage() -> None:
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    world.client.is_blocked = True
    step.go_on()
    assert stage.told == "p"
    world.client.is_blocked = False
    x.downstream_drained()
    assert stage.told == "pr"
    stage.give(b"", "end")


def test_trailers_follow_what_a_stage_gives_after_the_head() -> None:
    for data in (b"last", b""):
        world, stage = stage_world(response_stream=None)
        x = world.exchange()
        x.upstream_head(OK, b"", False)
        x.upstream_trailers(b"x-sum: 1\r\n")
        stage.give(data, "end")
        content = [("content", data, False)] if data else []
        assert world.client.told[1:] == [*content, ("trailers", b"x-sum: 1\r\n"), "over"]
        assert x.response_bytes == len(data)


def test_a_stage_that_fails_later_breaks_off_and_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    """One that fails when it is installed fails its step instead."""
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"", False)

    def fails(data: bytes, end: bool) -> None:
        raise ZeroDivisionError

    stage.content = fails  # type: ignore[method-assign]
    x.upstream_content(b"a", False)
    assert x.ended and world.client.told[-1] == ("reset", "InternalError") and stage.told == "x"
    stage.outlet.content(b"late", True)
    assert world.client.told[-1] == ("reset", "InternalError")


def test_what_a_stage_gives_after_the_head_passes_at_once() -> None:
    world, stage = stage_world(response_stream=None)
    x = world.exchange()
    x.upstream_head(OK, b"", False)
    for piece in (b"one", b"two"):
        stage.give(piece, "give")
        assert world.client.told[-1] == ("content", piece, False)
    stage.give(b"", "give")
    assert len(world.client.told) == 3 and x.response_bytes == 6
    stage.give(b"three", "end")
    assert world.client.told[3:] == [("content", b"three", True), "over"]
    assert x.delayed_response is None and " response.bytes=11 " in world.proxy.log_lines()[0]


def test_content_passes_its_stage_also_while_steps_wait() -> None:
    step = Waits()
    world, stage = stage_world(response_stream=None, response=step)
    x = world.exchange()
    x.upstream_head(OK, b"abc", False)
    assert stage.taken == b"abc" and world.client.told == []
    x.upstream_content(b"def", True)
    assert stage.taken == b"abcdef" and stage.told.endswith("e")
    stage.give(b"out", "end")
    step.go_on()
    assert world.client.told == [("head", 3, b"out", True), "over"]


def test_a_tunnel_has_the_name_that_the_endpoint_gave_it() -> None:
    world = World()
    x = world.exchange(method=b"GET")
    x.upgrade = b"chat"
    x.upstream_head(ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True, b"CHAT"), b"", False)
    assert x.tunnel and x.upgrade == b"CHAT"
    x.upstream_lost("closed", False)


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize(
    ("kind", "is_shared", "is_translated"),
    [
        (grpc.GRPC, True, False),
        (grpc.WEB, True, True),
        (grpc.WEB_TEXT, True, True),
        (grpc.WEB, False, False),
        (None, True, False),
    ],
)
def test_which_calls_are_translated(kind: int | None, is_shared: bool, is_translated: bool, again: bool) -> None:
    """Those of gRPC-Web toward an endpoint that speaks HTTP/2, which is gRPC's."""
    world = World()
    world.proxy.context.leases.backends = {"static": held}
    world.origin.is_shared = is_shared
    x = world.exchange(UNKNOWN)
    x.grpc = None if kind is None else Call(kind)
    x.downstream_content(b"", True)
    held.holder.up = world.origin
    if again:
        x.resendable = b""
        x.lease_again(world.origin)
    else:
        x.lease_ready(world.origin)
    assert isinstance(x.up, WebCall) == is_translated and len(world.origin.told) == 1
    x.downstream_gone("ClientGone")


def test_how_far_a_request_came_is_known() -> None:
    """By that the steps are chosen that see its response: here those of the backend, too."""
    world = World()
    x = world.exchange()
    assert x.stage == response_steps.UPSTREAM
    x.upstream_head(OK, b"", True)
    refused = World(request=lambda x: Reply(403, "RouteDenied")).exchange()
    assert (refused.stage, refused.stopped) == (response_steps.ROUTE, 0)


# --- answers of ours


def denies(reply: Reply) -> Any:
    return lambda x: reply


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        (Reply(403, "R", b"no"), b"content-type: text/plain\r\ncontent-length: 2\r\n"),
        (Reply(403, "R", b"{}", content_type=b"a/b"), b"content-type: a/b\r\ncontent-length: 2\r\n"),
        (Reply(403, "R", b"no", content_type=b""), b"content-length: 2\r\n"),
        (Reply(403, "R"), b"content-length: 0\r\n"),
        (Reply(204, "R"), b""),
        (Reply(304, "R"), b""),
    ],
)
def test_what_the_head_of_an_answer_says(reply: Reply, lines: bytes) -> None:
    world = World(request=denies(reply))
    world.exchange()
    (block,) = world.client.blocks
    before, _, after = block.partition(b"date: ")
    assert before == b"\r\n" + lines and after.endswith(b" GMT\r\n")


@pytest.mark.parametrize(("close", "told"), [(True, ["close after"]), (False, [])])
def test_an_answer_that_ends_its_connection_says_so_first(close: bool, told: list[str]) -> None:
    world = World(request=denies(Reply(403, "R", b"no", close=close)))
    world.exchange()
    assert world.client.told == [*told, ("head", 2, b"no", True), "over"]


class Sees:
    """A response step of a chain around the one that answers; it does so at once or later."""

    def __init__(self, outcome: Any, later: bool) -> None:
        self.outcome, self.later, self.pending = outcome, later, Pending()

    def __call__(self, x: Any) -> Any:
        return self.wait() if self.later else self.act()

    async def wait(self) -> Any:
        await self.pending
        return self.act()

    def act(self) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize(
    ("outcome", "body"),
    [(None, b"no"), (ZeroDivisionError(), b"no"), (Reply(418, "Other", b"other"), b"other")],
)
def test_a_step_that_sees_an_answer_may_change_it_and_cannot_lose_it(outcome: Any, body: bytes, later: bool) -> None:
    step = Sees(outcome, later)
    world = World(response=step)
    x = world.exchange()
    x.reply(Reply(403, "R", b"no"))
    if later:
        assert world.client.told == [] and x.replied
        step.pending.set_result(None)
    assert world.client.told == [("head", len(body), body, True), "over"]
    assert world.origin.told[1:] == ["reset"]


def test_an_answer_is_for_nobody_whose_client_has_left() -> None:
    step = Sees(None, later=True)
    world = World(response=step)
    x = world.exchange()
    x.reply(Reply(403, "R", b"no"))
    x.downstream_gone("ClientGone")
    step.pending.set_result(None)
    assert world.client.told == [] and "reason=ClientGone" in world.proxy.log_lines()[0]


# --- requests that count

LIMITED_STEP = "frontendPolicies:\n  limits: {streamIdleTimeout: 40s}\n" + STEP_ROUTE


def test_requests_count_from_their_beginning_to_their_end() -> None:
    world = World(text=limited("{maxRequests: 2}"))
    context = world.proxy.context
    one, two = world.exchange(), world.exchange()
    assert context.admitted == context.loads.total(REQUESTS) == 2 and not one.ended and not two.ended
    refused = world.exchange()
    assert refused.ended and refused.stopped == 0 and refused.reason == "Overloaded"
    assert context.admitted == context.loads.total(REQUESTS) == 2
    one.upstream_head(OK, b"", True)
    two.downstream_gone("ClientGone")
    assert context.admitted == context.loads.total(REQUESTS) == 0


def test_a_quiet_exchange_is_answered_once() -> None:
    step = Sees(None, later=True)
    world = World(response=step, text=LIMITED_STEP)
    x = world.exchange()
    assert x.wake(world.proxy.now + 40) == NEVER and not x.ended
    assert x.wake(world.proxy.now + 400) == NEVER and not x.ended
    step.pending.set_result(None)
    assert x.ended and len([each for each in world.client.told if each[0] == "head"]) == 1
    assert "streamIdleTimeout: no byte for 40 s" in world.proxy.log_lines()[0]


def test_a_body_that_is_too_large_is_answered_once() -> None:
    step = Sees(None, later=True)
    world = World(response=step, text=LIMITED_STEP.replace("streamIdleTimeout: 40s", "maxRequestBytes: 1024"))
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"a" * 1025, False)
    x.downstream_content(b"a", False)
    assert not x.ended and x.reason == "BodyTooLarge"
    step.pending.set_result(None)
    assert len([each for each in world.client.told if each[0] == "head"]) == 1 and x.ended
