"""Bodies in steps: requests with another body than the client's, responses that are buffered for steps that read them.

Steps here are of the test's own; everything around them is the product.
"""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.chain.buffering import buffering
from dataplane.chain.filter import STEP, WHOLE, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy, Pending

ROUTE = ROUTES.replace(
    "      backends:",
    "      policies: {headerModifiers: {request: {set: [{name: x-gw, value: '1'}]}}, timeouts: {request: 1s}}\n"
    "      backends:",
)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
TEAPOT = Reply(418, "Teapot", b"short and stout")


def proxy_with(*filters: Filter, text: str = ROUTE) -> MemoryProxy:
    """A proxy whose route has these steps, in this order."""
    rows = [row for row in ROWS if row.name != "header_modifiers"]
    names = ["header_modifiers", "csrf"][: len(filters)]
    rows = [row for row in rows if row.name not in names]
    for name, step in zip(names, filters, strict=True):
        rows.append(Row(name, lambda config, env, step=step: step, STEP, "test"))
    if len(filters) > 1:
        text = text.replace("policies: {", "policies: {csrf: {additionalOrigins: ['http://a']}, ")
    return MemoryProxy(text, rows)


def reading(
    change: Callable[[Exchange], Any] = lambda x: None, limit: int = WHOLE, seen: list[bytes | None] | None = None
) -> Filter:
    """A response step that reads the body."""

    def respond(x: Exchange) -> Any:
        if seen is not None:
            seen.append(x.response_body)
        return change(x)

    return Filter("test", response=respond, response_body=limit)


def body(data: bytes) -> Callable[[Exchange], None]:
    """A response step's change: another body."""

    def change(x: Exchange) -> None:
        x.response_body, x.response_body_changed = data, True

    return change


def status(code: int) -> Callable[[Exchange], None]:
    def change(x: Exchange) -> None:
        x.status = code

    return change


def exchanged(proxy: MemoryProxy, *answer: bytes, request: bytes = GET) -> tuple[FakeTransport, bytes]:
    """What the client gets for an answer that comes in these pieces."""
    client = proxy.connect()
    client.send(request)
    for piece in answer:
        proxy.upstream.answer(piece)
    return client, client.take()


class TestWhatIsHeldPassesAsItCame:
    @pytest.mark.parametrize(
        ("answer", "content"),
        [
            ((b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"abc", b"def"), b"abcdef"),
            ((b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",), b""),
            ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
            ((b"HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n",), None),
            ((CHUNKED + b"6\r\nabcdef\r\n0\r\nx-sum: 1\r\n\r\n",), b"abcdef"),
            ((CHUNKED, b"0\r\n\r\n"), b""),
        ],
    )
    def test_in_one_piece(self, answer: tuple[bytes, ...], content: bytes | None) -> None:
        seen: list[bytes | None] = []
        client, received = exchanged(proxy_with(reading(seen=seen)), *answer)
        assert seen == [content]
        assert received == b"".join(answer)
        client.send(GET)  # the connection goes on

    @pytest.mark.parametrize("split", range(1, 48))
    def test_chunks_that_come_in_pieces_leave_with_the_same_content(self, split: int) -> None:
        data = b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Sum: 1\r\nHost: b\r\n\r\n"
        seen: list[bytes | None] = []
        _, received = exchanged(proxy_with(reading(seen=seen)), CHUNKED + data[:split], data[split:])
        assert seen == [b"abcdefg"]
        assert received == CHUNKED + b"7\r\nabcdefg\r\n0\r\nX-Sum: 1\r\n\r\n"

    def test_nothing_is_written_before_it_is_whole(self) -> None:
        proxy = proxy_with(reading())
        client, received = exchanged(proxy, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        assert received == b""
        proxy.upstream.answer(b"cd")
        assert client.take().endswith(b"\r\n\r\nabcd")

    def test_until_the_endpoint_closes(self) -> None:
        seen: list[bytes | None] = []
        proxy = proxy_with(reading(seen=seen))
        client, _ = exchanged(proxy, b"HTTP/1.1 200 OK\r\n\r\nabc", b"def")
        proxy.upstream.close()
        assert seen == [b"abcdef"]
        assert client.take() == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n"

    def test_for_an_old_client(self) -> None:
        seen: list[bytes | None] = []
        client, received = exchanged(
            proxy_with(reading(seen=seen)), CHUNKED + b"3\r\nab", b"c\r\n0\r\n\r\n", request=OLD
        )
        assert seen == [b"abc"]
        assert received == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc"
        assert not client.open

    def test_trailers_of_one_response_are_not_those_of_the_next(self) -> None:
        proxy = proxy_with(reading())
        client, _ = exchanged(proxy, CHUNKED + b"1\r\na\r\n0\r\nx-sum: 1\r\n\r\n")
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\n\r\nab")
        proxy.upstream.close()
        assert client.take().endswith(b"2\r\nab\r\n0\r\n\r\n")


class TestAnotherBody:
    LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew"

    @pytest.mark.parametrize(
        "answer",
        [
            (OK,),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok"),
            (CHUNKED + b"2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n",),
            (b"HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"0\r\n\r\n"),
        ],
    )
    def test_has_its_length_and_no_trailers(self, answer: tuple[bytes, ...]) -> None:
        proxy = proxy_with(reading(body(b"new")))
        client, received = exchanged(proxy, *answer)
        assert received == self.LENGTH
        client.send(GET)
        assert len(proxy.connector.upstreams) == 1, "the endpoint's connection is kept"

    def test_to_head_is_only_its_length(self) -> None:
        _, received = exchanged(proxy_with(reading(body(b"new"))), OK[:-2], request=HEAD)
        assert received == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"

    def test_instead_of_a_stream_lets_go_of_the_endpoint(self) -> None:
        proxy = proxy_with(reading(body(b"new")))
        client, received = exchanged(proxy, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        assert received == b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ncontent-length: 3\r\n\r\nnew"
        assert not proxy.upstream.open
        assert client.open

    def test_instead_of_one_that_is_too_large(self) -> None:
        proxy = proxy_with(reading(body(b"new"), limit=3))
        _, received = exchanged(proxy, CHUNKED + b"4\r\nabcd\r\n")
        assert received == self.LENGTH
        assert not proxy.upstream.open

    def test_of_our_own_answer(self) -> None:
        proxy = proxy_with(reading(body(b"new")))
        proxy.connector.refuse = "refused"
        _, received = exchanged(proxy)
        assert received.startswith(b"HTTP/1.1 503 ")
        assert b"content-length: 3\r\n" in received and received.endswith(b"\r\n\r\nnew")

    def test_our_own_answer_is_seen(self) -> None:
        seen: list[bytes | None] = []
        proxy = proxy_with(reading(seen=seen))
        proxy.connector.refuse = "refused"
        exchanged(proxy)
        assert seen == [b"upstream connection failed"]


class TestAnotherStatus:
    @pytest.mark.parametrize("bodiless", [204, 304])
    @pytest.mark.parametrize("limit", [0, WHOLE])
    def test_without_content(self, bodiless: int, limit: int) -> None:
        proxy = proxy_with(reading(status(bodiless), limit=limit))
        client, received = exchanged(proxy, CHUNKED + b"2\r\nok\r\n", *(() if limit == 0 else (b"0\r\n\r\n",)))
        assert received.startswith(b"HTTP/1.1 %d " % bodiless)
        assert b"content-length" not in received and received.endswith(b"\r\n\r\n")
        client.send(GET)
        assert client.open

    def test_reset_content(self) -> None:
        _, received = exchanged(proxy_with(reading(status(205))), OK)
        assert received == b"HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n"

    def test_with_content_where_there_was_none(self) -> None:
        _, received = exchanged(proxy_with(reading(status(200))), b"HTTP/1.1 204 No Content\r\n\r\n")
        assert received == b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

    def test_of_the_same_body(self) -> None:
        _, received = exchanged(proxy_with(reading(status(418), limit=0)), OK)
        assert received == b"HTTP/1.1 418 I'm a Teapot\r\nContent-Length: 2\r\n\r\nok"

    def test_to_head(self) -> None:
        proxy = proxy_with(reading(status(404), limit=0))
        client, received = exchanged(proxy, OK[:-2], request=HEAD)
        assert received == b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n"
        client.send(HEAD)
        assert len(proxy.connector.upstreams) == 1


class TestTooLarge:
    @pytest.mark.parametrize(("size", "is_read"), [(4, True), (5, False)])
    @pytest.mark.parametrize("framing", ["length", "chunks", "close"])
    def test_the_limit(self, size: int, is_read: bool, framing: str) -> None:
        seen: list[Any] = []
        data = b"x" * size
        proxy = proxy_with(reading(lambda x: seen.append((x.response_body, x.response_body_too_large)), limit=4))
        pieces = {
            "length": (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, data),
            "chunks": (CHUNKED, b"1\r\nx\r\n", b"%x\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (size - 1, data[1:])),
            "close": (b"HTTP/1.1 200 OK\r\n\r\n", data),
        }[framing]
        client, received = exchanged(proxy, *pieces)
        if framing == "close":
            proxy.upstream.close()
            received += client.take()
        assert seen == [(data if is_read else None, not is_read)]
        assert received.count(b"x") - received.count(b"x-sum") == size
        if framing == "chunks":
            assert received.endswith(b"0\r\nx-sum: 1\r\n\r\n")

    def test_what_is_too_large_by_its_length_is_not_waited_for(self) -> None:
        proxy = proxy_with(reading(limit=4))
        client, received = exchanged(proxy, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        assert received == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        proxy.upstream.answer(b"abcde")
        assert client.take() == b"abcde"

    def test_streams_on(self) -> None:
        proxy = proxy_with(reading(limit=4))
        client, received = exchanged(proxy, CHUNKED + b"8\r\nabcde")
        assert received == CHUNKED + b"5\r\nabcde\r\n"
        proxy.upstream.answer(b"fgh\r\n0\r\n")
        assert client.take() == b"3\r\nfgh\r\n"
        proxy.upstream.answer(b"a: b\r\n\r\n")
        assert client.take() == b"0\r\na: b\r\n\r\n"
        client.send(GET)
        proxy.upstream.answer(OK)
        assert client.take() == OK

    def test_the_largest_limit_counts(self) -> None:
        seen: list[bytes | None] = []
        proxy = proxy_with(reading(seen=seen, limit=1), reading(seen=seen, limit=2))
        exchanged(proxy, OK)
        assert seen == [b"ok", b"ok"]


class TestStepsThatRefuse:
    def test_steps_outside_see_the_answer(self) -> None:
        seen: list[Any] = []
        proxy = proxy_with(
            reading(lambda x: seen.append((x.status, x.response_body))),
            reading(lambda x: TEAPOT),
        )
        _, received = exchanged(proxy, OK)
        assert seen == [(418, b"short and stout")]
        assert received.startswith(b"HTTP/1.1 418 ") and received.endswith(b"\r\n\r\nshort and stout")

    @pytest.mark.parametrize("limit", [0, WHOLE])
    def test_alone(self, limit: int) -> None:
        calls: list[int] = []

        def refuse(x: Exchange) -> Reply:
            calls.append(x.status)
            return TEAPOT

        proxy = proxy_with(reading(refuse, limit=limit))
        client, received = exchanged(proxy, OK)
        assert received.startswith(b"HTTP/1.1 418 ")
        assert calls == [200]
        client.send(GET)

    def test_later(self) -> None:
        waiting = Pending()
        seen: list[int] = []

        async def refuse(x: Exchange) -> Reply:
            await waiting
            return TEAPOT

        inner = Filter("test", response=refuse, response_body=WHOLE)
        proxy = proxy_with(reading(lambda x: seen.append(x.status)), inner)
        client, received = exchanged(proxy, OK)
        assert received == b""
        waiting.set_result(None)
        assert client.take().startswith(b"HTTP/1.1 418 ")
        assert seen == [418]

    def test_an_answer_of_ours(self) -> None:
        proxy = proxy_with(reading(lambda x: TEAPOT))
        proxy.connector.refuse = "refused"
        _, received = exchanged(proxy)
        assert received.startswith(b"HTTP/1.1 418 ") and received.count(b"HTTP/1.1") == 1


class TestEndsOfWhatIsHeld:
    HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"

    def test_the_endpoint_fails(self) -> None:
        proxy = proxy_with(reading())
        client, _ = exchanged(proxy, self.HALF)
        proxy.upstream.lose(ConnectionResetError())
        assert client.take().startswith(b"HTTP/1.1 502 ")

    def test_chunks_are_malformed(self) -> None:
        proxy = proxy_with(reading())
        _, received = exchanged(proxy, CHUNKED + b"2\r\nok\r\n", b"zz\r\n")
        assert received.startswith(b"HTTP/1.1 502 ")

    def test_the_deadline_passes(self) -> None:
        proxy = proxy_with(reading())
        client, _ = exchanged(proxy, self.HALF)
        proxy.advance(1.1)
        assert client.take().startswith(b"HTTP/1.1 504 ")
        assert not proxy.upstream.open
        client.send(GET)
        proxy.upstream.answer(OK)
        assert client.take() == OK

    def test_the_client_leaves(self) -> None:
        calls: list[int] = []
        proxy = proxy_with(reading(lambda x: calls.append(1)))
        client, _ = exchanged(proxy, self.HALF)
        client.lose()
        assert not proxy.upstream.open
        assert calls == []
        assert proxy.context.recorder.active == 0

    def test_a_step_fails(self) -> None:
        def fail(x: Exchange) -> None:
            if x.status == 200:
                raise RuntimeError("a bug")

        _, received = exchanged(proxy_with(reading(fail)), OK)
        assert received.startswith(b"HTTP/1.1 500 ")

    @pytest.mark.parametrize("change", [lambda x: None, body(b"new"), status(204), lambda x: TEAPOT])
    def test_the_next_request_is_taken(self, change: Callable[[Exchange], Any]) -> None:
        proxy = proxy_with(reading(change))
        client, received = exchanged(proxy, OK, OK, request=GET + GET)
        assert received.count(b"HTTP/1.1 ") == 2
        assert client.protocol.exchange is None and client.open

    def test_a_client_that_sends_no_more_gets_it(self) -> None:
        proxy = proxy_with(reading(body(b"new")))
        client, _ = exchanged(proxy, self.HALF)
        client.half_close()
        proxy.upstream.answer(b"cd")
        assert client.received.endswith(b"\r\n\r\nnew")
        assert not client.open

    def test_a_connection_that_drains_is_closed_behind_it(self) -> None:
        proxy = proxy_with(reading())
        client, _ = exchanged(proxy, self.HALF)
        client.protocol.drain()
        proxy.upstream.answer(b"cd")
        assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nconnection: close\r\n\r\nabcd"
        assert not client.open


class TestPace:
    def test_a_slow_reader_does_not_keep_a_response_from_being_buffered(self) -> None:
        proxy = proxy_with(reading())
        client = proxy.connect()
        client.send(GET)
        client.protocol.pause_writing()
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        assert proxy.upstream.reading
        client.protocol.pause_writing()
        assert proxy.upstream.reading
        proxy.upstream.answer(b"cd")
        assert client.take().endswith(b"abcd")

    def test_what_is_too_large_waits_for_a_slow_reader(self) -> None:
        proxy = proxy_with(reading(limit=1))
        client = proxy.connect()
        client.send(GET)
        client.protocol.pause_writing()
        proxy.upstream.answer(CHUNKED + b"4\r\nab")
        assert not proxy.upstream.reading
        client.protocol.resume_writing()
        assert proxy.upstream.reading

    def test_while_steps_wait_the_endpoint_is_not_read(self) -> None:
        waiting = Pending()
        seen: list[bytes | None] = []

        async def wait(x: Exchange) -> None:
            seen.append(x.response_body)
            await waiting

        proxy = proxy_with(Filter("test", response=wait, response_body=2))
        client, _ = exchanged(proxy, CHUNKED + b"4\r\nabc")
        assert not proxy.upstream.reading
        assert seen == [None]
        waiting.set_result(None)
        assert proxy.upstream.reading
        proxy.upstream.answer(b"d\r\n0\r\n\r\n")
        assert client.take() == CHUNKED + b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"


# Requests


def making(data: bytes, limit: int | None = None) -> Filter:
    """A request step that makes another body, after it has read up to `limit` bytes of the one that came."""

    def request(x: Exchange) -> None:
        x.replace_body(data)

    return Filter("test", request=request if limit is None else buffering(request, limit))


def sent(proxy: MemoryProxy) -> bytes:
    """What the endpoint got, without the headers that every request has."""
    head, _, content = proxy.upstream.take().partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"host:", b"x-"))]
    return b"\r\n".join(lines) + b"\r\n\r\n" + content


POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
NEW = b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nnew"


class TestAnotherRequestBody:
    @pytest.mark.parametrize(
        "came",
        [
            b"\r\n",
            b"Content-Length: 0\r\n\r\n",
            b"Content-Length: 2\r\n\r\nab",
            b"Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nab\r\n0\r\nx-sum: 1\r\n\r\n",
        ],
    )
    @pytest.mark.parametrize("limit", [None, 10])
    def test_is_what_goes_out(self, came: bytes, limit: int | None) -> None:
        proxy = proxy_with(making(b"new", limit))
        client = proxy.connect()
        client.send(POST + came)
        assert sent(proxy) == NEW
        proxy.upstream.answer(OK)
        assert client.take() == OK
        client.send(POST + came)
        assert sent(proxy) == NEW

    def test_empty(self) -> None:
        proxy = proxy_with(making(b""))
        client = proxy.connect()
        client.send(POST + b"Content-Length: 2\r\n\r\nab")
        assert sent(proxy) == b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n"
        proxy.upstream.answer(OK)
        client.send(GET)
        assert sent(proxy) == b"GET / HTTP/1.1\r\n\r\n"

    @pytest.mark.parametrize(
        ("begun", "rest"),
        [(b"Content-Length: 4\r\n\r\nab", b"cd"), (b"Transfer-Encoding: chunked\r\n\r\n2\r\nab", b"\r\n0\r\n\r\n")],
    )
    def test_before_the_old_one_has_come(self, begun: bytes, rest: bytes) -> None:
        proxy = proxy_with(making(b"new"))
        client = proxy.connect()
        client.send(POST + begun)
        assert sent(proxy) == NEW
        client.send(rest)
        assert proxy.upstream.take() == b""
        proxy.upstream.answer(OK)
        assert client.take() == OK
        client.send(GET)
        assert len(proxy.connector.upstreams) == 1, "both connections go on"

    def test_answered_before_the_old_one_has_come(self) -> None:
        proxy = proxy_with(making(b"new"))
        client = proxy.connect()
        client.send(POST + b"Content-Length: 4\r\n\r\nab")
        proxy.upstream.answer(OK)
        assert client.take() == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nok"
        assert proxy.upstream.open, "the endpoint got a whole request"

    def test_large_does_not_stop_reading_for_ever(self) -> None:
        proxy = proxy_with(making(b"x" * 200_000))
        client = proxy.connect()
        client.send(POST + b"Content-Length: 4\r\n\r\nab")
        assert client.reading
        assert sent(proxy).endswith(b"x" * 200_000)

    def test_is_there_for_later_steps(self) -> None:
        read: list[bytes | None] = []
        reader = buffering(lambda x: read.append(x.body), 100)
        proxy = proxy_with(making(b"new"), Filter("test", request=reader))
        proxy.connect().send(POST + b"Content-Length: 4\r\n\r\nab")
        assert read == [b"new"]
        assert sent(proxy) == NEW


class TestStepsThatWaitForTheBody:
    EXPECTS = POST + b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

    @staticmethod
    def proxy(limit: int, too_large: Reply | None = None) -> tuple[MemoryProxy, list[bytes | None]]:
        read: list[bytes | None] = []
        hook = buffering(lambda x: read.append(x.body), limit, too_large)
        return proxy_with(Filter("test", request=hook)), read

    def test_the_client_is_asked_for_it(self) -> None:
        proxy, read = self.proxy(10)
        client = proxy.connect()
        client.send(self.EXPECTS)
        assert client.take() == self.CONTINUE
        assert not proxy.connector.upstreams
        client.send(b"abcd")
        assert read == [b"abcd"]
        assert sent(proxy).endswith(b"\r\n\r\nabcd")
        proxy.upstream.answer(OK)
        assert client.take() == OK

    def test_it_is_asked_once(self) -> None:
        proxy, _ = self.proxy(10)
        client = proxy.connect()
        client.send(self.EXPECTS)
        client.send(b"ab")
        client.send(b"cd")
        assert client.take() == self.CONTINUE

    def test_a_client_that_has_begun_is_not_asked(self) -> None:
        proxy, _ = self.proxy(10)
        client = proxy.connect()
        client.send(self.EXPECTS + b"a")
        client.send(b"bcd")
        assert client.take() == b""

    def test_what_is_too_large_by_its_length_is_not_asked_for(self) -> None:
        proxy, read = self.proxy(3, TEAPOT)
        client = proxy.connect()
        client.send(self.EXPECTS)
        assert client.take().startswith(b"HTTP/1.1 418 ")
        assert read == []

    def test_what_is_made_anew_is_not_asked_for(self) -> None:
        proxy = proxy_with(making(b"new"))
        client = proxy.connect()
        client.send(self.EXPECTS)
        assert sent(proxy) == NEW
        assert client.take() == b""

    @pytest.mark.parametrize("framing", ["length", "chunks"])
    @pytest.mark.parametrize(("size", "passes"), [(4, True), (5, False)])
    def test_the_limit(self, framing: str, size: int, passes: bool) -> None:
        proxy, read = self.proxy(4, TEAPOT)
        client = proxy.connect()
        if framing == "length":
            client.send(POST + b"Content-Length: %d\r\n\r\n" % size)
            rest = b"x" * size
        else:
            client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
            rest = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size)
        if client.received == b"":
            client.send(rest)
        assert (read == [b"x" * size]) is passes
        assert client.take().startswith(b"HTTP/1.1 418 ") is not passes

    def test_too_large_without_an_answer_flows(self) -> None:
        proxy, read = self.proxy(4)
        proxy.connect().send(POST + b"Content-Length: 6\r\n\r\nabc")
        assert read == [None]
        assert sent(proxy).endswith(b"\r\n\r\nabc")


# Any conversation


CONTENT = st.binary(max_size=12)
CUTS = st.lists(st.integers(0, 200), max_size=4)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes as they may arrive: cut at these places."""
    places = sorted({cut for cut in cuts if 0 < cut < len(data)})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def framed(content: bytes, chunks: list[int] | None, trailers: bytes = b"") -> bytes:
    """Header lines that end a head, and a body: by its length, or in chunks of these sizes."""
    if chunks is None:
        return b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
    parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in pieces(content, chunks) if part]
    return b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\n" + trailers + b"\r\n"


def content_of(message: bytes) -> tuple[bytes, bytes]:
    """Content and trailers of one message, read by a naive reader."""
    head, _, rest = message.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
    assert (length is not None) != (b"ransfer-" in head), head
    if length is not None:
        assert len(rest) == int(length[1])
        return rest, b""
    content = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not int(size, 16):
            return content, rest[:-2]
        content, rest = content + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


@example(b"\0\0", [], b"", [56], None, 1)  # the piece that is too much for the step is the last one
@given(
    CONTENT,
    st.none() | st.lists(st.integers(1, 12), max_size=3),
    st.sampled_from([b"", b"x-end: 1\r\n"]),
    CUTS,
    st.none() | CONTENT,
    st.integers(1, 14),
)
def test_whatever_came_in_whatever_pieces_arrives(
    content: bytes, chunks: list[int] | None, trailers: bytes, cuts: list[int], made: bytes | None, limit: int
) -> None:
    """The same conversation in both directions: a step on each side that reads, and may make another body."""

    def request(x: Exchange) -> None:
        none = chunks is None and not content
        assert x.body == (content if len(content) <= limit and not none else None)
        if made is not None:
            x.replace_body(made)

    def response(x: Exchange) -> None:
        assert x.response_body == (content if len(content) <= limit else None)
        if made is not None:
            body(made)(x)

    step = Filter("test", buffering(request, limit), response, response_body=limit)
    proxy = proxy_with(step)
    client = proxy.connect()
    for piece in pieces(POST + framed(content, chunks, trailers), cuts):
        client.send(piece)
    expected = (content, trailers) if made is None and chunks is not None else (content if made is None else made, b"")
    assert content_of(proxy.upstream.take()) == expected
    if made is None and chunks is not None:
        expected = (content, trailers)
    for piece in pieces(b"HTTP/1.1 200 OK\r\n" + framed(content, chunks, trailers), cuts):
        if proxy.upstream.open:
            proxy.upstream.answer(piece)
    assert content_of(client.take()) == expected
    assert client.open and client.protocol.exchange is None, "it takes the next request"


PIECES = 20_000
DRIPPED = b"ab" * PIECES


def _cost(peer: FakeTransport) -> int:
    """Bytes of memory that a body costs that comes two bytes at a time."""
    tracemalloc.start()
    try:
        for _ in range(PIECES):
            peer.send(bytes(bytearray(b"ab")))  # each an object of its own, as those of a socket
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_request_body_in_tiny_pieces_costs_no_more_memory_than_its_size() -> None:
    proxy = MemoryProxy()
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(DRIPPED))
    assert _cost(client) < 1.5 * len(DRIPPED)
    proxy.connector.release()
    assert proxy.upstream.take().endswith(b"\r\n\r\n" + DRIPPED)


def test_a_request_body_that_is_kept_costs_no_more_memory_than_its_size() -> None:
    proxy = MemoryProxy(ROUTES.replace("      backends:", "      policies: {retry: {attempts: 1}}\n      backends:"))
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(DRIPPED))
    proxy.upstream.write = lambda data: None  # type: ignore[method-assign]  # what was sent is not the proxy's memory
    assert _cost(client) < 1.5 * len(DRIPPED)


def test_a_response_body_that_is_buffered_costs_no_more_memory_than_its_size() -> None:
    policy = "      policies: {buffer: {response: {}}}\n      backends:"
    proxy = MemoryProxy(ROUTES.replace("      backends:", policy))
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(DRIPPED) + 3))
    assert _cost(proxy.upstream) < 1.5 * len(DRIPPED)
    proxy.upstream.answer(b"end")
    assert client.take().endswith(b"\r\n\r\n" + DRIPPED + b"end")
