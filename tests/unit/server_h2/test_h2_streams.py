"""Streams: bodies and windows, trailers, interim responses, and how each side ends."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.filters.registry import ROWS
from dataplane.http.h2.errors import CANCEL, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR
from dataplane.http.h2.frames import RST_STREAM, SETTING, SETTINGS, WINDOW_UPDATE
from dataplane.link import pools
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, OPENING, POST, data, frame, headers
from tests.fakes.memory_proxy import ROUTES, FakeUpstream, Http1Endpoints
from tests.fakes.policy_run import served

HEAD = ((b":method", b"HEAD"), *GET[1:])
TWO = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
STEP_ROUTE = served("policies: {headerModifiers: {response: {set: [{name: x-a, value: '1'}]}}}")
BODY_ROUTE = served("policies: {transformation: {request: {set: [{name: x-size, value: 'size(request.body)'}]}}}")


def window(stream: int, size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4))


def initial_window(size: int) -> bytes:
    return frame(SETTINGS, 0, 0, SETTING.pack(4, size)) + OPENING[9:]


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(RST_STREAM, 0, stream, code.to_bytes(4))


def content_of(upstream: FakeUpstream) -> bytes:
    return upstream.take().partition(b"\r\n\r\n")[2]


class TestAnswers:
    def test_head_and_content_leave_in_one_piece(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.upstream.answer(TWO + b"ok")
        head, content = client.take()
        assert (head, content) == (Said("head", 1, 200), Said("data", 1, b"ok", end=True))
        assert head.headers == {b"content-length": b"2"}

    def test_without_content_the_head_ends_the_stream(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, HEAD), headers(3, GET), headers(5, GET))
        answers = (TWO, b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")
        for upstream, answer in zip(proxy.connector.upstreams, answers, strict=True):
            upstream.answer(answer)
        said = client.take()
        assert said == [Said("head", 1, 200, True), Said("head", 3, 204, True), Said("head", 5, 304, True)]
        assert said[0].headers == {b"content-length": b"2"}

    def test_trailers_end_the_stream(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.upstream.answer(ENDLESS + b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")
        *others, trailers = client.take()
        assert others == [Said("head", 1, 200), Said("data", 1, b"ok")]
        assert trailers == Said("head", 1, 0, end=True) and trailers.headers == {b"x-sum": b"1"}

    def test_interim_responses_pass(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + TWO + b"ok")
        early, head, _ = client.take()
        assert (early, early.headers) == (Said("head", 1, 103), {b"link": b"</a>"}) and head.value == 200

    def test_headers_of_one_connection_end_here(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        lines = (
            b"Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nX-End: 2\r\nContent-Length: 0"
        )
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % lines)
        assert client.take()[0].headers == {b"x-end": b"2", b"content-length": b"0"}

    @pytest.mark.parametrize("status", [299, 500, 599])
    def test_any_status_passes(self, status: int) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 %d Odd\r\nContent-Length: 0\r\n\r\n" % status)
        assert client.take()[0] == Said("head", 1, status, end=True)

    def test_own_answers_have_their_text(self) -> None:
        proxy = Http1Endpoints()
        proxy.connector.refuse = "refused"
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        assert client.take() == [Said("head", 1, 503), Said("data", 1, b"upstream connection failed", end=True)]

    def test_streams_are_answered_in_any_order(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET), headers(5, GET))
        for upstream in reversed(proxy.connector.upstreams):
            upstream.answer(TWO + b"ok")
        assert [said.stream for said in client.take() if said.kind == "head"] == [5, 3, 1]


class TestRequestContent:
    def test_what_came_with_the_head_leaves_with_it(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False), data(1, b"one"), data(1, b"two", end=True))
        assert len(proxy.upstream.writes) == 1
        assert content_of(proxy.upstream) == b"6\r\nonetwo\r\n0\r\n\r\n"

    def test_a_length_passes_and_frames_what_follows(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, (*POST, (b"content-length", b"6")), end=False))
        client.send(data(1, b"one"))
        client.send(data(1, b"two"), data(1, end=True))
        assert proxy.upstream.received.endswith(b"\r\n\r\nonetwo")
        assert b"\r\ncontent-length: 6\r\n" in proxy.upstream.received

    def test_a_length_of_zero_is_a_request_without_content(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, (*POST, (b"content-length", b"0")), end=False))
        proxy.upstream.answer(TWO + b"ok")
        assert client.take()[-1] == Said("reset", 1, NO_ERROR)
        client.send(headers(3, (*POST, (b"content-length", b"0")), end=False), data(3, end=True))
        proxy.upstream.answer(TWO + b"ok")
        assert client.take()[-1] == Said("data", 3, b"ok", end=True)

    def test_trailers_pass(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False), data(1, b"a"), headers(1, [(b"x-sum", b"1"), (b"host", b"b")]))
        assert content_of(proxy.upstream) == b"1\r\na\r\n0\r\nx-sum: 1\r\n\r\n"

    def test_a_client_that_waits_for_a_100_gets_it(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, (*POST, (b"expect", b"100-Continue")), end=False))
        assert client.take() == [Said("head", 1, 100)]
        client.send(data(1, b"a", end=True))
        assert b"expect" not in proxy.upstream.received
        proxy.upstream.answer(TWO + b"ok")
        assert client.take()[0] == Said("head", 1, 200)

    def test_windows_open_as_the_endpoint_takes_content(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        proxy.upstream.protocol.pause_writing()
        for _ in range(4):
            client.send(data(1, bytes(16_000)))
        client.frames()
        assert 1 not in client.windows  # 1,536 bytes are left of it
        proxy.upstream.protocol.resume_writing()
        client.frames()
        assert client.windows[1] == 64_000

    def test_windows_stay_open_for_a_step_that_waits_for_the_content(self) -> None:
        proxy = Http1Endpoints(BODY_ROUTE)
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        for _ in range(10):
            client.send(data(1, bytes(16_000)))
        assert not proxy.connector.upstreams
        client.send(data(1, end=True))
        assert b"\r\nx-size: 160000\r\n" in proxy.upstream.received

    def test_a_stream_that_nobody_reads_leaves_the_others_their_windows(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        proxy.upstream.protocol.pause_writing()
        for _ in range(4):
            client.send(data(1, bytes(16_000)))
        client.send(headers(3, POST, end=False))
        for _ in range(40):
            client.send(data(3, bytes(16_000)))
        client.frames()
        assert client.windows[3] >= 40 * 16_000 - 32_768

    def test_more_than_a_window_ends_the_stream(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        proxy.upstream.protocol.pause_writing()
        for _ in range(5):
            client.send(data(1, bytes(16_000)))
        assert client.take() == [Said("reset", 1, 3)]  # FLOW_CONTROL_ERROR
        assert not proxy.upstream.open


class TestResponseWindows:
    def test_a_closed_window_stops_the_endpoint(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(4))
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n12345678")
        assert client.take() == [Said("head", 1, 200), Said("data", 1, b"1234")]
        assert not proxy.upstream.reading
        client.send(window(1, 4))
        assert client.take() == [Said("data", 1, b"5678")] and proxy.upstream.reading
        proxy.upstream.answer(b"last")
        assert client.take() == []
        client.send(window(1, 100))
        assert client.take() == [Said("data", 1, b"last", end=True)]

    def test_each_closed_window_stops_the_endpoint_and_each_opened_one_lets_it_go_on(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(1))
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nabc")
        for _ in range(3):
            assert not proxy.upstream.reading
            client.send(window(1, 3))
            assert proxy.upstream.reading
            proxy.upstream.answer(b"def")
        assert [said.value for said in client.take() if said.kind == "data"] == [
            b"a",
            b"bc",
            b"d",
            b"ef",
            b"d",
            b"ef",
            b"d",
        ]

    def test_trailers_wait_behind_content(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(1))
        client.send(headers(1, GET))
        proxy.upstream.answer(ENDLESS + b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")
        assert client.take()[1:] == [Said("data", 1, b"o")]
        client.send(window(1, 1))
        assert client.take() == [Said("data", 1, b"k"), Said("head", 1, 0, end=True)]

    def test_a_full_socket_stops_all_endpoints(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET))
        first, second = proxy.connector.upstreams
        first.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        client.transport.protocol.pause_writing()
        assert not first.reading
        second.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        assert not second.reading
        assert [said.kind for said in client.take()] == ["head", "head"]
        client.transport.protocol.resume_writing()
        assert client.take() == [Said("data", 3, b"abc")] and first.reading and second.reading

    def test_no_request_begins_while_the_client_does_not_read(self) -> None:
        """Heads of answers know no window: they would grow without end."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.transport.protocol.pause_writing()
        client.send(headers(1, GET), headers(3, GET))
        assert not proxy.connector.upstreams
        client.transport.protocol.resume_writing()
        assert len(proxy.connector.upstreams) == 2

    @pytest.mark.parametrize("is_whole", [False, True])
    @pytest.mark.parametrize(
        "ending", ["taken", "reset by the client", "connection lost", "broken off", "in time", "gone away"]
    )
    def test_what_waits_takes_room_until_it_has_left(self, ending: str, is_whole: bool) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(0))
        client.send(headers(1, GET))
        room = proxy.context.body_memory
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(1000 if is_whole else 900))
        assert (room.used, proxy.upstream.reading) == (1000 if is_whole else 900, is_whole)
        client.send(window(1, 50))
        assert room.used >= 850, "it is the most that waited since nothing did"
        if ending == "taken":
            client.send(window(1, 10_000))
            assert room.used == 0
            if not is_whole:
                proxy.upstream.answer(bytes(100))
        elif ending == "reset by the client":
            client.send(reset(1))
        elif ending == "connection lost":
            client.transport.lose()
        elif ending == "broken off" and not is_whole:
            proxy.upstream.lose()
        elif ending == "gone away":
            client.send(b"no frames at all, but for the first nine bytes of one")
        else:
            for _ in range(10):
                proxy.advance(600)
        assert room.used == 0 and not len(room.shares)

    @pytest.mark.parametrize("is_whole", [False, True])
    def test_who_has_many_that_wait_gets_no_more(self, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each of thousands of streams would hold what was read of its answer at once."""
        monkeypatch.setattr(pools, "LITTLE", 1000)
        proxy = Http1Endpoints()
        room = proxy.context.body_memory
        room.most = 4000
        client = FrameClient(proxy, initial_window(0))
        client.send(*(headers(number, GET) for number in range(1, 21, 2)))
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (500 if is_whole else 501) + bytes(500)
        upstreams = list(proxy.connector.upstreams)
        for upstream in upstreams:
            upstream.answer(answer)
        assert room.used == 3000, "three quarters"
        proxy.advance(0.1)
        said = client.take()
        assert [each.stream for each in said if each.kind == "reset"] == [13, 15, 17, 19]
        assert " reason=TooManyResponses " in proxy.log_lines()[-1]
        if not is_whole:
            assert not any(each.open for each in upstreams[6:])
        client.send(*(window(number, 500) for number in range(1, 13, 2)))
        assert room.used == 0

    def test_a_response_that_was_read_whole_for_a_step_takes_room_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pools, "LITTLE", 0)
        step = "policies: {transformation: {response: {set: [{name: x-size, value: 'string(size(response.body))'}]}}}"
        proxy = Http1Endpoints(served(step))
        room = proxy.context.body_memory
        room.most = 4000
        client = FrameClient(proxy, initial_window(0))
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + bytes(1000))
        assert room.used == 1000, "the step's"
        proxy.upstream.answer(bytes(2000))
        assert room.used == 3000, "what waits: all that one client may have, and no more"
        client.send(window(1, 3000))
        assert sum(len(bytes(each.value)) for each in client.take() if each.kind == "data") == 3000
        assert room.used == 0

    def test_who_has_little_that_waits_is_not_broken_off_whatever_others_hold(self) -> None:
        proxy = Http1Endpoints()
        proxy.context.body_memory.most = 0
        client = FrameClient(proxy, initial_window(4))
        client.send(headers(1, GET))
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n12345678")
        client.send(window(1, 4))
        assert client.take()[1:] == [Said("data", 1, b"1234"), Said("data", 1, b"5678")]
        assert proxy.upstream.reading and proxy.context.body_memory.used == 0


class TestEnds:
    def test_a_reset_by_the_client_ends_the_request(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET))
        client.send(reset(1))
        first, second = proxy.connector.upstreams
        assert (first.open, second.open) == (False, True)
        assert "reason=ClientGone" in proxy.log_lines()[0]
        second.answer(TWO + b"ok")
        assert client.take()[0] == Said("head", 3, 200)

    def test_a_reset_while_the_endpoint_streams(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(1))
        client.send(headers(1, GET))
        proxy.upstream.answer(ENDLESS + b"4\r\nsome\r\n")
        client.send(reset(1))
        assert not proxy.upstream.open
        assert client.take()[-1] == Said("data", 1, b"s")
        assert proxy.left() == []

    def test_a_reset_in_the_bytes_that_brought_the_request(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), reset(1), headers(3, POST, end=False), data(3, b"x"), reset(3))
        assert not [upstream for upstream in proxy.connector.upstreams if upstream.open]
        assert proxy.left() == []

    def test_a_lost_connection_ends_all_requests(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, POST, end=False))
        client.transport.lose(ConnectionResetError())
        assert not any(upstream.open for upstream in proxy.connector.upstreams)
        assert ["reason=ClientGone" in line for line in proxy.log_lines()] == [True, True]

    def test_the_end_of_what_a_client_sends_is_the_end_of_its_connection(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        client.transport.half_close()
        assert not client.open and not proxy.upstream.open

    def test_an_endpoint_that_breaks_off_resets_the_stream(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET))
        first, second = proxy.connector.upstreams
        first.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        first.lose(ConnectionResetError())
        assert client.take()[-1] == Said("reset", 1, INTERNAL_ERROR)
        second.answer(TWO + b"ok")
        assert client.take()[-1] == Said("data", 3, b"ok", end=True)

    def test_a_deadline_in_the_middle_of_an_answer_cancels_it(self) -> None:
        text = ROUTES.replace("      backends:", "      policies: {timeouts: {request: 1s}}\n      backends:")
        proxy = Http1Endpoints(text)
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET))
        proxy.connector.upstreams[0].answer(ENDLESS + b"1\r\na\r\n")
        proxy.advance(1.1)
        said = client.take()
        assert Said("reset", 1, CANCEL) in said and Said("head", 3, 504) in said

    def test_an_answer_before_the_request_is_whole_stops_the_rest(self) -> None:
        """RFC 9113 8.1: NO_ERROR behind the whole answer, also where that has to wait for a window."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(1))
        client.send(headers(1, POST, end=False), data(1, b"some"))
        proxy.upstream.answer(TWO + b"ok")
        assert client.take() == [Said("head", 1, 200), Said("data", 1, b"o")]
        client.send(data(1, b"more"))
        client.send(window(1, 9))
        assert client.take() == [Said("data", 1, b"k", end=True), Said("reset", 1, NO_ERROR)]
        client.send(data(1, b"still under way"))
        assert client.take() == [] and client.open

    def test_content_that_nobody_reads_any_more_leaves_the_others_their_window(self) -> None:
        """It is dropped while the answer waits for the client's window."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy, initial_window(1))
        for stream in range(1, 21, 2):
            client.send(headers(stream, POST, end=False))
            proxy.upstream.answer(TWO + b"ok")
            for _ in range(4):
                client.send(data(stream, bytes(16_000)))
        client.frames()
        assert client.windows[0] >= 10 * 64_000

    def test_trailers_that_are_malformed_end_the_stream(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False), headers(1, [(b"x-a", b"1\r\nx: y")]))
        assert client.take() == [Said("reset", 1, PROTOCOL_ERROR)] and not any(
            upstream.open for upstream in proxy.connector.upstreams
        )

    @pytest.mark.parametrize("answer", [TWO, ENDLESS + b"1\r\na\r\n"])
    def test_an_answer_that_cannot_be_said_breaks_off(self, answer: bytes) -> None:
        """A step's bug: the exchange ends, also where its endpoint would go on without end."""

        def build(config: object, env: object) -> Filter:
            return Filter("test", None, lambda x: x.response.append(b"x a: \x01\r\n"))

        rows = tuple(Row("header_modifiers", build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)
        proxy = Http1Endpoints(STEP_ROUTE, rows)
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.upstream.answer(answer)
        assert client.take() == [Said("reset", 1, INTERNAL_ERROR)]
        proxy.advance(0.1)
        assert not proxy.upstream.open and client.open
        assert " reason=UpstreamInvalid " in proxy.log_lines()[0]
