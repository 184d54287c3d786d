"""Corners of an exchange, over the toy carriers of `test_exchange`: what is asked of whom, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import WHOLE
from dataplane.chain.reply import Reply
from dataplane.http import grpc
from dataplane.http.grpc import Call
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.http.rules import MAX_BUFFER
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.layers.grpc_web import WebCall
from dataplane.proxy.request.admission import LOOKS
from dataplane.proxy.steps import response_steps
from dataplane.streams import MOST_AHEAD
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


# --- tries


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


# --- what the log and others read


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


# --- content that a step makes


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


def test_content_for_a_step_takes_room_until_it_is_over() -> None:
    async def read(x: Any) -> None:
        x.body = await x.buffer.whole(1 << 20)

    for end in ("complete", "gone", "reply"):
        world = World(request=read)
        x = world.exchange(UNKNOWN)
        room = world.proxy.context.body_memory
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


# --- bodies that were buffered for a step


def whole_world(read: Any) -> tuple[World, Free]:
    """A step that reads the whole body of a response, which passes its stage first."""
    stage = Free()
    return World(response=read, response_stream=stage, response_body=WHOLE), stage


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


# --- which bodies are buffered for steps that read them


def read_by(seen: list[Any]) -> World:
    return World(response=lambda x: seen.append((x.response_body, x.response_body_too_large)), response_body=10)


def response(status: int = 200, length: int = UNKNOWN, lines: bytes = b"\r\n") -> ResponseHead:
    return ResponseHead(status, b"HTTP/1.1 %d X" % status, lines, lines, length, True)


def test_no_room_for_a_body_that_a_step_reads_is_an_answer() -> None:
    found: list[Any] = []
    world = read_by(found)
    world.proxy.context.body_memory.most = 4
    x = world.exchange()
    x.upstream_head(response(), b"abc", False)
    assert not x.ended
    x.upstream_content(b"d", False)
    assert x.ended and "reason=TooManyResponses" in world.proxy.log_lines()[0]
    assert world.origin.told[-1] == "reset" and world.proxy.context.body_memory.used == 0


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


# --- answers of ours


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


# --- requests that count

LIMITED_STEP = "frontendPolicies:\n  limits: {streamIdleTimeout: 40s}\n" + STEP_ROUTE


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
