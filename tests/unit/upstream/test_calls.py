"""Calls of policies in memory: bytes out, bytes in, a clock that is moved; nothing stays behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dataplane.backends.registry import ROWS as BACKENDS
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.net.writes import Writes
from dataplane.proxy.deadlines import Deadlines
from dataplane.table.plans import BackendPlan
from dataplane.table.table import Table
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.lease import Leases
from tests.fakes import rule_states
from tests.fakes.memory_proxy import FakeConnector, FakeUpstream, Pending

TCP, UNIX, SERVICE, NAME = (
    "backend/static/tcp",
    "backend/static/unix",
    "backend/service/shop/auth/9000",
    "backend/static/name",
)
GET = CallRequest(b"GET", b"/check?a=1")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Names:
    """A resolver that answers when the test says so."""

    def __init__(self) -> None:
        self.known: Sequence[Endpoint] | None = None
        self.ready: list[Callable[[], None]] = []

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> Sequence[Endpoint] | None:
        if self.known is None:
            self.ready.append(ready)
        return self.known


class Asked:
    """A call under way."""

    def __init__(self, work: Any) -> None:
        self.work = work
        self.answer: CallAnswer | None = None
        self.cause = ""
        self.text = ""
        self._run = self._outcome()
        self.go_on()

    def go_on(self) -> None:
        try:
            self._run.send(None).add_done_callback(lambda _: self.go_on())
        except StopIteration:
            return

    async def _outcome(self) -> None:
        try:
            self.answer = await self.work
        except CallFailed as error:
            self.cause, self.text = error.cause, str(error)

    def cancel(self) -> None:
        self._run.close()


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.writes = Writes(lambda flush: flush())
        self.connector = FakeConnector(self.writes, Recorder(Metrics.in_memory()))
        self.names = Names()
        self.deadlines = Deadlines(lambda: self.now, lambda at, call: None)
        self.tcp, self.unix = Endpoint("192.0.2.1", 9000), Endpoint("", 0, "/run/d.sock")
        self.others = (Endpoint("192.0.2.2", 9000), Endpoint("192.0.2.3", 9000))
        self.plans = {
            TCP: BackendPlan(TCP, (self.tcp,), authority=b"192.0.2.1:9000"),
            UNIX: BackendPlan(UNIX, (self.unix,)),
            SERVICE: BackendPlan(SERVICE, self.others, authority=b"auth.shop:9000"),
            NAME: BackendPlan(NAME, (), b"auth.example", 8443, b"auth.example:8443", kind="static"),
        }
        self.calls = HttpCalls(
            table=lambda: Table(backends=self.plans),
            leases=Leases(BACKENDS, self.connector, self.names, lambda: 0.0, rule_states=rule_states.local()),
            wake_at=self.deadlines.wake_at,
            make_future=Pending,
            clock=lambda: self.now,
        )

    def ask(self, request: CallRequest = GET, backend: str = TCP, max_body: int = 100) -> Asked:
        return Asked(self.calls.http(backend, request, 2.0, max_body))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.deadlines.sweep()

    @property
    def up(self) -> FakeUpstream:
        return self.connector.upstreams[-1]

    def idle(self, endpoint: Endpoint) -> FakeUpstream:
        """An idle connection, of a call that was."""
        self.ask()
        self.up.answer(OK)
        assert len(endpoint.idle) == 1
        self.up.take()
        return self.up

    def is_clean(self) -> bool:
        return all(endpoint.pending == 0 for endpoint in (self.tcp, self.unix, *self.others))


@pytest.fixture
def world() -> World:
    return World()


REQUESTS = {
    "an address": (TCP, GET, b"GET /check?a=1 HTTP/1.1\r\nhost: 192.0.2.1:9000\r\n\r\n"),
    "a socket": (UNIX, GET, b"GET /check?a=1 HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "a service": (SERVICE, GET, b"GET /check?a=1 HTTP/1.1\r\nhost: auth.shop:9000\r\n\r\n"),
    "an authority": (TCP, CallRequest(b"GET", b"/", b"vpnd.sock"), b"GET / HTTP/1.1\r\nhost: vpnd.sock\r\n\r\n"),
    "headers and a body": (
        TCP,
        CallRequest(b"POST", b"/", b"a", b"x-a: 1\r\n", b"hello"),
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-a: 1\r\n\r\nhello",
    ),
    "an empty body": (
        TCP,
        CallRequest(b"POST", b"/", b"a"),
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
    ),
}


@pytest.mark.parametrize(("backend", "request_", "sent"), REQUESTS.values(), ids=REQUESTS)
def test_what_is_sent(world: World, backend: str, request_: CallRequest, sent: bytes) -> None:
    asked = world.ask(request_, backend)
    assert world.up.received == sent
    world.up.answer(OK)
    assert asked.answer is not None and (asked.answer.status, asked.answer.body) == (200, b"hi")
    assert world.is_clean()


# Pieces that arrive, whether the endpoint closes then, and the body.
ANSWERS = {
    "a length": ([OK], False, b"hi"),
    "in pieces": ([OK[:10], OK[10:-1], OK[-1:]], False, b"hi"),
    "chunks": (
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n", b"1\r\ni\r\n0\r\n\r\n"],
        False,
        b"hi",
    ),
    "until it closes": ([b"HTTP/1.1 200 OK\r\n\r\nh", b"i"], True, b"hi"),
    "no body": ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], False, b""),
    "1xx before it": ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n", OK], False, b"hi"),
    "as much as is allowed": ([b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b"x" * 100], False, b"x" * 100),
}


@pytest.mark.parametrize(("pieces", "closes", "body"), ANSWERS.values(), ids=ANSWERS)
def test_what_comes_back(world: World, pieces: list[bytes], closes: bool, body: bytes) -> None:
    asked = world.ask()
    for piece in pieces:
        assert asked.answer is None
        world.up.answer(piece)
    if closes:
        world.up.lose()
    assert asked.answer is not None and (asked.answer.status, asked.answer.body) == (200, body)
    assert world.is_clean()
    assert len(world.tcp.idle) == (not closes)


def test_headers_of_the_answer(world: World) -> None:
    asked = world.ask()
    world.up.answer(b"HTTP/1.1 403 Forbidden\r\nX-User: ann\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    assert asked.answer is not None and asked.answer.status == 403
    assert asked.answer.head.get(b"x-user") == b"ann"
    assert asked.answer.head.get(b"connection") is None
    assert not world.tcp.idle


# What arrives, whether the endpoint closes then, the cause.
FAILURES = {
    "nothing": (b"", True, "lost"),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-le", True, "lost"),
    "half a body": (OK[:-1], True, "lost"),
    "garbage": (b"SSH-2.0-OpenSSH\r\n\r\n", False, "invalid"),
    "two lengths": (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", False, "invalid"),
    "bad chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", False, "invalid"),
    "another protocol": (b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", False, "invalid"),
    "a length too large": (b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n", False, "too_large"),
    "too much": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101, False, "too_large"),
}


@pytest.mark.parametrize(("answer", "closes", "cause"), FAILURES.values(), ids=FAILURES)
def test_no_answer(world: World, answer: bytes, closes: bool, cause: str) -> None:
    asked = world.ask()
    if answer:
        world.up.answer(answer)
    if closes:
        world.up.lose()
    assert asked.cause == cause and asked.text.startswith("192.0.2.1:9000")
    assert world.is_clean() and not world.up.open and not world.tcp.idle


def test_a_backend_that_is_not_there(world: World) -> None:
    assert world.ask(backend="backend/static/gone").cause == "unresolved"
    world.plans[TCP] = BackendPlan(TCP, ())
    assert world.ask().cause == "unresolved"


def test_nobody_listens(world: World) -> None:
    world.connector.refuse = "connect to 192.0.2.1:9000 failed: Connection refused"
    asked = world.ask()
    assert (asked.cause, asked.text) == ("connect", world.connector.refuse)
    assert world.is_clean()


def test_nobody_listens_at_one_of_two_addresses(world: World) -> None:
    world.connector.hold = True
    asked = world.ask(backend=SERVICE)
    ((first, done),) = world.connector.waiting
    world.connector.waiting.clear()
    done(None, "refused")
    ((second, _),) = world.connector.waiting
    assert {first, second} == set(world.others)
    world.connector.release()
    world.up.answer(OK)
    assert asked.answer is not None and world.is_clean()


def test_a_name_is_waited_for(world: World) -> None:
    asked = world.ask(backend=NAME)
    assert not world.connector.upstreams
    world.names.known = world.others[:1]
    world.names.ready[0]()
    assert world.up.received.startswith(b"GET /check?a=1 HTTP/1.1\r\nhost: auth.example:8443\r\n")
    world.up.answer(OK)
    assert asked.answer is not None and world.is_clean()


def test_a_name_that_does_not_resolve(world: World) -> None:
    world.names.known = ()
    assert world.ask(backend=NAME).cause == "unresolved"


def test_idle_connections_are_used(world: World) -> None:
    up = world.idle(world.tcp)
    asked = world.ask()
    assert world.connector.upstreams == [up] and up.received.startswith(b"GET /check")
    up.answer(OK)
    assert asked.answer is not None


def test_a_get_on_a_stale_connection_is_sent_once_more(world: World) -> None:
    stale = world.idle(world.tcp)
    asked = world.ask()
    stale.lose()
    assert world.up is not stale and world.up.received == stale.received
    world.up.answer(OK)
    assert asked.answer is not None and world.is_clean()


def test_once_more_and_no_more(world: World) -> None:
    stale = world.idle(world.tcp)
    asked = world.ask()
    stale.lose()
    world.up.lose()
    assert asked.cause == "lost" and len(world.connector.upstreams) == 2


def test_a_post_is_not_sent_twice(world: World) -> None:
    stale = world.idle(world.tcp)
    asked = world.ask(CallRequest(b"POST", b"/", b"a", b"", b"x"))
    stale.lose()
    assert asked.cause == "lost" and len(world.connector.upstreams) == 1


@pytest.mark.parametrize("answer", [b"", OK[:20], OK[:-1]])
def test_the_deadline_is_for_all_of_it(world: World, answer: bytes) -> None:
    asked = world.ask()
    if answer:
        world.up.answer(answer)
    world.advance(1.9)
    assert asked.cause == ""
    world.advance(0.2)
    assert asked.cause == "timeout" and asked.text == "192.0.2.1:9000 gave no answer within 2 s"
    assert world.is_clean() and world.up.aborted


def test_a_connection_that_comes_after_the_deadline_is_kept_for_others(world: World) -> None:
    world.connector.hold = True
    asked = world.ask()
    world.advance(2.1)
    assert asked.cause == "timeout" and world.is_clean()
    world.connector.release()
    assert len(world.tcp.idle) == 1 and world.up.received == b""


def test_a_name_that_comes_after_the_deadline_is_not_asked(world: World) -> None:
    asked = world.ask(backend=NAME)
    world.advance(2.1)
    world.names.known = world.others
    world.names.ready[0]()
    assert asked.cause == "timeout" and not world.connector.upstreams and world.is_clean()


def test_whoever_is_cancelled_gives_the_connection_up(world: World) -> None:
    asked = world.ask()
    asked.cancel()
    assert world.up.aborted and world.is_clean() and not world.tcp.idle
    world.advance(3)  # its deadline wakes nobody


def test_whoever_is_cancelled_while_it_connects(world: World) -> None:
    world.connector.hold = True
    world.ask().cancel()
    assert world.is_clean()
    world.connector.release()
    assert [type(each) for each in world.tcp.idle] == [UpstreamConnection]


def test_latency_counts_for_the_choice(world: World) -> None:
    before = world.tcp.latency
    world.ask()
    world.now += 0.5
    world.up.answer(OK)
    assert world.tcp.latency > before


def test_a_failed_call_is_freed_at_once(world: World) -> None:
    failures: list[weakref.ref[CallFailed]] = []

    async def ask() -> None:
        try:
            await world.calls.http("backend/static/gone", GET, 2.0)
        except CallFailed as error:
            failures.append(weakref.ref(error))

    gc.disable()
    try:
        with pytest.raises(StopIteration):
            ask().send(None)
        assert [failure() for failure in failures] == [None]
    finally:
        gc.enable()
