"""Corners of the connection's states: ends that meet, answers that overtake each other, peers that stand still."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.filters.registry import ROWS
from dataplane.upstream.connector import IDLE_TIMEOUT, Connector
from tests.fakes.memory_proxy import ROUTES, MemoryProxy, Pending

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FOUR = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"

STEP_ROUTE = ROUTES.replace(
    "      backends:",
    "      policies: {headerModifiers: {request: {set: [{name: x-gw, value: '1'}]}}, timeouts: {request: 1s}}\n"
    "      backends:",
)
ATTEMPT_ROUTE = ROUTES.replace("      backends:", "      policies: {timeouts: {backendRequest: 1s}}\n      backends:")


Hook = Callable[[Any], Any]


def with_step(request: Hook | None = None, response: Hook | None = None) -> MemoryProxy:
    """A proxy whose route has one step of the test's own, which may wait."""

    def build(config: object, env: object) -> Filter:
        return Filter("test", request, response)

    rows = tuple(Row("header_modifiers", build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)
    return MemoryProxy(STEP_ROUTE, rows)


class Waits:
    """A hook that waits until it is let go, once per call."""

    def __init__(self) -> None:
        self.calls: list[Pending] = []

    async def __call__(self, x: object) -> None:
        self.calls.append(Pending())
        await self.calls[-1]

    def release(self, number: int) -> None:
        self.calls[number].set_result(None)


class TestAnswersThatOvertake:
    def test_a_response_that_waits_has_let_go_of_its_upstream_connection(self) -> None:
        step = Waits()
        proxy = with_step(response=step)
        leaver, other = proxy.connect(), proxy.connect()
        leaver.send(GET)
        proxy.upstream.answer(OK)
        other.send(GET)
        assert len(proxy.connector.upstreams) == 1
        leaver.lose()
        proxy.upstream.answer(OK)
        step.release(1)
        assert other.received == OK

    def test_the_end_of_a_response_that_was_given_up_does_not_end_the_next(self) -> None:
        step = Waits()
        proxy = with_step(response=step)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        proxy.advance(1.1)
        step.release(1)
        assert client.take().startswith(b"HTTP/1.1 504 ")
        client.send(GET)
        proxy.upstream.answer(FOUR + b"ab")
        step.release(2)
        proxy.upstream.answer(b"cd")
        assert client.received == FOUR + b"abcd"

    def test_a_step_that_comes_late_does_not_take_the_next_response(self) -> None:
        step = Waits()
        proxy = with_step(response=step)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(FOUR + b"ab")
        proxy.advance(1.1)
        step.release(1)
        assert client.take().startswith(b"HTTP/1.1 504 ")
        client.send(GET)
        proxy.upstream.answer(FOUR + b"ab")
        step.release(0)
        proxy.upstream.answer(b"cd")
        assert client.received == b""
        step.release(2)
        assert client.received == FOUR + b"abcd"

    def test_a_request_that_is_being_answered_goes_no_further(self) -> None:
        request, response = Waits(), Waits()
        proxy = with_step(request=request, response=response)
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"zz\r\n")
        request.release(0)
        assert not proxy.connector.upstreams
        response.release(0)
        assert client.received.startswith(b"HTTP/1.1 400 ")
        assert client.received.count(b"HTTP/1.1 ") == 1


class TestStepsThatReadABody:
    BEGUN = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"

    @pytest.fixture
    def reading(self) -> tuple[MemoryProxy, list[str]]:
        ends: list[str] = []

        async def read(x: Any) -> None:
            try:
                await x.buffer.whole(1000)
            finally:
                ends.append("ended")

        return with_step(request=read), ends

    def test_they_end_when_the_request_is_given_up(self, reading: tuple[MemoryProxy, list[str]]) -> None:
        proxy, ends = reading
        client = proxy.connect()
        client.send(self.BEGUN)
        for _ in range(3):
            proxy.advance(601)
        assert client.received.startswith(b"HTTP/1.1 408 ")
        assert ends == ["ended"]

    def test_a_client_that_leaves_is_no_error_of_ours(
        self, reading: tuple[MemoryProxy, list[str]], caplog: pytest.LogCaptureFixture
    ) -> None:
        proxy, ends = reading
        client = proxy.connect()
        client.send(self.BEGUN)
        client.lose()
        assert ends == ["ended"]
        assert not caplog.records
        assert "reason=ClientGone" in proxy.log_lines()[0]


class TestSecondTries:
    def test_have_the_deadline_of_an_attempt(self) -> None:
        proxy = MemoryProxy(ATTEMPT_ROUTE)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        client.take()
        client.send(GET)
        proxy.upstream.lose()
        assert len(proxy.connector.upstreams) == 2
        proxy.advance(1.1)
        assert client.received.startswith(b"HTTP/1.1 504 ")

    def test_are_made_when_a_connection_was_closed_before_its_first_request(self) -> None:
        proxy = MemoryProxy()
        proxy.connector.hold = True
        leaver, client = proxy.connect(), proxy.connect()
        leaver.send(GET)
        leaver.lose()
        proxy.connector.release()
        client.send(GET)
        proxy.upstream.lose()
        proxy.connector.release()
        proxy.upstream.answer(OK)
        assert client.received == OK


class TestClosingConnections:
    """An event loop tells of a loss a turn after the close: nobody may take the connection in between."""

    POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"

    def test_one_that_the_endpoint_closes_is_not_taken(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        closing = proxy.upstream
        assert not closing.protocol.eof_received()
        client.send(self.POST)
        assert len(proxy.connector.upstreams) == 2
        closing.lose()

    def test_one_that_was_idle_too_long_is_not_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        loop: Any = SimpleNamespace(time=lambda: proxy.now, call_later=lambda seconds, call: None)
        connector = Connector(loop, proxy.context.writes, proxy.context.recorder)
        closing = proxy.upstream
        connector._endpoints.add(closing.protocol.endpoint)
        monkeypatch.setattr(closing, "abort", lambda: None)
        for _ in range(2):
            connector._close_unused()
            proxy.now += IDLE_TIMEOUT + 1
        client.send(self.POST)
        assert len(proxy.connector.upstreams) == 2
        closing.lose()


def test_an_old_client_is_told_one_thing_about_its_connection() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 10\r\n\r\nab")
    proxy.upstream.answer(OK)
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nok"


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n"])
@pytest.mark.parametrize("status", [b"103 Early Hints", b"204 No Content"])
def test_a_response_without_a_body_says_nothing_of_one(status: bytes, framing: bytes) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 %b\r\n%bX-Kept: 1\r\n\r\n" % (status, framing))
    assert client.received == b"HTTP/1.1 %b\r\nX-Kept: 1\r\n\r\n" % status


def test_head_of_an_old_client_says_nothing_of_chunks() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"HEAD / HTTP/1.0\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert b"chunked" not in client.received
