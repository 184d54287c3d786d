"""A server that has forgotten its session: the one that takes its place counts for every worker of the proxy."""

from __future__ import annotations

from dataplane.mcp import worker
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import IDLE
from tests.carriers import Carrier
from tests.fakes.mcp_toys import Client, Toy
from tests.policies.test_mcp import FIRST, ONE, SECOND, TWO
from tests.policies.test_mcp_idle import in_steps


def pair(carrier: Carrier, text: str = ONE % "", knows: bool = True) -> tuple[Client, Client]:
    """A client's session at two workers of one proxy. `knows`: they share what they know of sessions."""
    toys = {FIRST: Toy(), SECOND: Toy()}
    one, other = Client(carrier.proxy(text), toys), Client(carrier.proxy(text), toys)
    contexts = one.run.memory.context, other.run.memory.context
    contexts[1].session_key = contexts[0].session_key
    shared = worker.Shared.local()
    for context in contexts if knows else ():
        context.of_kind(MCP).memory = worker.Memory(shared, context.deadlines.wake_at)
    one.initialize()
    other.session = one.session
    return one, other


def test_the_other_worker_goes_on_with_it(carrier: Carrier) -> None:
    one, other = pair(carrier)
    toy = one.toys[FIRST]
    toy.sessions.clear()
    assert one.names() == ["add"]
    (renewed,) = toy.sessions
    assert other.names() == ["add"] and one.names() == ["add"]
    assert toy.sessions == [renewed], "no further one was opened"
    assert other.run.arrival.received.headers["mcp-session-id"] == renewed


def test_it_is_renewed_again_by_whoever_notices(carrier: Carrier) -> None:
    one, other = pair(carrier, TWO % "")
    toy = one.toys[FIRST]
    seen = set()
    for client in (one, other, one, other):
        toy.sessions.clear()
        assert client.request("ping").status == 200
        (renewed,) = toy.sessions
        seen.add(renewed)
        for each in (one, other):
            assert each.request("ping").status == 200 and toy.sessions == [renewed]
    assert len(seen) == 4 and len(one.toys[SECOND].sessions) == 1


def test_the_other_worker_deletes_it(carrier: Carrier) -> None:
    one, other = pair(carrier)
    one.toys[FIRST].sessions.clear()
    assert one.names() == ["add"]
    assert other.ask("DELETE").status == 200 and one.toys[FIRST].sessions == []


def test_the_other_worker_ends_it_when_it_is_idle(carrier: Carrier) -> None:
    one, other = pair(carrier)
    toy = one.toys[FIRST]
    toy.sessions.clear()
    assert one.names() == ["add"] and other.request("ping").status == 200
    in_steps(other, IDLE + worker.SWEEP + 1)
    assert toy.sessions == []


def test_a_worker_that_does_not_know_of_it_opens_one_of_its_own(carrier: Carrier) -> None:
    """So does a replica, and a worker where its id is too long to be shared."""
    one, other = pair(carrier, knows=False)
    one.toys[FIRST].sessions.clear()
    assert one.names() == ["add"] and other.names() == ["add"] and one.names() == ["add"]
    assert len(one.toys[FIRST].sessions) == 2
