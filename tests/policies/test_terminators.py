"""What a kind of backends that ends requests itself may do with one (`backends/terminating`): take it whole or as it
comes, answer whole or in parts, hand it on. The kind is a toy that does what the path says."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from dataplane.backends.registry import KINDS
from dataplane.backends.terminating.forwarding import Forwarding
from dataplane.backends.terminating.terminator import Terminator
from dataplane.chain.calls import CallRequest
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from dataplane.http.messages import ResponseHead
from dataplane.proxy.exchange import CarriedExchange
from dataplane.upstream import kinds
from dataplane.upstream.endpoint import Lease
from dataplane.upstream.lease import BackendPlan, Leases
from dataplane.upstream.parts import Part, plan_of
from gatewright.wire.v1 import backend_pb2
from tests.carriers import Carrier, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy

FIELD = "mcp"
"""The field of the wire's Backend that it stands in for."""

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: toy
      matches: [{path: {type: PathPrefix, value: /}}]
      backends:
      - mcp:
          targets:
          - {name: one, static: {host: 127.0.0.1, port: 9000, policies: {http: {requestTimeout: 5s}}}}
"""
MOST = 100_000


class Toy(kinds.Row):
    """`kinds.Kind`."""

    name = FIELD

    def parts(self, message: backend_pb2.McpBackend) -> Sequence[Part]:
        return [Part(each.name, each.backend) for each in message.targets]

    def plan(self, message: backend_pb2.McpBackend, parts: Sequence[Part], policies: object) -> object:
        return parts[0]

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        assert isinstance(holder, CarriedExchange)
        serve, takes_whole = PATHS[holder.path]
        holder.up = Terminator(holder, lambda out: serve(holder, out), takes_whole=takes_whole)
        holder.lease_ready(holder.up)


def call_of(x: CarriedExchange, out: Terminator) -> tuple[Any, CallRequest]:
    part: Any = x.backend_plan.of_kind
    head = Head(out.block)
    for name in (b"host", b"content-length"):
        head.remove(name)
    head.set(b"x-toy", b"edited")
    plan = plan_of(x.table, part, x.policies, x.context.leases)
    return plan, CallRequest(x.method, b"/edited", b"toy.example", head.block[2:])


def hand_on(x: CarriedExchange, out: Terminator) -> None:
    Forwarding(out, *call_of(x, out)).go()


class Choosy(Forwarding):
    """Passes successes, and reads others."""

    __slots__ = ()

    def passed(self, head: ResponseHead) -> ResponseHead | None:
        if head.status == 200:
            return head
        self.out.x.work(self.read())
        return None

    async def read(self) -> None:
        out: Any = self.out
        try:
            size = 0
            while data := await self.receive():
                size += len(data)
            out.whole(502, b"x-size: %d\r\n" % size, b"")
        finally:
            self.cancel()


def hand_on_or_read(x: CarriedExchange, out: Terminator) -> None:
    Choosy(out, *call_of(x, out)).go()


async def echo(x: CarriedExchange, out: Terminator) -> None:
    out.head(200, b"x-trailers: %b\r\n" % out.trailer_lines.strip())
    while data := await out.received():
        out.give(data)
        await out.ready()
    out.end(b"x-end: yes\r\n")


async def count(x: CarriedExchange, out: Terminator) -> None:
    out.whole(200, b"", b"%d" % len(await out.body(MOST)))


def answer(x: CarriedExchange, out: Terminator) -> None:
    out.whole(201, b"", out.whole_body or b"")


def refuse(x: CarriedExchange, out: Terminator) -> Reply:
    return made("InvalidBackend", "a toy")


def fail(x: CarriedExchange, out: Terminator) -> None:
    raise RuntimeError("a bug of a toy")


Serves = Callable[[CarriedExchange, Terminator], "Reply | Coroutine[Any, Any, None] | None"]

PATHS: dict[bytes, tuple[Serves, bool]] = {
    b"/forward": (hand_on, False),
    b"/forward-whole": (hand_on, True),
    b"/choosy": (hand_on_or_read, False),
    b"/echo": (echo, False),
    b"/count": (count, False),
    b"/count-whole": (count, True),
    b"/answer": (answer, True),
    b"/refuse": (refuse, True),
    b"/fail": (fail, True),
}


@pytest.fixture
def run(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(MemoryProxy, "kinds", {**KINDS, FIELD: Toy()})
    return carrier.proxy(TEXT)


def begun(run: Run, path: str, **headers: str) -> Conversation:
    return run.begin(Request("POST", path, tuple(headers.items())))


def last(run: Run) -> Arrival:
    return run.arrivals[-1]


# --- served here


def test_a_request_that_is_taken_whole_is_served_when_it_is_here(run: Run) -> None:
    asked = begun(run, "/answer")
    asked.content(b"ab")
    assert asked.answer.status is None
    asked.content(b"cd")
    asked.end()
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (201, b"abcd", True)
    assert run.send(Request("GET", "/answer")).answer.body == b""


def test_one_that_is_taken_as_it_comes_is_answered_as_it_comes(run: Run) -> None:
    asked = begun(run, "/echo")
    assert asked.answer.status == 200
    asked.content(b"ab")
    assert asked.answer.body == b"ab" and not asked.answer.ended
    asked.content(b"cd")
    asked.end()
    assert (asked.answer.body, asked.answer.ended) == (b"abcd", True)
    assert asked.answer.trailers["x-end"] == "yes"


def test_a_client_that_takes_no_more_is_asked_for_no_more(run: Run) -> None:
    asked = begun(run, "/echo")
    asked.pause()
    for _ in range(40):
        asked.content(bytes(100_000))
    assert not asked.is_read
    asked.resume()
    assert asked.is_read
    asked.end()
    assert len(asked.answer.body) == 4_000_000 and asked.answer.ended


@pytest.mark.parametrize(("path", "size", "status"), [
    ("/count", MOST, 200), ("/count", MOST + 1, 413), ("/count-whole", MOST, 200), ("/count-whole", MOST + 1, 413),
])  # fmt: skip
def test_a_body_is_taken_within_the_bound_of_who_serves(run: Run, path: str, size: int, status: int) -> None:
    asked = begun(run, path)
    for start in range(0, size, 30_000):
        asked.content(bytes(min(30_000, size - start)))
    if status == 200 or path == "/count-whole":
        asked.end()
    assert (asked.answer.status, asked.answer.body[:6]) == (
        status,
        b"100000" if status == 200 else asked.answer.body[:6],
    )
    assert run.memory.context.body_memory.used == 0


def test_bodies_take_room_beside_those_of_others(run: Run) -> None:
    room = run.memory.context.body_memory
    room.most = 10
    asked = begun(run, "/count")
    asked.content(b"x" * 11)
    assert asked.answer.status == 503 and "reason=TooManyBodies" in run.new_lines()[0]
    assert room.used == 0


def test_what_is_answered_at_once_needs_no_waiting(run: Run) -> None:
    assert run.send(Request("GET", "/refuse")).answer.status == made("InvalidBackend").status
    assert run.send(Request("GET", "/fail")).answer.status == 500
    assert [line.partition("reason=")[2].split()[0] for line in run.new_lines()] == ["InvalidBackend", "InternalError"]


# --- handed on


def test_a_request_is_handed_on_with_another_head_and_its_answer_passes(run: Run) -> None:
    asked = run.send(Request("GET", "/forward?a=1", (("x-client", "1"),)))
    arrival = last(run)
    received = arrival.received
    assert (received.method, received.target) == ("GET", "/edited")
    assert (received.headers["x-toy"], received.headers["x-client"]) == ("edited", "1")
    arrival.answer(Response(203, (("x-server", "1"),), b"abc"))
    found = asked.answer
    assert (found.status, found.headers["x-server"], found.body, found.ended) == (203, "1", b"abc", True)
    run.send(Request("GET", "/forward"))
    assert last(run).endpoint is arrival.endpoint, "its connection is used again"


@pytest.mark.parametrize("path", ["/forward", "/forward-whole"])
def test_content_passes_in_both_directions(run: Run, path: str) -> None:
    asked = begun(run, path)
    asked.content(b"ab")
    asked.content(b"cd")
    asked.end((("x-end", "asked"),))
    arrival = last(run)
    assert (arrival.received.body, arrival.received.ended) == (b"abcd", True)
    arrival.head(Response(200))
    arrival.content(b"ef")
    assert asked.answer.body == b"ef" and not asked.answer.ended
    arrival.end((("x-end", "answered"),))
    assert asked.answer.ended and arrival.received.trailers["x-end"] == "asked"


def test_a_length_that_was_announced_stays(run: Run) -> None:
    asked = begun(run, "/forward", **{"content-length": "4"})
    asked.content(b"ab")
    assert last(run).received.headers["content-length"] == "4"
    asked.content(b"cd")
    asked.end()
    assert last(run).received.ended


def test_content_passes_before_all_of_it_is_there(run: Run) -> None:
    asked = begun(run, "/forward")
    asked.content(b"ab")
    arrival = last(run)
    assert arrival.received.body == b"ab" and not arrival.received.ended
    arrival.head(Response(200))
    arrival.content(b"first")
    assert asked.answer.body == b"first"
    asked.content(b"cd")
    assert arrival.received.body == b"abcd"
    asked.end()
    arrival.end()
    assert arrival.received.ended and asked.answer.ended


def test_a_client_that_takes_no_more_stops_the_endpoint(run: Run) -> None:
    asked = run.send(Request("GET", "/forward"))
    arrival = last(run)
    arrival.head(Response(200))
    asked.pause()
    for _ in range(40):
        arrival.content(bytes(100_000))
    assert not arrival.is_read
    asked.resume()
    assert arrival.is_read
    arrival.end()
    assert asked.answer.ended and len(asked.answer.body) == 4_000_000


def test_a_client_that_leaves_gives_it_up(run: Run) -> None:
    asked = run.send(Request("GET", "/forward"))
    asked.cancel()
    assert last(run).is_cancelled and "reason=ClientGone" in run.new_lines()[0]


def test_an_answer_that_breaks_off_is_broken_off(run: Run) -> None:
    asked = run.send(Request("GET", "/forward"))
    arrival = last(run)
    arrival.head(Response(200))
    arrival.content(b"a")
    arrival.reset()
    assert asked.answer.reset and "reason=UpstreamFailed" in run.new_lines()[0]


def test_where_there_is_no_answer_the_client_reads_why(run: Run) -> None:
    asked = begun(run, "/forward")
    asked.content(b"a")
    last(run).reset()
    assert asked.answer.status == 502
    late = run.send(Request("GET", "/forward"))
    run.advance(5.1)
    assert late.answer.status == 504
    assert [line.partition("reason=")[2].split()[0] for line in run.new_lines()] == [
        "UpstreamFailed",
        "UpstreamTimeout",
    ]


def test_an_answer_that_does_not_pass_is_read(run: Run) -> None:
    asked = run.send(Request("GET", "/choosy"))
    last(run).answer(Response(200, (), b"abc"))
    assert (asked.answer.status, asked.answer.body) == (200, b"abc")
    asked = run.send(Request("GET", "/choosy"))
    last(run).answer(Response(404, (), bytes(300_000)))
    assert (asked.answer.status, asked.answer.headers["x-size"]) == (502, "300000")


def test_bytes_pass_behind_a_101(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryProxy, "kinds", {**KINDS, FIELD: Toy()})
    proxy = Http1Endpoints(TEXT)
    client = proxy.connect()
    client.send(b"GET /forward HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    upstream = proxy.upstream
    got = upstream.take()
    assert got.startswith(b"GET /edited HTTP/1.1\r\n") and b"upgrade: websocket\r\n" in got.lower()
    upstream.send(b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nfirst")
    assert client.take().startswith(b"HTTP/1.1 101 ")
    client.send(b"asked")
    upstream.send(b"answered")
    assert (upstream.take(), client.take()) == (b"asked", b"answered")
    proxy.advance(600.0)
    client.send(b"more")
    assert upstream.take() == b"more"
    upstream.lose()
    assert not client.open and "reason=" not in proxy.log_lines()[-1], "it ends in good order"
