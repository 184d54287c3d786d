"""Calls in parts, in memory: over HTTP/2 and HTTP/1.1, both ways, with their pace, their ends and their failures."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from dataplane.chain.calls import Call, CallFailed, CallRequest
from dataplane.http.h2 import errors
from dataplane.http.h2.settings import Settings
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes.h2_upstream import Endpoint2
from tests.unit.upstream.test_calls import TCP, World

CALL = CallRequest(b"POST", b"/test.Echo/Talk", headers=b"content-type: application/grpc\r\n")


class Doing:
    """A coroutine of the caller's, run as far as it goes."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.result: Any = None
        self.error: CallFailed | None = None
        self.done = False
        self._work = work
        self._step()

    def _step(self) -> None:
        try:
            self._work.send(None).add_done_callback(lambda _: self._step())
        except StopIteration as stop:
            self.result, self.done = stop.value, True
        except CallFailed as error:
            self.error, self.done = error, True

    def value(self) -> Any:
        assert self.done and self.error is None, self.error
        return self.result


def streamed(world: World, request: CallRequest = CALL) -> Call:
    return world.calls.open(world.calls.plan(TCP), request, x=None, head_within=2.0, sends_more=True)


def begun(settings: Settings | None = None, request: CallRequest = CALL) -> tuple[World, Call, Endpoint2]:
    world = World()
    call = streamed(world, request)
    return world, call, Endpoint2(world.up, settings or Settings())


def test_a_conversation() -> None:
    world, call, far = begun()
    head = Doing(call.head())
    (request,) = far.requests
    assert (request.head.method, request.head.path) == (b"POST", b"/test.Echo/Talk") and request.head.takes_trailers
    Doing(call.send(b"one")).value()
    far.turn()
    assert request.content == b"one" and not request.done and not head.done
    far.head(request, 200, b"\r\ncontent-type: application/grpc\r\n")
    assert head.value().status == 200 and head.value().head.get(b"content-type") == b"application/grpc"
    assert world.is_clean(), "what follows the head is not pending"
    far.content(request, b"ONE")
    assert Doing(call.receive()).value() == b"ONE"
    waiting = Doing(call.receive())
    assert not waiting.done
    Doing(call.end(b"x-sum: 1\r\n")).value()
    far.turn()
    assert request.done and request.trailers == b"\r\nx-sum: 1\r\n"
    far.trailers(request, b"\r\ngrpc-status: 0\r\n")
    assert waiting.value() == b"" == Doing(call.receive()).value() and call.trailers == b"grpc-status: 0\r\n"
    call.cancel()
    assert request.reset is None


def test_the_endpoint_may_speak_first_and_end_first() -> None:
    _, call, far = begun()
    far.answer(far.requests[0], 200, b"early")
    assert Doing(call.receive()).value() == b"early" and Doing(call.receive()).value() == b""
    sending = Doing(call.send(b"late"))
    assert sending.error is not None and sending.error.cause == "lost"


def test_sending_waits_for_the_endpoint() -> None:
    _, call, far = begun(Settings(stream_window=65_535))
    far.reads = False
    (request,) = far.requests
    Doing(call.send(b"x" * 70_000)).value()
    waiting = Doing(call.send(b"y"))
    far.turn()
    assert not waiting.done and len(request.content) == 65_535
    far.codec.acknowledge(request.stream, 65_535)
    far.turn()
    assert waiting.done and request.content.endswith(b"y")
    call.cancel()


def test_what_nobody_receives_stops_the_endpoint() -> None:
    _, call, far = begun()
    (request,) = far.requests
    far.head(request)
    far.codec.send_content(request.stream, b"z" * 1_000_000, True)
    far.turn()
    assert request.stream.waiting >= 1_000_000 - 3 * 65_536, "windows stay shut"
    size, part = 0, b"begin"
    while part:
        part = Doing(call.receive()).value()
        size += len(part)
        far.turn()
    assert size == 1_000_000


def test_cancelling_resets_the_stream() -> None:
    world, call, far = begun()
    reading = Doing(call.receive())
    call.cancel()
    far.turn()
    assert far.requests[0].reset == errors.CANCEL
    assert reading.error is not None and reading.error.cause == "lost"
    call.cancel()
    assert world.is_clean() and world.up.open


def test_a_head_that_does_not_come_in_time() -> None:
    world, call, far = begun()
    head = Doing(call.head())
    world.advance(3)
    far.turn()
    assert head.error is not None and head.error.cause == "timeout"
    assert far.requests[0].reset == errors.CANCEL and world.is_clean()


def test_content_may_take_longer() -> None:
    world, call, far = begun()
    far.head(far.requests[0])
    world.advance(3)
    far.content(far.requests[0], b"late", True)
    assert Doing(call.receive()).value() == b"late"


def test_an_answer_that_breaks_off() -> None:
    _, call, far = begun()
    far.head(far.requests[0])
    far.content(far.requests[0], b"half")
    far.reset(far.requests[0], errors.INTERNAL_ERROR)
    reading = Doing(call.receive())
    assert reading.error is not None and reading.error.cause == "lost"


def test_a_refused_call_is_sent_again_unless_content_left() -> None:
    _, call, far = begun()
    far.reset(far.requests[0], errors.REFUSED_STREAM)
    assert len(far.requests) == 2
    Doing(call.send(b"x")).value()
    far.turn()
    far.reset(far.requests[1], errors.REFUSED_STREAM)
    head = Doing(call.head())
    assert head.error is not None and head.error.cause == "lost" and len(far.requests) == 2


def test_a_backend_that_is_not_known() -> None:
    world = World()
    with pytest.raises(CallFailed, match="backend/none is not known") as raised:
        world.calls.plan("backend/none")
    assert raised.value.cause == "unresolved"


def test_sending_waits_for_the_connection() -> None:
    world = World()
    world.connector.hold = True
    call = streamed(world)
    sending = Doing(call.send(b"first"))
    assert not sending.done
    world.connector.hold = False
    world.connector.release()
    far = Endpoint2(world.up)
    assert sending.done and far.requests[0].content == b"first"
    call.cancel()


def test_nobody_can_connect() -> None:
    world = World()
    world.connector.refuse = "no route"
    call = streamed(world)
    for doing in (Doing(call.send(b"x")), Doing(call.head()), Doing(call.receive())):
        assert doing.error is not None and doing.error.cause == "connect"


def test_over_http1() -> None:
    """The same call to a backend that is to be spoken to in HTTP/1.1: chunks, and trailers both ways."""
    world = World()
    world.plans[TCP] = replace(world.plans[TCP], version=HTTP1)
    call = streamed(world)
    Doing(call.send(b"one")).value()
    Doing(call.end(b"x-sum: 1\r\n")).value()
    assert world.up.received.endswith(b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\nx-sum: 1\r\n\r\n")
    world.up.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nONE\r\n")
    assert Doing(call.receive()).value() == b"ONE"
    world.up.answer(b"0\r\nx-end: 1\r\n\r\n")
    assert Doing(call.receive()).value() == b"" and call.trailers == b"x-end: 1\r\n"


@pytest.mark.parametrize("version", [HTTP1, HTTP2])
def test_a_whole_call_over_either(version: int) -> None:
    world = World()
    world.plans[TCP] = replace(world.plans[TCP], version=version)
    asked = world.ask(CallRequest(b"POST", b"/x", headers=b"x-a: 1\r\n", body=b"hello"))
    if version == HTTP1:
        assert world.up.received.endswith(b"\r\n\r\nhello")
        world.up.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
    else:
        far = Endpoint2(world.up)
        (request,) = far.requests
        assert (request.content, request.head.length, request.head.authority) == (b"hello", 5, b"192.0.2.1:9000")
        assert not request.head.takes_trailers
        far.answer(request, 200, b"hi")
    assert asked.answer is not None and asked.answer.body == b"hi" and world.is_clean()


def test_nothing_follows_the_end_of_a_request() -> None:
    for trailers in (None, b"", b"x-sum: 1\r\n"):
        _, call, far = begun()
        Doing(call.send(b"all", end=True) if trailers is None else call.end(trailers)).value()
        far.turn()
        assert far.requests[0].done
        for late in (call.send(b"late"), call.end()):
            with pytest.raises(RuntimeError, match="the request has ended"):
                Doing(late)
        call.cancel()


def test_nothing_and_no_end_sends_nothing() -> None:
    world, call, _ = begun()
    world.up.take()
    Doing(call.send(b"")).value()
    assert world.up.received == b""
    call.cancel()


def test_a_refused_call_whose_end_was_sent_is_not_sent_again() -> None:
    """Its trailers are gone."""
    _, call, far = begun()
    Doing(call.end(b"x-sum: 1\r\n")).value()
    far.turn()
    far.reset(far.requests[0], errors.REFUSED_STREAM)
    head = Doing(call.head())
    assert head.error is not None and head.error.cause == "lost" and len(far.requests) == 1


def test_whoever_waits_to_send_hears_of_the_end() -> None:
    """Of the answer, and of the call."""
    for how in ("answer", "cancel", "reset"):
        _, call, far = begun(Settings(stream_window=65_535))
        far.reads = False
        Doing(call.send(b"x" * 70_000)).value()
        waiting = Doing(call.send(b"y"))
        far.turn()
        assert not waiting.done
        if how == "answer":
            far.answer(far.requests[0], 200, b"enough")
        elif how == "cancel":
            call.cancel()
        else:
            far.reset(far.requests[0], errors.CANCEL)
        assert waiting.error is not None and waiting.error.cause == "lost", how
        if how == "answer":
            assert Doing(call.receive()).value() == b"enough"


def test_an_answer_that_fails_leaves_nothing_to_receive() -> None:
    world, call, far = begun()
    far.head(far.requests[0])
    far.content(far.requests[0], b"unread")
    world.up.lose()
    for _ in range(2):
        reading = Doing(call.receive())
        assert reading.error is not None and reading.error.cause == "lost"
    late = Doing(call.send(b"x"))
    assert late.error is not None and late.error.cause == "lost" and world.is_clean()


def test_the_endpoint_is_stopped_at_64_kib_and_goes_on_below() -> None:
    world = World()
    world.plans[TCP] = replace(world.plans[TCP], version=HTTP1)
    call = streamed(world)
    world.up.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n" + b"x" * 65_535)
    assert world.up.reading
    world.up.answer(b"x")
    assert not world.up.reading
    assert Doing(call.receive()).value() == b"x" * 65_535
    assert world.up.reading
    world.up.answer(b"x" * 70_000)
    assert not world.up.reading
    assert Doing(call.receive()).value() == b"x" and not world.up.reading
    assert len(Doing(call.receive()).value()) == 70_000 and world.up.reading
    call.cancel()


def test_the_deadline_of_a_call_that_is_over_ends_nothing() -> None:
    world, call, _ = begun()
    call.cancel()
    world.advance(3)
    head = Doing(call.head())
    assert head.error is not None and head.error.cause == "lost"


class Tally:
    """Counts the requests to a backend: how many have ended."""

    ended_ones = 0

    def ended(self, was_retried: bool) -> None:
        assert not was_retried
        self.ended_ones += 1


@pytest.mark.parametrize("how", ["answered", "trailers", "reset", "cancelled", "too late"])
def test_however_it_ends_it_counts_no_more(how: str) -> None:
    world, call, far = begun()
    tally: Any = Tally()
    held: Any = call
    held.counted = tally
    (request,) = far.requests
    head = Doing(call.head())
    if how in ("answered", "trailers"):
        far.head(request, 200, b"\r\ncontent-type: application/grpc\r\n")
        assert head.value().status == 200 and tally.ended_ones == 0, "its answer goes on"
    if how == "answered":
        far.content(request, b"x", True)
    elif how == "trailers":
        far.trailers(request, b"grpc-status: 0\r\n")
    elif how == "reset":
        far.reset(request, errors.INTERNAL_ERROR)
    elif how == "cancelled":
        call.cancel()
    else:
        world.advance(3.0)
    assert tally.ended_ones == 1 and held.counted is None
