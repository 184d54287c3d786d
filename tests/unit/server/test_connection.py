"""The downstream connection in memory: bytes from a client in, bytes to client and upstream out."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.filters.registry import ROWS
from dataplane.http.body import TooLarge
from dataplane.http.h1.chunked import ChunkedReader
from dataplane.net.crowd import BUSY
from dataplane.net.turns import Turns
from dataplane.proxy.context import Limits
from dataplane.upstream.endpoint import Endpoint
from tests.fakes.memory_proxy import ROUTES, MemoryProxy, Pending

GET = b"GET /a?b=1 HTTP/1.1\r\nHost: Example.COM:8080\r\nX-Kept: 1\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"

HEADER_ROUTE = ROUTES.replace(
    "      backends:",
    "      policies: {headerModifiers: {request: {set: [{name: x-gw, value: '1'}]},"
    " response: {set: [{name: x-out, value: '2'}]}}}\n      backends:",
)


def headers(message: bytes) -> dict[str, str]:
    lines = message.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_a_request_goes_up_with_forwarding_headers_and_its_answer_comes_down() -> None:
    proxy = MemoryProxy()
    client = proxy.connect(("::ffff:198.51.100.9", 1))
    client.send(GET)
    sent = proxy.upstream.received
    assert sent.startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: Example.COM:8080\r\nX-Kept: 1\r\n")
    seen = headers(sent)
    assert seen["x-forwarded-for"] == "198.51.100.9"
    assert seen["x-forwarded-proto"] == "http"
    assert seen["x-forwarded-host"] == "example.com:8080"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", seen["x-request-id"])
    proxy.upstream.answer(OK)
    assert client.received == OK
    assert client.open


def test_nothing_a_client_says_about_itself_is_trusted() -> None:
    proxy = MemoryProxy()
    proxy.connect().send(
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nx_forwarded_for: 10.0.0.2\r\n"
        b"X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX_Forwarded_Host: evil\r\nX-Request-Id: mine\r\n\r\n"
    )
    sent = proxy.upstream.received.lower()
    seen = headers(sent)
    assert seen["x-forwarded-for"] == "10.0.0.1, 192.0.2.7"
    assert seen["x-forwarded-proto"] == "http"
    assert seen["x-forwarded-host"] == "a"
    assert seen["x-request-id"] == "mine"
    assert b"evil" not in sent
    assert b"10.0.0.2" not in sent


def test_what_an_origin_may_take_for_framing_ends_here() -> None:
    proxy = MemoryProxy()
    proxy.connect().send(
        b"GET / HTTP/1.1\r\nHost: a\r\nContent_Length: 9\r\nTRANSFER_encoding: chunked\r\nX_Y: 1\r\n\r\n"
    )
    sent = proxy.upstream.received.lower()
    assert b"content_length" not in sent and b"transfer_encoding" not in sent and b"x_y" not in sent


def test_hop_by_hop_headers_end_here() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Hop, content-length, host\r\n"
        b"X-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
        b"Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n"
    )
    assert set(headers(proxy.upstream.received)) == {
        "host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-request-id",
    }  # fmt: skip
    proxy.upstream.answer(
        b"HTTP/1.1 200 OK\r\nConnection: X-Up\r\nX-Up: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n"
    )
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def test_a_second_request_with_other_headers_is_read_anew() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    for value in (b"one", b"two", b"two"):
        client.send(b"GET /%b HTTP/1.1\r\nHost: a\r\nX-Value: %b\r\n\r\n" % (value, value))
        sent = proxy.upstream.take()
        assert sent.startswith(b"GET /%b HTTP/1.1\r\nHost: a\r\nX-Value: %b\r\n" % (value, value))
        proxy.upstream.answer(OK)
    assert client.received == OK * 3
    assert len(proxy.connector.upstreams) == 1


def test_every_request_without_an_id_gets_its_own() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    ids = set()
    for _ in range(3):
        client.send(GET)
        ids.add(headers(proxy.upstream.take())["x-request-id"])
        proxy.upstream.answer(OK)
    assert len(ids) == 3


def test_pipelined_requests_are_answered_in_order() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in (1, 2, 3)))
    for number in (b"1", b"2", b"3"):
        assert proxy.upstream.take().startswith(b"GET /%b " % number)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + number)
    assert [body[:1] for body in client.received.split(b"\r\n\r\n")[1:]] == [b"1", b"2", b"3"]


def test_a_thousand_pipelined_refusals_do_not_recurse() -> None:
    proxy = MemoryProxy(ROUTES.replace("    - name: all", "    - name: all\n      hostnames: [only.test]"))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: other\r\n\r\n" * 1000)
    assert client.received.count(b"HTTP/1.1 404 Not Found") == 1000
    assert client.open


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_request_in_pieces_is_the_same_request(size: int) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    message = (
        b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nWiki\r\n5;x=1\r\npedia\r\n0\r\nX-T: 1\r\n\r\n"
    )
    for at in range(0, len(message), size):
        client.send(message[at : at + size])
    body = proxy.upstream.received.partition(b"\r\n\r\n")[2]
    assert body.endswith(b"\r\n0\r\nX-T: 1\r\n\r\n")
    assert b";" not in body
    assert ChunkedReader(decode=True).feed(body) == (b"Wikipedia", len(body))
    proxy.upstream.answer(OK)
    assert client.received == OK


def test_a_body_with_length_streams() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    assert proxy.upstream.take().endswith(b"\r\n\r\n12345")
    client.send(b"67890GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.upstream.take() == b"67890"
    proxy.upstream.answer(OK)
    assert proxy.upstream.take().startswith(b"GET /next ")


def test_a_body_that_comes_before_the_upstream_is_buffered_within_bounds() -> None:
    proxy = MemoryProxy()
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
    client.send(b"x" * 60_000)
    assert client.reading
    client.send(b"x" * 10_000)
    assert not client.reading
    proxy.connector.release()
    assert client.reading
    assert proxy.upstream.take().endswith(b"\r\n\r\n" + b"x" * 70_000)


def test_expect_continue_is_answered_when_there_is_an_upstream() -> None:
    proxy = MemoryProxy()
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert client.received == b""
    proxy.connector.release()
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert "expect" not in headers(proxy.upstream.received)
    client.send(b"ab")
    proxy.upstream.answer(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
    assert client.received == OK


def test_head_has_no_body_whatever_it_says() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
    assert client.take() == b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.received == OK
    assert len(proxy.connector.upstreams) == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"HEAD / HTTP/1.1\r\n\r\n",
        b"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"\r\nHEAD /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HEAD / HTTP/1.1\nHost: a\r\n",
        b"HEAD /" + b"a" * 70_000,
    ],
)
def test_a_refused_head_request_gets_no_body(sent: bytes) -> None:
    client = MemoryProxy().connect()
    client.send(sent)
    head, _, body = client.received.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 414 ")) and b"connection: close" in head.lower()
    assert body == b""


def test_absolute_form_is_forwarded_as_origin_form() -> None:
    proxy = MemoryProxy()
    proxy.connect().send(b"GET http://Example.com/x?y HTTP/1.1\r\nHost: example.com\r\n\r\n")
    assert proxy.upstream.received.startswith(b"GET /x?y HTTP/1.1\r\nHost: example.com\r\n")


@pytest.mark.parametrize(
    ("sent", "forwarded"),
    [
        (b"/a/./b/../c", b"/a/c"),
        (b"/a/%2e%2E/c", b"/c"),
        (b"/%61%2fb//c", b"/a%2Fb//c"),
        (b"/../../etc", b"/etc"),
        (b"/.well-known/x", b"/.well-known/x"),
        (b"/model/ID%3A0/invoke", b"/model/ID%3A0/invoke"),
        (b"/a?x=%2e%2e/..", b"/a?x=%2e%2e/.."),
    ],
)
def test_paths_go_up_as_they_were_matched(sent: bytes, forwarded: bytes) -> None:
    proxy = MemoryProxy()
    proxy.connect().send(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % sent)
    assert proxy.upstream.received.startswith(b"GET %b HTTP/1.1\r\n" % forwarded)


class TestResponses:
    def test_chunks_pass_untouched(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        proxy.upstream.answer(head)
        proxy.upstream.answer(b"5\r\nhello\r\n")
        proxy.upstream.answer(b"0\r\n\r\n")
        assert client.received == head + b"5\r\nhello\r\n0\r\n\r\n"
        client.send(GET)
        assert len(proxy.connector.upstreams) == 1

    def test_a_body_until_close_is_chunked_for_a_client_that_can(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nX: 1\r\n\r\nabc")
        proxy.upstream.answer(b"def")
        proxy.upstream.lose()
        assert client.received == (
            b"HTTP/1.1 200 OK\r\nX: 1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
        )
        assert client.open

    def test_an_old_client_gets_content_and_the_end_by_close(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n")
        assert client.received == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc"
        assert not client.open

    def test_an_old_client_may_keep_its_connection(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        proxy.upstream.answer(OK)
        assert b"connection: keep-alive\r\n" in client.received
        assert client.open

    def test_a_cut_response_cuts_the_client(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        proxy.upstream.lose()
        assert client.aborted

    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
            b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
            b"HTTP/2 200 OK\r\n\r\n",
            b"ICY 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            b"HTTP/1.1 103 Early\r\n\r\n" * 40,
            b"x" * 70_000,
        ],
    )
    def test_what_is_no_response_is_answered_with_502(self, answer: bytes) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(answer)
        final = client.received[client.received.rindex(b"HTTP/1.1 ") :]
        assert final.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert client.open
        assert not proxy.upstream.open

    def test_bytes_behind_a_response_never_reach_the_next_client(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        assert client.received == OK
        assert not proxy.upstream.open
        client.send(GET)
        assert len(proxy.connector.upstreams) == 2

    def test_an_idle_connection_that_speaks_is_dropped(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        assert not proxy.upstream.open
        client.send(GET)
        assert len(proxy.connector.upstreams) == 2
        assert b"evil" not in client.received

    def test_an_answer_before_the_whole_request_ends_the_connection(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc")
        proxy.upstream.answer(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        assert b"connection: close\r\n" in client.received
        assert client.eof
        assert not proxy.upstream.open
        client.send(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        proxy.advance(2)
        assert not client.open
        assert len(proxy.connector.upstreams) == 1


class TestStaleConnections:
    def kept(self) -> tuple[MemoryProxy, object]:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        client.take()
        return proxy, client

    def test_a_request_on_a_connection_that_was_closed_goes_out_again(self) -> None:
        proxy, client = self.kept()
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        first = proxy.upstream
        first.lose(ConnectionResetError())
        assert len(proxy.connector.upstreams) == 2
        assert proxy.upstream.received.endswith(b"\r\n\r\nabc")
        proxy.upstream.answer(OK)
        assert client.received == OK
        assert "retry.attempt=1" in proxy.log_lines()[-1]

    def test_a_post_does_not(self) -> None:
        proxy, client = self.kept()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        proxy.upstream.lose()
        assert client.received.startswith(b"HTTP/1.1 502 ")

    def test_a_fresh_connection_that_is_closed_is_the_endpoints_answer(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.lose()
        assert client.received.startswith(b"HTTP/1.1 502 ")
        assert len(proxy.connector.upstreams) == 1

    def test_a_response_that_began_is_not_asked_for_again(self) -> None:
        proxy, client = self.kept()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 2")
        proxy.upstream.lose()
        assert client.received.startswith(b"HTTP/1.1 502 ")

    def test_an_endpoint_that_sent_an_informational_response_has_seen_the_request(self) -> None:
        proxy, client = self.kept()
        client.send(GET)
        proxy.upstream.answer(EARLY)
        proxy.upstream.lose()
        assert client.received.startswith(EARLY + b"HTTP/1.1 502 ")
        assert len(proxy.connector.upstreams) == 1

    def test_informational_responses_to_earlier_requests_do_not_count(self) -> None:
        proxy, client = self.kept()
        for _ in range(3):
            client.send(GET)
            proxy.upstream.answer(EARLY * 10 + OK)
            assert client.take() == EARLY * 10 + OK
        client.send(GET)
        proxy.upstream.lose()
        proxy.upstream.answer(OK)
        assert client.take() == OK
        assert len(proxy.connector.upstreams) == 2


class TestEnds:
    @pytest.mark.parametrize("end", ["close", "abort", "lose"])
    def test_a_connection_that_ended_is_not_kept(self, end: str) -> None:
        """A worker that drains waits for those that are."""
        proxy = MemoryProxy()
        client, other = proxy.connect(), proxy.connect()
        getattr(client, end)()
        assert list(proxy.context.connections) == [other.protocol]

    def test_a_client_that_half_closes_still_gets_its_answers(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.half_close()
        proxy.upstream.answer(OK)
        proxy.upstream.answer(OK)
        assert client.received == OK * 2
        assert not client.open

    def test_a_client_that_goes_away_ends_the_upstream_request(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.lose(ConnectionResetError())
        assert not proxy.upstream.open
        assert "http.status=499" in (line := proxy.log_lines()[0])
        assert "reason=ClientGone" in line

    def test_draining_says_close(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.context.draining = True
        proxy.upstream.answer(OK)
        assert b"connection: close\r\n" in client.received
        assert not client.open

    def test_connection_close_is_answered_in_kind(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        proxy.upstream.answer(OK)
        assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nok"
        assert not client.open

    def test_an_endpoint_that_refuses_is_503(self) -> None:
        proxy = MemoryProxy()
        proxy.connector.refuse = "connect to 127.0.0.1:9000 failed: Connection refused"
        client = proxy.connect()
        client.send(GET)
        assert client.received.startswith(b"HTTP/1.1 503 ")
        assert b"127.0.0.1" not in client.received
        line = proxy.log_lines()[0]
        assert 'error="connect to 127.0.0.1:9000 failed: Connection refused" reason=ConnectFailed' in line

    def test_the_line_of_a_name_that_fails_has_the_name(self) -> None:
        class Names:
            found: tuple[Endpoint, ...] = ()

            def endpoints(self, host: bytes, port: int, ready: object) -> tuple[Endpoint, ...]:
                return self.found

        proxy = MemoryProxy(ROUTES.replace("127.0.0.1:9000", "origin.test:9000"))
        proxy.context.resolver = names = Names()  # type: ignore[assignment]
        client = proxy.connect()
        client.send(GET)
        names.found = (Endpoint("192.0.2.1", 9000),)
        proxy.connector.refuse = "connect to 192.0.2.1:9000 failed: Connection refused"
        client.send(GET)
        unresolved, refused = proxy.log_lines()
        assert 'error="origin.test:9000 cannot be resolved" reason=DnsFailed' in unresolved
        assert " endpoint=192.0.2.1:9000 " in refused
        assert 'error="origin.test:9000: connect to 192.0.2.1:9000 failed: Connection refused"' in refused

    def test_requests_in_flight_are_counted_down_whatever_happens(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        assert not proxy.context.recorder.publish()
        client.send(GET)
        assert proxy.context.recorder.publish() and proxy.context.recorder.publish()
        assert proxy.metrics.slots[proxy.metrics.counter("requests_active")] == 1
        proxy.upstream.answer(OK)
        assert [proxy.context.recorder.publish() for _ in range(2)] == [True, False]
        client.send(GET)
        proxy.upstream.lose()  # stale: the request goes out again
        proxy.upstream.lose()
        client.send(b"nonsense\r\n\r\n")
        lost = proxy.connect()
        lost.send(GET)
        lost.lose()
        assert [proxy.context.recorder.publish() for _ in range(2)] == [True, False]
        assert proxy.metrics.slots[proxy.metrics.counter("requests_active")] == 0
        plan = next(iter(proxy.applier.current.table.backends.values()))
        assert [endpoint.pending for endpoint in plan.endpoints] == [0]


def waiting_rows(build: object) -> tuple[Row, ...]:
    """The product's rows, with a step of the test's own in place of header modifiers."""
    return tuple(Row("header_modifiers", build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)  # type: ignore[arg-type]


class TestTheGeneralPath:
    def proxy(self, filter_: Filter, limits: Limits | None = None) -> MemoryProxy:
        return MemoryProxy(HEADER_ROUTE, waiting_rows(lambda config, env: filter_), limits)

    def test_a_step_that_waits_holds_the_request_and_then_lets_it_go(self) -> None:
        pending = Pending()

        async def wait() -> None:
            await pending

        proxy = self.proxy(Filter("test", request=lambda x: wait()))
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
        client.send(b"cd")
        assert not proxy.connector.upstreams
        pending.set_result(None)
        assert proxy.upstream.received.endswith(b"\r\n\r\nabcd")
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_a_step_that_waits_may_refuse(self) -> None:
        async def refuse() -> Reply:
            return Reply(403, "Test", b"no")

        proxy = self.proxy(Filter("test", request=lambda x: refuse()))
        client = proxy.connect()
        client.send(GET)
        assert client.received.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert not proxy.connector.upstreams
        assert client.open

    def test_a_step_reads_the_whole_body_and_it_still_goes_up(self) -> None:
        seen = []

        async def read(x: object) -> Reply | None:
            try:
                seen.append(await x.buffer.whole(100_000))  # type: ignore[attr-defined]
            except TooLarge:
                return Reply(413, "BodyTooLarge", close=True)
            return None

        proxy = self.proxy(Filter("test", request=read))
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n")
        for _ in range(3):
            client.send(b"x" * 30_000)
            assert client.reading
        assert seen == [b"x" * 90_000]
        assert proxy.upstream.received.endswith(b"\r\n\r\n" + b"x" * 90_000)

        large = proxy.connect()
        large.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 150_000)
        assert large.received.startswith(b"HTTP/1.1 413 ")

    def test_a_step_reads_the_content_of_chunks_and_they_still_go_up(self) -> None:
        seen = []

        async def read(x: object) -> None:
            seen.append(await x.buffer.whole(100))  # type: ignore[attr-defined]

        proxy = self.proxy(Filter("test", request=read))
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWi")
        client.send(b"ki\r\n5\r\npedia\r\n0\r\nX-T: 1\r\n\r\n")
        assert seen == [b"Wikipedia"]
        assert proxy.upstream.received.endswith(b"\r\n\r\n9\r\nWikipedia\r\n0\r\nX-T: 1\r\n\r\n")

    def test_a_client_that_leaves_meanwhile_leaves_nothing_behind(self) -> None:
        pending = Pending()

        async def wait() -> None:
            await pending

        proxy = self.proxy(Filter("test", request=lambda x: wait()))
        client = proxy.connect()
        client.send(GET)
        client.lose()
        pending.set_result(None)
        assert not proxy.connector.upstreams

    def test_a_bug_in_a_step_is_a_500_and_a_line(self, caplog: pytest.LogCaptureFixture) -> None:
        async def fail() -> None:
            raise RuntimeError("bug")

        proxy = self.proxy(Filter("test", request=lambda x: fail()))
        client = proxy.connect()
        client.send(GET)
        assert client.received.startswith(b"HTTP/1.1 500 ")
        assert b"bug" not in client.received
        assert "internal error" in caplog.text

    @pytest.mark.parametrize("side", ["request", "response"])
    def test_a_bug_in_a_step_that_does_not_wait_is_a_500_as_well(
        self, side: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(x: object) -> None:
            raise RuntimeError("bug")

        proxy = self.proxy(Filter("test", **{side: fail}))  # type: ignore[arg-type]
        client = proxy.connect()
        client.send(GET)
        if side == "response":
            proxy.upstream.answer(OK)
        assert client.received.startswith(b"HTTP/1.1 500 ")
        assert b"bug" not in client.received
        assert "RuntimeError: bug" in caplog.text

    def test_a_response_step_that_waits_holds_the_body(self) -> None:
        pending = Pending()

        async def wait(x: object) -> None:
            await pending
            x.response.set(b"x-late", b"1")  # type: ignore[attr-defined]

        proxy = self.proxy(Filter("test", response=wait))
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        proxy.upstream.answer(b"cd")
        assert client.received == b""
        pending.set_result(None)
        assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nx-late: 1\r\n\r\nabcd"
        client.send(GET)
        assert len(proxy.connector.upstreams) == 1


def test_policies_of_a_route_act_both_ways_and_on_our_own_answers() -> None:
    proxy = MemoryProxy(HEADER_ROUTE)
    client = proxy.connect()
    client.send(GET)
    assert headers(proxy.upstream.received)["x-gw"] == "1"
    proxy.upstream.answer(OK)
    assert headers(client.take())["x-out"] == "2"
    proxy.connector.refuse = "down"
    proxy.upstream.lose()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 503 ")
    assert headers(client.received)["x-out"] == "2"


def test_one_line_per_request() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b'GET /a?q="x" HTTP/1.1\r\nHost: a.test\r\n\r\n')
    proxy.now += 0.25
    proxy.upstream.answer(OK)
    (line,) = proxy.log_lines()
    stamp, level, scope, fields = line.split("\t")
    assert (level, scope) == ("info", "request")
    assert fields == (
        "gateway=default/standalone listener=http route=default/all route_rule=0 endpoint=127.0.0.1:9000"
        ' src.addr=192.0.2.7 http.method=GET http.host=a.test http.path="/a?q=\\"x\\"" http.version=HTTP/1.1'
        " http.status=200 protocol=http request.bytes=0 response.bytes=2 duration=250.000ms"
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)


def test_a_connection_may_change_from_http_1_0_to_1_1() -> None:
    """Each answer is framed for the request that it is to."""
    proxy = MemoryProxy()
    client = proxy.connect()
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    proxy.upstream.answer(OK)
    assert b"\r\nconnection: keep-alive\r\n" in client.take().lower()
    for line in (b"GET / HTTP/1.1", b"GET /%41 HTTP/1.1"):
        client.send(line + b"\r\nHost: a\r\n\r\n")
        proxy.upstream.answer(chunked)
        assert client.take() == chunked and client.open
    client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    proxy.upstream.answer(chunked)
    assert client.take().endswith(b"\r\nconnection: close\r\n\r\nok") and not client.open


@pytest.mark.parametrize(("more", "reads"), [(0, True), (1, False)])
def test_requests_that_wait_are_taken_as_far_as_the_buffer_goes(more: int, reads: bool) -> None:
    """The client is read no more when they are longer, and again as soon as they are not."""
    proxy = MemoryProxy(limits=Limits(content_buffer=200))
    client = proxy.connect()
    client.send(GET)
    rest = b"GET /next HTTP/1.1\r\nHost: a\r\nX-Long: ".ljust(196 + more, b"a") + b"\r\n\r\n"
    client.send(rest)
    assert client.reading is reads
    client.send(b"" if not reads else b"G")
    assert not client.reading
    proxy.upstream.answer(OK)
    assert client.reading and proxy.upstream.received.count(b"GET /next ") == 1


@pytest.mark.parametrize(("more", "reads"), [(0, True), (1, False)])
def test_what_is_left_of_them_is_compared_with_the_buffer_again(more: int, reads: bool) -> None:
    proxy = MemoryProxy(limits=Limits(content_buffer=200))
    client = proxy.connect()
    client.send(GET + GET)
    client.send(b"GET /last HTTP/1.1\r\nHost: a\r\nX-Long: ".ljust(196 + more, b"a") + b"\r\n\r\n")
    assert not client.reading
    proxy.upstream.answer(OK)
    assert client.reading is reads
    proxy.upstream.answer(OK)
    assert client.reading


def test_the_log_counts_content_that_passes_in_chunks() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
    proxy.upstream.answer(b"3\r\nyou\r\n")
    proxy.upstream.answer(b"0\r\n\r\n")
    assert client.received.endswith(b"5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n")
    (line,) = proxy.log_lines()
    assert " response.bytes=8 " in line or " bytes=8 " in line, line


def test_who_waits_for_a_turn_is_busy_and_who_has_had_its_answer_is_idle() -> None:
    proxy = MemoryProxy(ROUTES.replace("    - name: all", "    - name: all\n      hostnames: [only.test]"))
    due: list[Callable[[], None]] = []
    proxy.context.writes.turns = Turns(due.append, lambda: 0.0)
    client = proxy.connect()
    assert client.protocol.idle_from == proxy.now
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    assert client.received.count(b"404 Not") < 100 and client.protocol.idle_from == BUSY
    while due:
        due.pop(0)()
    assert client.received.count(b"404 Not") == 100 and client.protocol.idle_from == proxy.now
    client.send(b"POST / HTTP/1.1\r\nHost: only.test\r\nContent-Length: 9\r\n\r\n")
    assert client.protocol.idle_from == BUSY


def test_who_makes_room_and_does_not_read_is_cut() -> None:
    proxy = MemoryProxy()
    reads, does_not = proxy.connect(), proxy.connect()
    does_not.protocol.pause_writing()
    for client in (reads, does_not):
        client.protocol.close_idle()
    assert not reads.open and not reads.aborted and does_not.aborted


@pytest.mark.parametrize(
    ("line", "version"),
    [(b"GET / HTTP/1.1", "HTTP/1.1"), (b"GET /%41 HTTP/1.1", "HTTP/1.1"), (b"GET / HTTP/1.0", "HTTP/1.0")],
)
def test_the_log_has_the_version_that_the_client_spoke(line: bytes, version: str) -> None:
    proxy = MemoryProxy()
    proxy.connect().send(line + b"\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(OK)
    assert f" http.version={version} " in proxy.log_lines()[0]
