"""The life of an exchange over a carrier that is no protocol at all: its two ends are lists of what was said."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.carriers import Carried, Consumer, Downstream, Upstream
from dataplane.chain.filter import STEP, Filter, Row
from dataplane.chain.streaming import transforming
from dataplane.filters.registry import ROWS
from dataplane.http.heads import Head
from dataplane.http.messages import NO_NAMES, UNKNOWN, Peer, ResponseHead
from dataplane.proxy.exchange import CarriedExchange
from dataplane.upstream.endpoint import Lease
from tests.fakes.memory_proxy import ROUTES, MemoryProxy, Pending

OK = ResponseHead(200, b"HTTP/1.1 200 OK", b"\r\n", b"\r\n", UNKNOWN, True)
STEP_ROUTE = ROUTES.replace(
    "      backends:", "      policies: {headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}}\n      backends:"
)


class Client:
    """A downstream carrier: it writes down what it is told."""

    never_indexed = NO_NAMES

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.armed: list[float] = []
        self.blocks: list[bytes] = []
        self.joined: list[Any] = []
        self.is_blocked = False
        self.may_buffer = 65_536

    def never_index(self, names: frozenset[bytes]) -> None:
        """It has no tables."""

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        self.told.append(("head", length, first, end))
        self.blocks.append(block)

    def take_back(self) -> bool:
        return False

    def content(self, data: bytes, end: bool) -> None:
        self.told.append(("content", data, end))

    def trailers(self, lines: bytes) -> None:
        self.told.append(("trailers", lines))

    def interim(self, line: bytes, block: bytes) -> None:
        self.told.append(("interim", line))

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        self.told.append(("switch", first))

    def invite(self) -> None:
        self.told.append("invite")

    def over(self, now: float) -> None:
        self.told.append("over")

    def reset(self, cause: str) -> None:
        self.told.append(("reset", cause))

    def close_after(self) -> None:
        self.told.append("close after")

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def arm(self, moment: float) -> None:
        self.armed.append(moment)

    def join(self, up: Upstream) -> None:
        self.joined.append(up)


class Origin:
    """A kind of backend that is itself the upstream: it writes down what it is given, and answers by hand."""

    is_shared = False

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.consumer: Any = None

    def begin(self, holder: Any, *rest: Any) -> None:  # of a backend, and of an upstream
        if len(rest) == 2:
            holder.up = self
            holder.lease_ready(self)
        else:
            self.consumer = holder
            self.told.append(("begin", *rest[1:]))

    def content(self, data: bytes, end: bool) -> None:
        self.told.append(("content", data, end))

    def trailers(self, lines: bytes) -> None:
        self.told.append(("trailers", lines))

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def reset(self) -> None:
        self.told.append("reset")

    def discard(self) -> None:
        self.told.append("discard")


class World:
    """A proxy between a `Client` and an `Origin`, perhaps with a step of the test's own. `text`: its file."""

    def __init__(self, request: Any = None, response: Any = None, text: str = "", **hooks: Any) -> None:
        def build(config: object, env: object) -> Filter:
            return Filter("test", request, response, **hooks)

        step = Row("header_modifiers", build, STEP, "test")
        rows = tuple(step if row.name == "header_modifiers" else row for row in ROWS)
        self.proxy = MemoryProxy(text or (STEP_ROUTE if request or response or hooks else ROUTES), rows)
        self.client, self.origin = Client(), Origin()
        self.proxy.context.leases.backends = {"static": self.origin}

    def exchange(self, length: int = 0, method: bytes = b"POST") -> CarriedExchange:
        x = CarriedExchange(self.client, method, b"/a", Head(b"\r\nhost: a\r\n"), self.proxy.now)
        x.context = self.proxy.context
        x.bind = next(iter(self.proxy.applier.current.table.binds))
        x.path, x.host, x.client, x.peer = b"/a", b"a", Peer("192.0.2.9"), "192.0.2.9"
        x.context.recorder.active += 1
        if length:
            x.expect(length)
        x.start()
        return x


@pytest.mark.leaves("an exchange of the toy carrier, which the oracle cannot end")
def test_the_protocols_fit() -> None:
    world = World()
    x = world.exchange()
    protocols: tuple[Downstream, Upstream, Carried, Consumer, Lease] = (world.client, world.origin, x, x, x)
    assert all(protocols)


def test_a_message_passes_part_by_part() -> None:
    world = World()
    x = world.exchange(UNKNOWN)
    x.downstream_content(b"ab", False)
    x.downstream_trailers(b"x-sum: 1\r\n")
    assert world.origin.told == [("begin", b"", False), ("content", b"ab", False), ("trailers", b"x-sum: 1\r\n")]
    x.upstream_interim(ResponseHead(103, b"HTTP/1.1 103 Early Hints", b"\r\n", b"\r\n", 0, True))
    x.upstream_head(OK, b"c", False)
    x.upstream_content(b"de", False)
    x.upstream_trailers(b"x-end: 1\r\n")
    assert world.client.told == [
        ("interim", b"HTTP/1.1 103 Early Hints"),
        ("head", UNKNOWN, b"c", False),
        ("content", b"de", False),
        ("trailers", b"x-end: 1\r\n"),
        "over",
    ]
    assert " request.bytes=2 response.bytes=3 " in world.proxy.log_lines()[0]
    assert x.ended and x.up is None and not isinstance(x.down, Client)


def test_the_last_part_says_so() -> None:
    world = World()
    x = world.exchange()
    assert world.origin.told == [("begin", b"", True)]
    x.upstream_head(OK, b"all", True)
    assert world.client.told == [("head", UNKNOWN, b"all", True), "over"]


@pytest.mark.leaves("an exchange of the toy carrier, which the oracle cannot end")
def test_whoever_takes_no_more_stops_the_other_side() -> None:
    world = World()
    x = world.exchange(10)
    x.upstream_blocked()
    x.upstream_drained()
    x.upstream_head(OK, b"", False)
    x.downstream_blocked()
    x.downstream_drained()
    assert world.client.told == ["pause", "resume", ("head", UNKNOWN, b"", False)]
    assert world.origin.told == [("begin", b"", False), "pause", "resume"]


def test_a_response_that_breaks_off_is_reset() -> None:
    world = World()
    x = world.exchange()
    x.upstream_head(OK, b"half", False)
    x.upstream_lost("reset", False)
    assert world.client.told[1:] == [("reset", "UpstreamFailed")]
    assert "reason=UpstreamFailed" in world.proxy.log_lines()[0]


def test_a_tunnel_ends_when_both_directions_have() -> None:
    world = World()
    x = world.exchange()
    x.upgrade = b"chat"
    x.upstream_head(ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True, b"chat"), b"hi", False)
    x.downstream_content(b"ho", False)
    x.downstream_content(b"", True)
    assert world.origin.told[1:] == [("content", b"ho", False), ("content", b"", True)]
    assert world.client.told == [("switch", b"hi")]
    x.upstream_content(b"", True)
    assert world.client.told == [("switch", b"hi"), "over"]


# --- a client that leaves


class Cleans:
    """A step that waits, and whose cleanup waits too."""

    def __init__(self) -> None:
        self.step, self.cleanup = Pending(), Pending()
        self.seen: list[str] = []

    async def __call__(self, x: object) -> None:
        try:
            await self.step
            self.seen.append("went on")
        finally:
            self.seen.append("cleans")
            await self.cleanup
            self.seen.append("clean")


@pytest.mark.parametrize("side", ["request", "response"])
def test_steps_are_cancelled_and_the_line_follows_their_cleanup(side: str) -> None:
    step = Cleans()
    world = World(**{side: step})
    x = world.exchange()
    if side == "response":
        x.upstream_head(OK, b"", True)
    x.downstream_gone("ClientGone")
    assert step.seen == ["cleans"] and world.proxy.log_lines() == []
    step.step.set_result(None)
    step.cleanup.set_result(None)
    assert step.seen == ["cleans", "clean"]
    assert ["reason=ClientGone" in line for line in world.proxy.log_lines()] == [True]
    world.proxy.advance(2)
    assert len(world.proxy.log_lines()) == 1
    assert world.client.told == []


def test_the_line_waits_a_second_at_most() -> None:
    step = Cleans()
    world = World(request=step)
    world.exchange().downstream_gone("ClientGone")
    world.proxy.advance(1.05)
    assert len(world.proxy.log_lines()) == 1
    step.cleanup.set_result(None)
    assert step.seen == ["cleans", "clean"] and len(world.proxy.log_lines()) == 1


# --- what is left behind


def collected(run: Callable[[], None]) -> int:
    """Objects that only the garbage collector frees, after this."""
    run()  # what is made once
    gc.collect()
    gc.disable()
    try:
        run()
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("answer", [b"Content-Length: 2\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
def test_no_cycle_is_left(request_bytes: bytes, answer: bytes) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()

    def exchange() -> None:
        client.send(request_bytes)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\n" + answer)
        proxy.log_lines()

    assert collected(exchange) == 0


def test_no_cycle_is_left_by_a_body_that_nobody_takes() -> None:
    proxy = MemoryProxy(
        ROUTES.replace("      backends:", "      policies: {directResponse: {status: 403}}\n      backends:")
    )
    client = proxy.connect()

    def exchange() -> None:
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok")
        assert client.take().startswith(b"HTTP/1.1 403 ")
        proxy.log_lines()

    assert collected(exchange) == 0


def test_no_cycle_is_left_by_stages() -> None:
    def upper(x: object) -> Callable[[bytes, bool], bytes]:
        return lambda data, end: data.upper()

    hook = transforming(upper)
    step = Row("header_modifiers", lambda *_: Filter("test", request_stream=hook, response_stream=hook), STEP, "test")
    rows = tuple(step if row.name == "header_modifiers" else row for row in ROWS)
    proxy = MemoryProxy(STEP_ROUTE, rows)
    client = proxy.connect()

    def exchange() -> None:
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no")
        client.send(b"k")
        assert proxy.upstream.take().endswith(b"1\r\nO\r\n1\r\nK\r\n0\r\n\r\n")
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        proxy.upstream.answer(b"k")
        assert client.take().endswith(b"1\r\nO\r\n1\r\nK\r\n0\r\n\r\n")
        proxy.log_lines()

    assert collected(exchange) == 0
