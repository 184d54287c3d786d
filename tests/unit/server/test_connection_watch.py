"""How long a downstream connection waits: for heads, for deadlines, for peers that stand still or have left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.http import lasting
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: %b; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TIMEOUT_ROUTE = ROUTES.replace("      backends:", "      policies: {timeouts: {request: 1s}}\n      backends:")


class TestTime:
    def test_a_head_has_ten_seconds(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"GET / HTTP/1.1\r\nHo")
        proxy.advance(9.9)
        assert client.open
        proxy.advance(0.2)
        assert client.received.startswith(b"HTTP/1.1 408 ")

    def test_a_silent_connection_is_closed_without_a_word(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        proxy.advance(10.1)
        assert not client.open
        assert client.received == b""

    def test_an_idle_connection_has_ten_minutes(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        for _ in range(59):
            proxy.advance(10)
        assert client.open
        proxy.advance(10.1)
        assert not client.open

    def test_a_second_head_has_ten_seconds_as_well(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        client.take()
        proxy.advance(300)
        client.send(b"GET /")
        proxy.advance(10.1)
        assert client.received.startswith(b"HTTP/1.1 408 ")

    def test_the_request_deadline_answers_504(self) -> None:
        proxy = MemoryProxy(TIMEOUT_ROUTE)
        client = proxy.connect()
        client.send(GET)
        proxy.advance(0.9)
        assert client.received == b""
        proxy.advance(0.2)
        assert client.received.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
        assert client.received.endswith(b"\r\n\r\nrequest timeout")
        assert not proxy.upstream.open
        assert client.open

    def test_a_stream_cut_by_the_deadline_is_reset(self) -> None:
        proxy = MemoryProxy(TIMEOUT_ROUTE)
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        proxy.advance(1.1)
        assert client.aborted
        assert "reason=RequestDeadline" in proxy.log_lines()[-1]

    def test_a_body_that_stands_still_is_given_up(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        for _ in range(3):
            proxy.advance(590)
            client.send(b"x")
        assert client.received == b""
        for _ in range(3):
            proxy.advance(601)
        assert client.received.startswith(b"HTTP/1.1 408 ")
        assert not proxy.upstream.open

    def test_a_body_that_pauses_is_not_given_up_for_the_deadline_of_a_try(self) -> None:
        """Looks come at deadlines of tries as well; only an idle timeout without a byte is too long."""
        policies = "      policies: {retry: {attempts: 9}, timeouts: {backendRequest: 3s}}\n      backends:"
        proxy = MemoryProxy(ROUTES.replace("      backends:", policies))
        client = proxy.connect()
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        proxy.advance(3.05)
        proxy.advance(0.1)  # the second try begins, and with it a look at its end
        proxy.upstream.lose(ConnectionResetError())
        proxy.advance(1)
        proxy.advance(2.1)  # where the second would have ended, within the third
        assert client.received == b""
        client.send(b"whole now")
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_deadlines_of_many_requests_on_one_connection(self) -> None:
        proxy = MemoryProxy(TIMEOUT_ROUTE)
        client = proxy.connect()
        for _ in range(50):
            client.send(GET)
            proxy.advance(0.5)
            proxy.upstream.answer(OK)
        assert client.received == OK * 50
        client.take()
        client.send(GET)
        proxy.advance(1.1)
        assert client.received.startswith(b"HTTP/1.1 504 ")


class TestClientsThatSendNoMore:
    def test_a_client_that_half_closed_and_gets_nothing_is_taken_for_gone(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.half_close()
        proxy.advance(29)
        assert proxy.upstream.open
        proxy.advance(2)
        assert not proxy.upstream.open
        assert client.aborted
        assert "http.status=499" in (line := proxy.log_lines()[0])
        assert "reason=ClientGone" in line

    def test_a_client_whose_connection_is_closing_already_is_given_up_once(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.half_close()
        client.open = False  # as a transport that closes and has not said so yet: `abort` says nothing more
        proxy.advance(31)
        assert not proxy.upstream.open
        client.lose()
        assert (len(proxy.log_lines()), proxy.context.recorder.active) == (1, 0)

    def test_a_client_that_half_closed_gets_what_comes_slowly(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.half_close()
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
        for _ in range(5):
            proxy.advance(25)
            proxy.upstream.answer(b"x")
        assert client.received.endswith(b"\r\n\r\nxxxxx")
        proxy.advance(31)
        proxy.advance(31)
        assert client.aborted and not proxy.upstream.open

    def test_a_client_that_half_closed_and_reads_slowly_is_not_gone(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.half_close()
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        client.protocol.pause_writing()
        for _ in range(5):
            proxy.advance(31)
        client.protocol.resume_writing()
        proxy.upstream.answer(b"cd")
        assert client.received.endswith(b"\r\n\r\nabcd") and not client.aborted

    @pytest.mark.parametrize("kind", sorted(lasting.STREAMS))
    def test_a_stream_ends_with_the_sending_side_of_its_client(self, kind: bytes) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(STREAM % kind + b"3\r\n: a\r\n")
        client.half_close()
        assert not proxy.upstream.open
        assert client.received.endswith(b"3\r\n: a\r\n"), "what has come is given"
        assert "reason=ClientGone" in proxy.log_lines()[0] and proxy.context.recorder.active == 0

    @pytest.mark.parametrize("accept", [b"text/event-stream", b"application/json, Text/Event-Stream;q=0.5"])
    def test_who_asks_for_a_stream_leaves_before_it_begins(self, accept: bytes) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET[:-2] + b"Accept: %b\r\n\r\n" % accept)
        client.half_close()
        assert not proxy.upstream.open and "reason=ClientGone" in proxy.log_lines()[0]

    @pytest.mark.parametrize("version", [b"1.0", b"1.1"])
    def test_a_stream_that_begins_for_a_client_that_sends_no_more_ends(self, version: bytes) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET.replace(b"1.1", version))
        client.half_close()
        assert proxy.upstream.open
        proxy.upstream.answer(STREAM % b"text/event-stream" + b"3\r\n: a\r\n")
        proxy.advance(0.1)
        assert not proxy.upstream.open and client.aborted
        assert "reason=ClientGone" in proxy.log_lines()[0] and proxy.context.recorder.active == 0

    def test_a_call_of_grpc_web_ends_with_its_client(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n"
        )
        client.send(bytes(5))
        client.half_close()
        assert "reason=ClientGone" in proxy.log_lines()[0]

    def test_a_response_that_is_no_stream_is_given_whole(self) -> None:
        """RFC 9112 9.6: a client that sends no more may read. A stream before on the connection changes nothing."""
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(STREAM % b"text/event-stream" + b"0\r\n\r\n")
        client.take()
        client.send(GET)
        proxy.upstream.answer(STREAM % b"application/json" + b"1\r\n{\r\n")
        client.half_close()
        proxy.advance(20)
        proxy.upstream.answer(b"1\r\n}\r\n0\r\n\r\n")
        assert client.received.endswith(b"1\r\n}\r\n0\r\n\r\n") and not client.aborted

    def test_a_stream_of_a_client_that_reads_nothing_ends_as_well(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(STREAM % b"text/event-stream" + b"3\r\n: a\r\n")
        client.protocol.pause_writing()
        client.half_close()
        assert client.aborted and not proxy.upstream.open


class TestPeersThatStandStill:
    def test_a_client_that_is_not_read_is_not_blamed(self) -> None:
        """There is no upstream connection that would take what it could send."""
        proxy = MemoryProxy()
        proxy.connector.hold = True
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(70_000))
        assert not client.reading
        for _ in range(3):
            proxy.advance(601)
        assert client.received == b""
        proxy.connector.release()
        client.send(bytes(30_000))
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_a_client_that_stops_reading(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        client.protocol.pause_writing()
        for _ in range(3):
            proxy.advance(601)
        assert client.aborted
        assert not proxy.upstream.open

    def test_a_client_that_reads_slowly_is_served(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        for _ in range(5):
            client.protocol.pause_writing()
            proxy.advance(590)
            client.protocol.resume_writing()
            proxy.upstream.answer(b"x")
        assert client.open

    def test_an_idle_connection_with_unread_bytes_is_cut(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.protocol.pause_writing()
        proxy.upstream.answer(OK)
        for _ in range(3):
            proxy.advance(601)
        assert client.aborted

    def test_an_upstream_that_takes_no_more(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        proxy.upstream.protocol.pause_writing()
        for _ in range(3):
            proxy.advance(601)
        assert client.received.startswith(b"HTTP/1.1 504 ")
        assert "reason=UpstreamTimeout" in proxy.log_lines()[0]

    def test_a_refused_client_has_its_whole_moment_to_read(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        proxy.advance(9.9)  # just before the connection is looked at for another reason
        client.send(b"nonsense\r\n\r\n")
        proxy.advance(0.2)
        assert client.open
        proxy.advance(1)
        assert not client.open


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeTransport], None]:
    """From now on a close waits until the client has read what was written to it, as that of a socket does."""
    return lambda client: monkeypatch.setattr(client, "close", lambda: None)


def test_a_client_that_does_not_read_its_last_answer_is_cut(later: Callable[[FakeTransport], None]) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    client.protocol.pause_writing()
    later(client)
    cut: list[bool] = []
    client.abort = lambda: cut.append(True)  # type: ignore[method-assign]
    proxy.upstream.answer(OK)
    client.send(GET)
    assert len(proxy.connector.upstreams) == 1 and proxy.upstream.received.count(b"GET /") == 1
    proxy.advance(599)
    assert not cut
    proxy.advance(2)
    assert cut


LONG = f"frontendPolicies: {{http: {{http1IdleTimeout: 1h}}}}\n{ROUTES}"


def idle_for_long() -> tuple[MemoryProxy, FakeTransport]:
    """A client that was answered, and is not looked at again for most of an hour."""
    proxy = MemoryProxy(LONG)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(OK)
    proxy.advance(11)
    client.take()
    return proxy, client


def test_a_client_that_leaves_long_after_the_last_look_is_noticed_as_soon() -> None:
    proxy, client = idle_for_long()
    client.send(GET)
    client.half_close()
    proxy.advance(31)
    assert client.aborted and not proxy.upstream.open


def test_what_is_not_read_long_after_the_last_look_is_cut_as_soon(later: Callable[[FakeTransport], None]) -> None:
    proxy, client = idle_for_long()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    client.protocol.pause_writing()
    later(client)
    proxy.upstream.answer(OK)
    cut: list[bool] = []
    client.abort = lambda: cut.append(True)  # type: ignore[method-assign]
    proxy.advance(599)
    assert not cut
    proxy.advance(2)
    assert cut


def test_a_refused_client_has_its_moment_long_after_the_last_look() -> None:
    proxy, client = idle_for_long()
    client.send(b"nonsense\r\n\r\n")
    proxy.advance(0.9)
    assert client.open and client.received.startswith(b"HTTP/1.1 400 ")
    proxy.advance(0.2)
    assert client.aborted


def test_a_head_that_begins_long_after_the_last_look_has_ten_seconds() -> None:
    proxy, client = idle_for_long()
    client.send(b"GET /")
    proxy.advance(9.9)
    assert client.open
    proxy.advance(0.2)
    assert client.received.startswith(b"HTTP/1.1 408 ")
