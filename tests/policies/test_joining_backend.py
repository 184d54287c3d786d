"""A kind of backend that ends the request itself: it makes two calls upstream and joins both answers to one stream of
events. The proof that agents have a place (`backends/registry`), over each carrier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dataplane.backends.registry import ROWS as BACKENDS
from dataplane.carriers import Consumer, Upstream
from dataplane.chain.filter import STEP, Env, Filter, Row
from dataplane.chain.streaming import transforming
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.messages import NO_NAMES, UNKNOWN, ResponseHead
from dataplane.http.sse import Event, EventReader, write
from dataplane.proxy.exchange import ActiveExchange
from dataplane.upstream import connecting, lease
from dataplane.upstream.endpoint import Endpoint, Lease
from dataplane.upstream.lease import Backend, BackendPlan, Leases
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: joined
      matches: [{path: {type: PathPrefix, value: /joined}}]
      policies: {headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}, timeouts: {request: 60s}}
      backends: [{host: 'agents.test:80'}]
    - name: parts
      backends: [{host: '127.0.0.1:9000', weight: 1}, {host: '127.0.0.2:9000', weight: 1}]
"""
HEAD = b"\r\ncontent-type: text/event-stream\r\n"


class Part:
    """One call of the two: `lease.Lease`."""

    method, target, upgrade, length, retries = b"GET", b"/part", b"", 0, None
    version, scheme, is_grpc, takes_trailers = b"HTTP/1.1", b"http", False, False
    never_indexed = NO_NAMES

    def __init__(self, joined: Joined, name: bytes) -> None:
        self.joined, self.name = joined, name
        self.endpoint: Endpoint | None = None
        self.up: Upstream | None = None
        self.leased, self.lease, self.attempt, self.is_over = False, 0, 0, False

    def lease_ready(self, up: Upstream) -> None:
        up.begin(self, b"\r\nhost: part\r\n", b"", True)

    lease_again = lease_ready

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        self.upstream_lost(cause, False)

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        """Of no use here."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        connecting.settle(self)
        self.upstream_content(first, end)

    def upstream_interim(self, head: ResponseHead) -> None:
        """Of no use here."""

    def upstream_content(self, data: bytes, end: bool) -> None:
        if data:
            self.joined.event(Event(data, self.name))
        if end:
            self.up, self.is_over = None, True
            self.joined.changed()

    def upstream_trailers(self, lines: bytes) -> None:
        self.upstream_content(b"", True)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        connecting.settle(self)
        self.up, self.is_over = None, True
        self.joined.cause = cause
        self.joined.changed()

    def upstream_blocked(self) -> None:
        """There is no more to send."""

    upstream_drained = upstream_blocked


class Joined:
    """`carriers.Upstream` of one request."""

    def __init__(self, joins: Joins, x: ActiveExchange, leases: Leases) -> None:
        self.joins, self.x, self.leases = joins, x, leases
        self.parts = [Part(self, name) for name in (b"one", b"two")]
        self.cause = ""
        self.is_begun = False
        self.waiting: Any = None
        self.consumer: Consumer | None = None

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self.consumer = consumer
        self.work = self.x.work(self.run())

    async def run(self) -> None:
        try:
            plans = [plan for plan in self.x.table.backends.values() if plan.endpoints]
            for part, plan in zip(self.parts, plans, strict=True):
                self.leases.begin(part, plan)
            while not self.cause and not all(part.is_over for part in self.parts):
                self.waiting = self.x.context.make_future()
                await self.waiting
        finally:
            for part in self.parts:
                lease.release(part)
            await self.joins.cleanup()
        if self.consumer is not None and self.cause:
            self.consumer.upstream_lost("reset", False)
        elif self.consumer is not None:
            self.consumer.upstream_content(b"", True)

    def changed(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)

    def event(self, event: Event) -> None:
        if self.consumer is None:
            return
        if self.is_begun:
            self.consumer.upstream_content(write(event), False)
        else:
            self.is_begun = True
            head = ResponseHead(200, b"HTTP/1.1 200 OK", HEAD, HEAD, UNKNOWN, True)
            self.consumer.upstream_head(head, write(event), False)

    def content(self, data: bytes, end: bool) -> None:
        """It has no use for the request's content."""

    def trailers(self, lines: bytes) -> None:
        """Nor for these."""

    def pause(self) -> None:
        for part in self.parts:
            if part.up is not None:
                part.up.pause()

    def resume(self) -> None:
        for part in self.parts:
            if part.up is not None:
                part.up.resume()

    def reset(self) -> None:
        self.consumer = None
        self.work.cancel()

    def discard(self) -> None:
        self.reset()


class Joins:
    """`lease.Backend`: the row that stands for static backends; of those it joins what goes to one name."""

    def __init__(self, otherwise: Backend) -> None:
        self.otherwise = otherwise
        self.cleaned = 0
        self.cleanups: list[Any] | None = None
        """What cleanups wait for; None: they do not."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        if plan.host != b"agents.test":
            self.otherwise.begin(holder, plan, leases)
            return
        assert isinstance(holder, ActiveExchange)
        holder.up = Joined(self, holder, leases)
        holder.lease_ready(holder.up)

    async def cleanup(self) -> None:
        if self.cleanups is not None:
            self.cleanups.append(self.make_future())
            await self.cleanups[-1]
        self.cleaned += 1

    make_future: Callable[[], Any]


class World:
    """A proxy with that backend, and a client that asked it for something."""

    def __init__(self, carrier: Carrier, rows: Sequence[Row] | None = None) -> None:
        self.run: Run = carrier.proxy(TEXT, rows=rows or ROWS)
        context = self.run.memory.context
        self.joins = Joins(BACKENDS["static"])
        self.joins.make_future = context.make_future
        context.leases.backends = {**BACKENDS, "static": self.joins}
        self.asked: Conversation = self.run.send(Request("GET", "/joined"))
        self.one, self.two = self.run.arrivals

    def begin(self) -> tuple[Arrival, Arrival]:
        for part in (self.one, self.two):
            part.head(Response(200))
        return self.one, self.two


def events(answer: Answer) -> list[tuple[bytes, bytes]]:
    return [(event.type, event.data) for event in EventReader().feed(answer.body)]


def test_two_answers_are_joined_to_one_stream_of_events(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    assert {each.endpoint.address for each in (one, two)} == {"127.0.0.1", "127.0.0.2"}
    one.content(b"a")
    assert events(world.asked.answer) == [(b"one", b"a")]
    two.content(b"b")
    two.end()
    one.content(b"c\nd")
    assert not world.asked.answer.ended
    one.end()
    assert events(world.asked.answer) == [(b"one", b"a"), (b"two", b"b"), (b"one", b"c\nd")]
    assert world.asked.answer.ended and world.asked.answer.headers["content-type"] == "text/event-stream"
    (line,) = world.run.new_lines()
    assert " http.status=200 " in line and "reason=" not in line and world.joins.cleaned == 1


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_ends_both_calls_and_the_line_follows_the_cleanup(begun: bool, carrier: Carrier) -> None:
    world = World(carrier)
    world.joins.cleanups = []
    one, two = world.begin()
    if begun:
        one.content(b"a")
    world.asked.cancel()
    assert one.is_cancelled and two.is_cancelled
    (cleanup,) = world.joins.cleanups
    assert world.joins.cleaned == 0 and world.run.new_lines() == []
    cleanup.set_result(None)
    (line,) = world.run.new_lines()
    assert world.joins.cleaned == 1 and "reason=ClientGone" in line
    world.run.advance(2.0)
    assert world.run.new_lines() == []


def test_a_cleanup_that_hangs_holds_the_line_up_for_a_second(carrier: Carrier) -> None:
    world = World(carrier)
    world.joins.cleanups = []
    world.asked.cancel()
    world.run.advance(0.9)
    assert world.run.new_lines() == []
    world.run.advance(0.2)
    assert len(world.run.new_lines()) == 1
    world.joins.cleanups[0].set_result(None)
    assert world.run.new_lines() == []


def test_a_call_that_breaks_off_ends_the_other(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    one.content(b"a")
    one.reset()
    assert two.is_cancelled and world.asked.answer.reset
    assert "reason=UpstreamFailed" in world.run.new_lines()[0]


def test_a_slow_client_stops_both_calls(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    world.asked.pause()
    one.content(bytes(1_000_000))
    assert not one.is_read and not two.is_read
    world.asked.resume()
    assert one.is_read and two.is_read
    one.end()
    two.end()
    assert world.asked.answer.ended and len(world.asked.answer.body) > 1_000_000


def test_a_deadline_is_answered_behind_the_cleanup(carrier: Carrier) -> None:
    world = World(carrier)
    world.joins.cleanups = []
    world.run.advance(60.1)
    assert world.one.is_cancelled and world.two.is_cancelled and world.asked.answer.status is None
    world.joins.cleanups[0].set_result(None)
    assert world.asked.answer.status == 504 and len(world.run.new_lines()) == 1


def step(made: Filter | Callable[[Env], Filter]) -> tuple[Row, ...]:
    def build(config: object, env: Env) -> Filter:
        return made(env) if callable(made) else made

    return tuple(Row(r.name, build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)


def test_its_events_pass_stages(carrier: Carrier) -> None:
    def rewriting(x: Exchange) -> Callable[[bytes, bool], bytes]:
        reader = EventReader()
        return lambda data, end: b"".join(write(replace(event, data=event.data.upper())) for event in reader.feed(data))

    world = World(carrier, step(Filter("test", response_stream=transforming(rewriting))))
    for part in world.begin():
        part.content(b"a")
        part.end()
    assert events(world.asked.answer) == [(b"one", b"A"), (b"two", b"A")] and world.asked.answer.ended


def test_steps_that_wait_beside_it_are_cancelled_with_it(carrier: Carrier) -> None:
    cleanups: list[Any] = []

    def waits(env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            try:
                await env.make_future()
            finally:
                cleanups.append(env.make_future())
                await cleanups[-1]

        return Filter("test", response=wait)

    world = World(carrier, step(waits))
    world.joins.cleanups = cleanups
    one, two = world.begin()
    one.content(b"a")
    world.asked.cancel()
    assert one.is_cancelled and two.is_cancelled and len(cleanups) == 2
    for cleanup in cleanups:
        assert world.run.new_lines() == []
        cleanup.set_result(None)
    assert len(world.run.new_lines()) == 1
