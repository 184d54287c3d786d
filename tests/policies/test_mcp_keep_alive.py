"""`backend.mcp.keepAlive`: a sign of life of ours on streams that are silent, and none where nobody asks for it."""

from __future__ import annotations

import pytest

from tests.carriers import Carrier, Response
from tests.fakes.mcp_toys import Client, Toy
from tests.policies.test_backend_mcp import opened
from tests.policies.test_mcp import FIRST, ONE
from tests.policies.test_mcp_notices import EVENTS, call, event, get

SIGN = b": keep-alive\n"
KEPT = "{keepAlive: 10s}"
ROUTE = ONE.replace("backends:", f"policies: {{mcp: {KEPT}}}\n      backends:") % ""


@pytest.mark.parametrize("policy", ["{}", KEPT])
@pytest.mark.parametrize("several", [False, True])
def test_a_silent_stream_gets_one_each_period(several: bool, policy: str, carrier: Carrier) -> None:
    client = opened(carrier, policy, several=several)
    for ask in (get, lambda client: call(client, "tools/call", {"name": "one_add" if several else "add"})):
        asked, arrived = ask(client), client.run.arrival
        arrived.head(EVENTS)
        for count in (1, 2):
            client.run.advance(9.9)
            before = asked.answer.body.count(SIGN)
            client.run.advance(0.2)
            assert (before, asked.answer.body.count(SIGN)) == ((count - 1, count) if policy == KEPT else (0, 0))
        asked.leave()
        before = len(asked.answer.body)
        client.run.advance(60)
        assert len(asked.answer.body) == before


def test_what_a_server_says_counts_as_one(carrier: Carrier) -> None:
    client = opened(carrier, KEPT)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    for _ in range(5):
        client.run.advance(9)
        client.run.arrival.content(b": ping\n\n")
    assert SIGN not in asked.answer.body
    client.run.advance(10.1)
    assert asked.answer.body.endswith(b": ping\n\n" + SIGN)
    asked.leave()


@pytest.mark.parametrize("piece", [b'data: {"jsonrpc": "2.0", "met', b"data: {}\r", b"data:"])
def test_it_stands_within_no_line_of_a_server(piece: bytes, carrier: Carrier) -> None:
    client = opened(carrier, KEPT)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(piece)
    client.run.advance(60)
    assert asked.answer.body == piece
    client.run.arrival.content(b"\n")
    client.run.advance(10.1)
    assert asked.answer.body == piece + b"\n" + SIGN, "and ends no block"
    asked.leave()


def test_a_client_that_reads_nothing_gets_none(carrier: Carrier) -> None:
    client = opened(carrier, KEPT)
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(event({"method": "notifications/tools/list_changed"}))
    asked.pause()
    client.run.arrival.content(b": x\n\n" * 50_000)
    for _ in range(3):
        client.run.advance(15)
    asked.resume()
    assert SIGN not in asked.answer.body
    asked.leave()


def test_what_is_no_stream_or_is_encoded_or_counted_gets_none(carrier: Carrier) -> None:
    client = opened(carrier, KEPT)
    for head in (
        Response(200, [("content-type", "application/json"), ("content-length", "99")]),
        Response(200, [("content-type", "text/event-stream"), ("content-encoding", "gzip")]),
        Response(200, [("content-type", "text/event-stream"), ("content-length", "99")]),
    ):
        asked = call(client, "tools/call", {"name": "add"})
        client.run.arrival.head(head)
        client.run.arrival.content(b"\n")
        client.run.advance(60)
        assert asked.answer.body in (b"", b"\n")
        client.run.arrival.reset()


def test_of_a_route_it_counts_as_of_a_backend(carrier: Carrier) -> None:
    client = Client(carrier.proxy(ROUTE), {FIRST: Toy()})
    client.initialize()
    asked = get(client)
    client.run.arrival.head(EVENTS)
    client.run.advance(10.1)
    assert asked.answer.body == SIGN
    asked.leave()


def test_one_too_short_is_the_shortest(carrier: Carrier) -> None:
    client = opened(carrier, "{keepAlive: 1ms}")
    asked = get(client)
    client.run.arrival.head(EVENTS)
    for _ in range(10):
        client.run.advance(0.05)
    assert 2 <= asked.answer.body.count(SIGN) <= 5
    asked.leave()
