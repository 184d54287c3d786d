"""Floods: each is cut within 1,000 frames, with ENHANCE_YOUR_CALM and a name; honest traffic of that kind never is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.http.h2.budget import CLIENTS, SERVERS
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import CANCEL, ENHANCE_YOUR_CALM
from dataplane.http.h2.events import Content, Event, Failed, Interim, Request, Reset
from dataplane.http.h2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_wire import GET, OK, POST, Clock, client, data, frame, headers, literal, parse, server

ONE = (1).to_bytes(4)
OPEN = headers(1, POST, end=False)
RESET = CANCEL.to_bytes(4)
LARGE = (*GET, *[(b"x-%d" % number, b"a") for number in range(Settings().max_headers + 1)])

# limit -> what the attacker sends first, and again and again (by number)
FLOODS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "RapidReset": (b"", lambda n: headers(2 * n + 1, GET) + frame(RST_STREAM, 0, 2 * n + 1, RESET)),
    "MalformedStreams": (b"", lambda n: headers(2 * n + 1, GET) + frame(WINDOW_UPDATE, 0, 2 * n + 1, bytes(4))),
    "PingFlood": (b"", lambda n: frame(PING, 0, 0, bytes(8))),
    "SettingsFlood": (b"", lambda n: frame(SETTINGS)),
    "PriorityFlood": (b"", lambda n: frame(PRIORITY, 0, 1, b"\0\0\0\3\0")),
    "WindowUpdateFlood": (b"", lambda n: frame(WINDOW_UPDATE, 0, 0, ONE)),
    "EmptyFrames": (OPEN, lambda n: data(1)),
    "UnknownFrames": (b"", lambda n: frame(0xBB)),
    "StaleFrames": (headers(1, (M := POST[0],), end=False), lambda n: frame(DATA, PADDED, 1, b"\0")),
    "OversizedHeads": (b"", lambda n: headers(2 * n + 1, LARGE) + frame(RST_STREAM, 0, 2 * n + 1, RESET)),
}


def test_every_limit_has_its_flood() -> None:
    assert list(FLOODS) == list(CLIENTS)


def flood(codec: Connection, first: bytes, again: Callable[[int], bytes], most: int) -> tuple[int, list[Event]]:
    """Send until the codec cuts, or `most` times: how often, and the last events."""
    codec.receive(first)
    for number in range(most):
        events = codec.receive(again(number))
        codec.take()
        if codec.failed:
            return number, events
    return most, []


@pytest.mark.parametrize("name", FLOODS)
def test_flood_is_cut(name: str) -> None:
    codec = server()
    first, again = FLOODS[name]
    count, events = flood(codec, first, again, 1000)
    assert isinstance(events[-1], Failed), count
    assert (events[-1].code, events[-1].reason) == (ENHANCE_YOUR_CALM, name)
    assert CLIENTS[name].burst - 2 <= count <= 2 * CLIENTS[name].burst


@pytest.mark.parametrize("name", FLOODS)
def test_as_much_in_reasonable_time_is_not(name: str) -> None:
    """A long life does not add up: what time refills may be used for ever."""
    clock = Clock()
    codec = server(clock=clock)
    first, again = FLOODS[name]

    def slowly(number: int) -> bytes:
        clock.now += 1.01 / CLIENTS[name].per_second
        return again(number)

    assert flood(codec, first, slowly, 3 * CLIENTS[name].burst)[0] == 3 * CLIENTS[name].burst


@pytest.mark.parametrize("name", FLOODS)
def test_rest_after_a_long_life_gives_at_most_one_more_burst(name: str) -> None:
    clock = Clock()
    codec = server(clock=clock)
    clock.now += 1e6
    first, again = FLOODS[name]
    count, _ = flood(codec, first, again, 1000)
    assert count <= 2 * CLIENTS[name].burst


def test_refused_streams_count_as_resets() -> None:
    codec = server(Settings(max_streams=1))
    codec.receive(headers(1, POST, end=False))
    count, events = flood(codec, b"", lambda n: headers(2 * n + 3, GET), 1000)
    assert isinstance(events[-1], Failed) and events[-1].reason == "RapidReset" and count < 1000


def test_resets_beside_as_many_whole_requests_are_no_flood() -> None:
    codec = server()
    for number in range(1, 8000, 4):
        (request,) = codec.receive(headers(number, GET))
        assert isinstance(request, Request)
        codec.send_response(request.stream, 204, b"\r\n", True)
        codec.receive(headers(number + 2, GET) + frame(RST_STREAM, 0, number + 2, RESET))
        codec.take()
    assert not codec.failed


def test_pings_and_window_updates_for_content_that_we_send_are_no_flood() -> None:
    codec = server()
    (request,) = codec.receive(headers(1, GET))
    assert isinstance(request, Request)
    codec.send_response(request.stream, 200, b"\r\n", False)
    answer = b"".join([frame(PING, 0, 0, bytes(8)), frame(WINDOW_UPDATE, 0, 0, ONE), frame(WINDOW_UPDATE, 0, 1, ONE)])
    for _ in range(5000):
        assert codec.send_content(request.stream, b"x", False) == 0
        codec.receive(answer)
        codec.take()
    assert not codec.failed


@pytest.mark.parametrize("empty", [True, False])
def test_continuations_are_bounded_in_number(empty: bool) -> None:
    codec = server()
    codec.receive(frame(HEADERS, END_STREAM, 1, literal(GET)))
    part = b"" if empty else literal([(b"a", b"b")])
    count, events = flood(codec, b"", lambda n: frame(CONTINUATION, 0, 1, part), 1000)
    assert count <= 10 and isinstance(events[-1], Failed)
    assert (events[-1].code, events[-1].reason) == (ENHANCE_YOUR_CALM, "Continuation")


def test_header_block_is_bounded_in_size() -> None:
    codec = server()
    codec.receive(frame(HEADERS, END_STREAM, 1, literal(GET)))
    part = literal([(b"a", b"b" * 16_000)])
    count, events = flood(codec, b"", lambda n: frame(CONTINUATION, 0, 1, part), 1000)
    assert count <= 4 and isinstance(events[-1], Failed) and events[-1].reason == "HeaderBlock"


def test_decoded_size_is_bounded_while_decoding() -> None:
    """A block of 8 KiB that names a field of 4,000 bytes again and again would decode to 30 MB."""
    codec = server()
    insert = b"\x40\x01a\x7f\xb9\x1e" + b"x" * 4000  # RFC 7541 6.2.1: with indexing
    block = literal(GET) + insert + b"\xbe" * 8000
    events = codec.receive(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
    assert isinstance(events[-1], Failed) and events[-1].reason == "HeaderBlock"


@pytest.mark.parametrize("asking", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS)])
def test_replies_to_a_peer_that_does_not_read_are_bounded(asking: bytes) -> None:
    clock = Clock()
    codec = server(clock=clock)
    codec.pause_writing()
    for _ in range(2000):
        clock.now += 1
        events = codec.receive(asking)
        if codec.failed:
            break
    assert isinstance(events[-1], Failed) and events[-1].reason == "HeldReplies"


def test_interims_without_end() -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    for _ in range(200):
        events = codec.receive(headers(1, [(b":status", b"102")], end=False))
        if isinstance(events[0], Reset):
            break
        assert isinstance(events[0], Interim)
    assert isinstance(events[0], Reset) and events[0].reason == "Interim"
    assert not codec.failed


def test_resets_of_an_upstream_are_not_counted() -> None:
    """It answers requests of ours; how many it resets is a matter of health, not of abuse."""
    codec = client()
    for number in range(1, 4001, 2):
        codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
        codec.receive(frame(RST_STREAM, 0, number, RESET))
    assert not codec.failed


def test_nothing_is_kept_of_finished_streams() -> None:
    codec = server()
    for number in range(1, 20_001, 2):
        (request,) = codec.receive(headers(number, GET))
        assert isinstance(request, Request)
        codec.send_response(request.stream, 204, b"\r\n", True)
        codec.take()
    assert not codec.streams and codec.last_stream == 19_999


def test_small_frames_of_content_are_no_flood() -> None:
    codec = server()
    codec.receive(OPEN)
    for _ in range(5000):
        (content,) = codec.receive(data(1, b"x"))
        assert isinstance(content, Content)
        codec.acknowledge(content.stream, 1)
    assert not codec.failed


def test_goaway_of_a_cut_names_the_limit() -> None:
    codec = server()
    while not codec.failed:
        codec.take()
        codec.receive(frame(PING, 0, 0, bytes(8)))
    last = parse(codec.take())[-1]
    assert last.kind == GOAWAY and last.payload == b"\0\0\0\0\0\0\0\x0bPingFlood"


def test_settings_that_move_all_windows_are_bounded_too() -> None:
    codec = server()
    for number in range(1, 200, 2):
        codec.receive(headers(number, GET))
    value = iter(range(1000))
    count, _ = flood(codec, b"", lambda n: frame(SETTINGS, 0, 0, b"\0\4" + next(value).to_bytes(4)), 1000)
    assert count <= 2 * CLIENTS["SettingsFlood"].burst


OF_SERVERS = ("PingFlood", "SettingsFlood", "WindowUpdateFlood", "UnknownFrames", "PriorityFlood", "EmptyFrames")


@pytest.mark.parametrize("name", OF_SERVERS)
def test_a_client_is_cut_off_by_a_hostile_server_too(name: str) -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    burst = SERVERS[name].burst
    count, events = flood(codec, headers(1, OK, end=False), FLOODS[name][1], 3 * burst)
    assert isinstance(events[-1], Failed) and events[-1].reason == name
    assert burst - 2 <= count <= 2 * burst


def test_no_client_can_make_a_server_end_what_all_share_by_window_updates() -> None:
    """Messages of 16 bytes, 1,000 of them in a frame, each answered with updates of stream and connection: none of the
    200 frames that we sent stands for so many."""
    codec = client()
    stream = codec.send_request(b"POST", b"http", b"a", b"/", b"\r\n", False)
    update = (16).to_bytes(4)
    for _ in range(200):
        codec.send_content(stream, bytes(16_000), False)
        answers = frame(WINDOW_UPDATE, 0, 0, update) + frame(WINDOW_UPDATE, 0, 1, update)
        for _ in range(50):
            codec.receive(answers)
        codec.take()
    assert not codec.failed


def test_answers_that_a_client_gave_up_do_not_end_what_all_share() -> None:
    """Each leaves a window's worth of small pieces on its way."""
    codec = client()
    codec.receive(frame(SETTINGS))
    for _ in range(1000):
        stream = codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
        codec.receive(headers(stream.id, OK, end=False))
        codec.reset(stream, CANCEL)
        codec.receive(b"".join(data(stream.id, b"a token") for _ in range(60)))
        codec.take()
    assert not codec.failed


def test_answers_that_are_malformed_end_themselves_alone() -> None:
    codec = client()
    codec.receive(frame(SETTINGS))
    for _ in range(5000):
        stream = codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
        events = codec.receive(headers(stream.id, ((b":status", b"abc"),), end=True))
        codec.take()
        assert isinstance(events[-1], Reset) and events[-1].stream is stream
    assert not codec.failed
