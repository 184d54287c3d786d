"""How a plaintext connection becomes one of HTTP/2: by its preface, in any split, and only at its beginning."""

from __future__ import annotations

import pytest

from dataplane.http.h2.errors import PROTOCOL_ERROR
from dataplane.http.h2.frames import PREFACE, SETTINGS
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, OPENING, frame, headers, parse
from tests.fakes.memory_proxy import Http1Endpoints

GET1 = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK1 = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = PREFACE + OPENING + headers(1, GET)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 14, 18, 19, 23, 24, 25, 1000])
def test_over_any_split_of_bytes(size: int) -> None:
    proxy = Http1Endpoints()
    client = proxy.connect()
    for at in range(0, len(REQUEST), size):
        client.send(REQUEST[at : at + size])
    assert proxy.upstream.received.startswith(b"GET / HTTP/1.1\r\nhost: a.example\r\n")
    assert client.high_water == proxy.context.limits.write_buffer


def test_our_settings_are_the_first_frame() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy, opening=b"")
    client.send(PREFACE)
    first, *_ = client.frames()
    assert first.kind == SETTINGS and b"\x00\x08\x00\x00\x00\x01" in first.payload  # extended CONNECT: RFC 8441 3


@pytest.mark.parametrize(
    "sent",
    [
        (b"PRI * HTTP/2.0\r\nHost: a\r\n\r\n",),
        (b"PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n",),
        (b"PRI * HTTP/2.0\r", b"\rSM\r\n\r\n"),
        (b"PRI / HTTP/2.0\r\n\r\n",),
        (b"\r\n" + PREFACE,),
    ],
)
def test_what_only_begins_like_it_is_a_bad_request(sent: tuple[bytes, ...]) -> None:
    client = Http1Endpoints().connect()
    for each in sent:
        client.send(each)
    assert client.received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 505 "))


def test_another_end_of_the_preface_is_an_error_of_http2() -> None:
    client = FrameClient(Http1Endpoints(), opening=b"")
    client.send(PREFACE[:18] + b"GET / HTTP/1.1\r\n\r\n")
    assert client.take()[-1] == Said("goaway", 0, PROTOCOL_ERROR) and client.is_ended


@pytest.mark.parametrize(
    "first", [GET1, b"GET /%41 HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["a plain request", "an odd request"]
)
@pytest.mark.parametrize("is_pipelined", [False, True])
def test_behind_a_request_it_is_a_bad_request(first: bytes, is_pipelined: bool) -> None:
    """RFC 9113 3.4: a connection begins with it. What follows the request of somebody else must not change it."""
    proxy = Http1Endpoints()
    client = proxy.connect()
    client.send(first + (REQUEST if is_pipelined else b""))
    proxy.upstream.answer(OK1)
    if not is_pipelined:
        client.send(REQUEST)
    assert b"\r\n\r\nokHTTP/1.1 400 Bad Request\r\n" in client.received
    assert len(proxy.connector.upstreams) == 1


def test_connections_are_counted_once() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    assert len(proxy.context.connections) == 1
    counted = {each.metric.name: values[0] for each, values in proxy.metrics.series()}
    assert counted["downstream_connections_total"] == counted["downstream_connections_active"] == 1
    client.transport.lose()
    counted = {each.metric.name: values[0] for each, values in proxy.metrics.series()}
    assert counted["downstream_connections_active"] == 0 and not proxy.context.connections


@pytest.mark.parametrize("sent", [b"PRI * HT", PREFACE[:18], PREFACE, PREFACE + frame(SETTINGS)[:5]])
def test_a_beginning_that_does_not_come_is_cut(sent: bytes) -> None:
    proxy = Http1Endpoints()
    client = proxy.connect()
    client.send(sent)
    proxy.advance(9.9)
    assert client.open and not client.eof
    proxy.advance(0.2)
    assert not client.open or client.eof
    proxy.advance(2)
    assert not client.open


def test_who_has_begun_well_has_time() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    proxy.advance(300)
    client.send(headers(1, GET))
    proxy.upstream.answer(OK1)
    assert client.take()[0] == Said("head", 1, 200)
    proxy.advance(11)
    assert client.open and not client.transport.eof


def test_a_connection_of_http2_alone_needs_no_http1() -> None:
    """A row begins a connection by itself, too: the plan's other one here."""
    proxy = Http1Endpoints()
    plan = proxy.connect().protocol.plan
    client = FrameClient(proxy, opening=b"")
    other = type(client.transport)(plan.other.make(plan))
    proxy.clients.append(other)
    proxy.advance(0.1)
    assert [each.kind for each in parse(other.received)][:1] == [SETTINGS], "RFC 9113 3.4: it need not wait for ours"
    other.send(PREFACE + OPENING + headers(1, GET))
    assert proxy.upstream.received.startswith(b"GET / HTTP/1.1\r\n")
    assert other.high_water == proxy.context.limits.write_buffer
    assert other.protocol in proxy.context.connections
