"""Sessions that nobody uses any more: over after half an hour, here and at their servers."""

from __future__ import annotations

import pytest

from dataplane.mcp import worker
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import IDLE
from tests.carriers import Carrier, Request
from tests.fakes.mcp_sse_toys import EVENTS
from tests.fakes.mcp_toys import Client, Toy
from tests.policies.test_mcp import FIRST, ONE, SECOND, TWO

ROOM = worker.SWEEP + 1


def of(carrier: Carrier, text: str = ONE % "") -> Client:
    client = Client(carrier.proxy(text), {FIRST: Toy(), SECOND: Toy()})
    client.initialize()
    return client


def later(client: Client, seconds: float) -> None:
    """Time passes, and servers answer what comes of it."""
    before = len(client.run.arrivals)
    client.run.advance(seconds)
    while waiting := [each for each in client.run.arrivals[before:] if not (each.is_answered or each.is_cancelled)]:
        for each in waiting:
            each.answer(client.answering(each.received))


def in_steps(client: Client, seconds: float) -> None:
    for _ in range(int(seconds / worker.SWEEP) + 1):
        later(client, worker.SWEEP)


def test_a_session_that_nobody_uses_is_over_and_its_servers_are_told(carrier: Carrier) -> None:
    client = of(carrier, TWO % "")
    client.headers = [("x-client", "1")]
    assert client.request("ping").status == 200
    in_steps(client, IDLE + ROOM)
    assert all(toy.sessions == [] for toy in client.toys.values())
    last = client.run.arrival.received
    assert (last.method, last.headers["x-client"]) == ("DELETE", "1")
    answer = client.request("ping")
    assert (answer.status, answer.body) == (404, b"session not found")
    client.session = ""
    client.initialize()


def test_use_prolongs_a_session(carrier: Carrier) -> None:
    client = of(carrier)
    for _ in range(4):
        in_steps(client, IDLE - 2 * ROOM)
        assert client.names() == ["add"]
    assert len(client.toys[FIRST].sessions) == 1


def test_an_idle_session_is_over_before_anybody_looks(carrier: Carrier) -> None:
    client = of(carrier)
    client.run.memory.now += IDLE + 2  # no timer has fired
    assert client.request("ping").status == 404


def test_a_stream_that_is_open_is_a_use(carrier: Carrier) -> None:
    client = of(carrier)
    lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
    asked = client.run.send(Request("GET", "/mcp", lines))
    client.run.arrival.head(EVENTS)
    in_steps(client, 2 * IDLE)
    client.run.arrival.content(b": alive\n\n")
    assert not asked.answer.ended and client.request("ping").status == 200
    asked.cancel()
    in_steps(client, IDLE + ROOM)
    assert client.toys[FIRST].sessions == [] and client.request("ping").status == 404


def test_the_session_that_took_the_place_of_one_is_ended(carrier: Carrier) -> None:
    client = of(carrier)
    toy = client.toys[FIRST]
    toy.sessions.clear()
    assert client.names() == ["add"] and len(toy.sessions) == 1
    in_steps(client, IDLE + ROOM)
    assert toy.sessions == []


def test_a_use_by_another_worker_counts(carrier: Carrier) -> None:
    first = of(carrier)
    context = first.run.memory.context
    second = Client(carrier.proxy(ONE % ""), first.toys)
    other = second.run.memory.context
    other.session_key, second.session = context.session_key, first.session
    shared = worker.Shared.local()
    context.of_kind(MCP).memory = worker.Memory(shared, context.deadlines.wake_at)
    other.of_kind(MCP).memory = worker.Memory(shared, other.deadlines.wake_at)
    assert first.request("ping").status == 200
    for _ in range(4):
        in_steps(first, IDLE / 2)
        in_steps(second, IDLE / 2)
        assert second.request("ping").status == 200
    assert first.request("ping").status == 200
    assert len(first.toys[FIRST].sessions) == 1


def test_with_a_key_that_others_may_have_a_session_is_not_ended(carrier: Carrier) -> None:
    client = of(carrier)
    context = client.run.memory.context
    context.shares_sessions = True
    context.of_kind(MCP).memory = worker.Memory(worker.Shared.local(), context.deadlines.wake_at, False)
    assert client.request("ping").status == 200
    in_steps(client, IDLE + ROOM)
    assert len(client.toys[FIRST].sessions) == 1, "another replica may be using it"
    assert client.request("ping").status == 200


def kept(client: Client) -> list[object]:
    """What is kept of sessions for their end."""
    return [each.goodbye for each in client.run.memory.context.of_kind(MCP).memory.remembered.values()]


def test_with_a_key_that_others_may_have_no_credentials_are_kept(carrier: Carrier) -> None:
    client = of(carrier)
    assert kept(client) != [None]
    context = client.run.memory.context
    context.shares_sessions = True
    context.of_kind(MCP).memory = worker.Memory(worker.Shared.local(), context.deadlines.wake_at, False)
    assert client.request("ping").status == 200 and kept(client) == [None]


def test_servers_are_told_with_what_proves_the_client_and_nothing_of_one_request(carrier: Carrier) -> None:
    client = of(carrier)
    credentials = [("authorization", "Bearer old"), ("cookie", "a=b"), ("x-api-key", "k")]
    once = [("user-agent", "sdk/1"), ("traceparent", "00-1-2-01"), ("X-Request-Id", "7"), ("origin", "http://o")]
    client.headers = [*credentials, *once]
    assert client.request("ping").status == 200
    (first,) = kept(client)
    assert client.request("ping").status == 200
    (second,) = kept(client)
    assert second is first, "one for all requests that are alike"
    client.headers = [("authorization", "Bearer new"), *credentials[1:], *once]
    assert client.request("ping").status == 200
    in_steps(client, IDLE + ROOM)
    last = client.run.arrival.received
    assert last.method == "DELETE" and last.headers["authorization"] == "Bearer new"
    assert (last.headers["cookie"], last.headers["x-api-key"]) == ("a=b", "k")
    assert not {name for name, _ in once} & set(last.headers) and "x-request-id" not in last.headers
    assert client.toys[FIRST].sessions == []


def test_of_long_lines_nothing_is_kept(carrier: Carrier) -> None:
    client = of(carrier)
    client.headers = [("authorization", "Bearer " + "x" * 5000)]
    assert client.request("ping").status == 200 and kept(client) == [None]
    in_steps(client, IDLE + ROOM)
    assert client.run.arrival.received.method == "POST" and len(client.toys[FIRST].sessions) == 1
    assert client.request("ping").status == 404


def test_of_a_session_that_was_deleted_nothing_is_kept(carrier: Carrier) -> None:
    client = of(carrier)
    assert client.ask("DELETE").status == 200 and kept(client) == [None]


def test_a_session_that_was_deleted_is_not_ended_twice(carrier: Carrier) -> None:
    client = of(carrier)
    assert client.ask("DELETE").status == 200
    before = len(client.run.arrivals)
    in_steps(client, IDLE + ROOM)
    assert len(client.run.arrivals) == before


def test_what_is_remembered_is_bounded(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST", 3)
    client = of(carrier)
    for _ in range(5):
        client.session = ""
        client.initialize()
    assert len(client.run.memory.context.of_kind(MCP).memory) == 3
    in_steps(client, IDLE + ROOM)
    assert len(client.run.memory.context.of_kind(MCP).memory) == 0 and len(client.toys[FIRST].sessions) == 3
