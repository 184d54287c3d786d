"""Answers of our own where response steps wait, fail or answer otherwise; bugs of ours; and bodies that break later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.filters.registry import ROWS
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy, Pending

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TEAPOT = Reply(418, "Teapot", b"short and stout")
ROUTE = ROUTES.replace(
    "      backends:",
    "      policies: {headerModifiers: {request: {set: [{name: x-gw, value: '1'}]}}}\n      backends:",
)

Hook = Callable[[Any], Any]


class Waits:
    """A hook that waits until it is let go, and ends as `ends` does; once per call."""

    def __init__(self, ends: Hook = lambda x: None) -> None:
        self.ends = ends
        self.calls: list[Pending] = []

    async def __call__(self, x: Any) -> Any:
        self.calls.append(Pending())
        await self.calls[-1]
        return self.ends(x)

    def release(self, number: int = 0) -> None:
        self.calls[number].set_result(None)


def fails(x: object) -> None:
    raise RuntimeError("a bug")


def with_step(request: Hook | None = None, response: Hook | None = None) -> MemoryProxy:
    """A proxy whose route has one step of the test's own, which may wait."""

    def build(config: object, env: object) -> Filter:
        return Filter("test", request, response)

    rows = tuple(Row("header_modifiers", build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)
    return MemoryProxy(ROUTE, rows)


def refused(proxy: MemoryProxy, request: bytes = GET) -> FakeTransport:
    """A client whose request meets no endpoint."""
    proxy.connector.refuse = "refused"
    client = proxy.connect()
    client.send(request)
    return client


def test_an_old_client_that_keeps_its_connection_is_told_so() -> None:
    client = refused(MemoryProxy(), OLD)
    assert client.received.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nconnection: keep-alive\r\n" in client.received
    assert client.open


class TestAfterAStepThatWaits:
    def test_it_goes_out(self) -> None:
        step = Waits()
        client = refused(with_step(response=step))
        assert client.received == b""
        step.release()
        assert client.received.startswith(b"HTTP/1.1 503 ")
        assert client.open

    def test_it_goes_out_although_the_step_failed(self, caplog: pytest.LogCaptureFixture) -> None:
        step = Waits(fails)
        client = refused(with_step(response=step))
        step.release()
        assert client.received.startswith(b"HTTP/1.1 503 ")
        assert "response step failed" in caplog.text

    def test_another_takes_its_place(self) -> None:
        step = Waits(lambda x: TEAPOT)
        client = refused(with_step(response=step))
        step.release()
        assert client.received.startswith(b"HTTP/1.1 418 ")
        assert client.received.count(b"HTTP/1.1 ") == 1

    def test_it_is_for_nobody_when_the_client_has_left(self) -> None:
        step = Waits()
        proxy = with_step(response=step)
        client = refused(proxy)
        client.lose()
        step.release()
        assert client.received == b""
        assert len(proxy.log_lines()) == 1


class TestBugs:
    def test_in_a_step_that_judges_a_response_later(self, caplog: pytest.LogCaptureFixture) -> None:
        step = Waits(lambda x: fails(x) if x.status == 200 else None)
        proxy = with_step(response=step)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        step.release(0)
        step.release(1)
        assert client.received.startswith(b"HTTP/1.1 500 ")
        assert "internal error" in caplog.text

    def test_in_a_step_of_a_request_that_is_over_are_only_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        async def step(x: object) -> None:
            try:
                await Pending()
            finally:
                fails(x)

        proxy = with_step(response=step)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        client.lose()
        assert "internal error" in caplog.text
        assert len(proxy.log_lines()) == 1

    def test_in_the_cleanup_of_a_step_that_an_answer_cancels_are_only_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        cleanup = Waits(fails)

        async def request(x: object) -> None:
            try:
                await Pending()
            finally:
                await cleanup(x)

        response = Waits()
        proxy = with_step(request=request, response=response)
        client = proxy.connect()
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        client.send(b"zz\r\n")
        assert response.calls == [], "steps do not run beside each other"
        cleanup.release()
        assert "internal error" in caplog.text
        response.release()
        assert client.received.startswith(b"HTTP/1.1 400 ")
        assert "reason=BadRequest" in proxy.log_lines()[0]

    def test_a_cleanup_that_hangs_holds_an_answer_up_for_a_second(self) -> None:
        async def request(x: object) -> None:
            try:
                await Pending()
            finally:
                await Pending()

        proxy = with_step(request=request)
        client = proxy.connect()
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        client.send(b"zz\r\n")
        proxy.advance(0.9)
        assert client.received == b""
        proxy.advance(0.2)
        assert client.received.startswith(b"HTTP/1.1 400 ")
        assert len(proxy.log_lines()) == 1


class TestWhatStillComesOfABody:
    CHUNKS = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"

    def test_is_dropped_when_the_answer_waits(self) -> None:
        step = Waits()
        proxy = with_step(response=step)
        client = proxy.connect()
        client.send(POST + b"Content-Length: 6\r\n\r\nab")
        proxy.upstream.lose()
        client.send(b"cd")
        step.release()
        assert client.received.startswith(b"HTTP/1.1 502 ")
        assert b"\r\nconnection: close\r\n" in client.received
        client.send(b"ef")
        assert client.received.count(b"HTTP/1.1 ") == 1

    def test_is_read_for_a_moment_behind_the_answer(self) -> None:
        proxy = MemoryProxy()
        proxy.connector.hold = True
        client = proxy.connect()
        client.send(POST + b"Content-Length: 200000\r\n\r\n" + b"x" * 70_000)
        assert not client.reading
        proxy.connector.refuse = "refused"
        proxy.connector.release()
        assert client.received.startswith(b"HTTP/1.1 503 ")
        assert client.eof and client.reading and client.open
        client.send(b"x" * 70_000)
        proxy.advance(1.1)
        assert client.aborted

    def test_breaks_the_connection_when_it_is_malformed_behind_a_response_that_began(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(self.CHUNKS)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        client.send(b"zz\r\n")
        assert client.aborted
        assert not proxy.upstream.open
        assert "reason=BadRequest" in proxy.log_lines()[0]

    def test_is_refused_with_the_head_that_it_came_with(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert client.received.startswith(b"HTTP/1.1 400 ")
        assert not proxy.connector.upstreams


def test_interim_responses_are_not_for_old_clients() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(OLD)
    proxy.upstream.answer(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: keep-alive\r\n\r\nok"
