"""The streams of several servers as one: a part that is lost, or that its server has closed, is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.backends.mcp import following, merged_streams
from dataplane.backends.mcp.merged_streams import ASKED, BEGIN, END, FAIL, FAILED, LATER, NO_STREAM, OPEN, WAIT
from tests.carriers import Carrier, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import Client
from tests.policies.test_mcp import SECOND, open_two
from tests.policies.test_mcp_notices import EVENTS, event, get

NOTICE = {"method": "notifications/tools/list_changed"}
NONE, ENDED = following.NONE, following.ENDED
FAIL_OPEN = "failureMode: FailOpen"


def listening(carrier: Carrier, more: str = FAIL_OPEN) -> tuple[Client, Conversation, Arrival, Arrival]:
    """Two servers whose streams are there."""
    client = open_two(carrier, more=more)
    asked = get(client)
    one, two = client.run.arrivals[-2:]
    one.head(EVENTS)
    two.head(EVENTS)
    return client, asked, one, two


def again(client: Client, before: int) -> Arrival | None:
    """What came since: one question for a stream."""
    found = [each for each in client.run.arrivals[before:] if each.received.method == "GET"]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize("ends", ["reset", "end"])
def test_a_part_that_is_lost_is_asked_for_again(ends: str, carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    two.content(event(NOTICE))
    before = len(client.run.arrivals)
    getattr(two, ends)()
    client.run.advance(following.FIRST_PAUSE - 0.1)
    assert again(client, before) is None
    client.run.advance(0.2)
    found = again(client, before)
    assert found is not None and found.received.authority == SECOND
    found.head(EVENTS)
    found.content(event(NOTICE))
    assert asked.answer.body.count(b"list_changed") == 2 and not asked.answer.ended
    one.end()
    found.end()
    assert asked.answer.ended, "when none is there the client asks anew"


def test_failures_are_asked_for_with_growing_pauses(carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    two.reset()
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        before = len(client.run.arrivals)
        client.run.advance(pause - 0.1)
        assert again(client, before) is None
        client.run.advance(0.2)
        found = again(client, before)
        assert found is not None
        found.answer(Response(503))
    one.end()
    assert asked.answer.ended


def test_with_fail_closed_what_a_server_closes_is_asked_for_again_and_what_is_lost_ends_all(carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier, "")
    two.end()
    before = len(client.run.arrivals)
    client.run.advance(1.1)
    found = again(client, before)
    assert found is not None
    found.head(EVENTS)
    found.reset()
    assert asked.answer.reset and one.is_cancelled


def test_a_server_that_was_restarted_has_its_part_in_a_new_session(carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    toy = client.toys[SECOND]
    toy.sessions.clear()
    two.reset()
    before = len(client.run.arrivals)
    client.run.advance(1.1)
    while (found := client.run.arrivals[-1]).received.method != "GET" or found.is_answered or len(toy.sessions) == 0:
        found.answer(Response(404) if found.received.method == "GET" else toy(found.received))
    assert len(client.run.arrivals) > before
    found.head(EVENTS)
    found.content(event(NOTICE))
    assert b"list_changed" in asked.answer.body
    one.end()
    found.end()


def test_it_goes_on_behind_the_last_event_and_not_sooner_than_its_server_wants(carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    two.content(b"retry: 7000\nid: e 5\n" + event(NOTICE))
    two.end()
    before = len(client.run.arrivals)
    client.run.advance(6.5)
    assert again(client, before) is None
    client.run.advance(0.6)
    found = again(client, before)
    assert found is not None and found.received.headers["last-event-id"] == "e 5"
    found.answer(Response(503))
    before = len(client.run.arrivals)
    client.run.advance(7.1)
    found = again(client, before)
    assert found is not None and found.received.headers.get("last-event-id") is None, "it has that no more"
    one.end()
    assert asked.answer.body.count(b"id: two:e 5") == 1


@pytest.mark.parametrize("event_id", [b"a\x01b", b"x" * 1025, b""])
def test_an_id_that_is_no_header_is_not_asked_with(event_id: bytes, carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    two.content(b"id: %b\n" % event_id + event(NOTICE))
    two.end()
    before = len(client.run.arrivals)
    client.run.advance(1.1)
    found = again(client, before)
    assert found is not None and found.received.headers.get("last-event-id") is None
    asked.leave()
    assert one.is_cancelled and found.is_cancelled


def test_a_part_that_is_refused_for_now_is_asked_for_again(carrier: Carrier) -> None:
    """409: its server has not noticed yet that the stream before has ended."""
    client = open_two(carrier)
    asked = get(client)
    one, two = client.run.arrivals[-2:]
    one.head(EVENTS)
    two.answer(Response(409))
    before = len(client.run.arrivals)
    client.run.advance(1.1)
    found = again(client, before)
    assert found is not None and found.received.authority == SECOND
    found.answer(Response(405))
    client.run.advance(60)
    assert len(client.run.arrivals) == before + 1, "it says that it has none"
    one.end()
    assert asked.answer.ended


def test_where_the_only_server_with_a_stream_is_away_the_client_hears_it_when_it_is_back(carrier: Carrier) -> None:
    client = open_two(carrier, more=FAIL_OPEN)
    asked = get(client)
    one, two = client.run.arrivals[-2:]
    one.answer(Response(405))
    two.reset()
    client.run.serve(Response(503))
    assert asked.answer.status == 200 and not asked.answer.ended
    client.run.advance(1.1)
    client.run.arrival.head(EVENTS)
    client.run.arrival.content(event(NOTICE))
    assert b"list_changed" in asked.answer.body
    client.run.arrival.end()
    assert asked.answer.ended


def test_nobody_asks_when_the_client_has_left(carrier: Carrier) -> None:
    client, asked, one, two = listening(carrier)
    two.reset()
    asked.leave()
    before = len(client.run.arrivals)
    client.run.advance(60)
    assert len(client.run.arrivals) == before and one.is_cancelled


ANY: Any = (True, False)


@pytest.mark.parametrize(
    ("states", "was_open", "fail_open", "found"),
    [
        ([ASKED, NONE], ANY, ANY, {WAIT}),
        ([OPEN, ENDED], [True], ANY, {WAIT}),
        ([OPEN, FAILED], [True], [True], {WAIT}),
        ([OPEN, FAILED], [True], [False], {FAIL}),
        ([ENDED, NONE], [True], ANY, {END}),
        ([ENDED, FAILED], [True], [True], {END}),
        ([FAILED, NONE], [True], [True], {FAIL}),
        ([LATER, NONE], [True], ANY, {END}),
        ([NONE, NONE], [False], ANY, {NO_STREAM}),
        ([NONE, LATER], [False], ANY, {BEGIN}),
        ([LATER, LATER], [False], ANY, {BEGIN}),
        ([NONE, FAILED], [False], [True], {BEGIN}),
        ([NONE, FAILED], [False], [False], {FAIL}),
        ([FAILED, FAILED], [False], ANY, {FAIL}),
    ],
)
def test_what_becomes_of_the_whole(states: list[str], was_open: Any, fail_open: Any, found: set[str]) -> None:
    seen = {merged_streams.decided(states, *facts) for facts in ((a, b) for a in was_open for b in fail_open)}
    assert seen == found
